"""The flow engine: the native core on one plan, with progress and control ten times a second.

Source: docs/models/flow-engine.md.
Leaves out: everything that the page leaves out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.engine import _native
from weft.engine.flow_outcome import ACTIVITY_DTYPE, ACTOR_DTYPE, FLOW_MARK_DTYPE, SEGMENT_DTYPE, FlowOutcome
from weft.engine.outcome import COUNTERS, MARK_DTYPE, MESSAGE_DTYPE, PORT_DTYPE, SERIES_DTYPE, Outcome, ending

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from weft.engine.flow_plan import FlowPlan

    Progress = Callable[[int, int], object]

__all__ = ["run"]

_SLICE_S: Final = 0.1  # chosen: control returns about ten times a second, as the design asks
_CARRIED_DTYPE: Final = np.dtype([("bytes", np.float64), ("packets", np.float64)])
_ARRAYS: Final = (
    "node_kind", "node_tier", "node_device", "port_base", "port_node", "port_peer", "port_rate_bps", "port_delay_ps",
    "live", "switches", "nics", "instants", "ops", "streams", "tables", "digits", "collects", "axes", "rank_class",
    "class_first_rank", "rank_host", "rank_ports", "rank_gpu", "rank_factor",
)  # fmt: skip


def run(plan: FlowPlan, on_progress: Progress | None = None, *, timeline_bins: int = 0) -> FlowOutcome:
    """Run a plan to its end.

    Parameters
    ----------
    plan : what to run
    on_progress : called about ten times a second with simulated picoseconds and delivered bytes; a KeyboardInterrupt
        that it raises, or that arrives meanwhile, ends the run with what there is
    timeline_bins : how many bins of time the timeline of all ports may have; 0: no timeline
    """
    interrupted = False
    engine = _native.FlowEngine(_raw_plan(plan) | {"timeline_bins": timeline_bins})
    try:
        while not engine.advance(_SLICE_S):
            if on_progress is not None:
                now_ps, _, _, _, delivered = engine.progress()
                on_progress(now_ps, delivered)
    except KeyboardInterrupt:
        interrupted = True
    return _outcome(plan, engine, interrupted=interrupted)


def _outcome(plan: FlowPlan, engine: _native.FlowEngine, *, interrupted: bool) -> FlowOutcome:
    now_ps, end_ps, events, solves, _ = engine.progress()
    messages = engine.messages().view(MESSAGE_DTYPE)
    order = np.lexsort((messages["ordinal"], messages["channel"], messages["destination"], messages["source"]))
    actors = engine.actors().view(ACTOR_DTYPE)
    passed = engine.marks().view(FLOW_MARK_DTYPE)
    marks = np.zeros(len(passed), MARK_DTYPE)
    for name in ("name", "at_ps"):
        marks[name] = passed[name]
    marks["rank"] = actors["rank"][passed["actor"]]
    carried = engine.carried().view(_CARRIED_DTYPE)
    ports = np.zeros(len(carried), PORT_DTYPE)
    ports["frames"] = np.rint(carried["packets"])
    ports["bytes"] = np.rint(carried["bytes"] - carried["packets"] * plan.transport.interframe_bytes)
    counters = dict.fromkeys(COUNTERS, 0) | {"end_ps": end_ps}
    complete, simulated_ps = ending(
        is_done=engine.finished(),
        interrupted_at_ps=now_ps if interrupted else None,
        end_ps=end_ps,
        until_ps=plan.until_ps,
    )
    packets = Outcome(
        messages=messages[order],
        ports=ports,
        counters=counters,
        marks=marks[np.lexsort((marks["at_ps"], marks["rank"]))],
        series=np.empty(0, SERIES_DTYPE),
        complete=complete,
        simulated_ps=simulated_ps,
        facts=_facts(events, solves),
    )
    return FlowOutcome(
        packets=packets,
        actors=actors,
        marks=passed,
        segments=engine.segments().view(SEGMENT_DTYPE),
        activities=engine.activities().view(ACTIVITY_DTYPE),
        link_bytes=carried["bytes"].copy(),
        facts=packets.facts,
    )


def _facts(events: int, solves: int) -> dict[str, str]:
    """What a user should know of a run of this engine."""
    return {
        "engine.flow": "bandwidth is shared max-min among messages; congestion control, flow control, queues, marks and"
        f" losses are not simulated, and their numbers are empty ({events:,} events, {solves:,} new shares)"
    }


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _raw_plan(plan: FlowPlan) -> dict[str, Any]:
    raw: dict[str, Any] = {name: _bytes(getattr(plan, name)) for name in _ARRAYS}
    for name in ("seed", "until_ps", "tolerance", "tokens"):
        raw[name] = getattr(plan, name)
    transport = plan.transport
    raw["mode"] = int(plan.mode)
    raw["wire"] = {
        "mtu_bytes": transport.mtu_bytes,
        "overhead_bytes": transport.data_overhead_bytes + transport.telemetry_bytes,
        "first_extra_bytes": transport.first_extra_bytes,
        "gap_bytes": transport.interframe_bytes,
        "ack_bytes": transport.ack_bytes,
        "ack_every": transport.ack_every,
    }
    return raw
