"""Times one row of `rows`, in a process of its own that answers one line for each line it is given.

CPU time of the process is taken around the advance of the engine alone; building, lowering, compiling policies and
handing arrays over are timed apart. Peak memory is `VmHWM` of /proc/self/status and covers the whole process.
Leaves out: medians and targets (`packet_engine`).
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

from rows import ROWS, Row, series_of

from weft.engine import _native, packet
from weft.engine.outcome import Outcome
from weft.engine.plan import Plan
from weft.engine.reference import Simulation

__all__ = ["serve"]


class _Clock:
    """CPU seconds in `_native.PacketEngine.advance` since the last reset."""

    advance_s = 0.0


class _TimedEngine(_native.PacketEngine):
    """The native engine with a stopwatch; advances are a tenth of a second each, so that the watch costs nothing."""

    def advance(self, budget_s: float) -> bool:
        begin_s = time.process_time()
        is_done = super().advance(budget_s)
        _Clock.advance_s += time.process_time() - begin_s
        return is_done


def serve(name: str) -> None:
    """Prepare a row, say so, and run it once for each line of the standard input.

    Parameters
    ----------
    name : of the row
    """
    row = ROWS[name]
    times = {}
    begin_s = time.process_time()
    fabric = row.fabric()
    times["fabric_s"] = time.process_time() - begin_s
    begin_s = time.process_time()
    plan = row.plan(fabric)
    times["lower_s"] = time.process_time() - begin_s
    begin_s = time.process_time()
    for policy in (plan.congestion_control, plan.port_selection):
        policy.compile()
    times["compile_s"] = time.process_time() - begin_s
    _answer({"name": name, **times, "rss_before_bytes": _peak_rss_bytes()})
    for _ in sys.stdin:
        _answer(_run(row, plan))


def _run(row: Row, plan: Plan) -> dict[str, Any]:
    _Clock.advance_s = 0.0
    begin_s = time.process_time()
    if row.on_reference:
        simulation = Simulation(plan)
        set_up_s = time.process_time() - begin_s
        simulation.run()
        run_s = time.process_time() - begin_s - set_up_s
        outcome = simulation.outcome()
    else:
        with patch.object(_native, "PacketEngine", _TimedEngine):
            outcome = packet.run(plan, series=series_of(row, plan))
        run_s = _Clock.advance_s
        set_up_s = time.process_time() - begin_s - run_s
    if not outcome.complete:
        raise SystemExit(f"{row.text}: the run did not complete")
    return {"run_s": run_s, "set_up_s": set_up_s, **_counts(outcome), "peak_rss_bytes": _peak_rss_bytes()}


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
        "simulated_ps": outcome.simulated_ps,
        "samples": len(outcome.series),
        "digest": outcome.digest(),
    }


def _peak_rss_bytes() -> int:
    """Largest resident set of this process; getrusage would give its parent's where that was larger."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def _answer(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    serve(sys.argv[1])
