"""Keys that several kinds of faults share, with their checks.

Leaves out: keys of one kind, which stand in its file (`weftwork.spec.faults`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.base.units import RATE, format_quantity
from weftwork.spec.device import Record
from weftwork.spec.scenario.kinds import Measure, Number
from weftwork.spec.scenario.rows import row

if TYPE_CHECKING:
    from weftwork.spec.fault_changes import PlaceName
    from weftwork.spec.scenario.choice import KeyFindings

__all__ = ["RemainingRate", "check_remaining_rate"]


class RemainingRate(Record):
    """The rate that a fault leaves, as a share or by itself."""

    fraction: float | None = row(
        "fraction",
        Number(above=0, high=1),
        absent="rate is given",
        text="Remaining share of the rate of the link, or of the PCIe behind the NIC.",
        source="chosen: none",
    )
    rate_bps: int | None = row(
        "rate",
        Measure(quantity=RATE, low=1_000_000),
        absent="fraction is given",
        text="Remaining rate of the link, or of the PCIe behind the NIC.",
        source="chosen: none",
    )

    @property
    def text(self) -> str:
        """The remaining rate in words: ``25 %`` or ``100Gbps``."""
        if self.rate_bps is not None:
            return format_quantity(RATE, self.rate_bps)
        return f"{100 * self.fraction:g} %" if self.fraction is not None else ""


def check_remaining_rate(keys: RemainingRate, place: PlaceName, findings: KeyFindings) -> None:
    """Refuse a fault that does not say exactly once which rate remains."""
    if not findings.is_sound("fraction", "rate") or (keys.fraction is None) != (keys.rate_bps is None):
        return
    found = "neither" if keys.fraction is None else "both"
    findings.wrong("", f"found {found} of fraction and rate, wanted exactly one: the remaining rate of the {place}")
