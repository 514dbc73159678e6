"""A network that takes no time, inside servers and between them; for flows alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.engine.flow.flow_input import FlowInput
from weftwork.study.answer.improvement import Improvement
from weftwork.study.prepare import what_if

if TYPE_CHECKING:
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["CASE", "IMPROVEMENT"]

CASE: Final = "infinite network"


def _case(prepared: Prepared) -> str | None:
    return CASE if isinstance(prepared.engine_input, FlowInput) else None


IMPROVEMENT: Final = Improvement(rank=10, case=_case, make=what_if.on_infinite_network)
