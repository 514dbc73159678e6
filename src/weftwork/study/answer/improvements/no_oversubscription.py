"""Links up as fast as all links down together; where a tier has less rate up than down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.study.answer.improvement import Improvement
from weftwork.study.prepare import what_if
from weftwork.topology.oversubscription import oversubscription_by_tier

if TYPE_CHECKING:
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["CASE", "IMPROVEMENT"]

CASE: Final = "no oversubscription"


def _case(prepared: Prepared) -> str | None:
    return CASE if any(ratio > 1.001 for ratio in oversubscription_by_tier(prepared.fabric).values()) else None


IMPROVEMENT: Final = Improvement(rank=50, case=_case, make=what_if.without_oversubscription)
