"""Execute a prepared run, for every workload and every fidelity.

Beside a run that ended, other worlds are executed as the run itself (`weftwork.study.answer.worlds`).
Leaves out: what comes of it in tables and numbers (`weftwork.study.results.results`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import ConfigError
from weftwork.base.work_done import executed
from weftwork.engine.flow.flow_input import FlowInput
from weftwork.study.answer.suspect import Suspect
from weftwork.study.answer.suspects import suspects
from weftwork.study.answer.worlds import Extent, World, chosen
from weftwork.study.prepare.estimate import refuse_actors
from weftwork.study.prepare.job_volume import least_ps
from weftwork.study.results.ending import is_done

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.engine.capture import CaptureRequest
    from weftwork.engine.flow.outcome import FlowOutcome
    from weftwork.engine.outcome import Outcome
    from weftwork.study.prepare.estimate import Estimate
    from weftwork.study.prepare.prepared import Prepared

    Told = Callable[[int, int, int | None], None]  # simulated ps, packet-hops, bytes delivered

__all__ = ["EVENT_LIMIT", "Execution", "Progress", "execute"]

EVENT_LIMIT: Final = 200_000  # chosen: some megabytes; the totals in the same table are always complete
ALMOST_ALL: Final = 0.99  # of the work: an iteration takes longer than what it computes


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """Progress of a run.

    Attributes
    ----------
    simulated_ps, packet_hops : so far
    share : of the work to do, in a repeated run of the work up to the failed step; None where an engine does not tell
    estimate : of the memory and the work of the whole run; None where nobody made one, and in a repeated run
    is_repeat : whether a policy's step has failed and the run is repeated to find line and reason
    """

    simulated_ps: int
    packet_hops: int
    share: float | None
    estimate: Estimate | None = None
    is_repeat: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Execution:
    """The output of an engine.

    Attributes
    ----------
    outcome : messages, marks, ports and counters
    flows : what only the flow engine tells, such as where time went; else None
    interrupted : whether somebody stopped the run
    suspects : who may be to blame for what the run took, the likeliest first; empty where it did not end
    worlds : other worlds, what was prepared for each, and what came of it; empty where none was asked for, or where
        the run did not end
    refused : other worlds that cannot be, each with the reason
    """

    outcome: Outcome
    flows: FlowOutcome | None = None
    interrupted: bool = False
    suspects: tuple[Suspect, ...] = ()
    worlds: tuple[tuple[World, Prepared, Execution], ...] = ()
    refused: tuple[tuple[World, str], ...] = ()


def execute(
    prepared: Prepared,
    on_progress: Callable[[Progress], None] | None = None,
    *,
    what_if: Extent = "auto",
    capture: CaptureRequest | None = None,
) -> Execution:
    """Execute a prepared run on the engine of its scenario.

    Parameters
    ----------
    prepared : from `weftwork.study.prepare.prepare`
    on_progress : called at the start and about ten times a second; may raise KeyboardInterrupt to stop the run
    what_if : which other worlds are simulated besides: ``auto``: those that cost less than the run itself; ``all``;
        ``none``
    capture : frames to keep of the run itself, which is on packets; None: none
    """
    found = _run(prepared, on_progress, capture)
    if not is_done(prepared, found):
        return found
    found = replace(found, suspects=tuple(suspects(prepared, found)))
    if what_if == "none" or found.interrupted:
        return found
    others: list[tuple[World, Prepared, Execution]] = []
    refused: list[tuple[World, str]] = []
    for world in chosen(prepared, found.suspects, what_if):
        try:
            other = replace(world.make(), series=None)
            ran = _run(other, on_progress)
        except ConfigError as wrong:  # such as a memory that does not hold the headroom of other links
            refused.append((world, "; ".join(mistake.text for mistake in wrong.mistakes)))
            continue
        if ran.interrupted:
            return replace(found, interrupted=True)
        others.append((world, other, ran))
    return replace(found, worlds=tuple(others), refused=tuple(refused))


def _run(
    prepared: Prepared, on_progress: Callable[[Progress], None] | None, capture: CaptureRequest | None = None
) -> Execution:
    """One run of one engine."""
    executed(prepared.scenario.name)
    interrupted = is_repeat = False
    told_hops = failed_hops = 0
    payload_bytes = 0 if prepared.volume is None else prepared.volume.payload_bytes
    shortest_ps = least_ps(prepared.job) if prepared.volume is None else 0

    def told(simulated_ps: int, packet_hops: int = 0, delivered_bytes: int | None = None) -> None:
        nonlocal interrupted, told_hops
        share = None
        told_hops = packet_hops
        if is_repeat:
            share = min(1.0, packet_hops / failed_hops) if failed_hops else None
        elif shortest_ps:
            share = min(ALMOST_ALL, simulated_ps / shortest_ps)
        elif delivered_bytes is not None and payload_bytes > 0:
            share = min(1.0, delivered_bytes / payload_bytes)
        try:
            if on_progress is not None:
                now = Progress(
                    simulated_ps=simulated_ps,
                    packet_hops=packet_hops,
                    share=share,
                    estimate=None if is_repeat else prepared.estimate,
                    is_repeat=is_repeat,
                )
                on_progress(now)
        except KeyboardInterrupt:
            interrupted = True
            raise

    def repeats() -> None:
        nonlocal is_repeat, failed_hops
        is_repeat, failed_hops = True, told_hops

    if isinstance(prepared.engine_input, FlowInput):
        flows = _on_flows(prepared, prepared.engine_input, told)
        return Execution(outcome=flows.packets, flows=flows, interrupted=interrupted)
    if prepared.scenario.engine.fidelity == "packet":
        from weftwork.engine import packet

        outcome = packet.run(
            prepared.engine_input,
            series=prepared.series,
            event_limit=EVENT_LIMIT,
            capture=capture,
            on_progress=told,
            on_repeat=repeats,
        )
        return Execution(outcome=outcome, interrupted=interrupted)
    from weftwork.engine.reference.simulation import Simulation

    simulation = Simulation(prepared.engine_input, capture)
    try:
        simulation.run(told)
    except KeyboardInterrupt:
        if not interrupted:
            raise  # the second Ctrl-C: not at a place where the engine is whole
    outcome = simulation.outcome()
    return Execution(outcome=replace(outcome, complete=False) if interrupted else outcome, interrupted=interrupted)


def _on_flows(prepared: Prepared, engine_input: FlowInput, told: Told) -> FlowOutcome:
    from weftwork.engine.flow import run as flow

    bins = 0 if prepared.series is None else prepared.series.timeline_bins
    return flow.run(
        engine_input,
        lambda simulated_ps, delivered: told(simulated_ps, 0, delivered),
        timeline_bins=bins,
        on_folded=partial(refuse_actors, prepared) if prepared.is_folded else None,
    )
