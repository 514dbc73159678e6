"""Flows that share links, by the core in C++."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from weftwork.engine.flow.flow_input import FlowInput
from weftwork.engine.flow.lower import lower_flow
from weftwork.study.prepare.engine import Engine, EngineOutput, Hearing, InputParts
from weftwork.study.prepare.estimate import refuse_actors
from weftwork.study.prepare.lowered import folds
from weftwork.study.prepare.training import compute_factors

if TYPE_CHECKING:
    from weftwork.engine.capture import CaptureRequest
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["ENGINE"]

_MEMORY_BYTES: Final = {
    "process": 208e6, "link": 1_130, "route": 0, "rank": 1_500, "message": 410, "queue_pair": 740, "operation": 200,
    "step": 0, "row": 0,
}  # fmt: skip
_FOLDED_BYTES: Final = {
    "process": 205e6, "link": 750, "route": 0, "rank": 100, "message": 0, "queue_pair": 0, "operation": 416,
    "step": 215, "row": 0,
}  # fmt: skip


def _lower(parts: InputParts) -> FlowInput:
    known = parts.known if isinstance(parts.known, FlowInput) else None
    make = partial(
        lower_flow,
        fabric=parts.fabric,
        job=parts.job,
        transport=parts.transport,
        settings=parts.settings,
        findings=parts.findings,
        known=known,
    )
    if not folds(parts.scenario):
        return make(fold="never", with_ideal=True)
    return make(compute_factor=compute_factors(parts.scenario, parts.fabric, parts.job.placement))


def _run(prepared: Prepared, hearing: Hearing, _capture: CaptureRequest | None) -> EngineOutput:
    """Run flows, which have no frames to capture: `weftwork.study.run.captured_link` refuses to ask for them."""
    from weftwork.engine.flow import run as flow

    if not isinstance(prepared.engine_input, FlowInput):
        raise TypeError("the flow engine runs an input of flows")
    flows = flow.run(
        prepared.engine_input,
        lambda simulated_ps, delivered: hearing.told(simulated_ps, 0, delivered),
        timeline_bins=0 if prepared.series is None else prepared.series.timeline_bins,
        has_details=not prepared.is_for_its_time,
        on_folded=partial(refuse_actors, prepared) if prepared.is_folded else None,
    )
    return EngineOutput(outcome=flows.packets, flows=flows)


_SECOND_WORK: Final = 4_000_000  # chosen: about what a machine does; an answer may come a second later

ENGINE = Engine(
    lower=_lower, run=_run, memory_bytes=_MEMORY_BYTES, second_work=_SECOND_WORK, folded_memory_bytes=_FOLDED_BYTES
)
