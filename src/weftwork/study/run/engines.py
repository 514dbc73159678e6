"""Run a plan on the engine that the scenario names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.engine.flow.plan import FlowPlan

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.engine.outcome import Outcome
    from weftwork.engine.packet import Series
    from weftwork.engine.plan import Plan

__all__ = ["EVENT_LIMIT", "Progress", "run_plan"]

EVENT_LIMIT: Final = 200_000  # chosen: some megabytes; the totals in the same table are always complete


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """How far a run has come; ``share`` is of the payload to deliver, None where an engine does not tell."""

    simulated_ps: int
    packet_hops: int
    share: float | None


def run_plan(
    plan: Plan | FlowPlan,
    *,
    fidelity: str,
    payload_bytes: int,
    on_progress: Callable[[Progress], None],
    series: Series | None = None,
) -> tuple[Outcome, bool]:
    """Run a plan.

    Parameters
    ----------
    plan : what to run
    fidelity : ``packet``, ``flow`` or ``reference``; the plan is one of this engine
    payload_bytes : that the job will deliver, for the share of the work that is done
    on_progress : called about ten times a second; may raise KeyboardInterrupt to stop the run
    series : what the packet engine records over time

    Returns
    -------
    the outcome, and whether it was interrupted
    """
    interrupted = False

    def told(simulated_ps: int, packet_hops: int = 0, delivered_bytes: int | None = None) -> None:
        nonlocal interrupted
        share = None if delivered_bytes is None or payload_bytes <= 0 else min(1.0, delivered_bytes / payload_bytes)
        try:
            on_progress(Progress(simulated_ps=simulated_ps, packet_hops=packet_hops, share=share))
        except KeyboardInterrupt:
            interrupted = True
            raise

    if isinstance(plan, FlowPlan):
        from weftwork.engine.flow import run as flow

        def told_flow(simulated_ps: int, delivered_bytes: int) -> None:
            told(simulated_ps, 0, delivered_bytes)

        bins = 0 if series is None else series.timeline_bins
        return flow.run(plan, told_flow, timeline_bins=bins).packets, interrupted
    if fidelity == "packet":
        from weftwork.engine import packet

        outcome = packet.run(plan, series=series, event_limit=EVENT_LIMIT, on_progress=told)
        return outcome, interrupted
    if fidelity == "reference":
        from weftwork.engine.reference.simulation import Simulation

        simulation = Simulation(plan)
        try:
            simulation.run(told)
        except KeyboardInterrupt:
            if not interrupted:
                raise  # the second Ctrl-C: not at a place where the engine is whole
        outcome = simulation.outcome()
        return (replace(outcome, complete=False) if interrupted else outcome), interrupted
    text = f"found '{fidelity}', wanted packet, flow or reference"
    raise ConfigError("engine", [Mistake(path="engine.fidelity", text=text)])
