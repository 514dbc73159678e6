"""What it costs that a run of the packet engine keeps a timeline and paths: CPU time with and without, interleaved.

    python benchmarks/recording.py permutation

Rows are those of `rows`. One process, one thread; the results are compared, since recording must change nothing.
Leaves out: writing the tables, which a study does afterwards.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import TYPE_CHECKING

from rows import ROWS

from weftwork.engine import packet
from weftwork.engine.packet import Series
from weftwork.study.prepare.recording import PATH_SAMPLE, TIMELINE_BINS

if TYPE_CHECKING:
    from weftwork.engine.packet_input import PacketInput

REPETITIONS = 9


def _once(engine_input: PacketInput, series: Series | None) -> tuple[float, str]:
    begin_s = time.thread_time()
    outcome = packet.run(engine_input, series=series)
    return time.thread_time() - begin_s, outcome.digest()


def main(name: str) -> None:
    """Measure one row and print the two medians and their ratio.

    Parameters
    ----------
    name : of the row
    """
    row = ROWS[name]
    engine_input = row.engine_input(row.fabric())
    recorded = Series(timeline_bins=TIMELINE_BINS, path_sample=PATH_SAMPLE)
    kept: dict[bool, list[float]] = {False: [], True: []}
    digests = {_once(engine_input, None)[1]}  # the first run compiles the policies
    for _ in range(REPETITIONS):
        for is_recorded, times in kept.items():
            took_s, digest = _once(engine_input, recorded if is_recorded else None)
            times.append(took_s)
            digests.add(digest)
    if len(digests) != 1:
        raise SystemExit(f"{name}: recording changed the result")
    plain_s, with_s = statistics.median(kept[False]), statistics.median(kept[True])
    print(
        f"{name}: {plain_s:.3f} s without, {with_s:.3f} s with, ratio {with_s / plain_s:.3f}, median of {REPETITIONS}"
    )


if __name__ == "__main__":
    main(sys.argv[1])
