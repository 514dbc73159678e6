"""Execute a prepared run, for every workload and every fidelity.

Leaves out: other worlds beside a run (`weftwork.study.answer.asking`), and what comes of it in tables and numbers
(`weftwork.study.results.results`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from weftwork.base.work_done import executed
from weftwork.engine.flow.flow_input import FlowInput
from weftwork.study.prepare.engine import ENGINES, Hearing
from weftwork.study.prepare.job_volume import least_ps
from weftwork.study.run.ending import is_done

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.engine.capture import CaptureRequest
    from weftwork.engine.flow.outcome import FlowOutcome
    from weftwork.engine.outcome import Outcome
    from weftwork.study.prepare.estimate import Estimate
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["Execution", "Progress", "execute"]

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
    world : of a what-if, its number and its name; empty for the run itself
    """

    simulated_ps: int
    packet_hops: int
    share: float | None
    estimate: Estimate | None = None
    is_repeat: bool = False
    world: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Execution:
    """The output of an engine.

    Attributes
    ----------
    outcome : messages, marks, ports and counters
    flows : what only the flow engine tells, such as where time went; else None
    interrupted : whether somebody stopped the run itself
    loss_bounds : the run without losses, and with those of the slowest of 1,000 runs; None where flows lose nothing
    """

    outcome: Outcome
    flows: FlowOutcome | None = None
    interrupted: bool = False
    loss_bounds: tuple[Execution, Execution] | None = None


def execute(
    prepared: Prepared,
    on_progress: Callable[[Progress], None] | None = None,
    *,
    capture: CaptureRequest | None = None,
    has_loss_bounds: bool = True,
) -> Execution:
    """Execute a prepared run on the engine of its scenario.

    Parameters
    ----------
    prepared : from `weftwork.study.prepare.prepare`
    on_progress : called at the start and about ten times a second; may raise KeyboardInterrupt to stop the run
    capture : frames to keep, of a run on packets; None: none
    has_loss_bounds : whether flows that lose packets run again for the ends of what losses cost
    """
    execution = _run(prepared, on_progress, capture)
    if not has_loss_bounds or not is_done(prepared, execution):
        return execution
    execution = replace(execution, loss_bounds=_loss_bounds(prepared, on_progress))
    if execution.loss_bounds is not None and any(bound.interrupted for bound in execution.loss_bounds):
        return replace(execution, interrupted=True, loss_bounds=None)
    return execution


def _loss_bounds(
    prepared: Prepared, on_progress: Callable[[Progress], None] | None
) -> tuple[Execution, Execution] | None:
    """The run without losses, and with almost the most; None where flows lose nothing."""
    if not isinstance(prepared.engine_input, FlowInput) or not prepared.engine_input.has_losses:
        return None
    few, most = (
        _run(replace(prepared, engine_input=engine_input, series=None, is_for_its_time=True), on_progress)
        for engine_input in prepared.engine_input.loss_bounds()
    )
    return few, most


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

    hearing = Hearing(told=told, repeats=repeats, was_stopped=lambda: interrupted)
    output = ENGINES[prepared.scenario.engine.fidelity].run(prepared, hearing, capture)
    return Execution(outcome=output.outcome, flows=output.flows, interrupted=interrupted)
