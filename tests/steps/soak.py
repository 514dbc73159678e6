"""Both packet engines on random plans for as long as is asked: equal digests, or the seed of each plan that differs.

Plans are those of `laws.scenarios`, of five families in turn. A plan that differs, or breaks an engine, is told at
once with the command that repeats it. At the end stand the plans by family and by feature, and the time.
Usage: python tests/steps/soak.py [MINUTES] [--plans N] [--turn T] [--seed FIRST] [--family NAME] [--workers N]
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers.both import both_or_neither, packet_hops
from helpers.kept_seeds import keep_seed, kept_seeds
from laws import test_engines_agree, test_wide_plans_agree
from laws.scenarios import random_plan
from planner.plan import TURNS

from weftwork.base.errors import ConfigError, WeftworkError

FAMILIES: Final[dict[str, dict[str, bool]]] = {
    "wide": {"is_wide": True},
    "plain": {},
    "wide-calm": {"is_wide": True, "is_calm": True},
    "torn": {"is_torn": True},
    "calm": {"is_calm": True},
}
FIRST_SEED: Final = 1_000_000  # chosen: beyond the seeds of the suite
AT_A_TIME: Final = 20  # plans of a piece of work
# chosen: packet-hops of a plan that `.ci/run` compares, a second of the reference. A storm of retransmissions has 30
# times as many and takes longer than 1,000 other plans. A turn counts such plans; a soak without one compares them.
MOST_HOPS_IN_A_TURN: Final = 20_000


class Piece(NamedTuple):
    """What a worker has seen: family, plans, features, and the failures as (seed, what)."""

    family: str
    plans: int
    features: Counter[str]
    failures: list[tuple[int, str]]


def looked_at(family: str, first: int, count: int, most_hops: int | None = None) -> Piece:
    """Run ``count`` plans of one family on both engines, those with at most so many packet-hops."""
    piece = Piece(family, count, Counter(), [])
    for seed in range(first, first + count):
        try:
            engine_input = random_plan(seed, **FAMILIES[family])
        except ConfigError:  # neither engine is asked: a path around a fault may be longer than a policy allows
            piece.features["refused before a run"] += 1
            continue
        try:
            if most_hops is not None and packet_hops(engine_input) > most_hops:
                piece.features[f"left out in a turn: more than {most_hops:,} packet-hops"] += 1
                continue
            outcome = both_or_neither(engine_input, f"{family} plan {seed}")
        except (AssertionError, WeftworkError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            piece.failures.append((seed, f"{type(error).__name__}: {error}"))
            continue
        if outcome is None:
            piece.features["refused by both"] += 1
            continue
        piece.features.update(test_engines_agree.features(engine_input, outcome))
        piece.features.update(test_wide_plans_agree.features(engine_input, outcome))
    return piece


def main() -> int:
    """Run plans until the limit; 1 if any of them failed."""
    arguments = parsed()
    started_s = time.monotonic()
    names = [arguments.family] if arguments.family else list(FAMILIES)
    most_hops = None if arguments.turn is None else MOST_HOPS_IN_A_TURN
    done, features, failures = Counter[str](), Counter[str](), 0
    with ProcessPoolExecutor(arguments.workers) as pool:
        kept = ((each.family, each.number, 1) for each in kept_seeds("soak") if each.family in names)
        rest = itertools.chain(kept, pieces(names, arguments.seed, arguments.plans, arguments.turn))
        pending: set[Future[Piece]] = set()
        while True:
            is_time_left = time.monotonic() - started_s < 60 * arguments.minutes
            if is_time_left:
                free = 2 * arguments.workers - len(pending)
                pending |= {pool.submit(looked_at, *each, most_hops) for each in itertools.islice(rest, free)}
            if not pending:
                break
            ready, pending = wait(pending, return_when=FIRST_COMPLETED)
            for piece in (future.result() for future in ready):
                done[piece.family] += piece.plans
                features.update(piece.features)
                failures += len(piece.failures)
                for seed, what in piece.failures:
                    print(f"FAILED {piece.family} plan {seed}: {what}", keep_seed("soak", seed, piece.family), sep="\n")
                    print(f"  again: python tests/steps/soak.py --family {piece.family} --seed {seed} --plans 1")
            print(f"{sum(done.values()):,} plans, {failures} failed, {time.monotonic() - started_s:,.0f} s", flush=True)
    for name, count in sorted(features.items()):
        print(f"{count:>8,}  {name}")
    by_family = ", ".join(f"{name} {count:,}" for name, count in done.items())
    print(f"{sum(done.values()):,} plans ({by_family}) in {time.monotonic() - started_s:,.0f} s: {failures} failed")
    return 1 if failures else 0


def parsed() -> argparse.Namespace:
    """The arguments, as the docstring of the file names them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("minutes", nargs="?", type=float, default=60.0)
    parser.add_argument("--plans", type=int, default=20_000)
    parser.add_argument("--turn", type=int, help="of every ten rounds of the families this one alone")
    parser.add_argument("--seed", type=int, default=FIRST_SEED)
    parser.add_argument("--family", choices=FAMILIES)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    return parser.parse_args()


def pieces(names: list[str], seed: int, plans: int, turn: int | None = None) -> Iterator[tuple[str, int, int]]:
    """Pieces of work, the families one after the other; of every ten rounds one, where a turn is given."""
    for number in range(-(-plans // AT_A_TIME)):
        round_, place = divmod(number, len(names))
        if turn is None or round_ % TURNS == turn % TURNS:
            yield names[place], seed + round_ * AT_A_TIME, min(AT_A_TIME, plans - number * AT_A_TIME)


if __name__ == "__main__":
    sys.exit(main())
