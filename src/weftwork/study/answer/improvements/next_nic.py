"""NICs of the next rate of Ethernet, with links between switches faster by the same factor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.units import RATE, format_quantity
from weftwork.study.answer.improvement import Improvement
from weftwork.study.prepare import what_if

if TYPE_CHECKING:
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["IMPROVEMENT"]


def _case(prepared: Prepared) -> str | None:
    rate_bps = what_if.next_nic_rate_bps(prepared.fabric)
    if rate_bps is None:
        return None
    custom = " (custom)" if what_if.is_next_nic_custom(prepared.fabric) else ""
    return f"NICs of {format_quantity(RATE, rate_bps)}{custom}"


IMPROVEMENT: Final = Improvement(rank=40, case=_case, make=what_if.with_next_nic)
