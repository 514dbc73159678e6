"""Times one row of `rows`, in a process of its own that answers one line for each line it is given.

CPU time of the thread is taken around the advance of the engine alone; building, lowering, compiling policies and
handing arrays over are timed apart. Peak memory covers the whole process, with Python and Numba.
Leaves out: medians and targets (`packet_engine`).
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from line_protocol import peak_rss_bytes, serve
from rows import ROWS, Row, series_of

from weftwork.engine import _native, packet
from weftwork.engine.reference.simulation import Simulation

if TYPE_CHECKING:
    from weftwork.engine.outcome import Outcome
    from weftwork.engine.packet_input import PacketInput

__all__ = ["main", "run_row"]


class _Clock:
    """CPU seconds in `_native.PacketEngine.advance` since the last reset."""

    advance_s = 0.0


class _TimedEngine(_native.PacketEngine):
    """The native engine with a stopwatch; an advance takes up to a tenth of a second, so that it costs nothing."""

    def advance(self, budget_s: float) -> bool:
        begin_s = time.thread_time()
        is_done = super().advance(budget_s)
        _Clock.advance_s += time.thread_time() - begin_s
        return is_done


def main(name: str) -> None:
    """Prepare a row and serve it.

    Parameters
    ----------
    name : of the row
    """
    row = ROWS[name]
    begin_s = time.thread_time()
    fabric = row.fabric()
    built_s = time.thread_time()
    engine_input = row.engine_input(fabric)
    lowered_s = time.thread_time()
    for policy in (engine_input.congestion_control, engine_input.port_selection):
        policy.compile()
    prepared = {
        "fabric_s": built_s - begin_s,
        "lower_s": lowered_s - built_s,
        "compile_s": time.thread_time() - lowered_s,
        "rss_before_bytes": peak_rss_bytes(),
    }
    serve(prepared, lambda: run_row(row, engine_input))


def run_row(row: Row, engine_input: PacketInput) -> dict[str, Any]:
    """Run a row once: CPU seconds of the engine's advance and of its set-up, and what was counted.

    Parameters
    ----------
    row, engine_input : the row, and what `Row.engine_input` has made of it
    """
    _Clock.advance_s = 0.0
    begin_s = time.thread_time()
    if row.on_reference:
        simulation = Simulation(engine_input)
        set_up_s = time.thread_time() - begin_s
        simulation.run()
        run_s = time.thread_time() - begin_s - set_up_s
        outcome = simulation.outcome()
    else:
        with patch.object(_native, "PacketEngine", _TimedEngine):
            outcome = packet.run(engine_input, series=series_of(row, engine_input))
        run_s = _Clock.advance_s
        set_up_s = time.thread_time() - begin_s - run_s
    if not outcome.complete:
        raise SystemExit(f"{row.text}: the run did not complete")
    return {"run_s": run_s, "set_up_s": set_up_s, **_counts(outcome)}


def _counts(outcome: Outcome) -> dict[str, Any]:
    counters = outcome.counters
    return {
        "packet_hops": counters["packet_hops"],
        "data_packets": counters["data_sent"],
        "retransmissions": counters["retransmissions"],
        "cnps": counters["cnps_sent"],
        "drops": sum(value for name, value in counters.items() if name.startswith("drop_")),
        "marks": int(outcome.ports["marks"].sum()),
        "pauses": int(outcome.ports["pauses_sent"].sum()),
        "last_arrival_ps": counters["end_ps"],
        "samples": len(outcome.series),
        "digest": outcome.digest(),
    }


if __name__ == "__main__":
    main(sys.argv[1])
