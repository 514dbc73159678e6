"""``weftwork topology FILE --without random:2%``: bandwidth after random losses."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, Self

from rich.table import Table

from weftwork.base.grammar import plural
from weftwork.report.words import amount
from weftwork.topology.random_loss import KEEPS

if TYPE_CHECKING:
    from rich.console import Console

    from weftwork.spec.fabric import Fabric
    from weftwork.topology.random_loss import RandomLoss, SeedShare

__all__ = ["SeedsLine", "print_random", "random_record"]

QUIET_S: Final = 1.0  # as `weftwork.cli.progress`: what is done in a second needs no progress


class SeedsLine:
    """One line of progress on standard error, if that is a terminal.

    Use it as a context manager.
    """

    def __init__(self) -> None:
        self._is_on = sys.stderr is not None and sys.stderr.isatty()
        self._made_s = time.monotonic()
        self._is_written = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_written:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()

    def __call__(self, done: int, of: int) -> None:
        """Show the number of finished seeds."""
        elapsed_s = time.monotonic() - self._made_s
        if not self._is_on or elapsed_s < QUIET_S:
            return
        left = f", {elapsed_s / done * (of - done):.0f} s left" if done else ""
        sys.stderr.write(f"\r\033[K{done:,} of {plural(of, 'seed')}{left}")
        sys.stderr.flush()
        self._is_written = True


def random_record(loss: RandomLoss) -> dict[str, Any]:
    """Random losses as JSON values, with units in the names."""
    return {"random": asdict(loss)}


def print_random(out: Console, fabric: Fabric, loss: RandomLoss, certain: tuple[str, ...] = ()) -> None:
    """Print the remaining bandwidth of random losses, with probabilities.

    Parameters
    ----------
    out : where
    fabric : as it was
    loss : what was found
    certain : names of what is lost in every seed besides
    """
    besides = f", and without {', '.join(certain)}" if certain else ""
    out.print(f"{fabric.name}, without {loss.text}{besides}", style="bold", markup=False, soft_wrap=True)
    what = "links between switches" if loss.kind == "links" else "switches"
    how = (
        f"each with probability {100 * loss.probability:g}%: {loss.lost_mean:,.1f} on average"
        if loss.probability is not None
        else f"{loss.count:,} of them"
    )
    out.print(
        f"Lost of {loss.candidates:,} {what}, {how}. {plural(loss.seeds, 'seed')}, from 0.",
        markup=False,
        soft_wrap=True,
    )
    out.print()
    table = Table(box=None, pad_edge=False)
    for heading, justify in (("bisection", "left"), ("left", "right"), ("rate", "right")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]  # rich types it as a literal
    rows = [("whole", 1.0), ("mean", loss.mean), ("5% of seeds keep at most", loss.p5), ("median", loss.p50),
            ("95% of seeds keep at most", loss.p95), (f"worst, seed {loss.worst_seed}", loss.worst_kept)]  # fmt: skip
    for words, share in rows:
        table.add_row(words, f"{share:.1%}", amount(share * loss.whole.rate_bps, "b/s"))
    out.print(table)
    out.print()
    out.print(f"At least {KEEPS:.0%} of the bisection is left in {_words(loss.keeps)}.", soft_wrap=True)
    out.print(f"All hosts that reached each other still do in {_words(loss.joined)}.", soft_wrap=True)
    if loss.legal is not None:
        out.print(f"All leaves keep routes without a valley in {_words(loss.legal)}.", soft_wrap=True)
    if not loss.crosses:
        out.print(
            "The halves of the hosts share leaves here, so bisection needs no link between switches. It does not"
            " measure losses of traffic between rails.",
            soft_wrap=True,
        )
    out.print(f"Bisection is exact for every seed ({loss.whole.method}).", soft_wrap=True)
    out.print(
        f"The worst loss by itself: --without {loss.text}@{loss.worst_seed}", markup=False, soft_wrap=True, style="dim"
    )


def _words(share: SeedShare) -> str:
    """A share of seeds with its interval."""
    return (
        f"{share.share:.1%} of the seeds ({share.seeds:,} of {share.of:,}; 95% interval {share.low:.1%} to"
        f" {share.high:.1%})"
    )
