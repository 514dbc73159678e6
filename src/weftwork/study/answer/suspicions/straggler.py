"""GPUs that compute more slowly than the others, as the scenario lists them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from weftwork.study.answer.ids import ids_of_gpu
from weftwork.study.answer.suspect import Suspect, changed
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.prepare import what_if

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["SUSPICION"]


def _stragglers(records: RunRecords) -> Iterator[Suspect]:
    slow = records.prepared.scenario.stragglers
    for index, straggler in enumerate(slow):
        yield Suspect(
            kind="gpu",
            name=f"GPU {straggler.gpu}",
            key=f"stragglers.{index}",
            ids=replace(ids_of_gpu(records.prepared, straggler.gpu), stragglers=(index,)),
            text=f"computes {straggler.factor:g} times as long as the others",
            change=changed(what_if.with_section, stragglers=slow[:index] + slow[index + 1 :]),
            bound_share=1 - 1 / straggler.factor,
        )


SUSPICION: Final = Suspicion(
    rank=20,
    key="stragglers",
    standing="wrong",
    suspects=_stragglers,
)
