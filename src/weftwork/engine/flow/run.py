"""Run the flow engine on one engine input.

The native core reports progress and obeys control ten times a second.
Source: docs/models/flow-engine.md.
Leaves out: everything that the page leaves out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from weftwork.base.caveat import Caveat, CaveatKind, caveats_by_subject
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.flow_identity import flow_identity
from weftwork.base.grammar import plural
from weftwork.base.work_done import simulated
from weftwork.engine import _native
from weftwork.engine.columns import single
from weftwork.engine.flow.flow_input import FOLDING, Variant
from weftwork.engine.flow.outcome import TIER_DTYPE, FlowOutcome
from weftwork.engine.flow.paths import raw_layers
from weftwork.engine.outcome import Outcome, ending
from weftwork.engine.rows.flow_outcome import (
    ACTIVITY_DTYPE,
    ACTOR_DTYPE,
    CARRIED_DTYPE,
    FLOW_MILESTONE_DTYPE,
    FLOW_PROGRESS_DTYPE,
    FOLDED_DTYPE,
    LANE_DTYPE,
    SEGMENT_DTYPE,
    TIER_BYTES_DTYPE,
)
from weftwork.engine.rows.flow_run import FLOW_FABRIC, FLOW_JOB, FLOW_RUN, ROUTE_RULE
from weftwork.engine.rows.outcome import (
    COUNTERS,
    MESSAGE_DTYPE,
    MILESTONE_DTYPE,
    PATH_DTYPE,
    PORT_DTYPE,
    SERIES_DTYPE,
    TIMELINE_DTYPE,
)
from weftwork.engine.rows.transport import WIRE_SIZES
from weftwork.engine.rows.waits import WAIT_DTYPE
from weftwork.engine.waits import in_order

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from weftwork.engine.flow.flow_input import FlowInput
    from weftwork.policies.interface import PathSelection
    from weftwork.spec.transport import Transport

    Progress = Callable[[int, int], object]

__all__ = ["run"]

_SLICE_S: Final = 0.1  # chosen: control returns about ten times a second, as the design asks


def run(
    engine_input: FlowInput,
    on_progress: Progress | None = None,
    *,
    timeline_bins: int = 0,
    tier_bins: int = 240,
    has_details: bool = True,
    on_folded: Callable[[int], None] | None = None,
) -> FlowOutcome:
    """Run an engine input to its end.

    Parameters
    ----------
    engine_input : what to run
    on_progress : called at the start and about ten times a second with simulated picoseconds and delivered bytes; a
        KeyboardInterrupt that it raises, or that arrives meanwhile, ends the run with what there is
    timeline_bins : how many bins of time the timeline of all ports may have; 0: no timeline. Only for jobs that are not
        folded
    tier_bins : the same for traffic by tiers
    has_details : whether segments, activities and traffic by tiers are recorded; else these tables are empty
    on_folded : called before anything runs with how many actors there are: ranks, or cells of ranks that are alike

    Raises
    ------
    ConfigError : two ranks that talk have no path between them, or the fabric exceeds a limit of the engine
    """
    interrupted = False
    tier_bins = tier_bins if has_details else 0
    raw = _raw_input(engine_input, timeline_bins=timeline_bins, tier_bins=tier_bins, has_details=has_details)
    try:
        engine = _native.FlowEngine(raw)
    except _native.LimitError as error:
        raise ConfigError("flow engine", [Mistake(path="fabric", text=str(error))]) from error
    if on_folded is not None:
        on_folded(len(engine.actors().view(ACTOR_DTYPE)))
    if engine_input.has_infinite_network:
        engine.restart(Variant.IDEAL)
    try:
        _advance(engine, on_progress)
    except KeyboardInterrupt:
        interrupted = True
    outcome = _outcome(engine_input, engine, interrupted=interrupted)
    if interrupted or engine_input.has_infinite_network or not engine.is_approximate():
        return outcome
    fastest, slowest = (_marks_again(engine, variant, on_progress) for variant in (Variant.FASTEST, Variant.SLOWEST))
    return outcome if fastest is None or slowest is None else replace(outcome, bracket_milestones=(fastest, slowest))


def _advance(engine: _native.FlowEngine, on_progress: Progress | None) -> None:
    _tell(engine, on_progress)
    while not engine.advance(_SLICE_S):
        _tell(engine, on_progress)


def _tell(engine: _native.FlowEngine, on_progress: Progress | None) -> None:
    if on_progress is not None:
        reached = _progress(engine)
        on_progress(reached["simulated_ps"], reached["delivered_bytes"])


def _progress(engine: _native.FlowEngine) -> dict[str, int]:
    """Instant, end, work and payload of a run, by the names of `FLOW_PROGRESS_DTYPE`."""
    return single(engine.progress().view(FLOW_PROGRESS_DTYPE))


def _marks_again(engine: _native.FlowEngine, variant: Variant, on_progress: Progress | None) -> NDArray[np.void] | None:
    """Marks of another run of the same job; None if interrupted."""
    engine.restart(variant)
    try:
        _advance(engine, on_progress)
    except KeyboardInterrupt:
        return None
    return engine.milestones().view(FLOW_MILESTONE_DTYPE)


def _outcome(engine_input: FlowInput, engine: _native.FlowEngine, *, interrupted: bool) -> FlowOutcome:
    reached = _progress(engine)
    now_ps, end_ps, events, solves = (reached[name] for name in ("simulated_ps", "end_ps", "events", "solves"))
    simulated("flow", events)
    messages = engine.messages().view(MESSAGE_DTYPE)
    order = np.lexsort((messages["ordinal"], messages["channel"], messages["destination"], messages["source"]))
    actors = engine.actors().view(ACTOR_DTYPE)
    passed = engine.milestones().view(FLOW_MILESTONE_DTYPE)
    milestones = np.zeros(len(passed), MILESTONE_DTYPE)
    for name in ("name", "at_ps"):
        milestones[name] = passed[name]
    milestones["rank"] = actors["rank"][passed["actor"]]
    carried = engine.carried().view(CARRIED_DTYPE)
    ports = np.zeros(len(carried), PORT_DTYPE)
    ports["frames"] = np.rint(carried["packets"])
    ports["bytes"] = np.rint(carried["bytes"] - carried["packets"] * engine_input.transport.interframe_bytes)
    timeline, timeline_bin_ps = _timeline(engine_input, engine, end_ps)
    counters = dict.fromkeys(COUNTERS, 0) | {"end_ps": end_ps}
    complete, simulated_ps = ending(
        is_done=engine.finished(),
        interrupted_at_ps=now_ps if interrupted else None,
        end_ps=end_ps,
        until_ps=engine_input.until_ps,
        has_clock_ended=engine.clock_ended(),
    )
    packets = Outcome(
        messages=messages[order],
        ports=ports,
        counters=counters,
        milestones=milestones[np.lexsort((milestones["at_ps"], milestones["rank"]))],
        series=np.empty(0, SERIES_DTYPE),
        complete=complete,
        simulated_ps=simulated_ps,
        timeline=timeline,
        timeline_bin_ps=timeline_bin_ps,
        paths=_paths(engine, messages),
        caveats=_not_simulated(events, solves, has_losses=engine_input.has_losses)
        | _folding(engine_input, engine)
        | _adaptive(engine_input)
        | _declared(engine_input),
        waits=in_order(engine.waits().view(WAIT_DTYPE)),
    )
    return FlowOutcome(
        packets=packets,
        actors=actors,
        milestones=passed,
        segments=engine.take_segments().view(SEGMENT_DTYPE),
        activities=engine.take_activities().view(ACTIVITY_DTYPE),
        tiers=_tiers(engine),
        link_bytes=carried["bytes"].copy(),
        caveats=packets.caveats,
    )


def _paths(engine: _native.FlowEngine, messages: NDArray[np.void]) -> NDArray[np.void]:
    """Ports of each queue pair, numbered by their order."""
    told = engine.paths().view(LANE_DTYPE)
    names = ("source", "destination", "channel")
    used = np.unique(flow_identity(*(messages[name] for name in names)))
    found = np.zeros(len(told), PATH_DTYPE)
    found["queue_pair"] = np.searchsorted(used, flow_identity(*(told[name] for name in names)))
    for name in ("port", "packets"):
        found[name] = told[name]
    found = found[found["packets"] > 0]
    return found[np.lexsort((found["port"], found["queue_pair"]))]


def _tiers(engine: _native.FlowEngine) -> NDArray[np.void]:
    told = engine.tiers().view(TIER_BYTES_DTYPE)
    tiers = np.zeros(len(told), TIER_DTYPE)
    for name in TIER_BYTES_DTYPE.names or ():
        tiers[name] = told[name]
    tiers["entropy"] = np.nan
    return tiers


def _timeline(engine_input: FlowInput, engine: _native.FlowEngine, end_ps: int) -> tuple[NDArray[np.void], int]:
    """Bytes of ports by time bin.

    Empty rows are left out, as in the packet engine's.
    """
    carried = engine.timeline().view(np.float64).reshape(-1, len(engine_input.port_node))
    if len(carried) == 0:
        return np.empty(0, TIMELINE_DTYPE), 0
    bin_ps = engine.timeline_bin_ps()
    row, port = np.nonzero(np.rint(carried) > 0)
    found = np.zeros(len(row), TIMELINE_DTYPE)
    found["at_ps"] = np.minimum((row + 1) * bin_ps, max(end_ps, 1))
    found["port"] = port
    found["bytes"] = np.rint(carried[row, port])
    return found, bin_ps


def _folding(engine_input: FlowInput, engine: _native.FlowEngine) -> dict[str, Caveat]:
    """Folded items and their cells, if anything was folded."""
    if engine_input.rule.adapts and engine_input.fold != "never":
        text = "every rank ran by itself: flows under adaptive routing are alike at no time, so that nothing folds"
        return caveats_by_subject([Caveat(subject="engine.folding", kind="note", text=text)])
    folded = single(engine.folding().view(FOLDED_DTYPE))
    if folded["ranks"] == 0:
        return {}
    ranks, actors, activities = folded["ranks"], folded["actors"], folded["activities"]
    cells, link_cells, kept, rounds = (folded[name] for name in ("activity_cells", "link_cells", "kept", "rounds"))
    words = f"{plural(ranks, 'rank')} folded to {actors:,}, {plural(activities, 'transfer')} to {cells:,}"
    text = f"{words}, on {plural(link_cells, 'cell')} of links, after {plural(rounds, 'round')} of refinement"
    if engine.is_approximate():
        text += (
            f"; approximate: a critical core of {plural(kept, 'transfer')}, since hashed paths do not fold: some "
            "replicas of the job run, the slowest among them, and the others take as long"
        )
    kind: CaveatKind = "approximate" if engine.is_approximate() else "note"
    return caveats_by_subject([Caveat(subject="engine.folding", kind=kind, text=text)])


def _adaptive(engine_input: FlowInput) -> dict[str, Caveat]:
    """How adaptive routing was approximated, if it was."""
    if not engine_input.rule.adapts:
        return {}
    text = (
        "adaptive routing is approximated: a flow that begins divides itself between its shortest paths and its"
        " detours by what flows in progress offer to their links, and keeps the shares"
    )
    return caveats_by_subject([Caveat(subject="engine.routing", kind="approximate", text=text)])


def _declared(engine_input: FlowInput) -> dict[str, Caveat]:
    """A path selection that is taken as it declares itself, although it reacts to what flows do not have."""
    policy = engine_input.path_selection
    if policy is None or "ecn" not in policy.plugin.needs:
        return {}
    spreads = cast("PathSelection", policy.plugin).spreads
    if spreads is None:  # flows take it only where no port looks at the entropy that it chooses
        return {}
    text = (
        f"'{policy.name}' chooses paths as its file declares (spreads={spreads!r}); it also reacts to marks, which"
        " flows do not have, and engine.fidelity: packet simulates that"
    )
    return caveats_by_subject([Caveat(subject="transport.path_selection", kind="assumed", text=text)])


def _not_simulated(events: int, solves: int, *, has_losses: bool) -> dict[str, Caveat]:
    """Caveats of a run of this engine."""
    text = (
        "bandwidth is shared max-min among messages; congestion control, flow control, queues, marks and"
        f" {'the draw of each loss' if has_losses else 'losses'} are not simulated, and their numbers are empty "
        f"({plural(events, 'event')}, {plural(solves, 'new share')})"
    )
    return caveats_by_subject([Caveat(subject="engine.flow", kind="approximate", text=text)])


def _raw_input(engine_input: FlowInput, *, timeline_bins: int, tier_bins: int, has_details: bool) -> dict[str, object]:
    others = {
        "port_loss": engine_input.losses.port_loss,
        "loss_rules": engine_input.losses.rules,
        "folding": FOLDING.index(engine_input.fold),
        "tiers": len(engine_input.tier_names),
        "tier_bins": tier_bins,
        "timeline_bins": timeline_bins,
        "has_details": has_details,
    }
    raw = FLOW_FABRIC.values(engine_input) | FLOW_JOB.values(engine_input) | FLOW_RUN.values(engine_input, others)
    raw["wire"] = _raw_wire(engine_input.transport)
    raw |= raw_layers(
        engine_input.layers,
        engine_input.node_attachment,
        spreads_ways=engine_input.spreads_ways,
    )
    return raw | ROUTE_RULE.values(engine_input.rule)


def _raw_wire(transport: Transport) -> dict[str, object]:
    others = {
        "overhead_bytes": transport.data_overhead_bytes + transport.telemetry_bytes,
        "gap_bytes": transport.interframe_bytes,
    }
    return WIRE_SIZES.values(transport, others)
