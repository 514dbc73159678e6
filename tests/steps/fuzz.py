"""Feeds random scenario files to the command line, each in a process of its own with little memory and little time.

Every file ends as a user may expect: a result, or a refusal in words. A traceback, a crash, a hang, and memory above
the limit are failures; the file of each is kept and its number repeats it.
Usage: python tests/steps/fuzz.py [--cases 1000] [--turn T] [--seed 1] [--only NUMBER] [--keep FOLDER]
Leaves out: laws that results obey (`tests/laws/test_fuzz_scenarios.py`), files that are no YAML at all
(`tests/laws/test_scenario_fuzz.py`).
"""

from __future__ import annotations

import argparse
import copy
import faulthandler
import importlib
import os
import pkgutil
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import yaml

sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers.kept_seeds import in_order, keep_seed
from planner.plan import TURNS

import weftwork as package
from weftwork.cli import main as weftwork
from weftwork.hardware.catalogue import GPUS, NICS, SERVERS, SWITCHES
from weftwork.policies.load import load, policy_names
from weftwork.spec.scenario.kinds import (
    Choice,
    DeviceKind,
    FileName,
    Flag,
    Listing,
    Measure,
    NameOrFile,
    Number,
    OfferKind,
    PolicyChoiceKind,
    Section,
    SectionList,
    Selection,
    Text,
    Whole,
)  # fmt: skip
from weftwork.spec.scenario.policies import POLICY_KINDS
from weftwork.spec.scenario.rows import KeyRow
from weftwork.spec.scenario.scenario import rows

LIMIT_BYTES: Final = 2 * 2**30
LIMIT_S: Final = 10
STOP_S: Final = 5  # for a run that is asked to stop; a machine may be busy
NAMES: Final = {"switch": SWITCHES, "nic": NICS, "node": SERVERS, "gpu": GPUS, "model": ("llama-3-8b",),
                "software": ("plain",)}  # fmt: skip
BASES: Final = tuple(yaml.safe_load_all((Path(__file__).parent / "fuzz_bases.yaml").read_text(encoding="utf-8")))


def tame_or_wild(row: KeyRow, rng: random.Random) -> Any:  # noqa: PLR0911 - one for each kind
    """A value for a key: half of the time one that may well be meant, else one at or beyond the edge."""
    kind, wild, outside = row.kind, rng.random() < 0.5, rng.random() < 0.05
    match kind:
        case Whole() | Number() if outside:
            return rng.choice([-1, 2**31, 10**18, 0.5, 1e300, float("inf"), "many"])
        case Whole(low=low, high=high):
            between = round(low + (high - low) ** rng.random())
            return rng.choice([low, high, between, between]) if wild else rng.randint(low, min(high, low + 12))
        case Number(low=low, high=high, above=above):
            start = above if above is not None else low if low is not None else 0.0
            end = high if high is not None else 1e300
            edges = [start + 1e-300, start + 1e-12, end, end * (1 - 1e-12), min(end, 10.0 ** rng.randint(-18, 18))]
            return rng.choice(edges) if wild else round(rng.uniform(start, min(end, start + 2)), 3)
        case Measure(allowed=allowed) if allowed and not outside:
            return rng.choice(allowed)
        case Measure(quantity=quantity, low=low, high=high):
            if outside:
                return rng.choice(["-1s", "1e30B", "1e-9bps", "9007199m", 5])
            if wild:
                most = high if high is not None else {"ps": 2 * 10**18, "bytes": 2**62}.get(quantity.suffix, 10**14)
                return kind.write(rng.choice([low, max(low, 1), most, round(max(low, 1) + most ** rng.random())]))
            return f"{rng.choice([1, 2, 20, 100, 1.5]):g}{rng.choice(sorted(quantity.preferred))}"
        case Choice(options=options):
            return rng.choice(options)
        case Flag():
            return rng.random() < 0.5
        case OfferKind(folder=folder):
            return rng.choice([*folder, *(["./no.py"] * outside)])
        case PolicyChoiceKind(folder=folder):
            return rng.choice([*policy_names(folder), {"name": "dcqcn", "g": 1e-300}])
        case DeviceKind(catalogue=catalogue) | NameOrFile(catalogue=catalogue):
            return rng.choice([*NAMES.get(catalogue, ("plain",)), *(["no-such"] * outside)])
        case FileName(names=names):
            return rng.choice([*names, *(["no.csv"] * (outside or not names))])
        case Text():
            return rng.choice(["leaf0-spine0", "leaf0", "host1-leaf0", "é" * 100, "<b>", "2024", "a: b", "\U0001f600"])
        case Listing(item=item, length=length) | Selection(item=item, length=length):  # type: ignore[misc]
            return [tame_or_wild(KeyRow(key="x", kind=item, text="", source=""), rng) for _ in range(length or 2)]
        case _:
            return rng.choice([{}, [], None, 1, "x"])


def scenario_text(number: int, seed: int) -> str:
    """The file of a number: a base, with one to four keys that are drawn, and now and then a damaged character."""
    rng = random.Random(f"{seed} {number}")
    tree = {"schema": 3, "name": f"fuzz {number}", **copy.deepcopy(rng.choice(BASES))}
    known = [row for row in rows() if "." in row.path and not isinstance(row.kind, Section | SectionList)]
    known = [row for row in known if not (row.key in {"model", "name"} and isinstance(row.kind, Text))]  # devices
    near = [row for row in known if row.path.split(".")[0] in tree]
    there = [row for row in near if _is_there(tree, row.path.split("."))]
    if rng.random() < 0.8 and "training" not in tree and "jobs" not in tree:
        tree.setdefault("engine", {})["until"] = "300us"  # else a size of terabytes takes all of its time
    for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 4])):
        put(tree, rng.choice(rng.choices([there, near, known], [5, 4, 1])[0]), rng)
    text = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)
    if rng.random() < 0.05:
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice("\t\x00{}[]:&*!|>%@`'\"\\\u2028é") + text[at + 1 :]
    return text


def _is_there(tree: Any, way: list[str]) -> bool:
    """Whether a file has a key."""
    if isinstance(tree, list):
        return any(_is_there(item, way) for item in tree)
    return not way or (isinstance(tree, dict) and way[0] in tree and _is_there(tree[way[0]], way[1:]))


def put(
    tree: dict[str, Any], row: KeyRow, rng: random.Random, draw: Callable[[KeyRow, random.Random], Any] = tame_or_wild
) -> None:
    """Give a key its value, in every item of a list on the way, and in a device that was only a name."""
    *way, last = row.path.split(".")
    places: list[dict[str, Any]] = [tree]
    for name in way:
        below: list[dict[str, Any]] = []
        for place in places:
            inside = place.get(name)
            if isinstance(inside, list) and inside:
                below += [copy.copy(item) for item in inside if isinstance(item, dict)]
                place[name] = below[-len(inside) :]
            else:
                head = {"name" if name == "software" else "model": inside} if isinstance(inside, str) else {}
                place[name] = inside if isinstance(inside, dict) else head
                below.append(place[name])
        places = below
    for place in places:
        place[last] = draw(row, rng)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """How a process ended: in words, whether that is a failure, and what it took."""

    how: str
    is_failure: bool
    wall_s: float
    most_bytes: int
    said: str


def try_file(number: int, seed: int, folder: Path) -> Ending:
    """Feed one file to a command in a forked process."""
    own = folder / str(number)
    own.mkdir()
    path, said = own / "fuzz.yaml", own / "said.txt"
    path.write_text(scenario_text(number, seed), encoding="utf-8")
    command = random.Random(f"command {seed} {number}").choices(
        [["run", "fuzz.yaml", "--out", "run"], ["topology", "fuzz.yaml"], ["explain", "fuzz.yaml"]], [20, 1, 1]
    )[0]  # fmt: skip
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        _be_the_command(command, own, said)
    is_late = False
    status, usage = _wait(child, began + LIMIT_S)
    if status is None:
        is_late = True
        os.kill(child, signal.SIGINT)
        status, usage = _wait(child, time.monotonic() + STOP_S)
    is_hung = status is None
    if is_hung:
        os.kill(child, signal.SIGABRT)  # faulthandler says where
        _, status, usage = os.wait4(child, 0)
    wall_s = time.monotonic() - began
    text = said.read_text(encoding="utf-8", errors="replace") if said.exists() else ""
    how, is_failure = _judge(status or 0, text, is_late=is_late, is_hung=is_hung)
    most_bytes = usage.ru_maxrss * 1024
    if most_bytes > LIMIT_BYTES and not is_failure:
        how, is_failure = "more memory than the limit", True
    return Ending(how=how, is_failure=is_failure, wall_s=wall_s, most_bytes=most_bytes, said=text)


def _judge(status: int, said: str, *, is_late: bool, is_hung: bool) -> tuple[str, bool]:
    if is_hung:
        return f"did not stop within {STOP_S} s", True
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}", True
    if "Traceback" in said:
        return "traceback", True
    if "an error of Weftwork itself" in said:
        return "an error of Weftwork itself", True
    code = os.WEXITSTATUS(status)
    if is_late:
        return ("stopped after its time", False) if code == 130 else (f"late, exit code {code}", code not in {0, 1})
    words = {0: "done", 1: "done, not all arrived", 2: "refused"}
    if code == 2 and "of memory, wanted at most" in said:
        return "refused for its memory", False
    return words.get(code, f"exit code {code}"), code not in words


def _be_the_command(command: list[str], folder: Path, said: Path) -> None:
    """What the forked process does; it never returns."""
    code = 70
    try:
        os.chdir(folder)
        out = os.open(said, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(out, 2)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        faulthandler.enable(all_threads=True)
        resource.setrlimit(resource.RLIMIT_DATA, (LIMIT_BYTES, LIMIT_BYTES))
        sys.argv = ["weftwork", *command]
        weftwork()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - the parent reads what it was
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait(child: int, until: float) -> tuple[int | None, Any]:
    """Wait for the process until an instant of the monotonic clock."""
    descriptor = os.pidfd_open(child)
    try:
        import select

        ready, _, _ = select.select([descriptor], [], [], max(0.0, until - time.monotonic()))
    finally:
        os.close(descriptor)
    if not ready:
        return None, None
    _, status, usage = os.wait4(child, 0)
    return status, usage


def warm() -> None:
    """Import and compile here what every forked process needs, without a thread."""
    import duckdb  # noqa: F401
    import scipy.stats  # noqa: F401

    for module in pkgutil.walk_packages(package.__path__, "weftwork."):
        importlib.import_module(module.name)
    for kind in POLICY_KINDS:
        for name in policy_names(kind):
            load(kind, name, {}).compile()


def main() -> int:
    """Try all files; exit code 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--turn", type=int, help="of every ten numbers this one alone, beside those that failed before")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="a number to repeat; prints its file and what the command said")
    parser.add_argument("--keep", type=Path, help="folder for the files; by default a temporary one")
    asked = parser.parse_args()
    if asked.only is not None:
        print(scenario_text(asked.only, asked.seed))
        with tempfile.TemporaryDirectory() as folder:
            ending = try_file(asked.only, asked.seed, Path(folder))
        print(ending.said, f"{ending.how}; {ending.wall_s:.1f} s, {ending.most_bytes / 2**20:.0f} MiB", sep="\n")
        return int(ending.is_failure)
    warm()

    folder = Path(tempfile.mkdtemp()) if asked.keep is None else asked.keep
    endings: Counter[str] = Counter()
    failed: list[tuple[int, Ending]] = []
    slowest = largest = (0.0, 0)
    every = range(asked.first, asked.first + asked.cases)
    numbers = in_order("fuzz", every if asked.turn is None else every[asked.turn % TURNS :: TURNS])
    one = partial(try_file, seed=asked.seed, folder=folder)
    with ProcessPoolExecutor(max_workers=os.cpu_count(), mp_context=get_context("fork")) as pool:  # no thread forks
        for number, ending in zip(numbers, pool.map(one, numbers), strict=True):
            endings[ending.how] += 1
            slowest, largest = max(slowest, (ending.wall_s, number)), max(largest, (ending.most_bytes, number))
            if ending.is_failure:
                failed.append((number, ending))
                print(f"{number}: {ending.how}\n{ending.said[-1500:]}\n{keep_seed('fuzz', number)}", flush=True)
    for how, count in endings.most_common():
        print(f"{count:>6,}  {how}")
    print(
        f"{len(numbers):,} of {asked.cases:,} files of seed {asked.seed}"
        f" with {LIMIT_BYTES / 2**30:g} GiB and {LIMIT_S} s each: {len(failed)} failed;"
        f" slowest {slowest[0]:.1f} s (number {slowest[1]}),"
        f" most memory {largest[0] / 2**20:,.0f} MiB (number {largest[1]})"
    )
    if failed:
        print("failed:", *(number for number, _ in failed), f"; repeat with --only NUMBER; files: {folder}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
