"""Less rate up than down at the switches of a tier whose links up were busy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.study.answer.improvements.no_oversubscription import CASE
from weftwork.study.answer.suspect import BUSY, Suspect
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.prepare import what_if
from weftwork.study.results.link_use import up_use
from weftwork.topology.oversubscription import oversubscription_by_tier

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["SUSPICION"]


def _oversubscription(records: RunRecords) -> Iterator[Suspect]:
    prepared = records.prepared
    ratios = {tier: ratio for tier, ratio in oversubscription_by_tier(prepared.fabric).items() if ratio > 1.001}
    is_from_file = prepared.scenario.fabric.topology == "file"
    if any(up_use(prepared, records.use, tier) > BUSY for tier in ratios):
        shown = ", ".join(f"{ratio:.3g}:1" for ratio in ratios.values())
        yield Suspect(
            kind="setting",
            name="oversubscription",
            key="fabric" if is_from_file else "fabric.oversubscription",
            text=f"is {shown} (a switch's rate down to its rate up)",
            change=what_if.without_oversubscription,
            case=CASE,
            standing="wrong" if is_from_file else "built",  # nothing in a file says that it is meant
        )


SUSPICION: Final = Suspicion(
    rank=160,
    key="fabric.oversubscription",
    suspects=_oversubscription,
)
