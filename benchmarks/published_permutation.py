"""A sprayed permutation of 8,192 hosts beside the Ultra Ethernet reference model: tail and least flow completion time.

    python benchmarks/published_permutation.py [--full] [--control rccc] [--answers] [--markdown]

The rows of `weftwork validate uet` with the largest messages too. Fabric, queues, marks and first windows are those of
the published runs; `weftwork.study.validation.ultra_ethernet` says what is chosen.
Source: github.com/ultraethernet/uet-htsim, main_uec.cpp, uec.cpp and topologies/leaf_spine_8192_*.topo.
Leaves out: oversubscribed and broken fabrics, 800 Gb/s.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from weftwork.base.clock import US_PS
from weftwork.study.validation.ultra_ethernet import permutations

if TYPE_CHECKING:
    from weftwork.engine.outcome import Outcome
    from weftwork.study.validation.ultra_ethernet import UetRow

__all__ = ["Found", "main", "measure"]

QUICK_BYTES: Final = 4_000_000  # larger messages only with --full
MOST_BYTES: Final = 100_000_000
PS_PER_US: Final = float(US_PS)
EVERY_ANSWER: Final = (("good_every", 1),)


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """One row and what Weftwork says to it.

    Parameters
    ----------
    row : as published
    tail_us, least_us : of Weftwork
    cut_share : packets cut, of all that were sent
    """

    row: UetRow
    tail_us: float
    least_us: float
    cut_share: float


def measure(row: UetRow, outcome: Outcome) -> Found:
    """Read completion times and cuts from a run of a row.

    Parameters
    ----------
    row : that was run
    outcome : of it
    """
    ends_ps = outcome.messages["acked_at_ps"]
    return Found(
        row=row,
        tail_us=float(ends_ps.max()) / PS_PER_US,
        least_us=float(ends_ps.min()) / PS_PER_US,
        cut_share=outcome.counters["trims"] / outcome.counters["data_sent"],
    )


def main() -> None:
    """Run the rows and print the table."""
    arguments = _arguments()
    rows, excluded = permutations(is_full=True, most_bytes=MOST_BYTES if arguments.full else QUICK_BYTES)
    wanted = [row for row in rows if row.control == arguments.control]
    if not wanted:
        raise SystemExit(f"found no row of {arguments.control} that can run; {len(excluded)} rows are left out")
    found = []
    begin_s = time.perf_counter()
    for row in wanted:
        if sys.stderr.isatty():
            print(f"\r\033[K{row.name}", end="", file=sys.stderr)
        chosen = replace(row, path_parameters=EVERY_ANSWER) if arguments.answers else row
        found.append(measure(row, chosen.run()))
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    took_s = time.perf_counter() - begin_s
    print(f"{dt.datetime.now(dt.UTC).date().isoformat()}, {arguments.control}, {took_s:.0f} s\n")
    print(_table(found, is_markdown=arguments.markdown))
    tail = sum(abs(one.tail_us / one.row.tail_us - 1) for one in found) / len(found)
    least = sum(abs(one.least_us / one.row.least_us - 1) for one in found) / len(found)
    print(f"\nmean absolute difference: tail {tail:.1%}, least {least:.1%}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help="all sizes, up to 100 MB: hours")
    parser.add_argument("--control", choices=["nscc", "rccc"], default="nscc", help="which rows")
    parser.add_argument("--answers", action="store_true", help="every clean answer counts for the paths, not a fourth")
    parser.add_argument("--markdown", action="store_true", help="print a table for docs/models/published.md")
    return parser.parse_args()


def _table(found: list[Found], *, is_markdown: bool) -> str:
    head = ["rate", "size", "paths", "tail", "Weftwork", "difference", "least", "Weftwork", "difference", "cut"]
    cells = [head, *(_cells(one) for one in found)]
    if is_markdown:
        lines = [f"| {' | '.join(line)} |" for line in cells]
        lines.insert(1, "|" + "---:|" * len(head))
        return "\n".join(lines)
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def _cells(one: Found) -> list[str]:
    row = one.row
    return [
        f"{row.rate_bps // 10**9} Gb/s",
        f"{row.message_bytes // 10**6} MB",
        str(row.paths),
        f"{row.tail_us:.1f} us",
        f"{one.tail_us:.1f} us",
        f"{one.tail_us / row.tail_us - 1:+.1%}",
        f"{row.least_us:.2f} us",
        f"{one.least_us:.2f} us",
        f"{one.least_us / row.least_us - 1:+.2%}",
        f"{one.cut_share:.2%}",
    ]


if __name__ == "__main__":
    main()
