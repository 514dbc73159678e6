"""An algorithm of a collective other than the one that ``auto`` takes in a direct network.

A ring on a lattice uses one axis of several.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.spec.scenario.choice import NoKeys
from weftwork.study.answer.suspect import Suspect, changed
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.prepare import what_if
from weftwork.study.prepare.calibrated import calibration_of
from weftwork.study.prepare.collective import method_used
from weftwork.workload.collectives.lattice_streams import LOOPS

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["SUSPICION"]


def _algorithm(records: RunRecords) -> Iterator[Suspect]:
    """An algorithm other than the one that ``auto`` takes."""
    prepared = records.prepared
    section = prepared.scenario.collective_section
    if section.algorithm == "auto" or section.operation not in LOOPS:
        return
    by_auto = section.model_copy(update={"algorithm": "auto", "options": NoKeys()})
    seed, calibration = prepared.scenario.engine.seed, calibration_of(prepared.scenario)
    own, _ = method_used(section, prepared.fabric, seed=seed, calibration=calibration)
    other, _ = method_used(by_auto, prepared.fabric, seed=seed, calibration=calibration)
    if own != other:
        yield Suspect(
            kind="setting",
            name=own,
            key="collective.algorithm",
            text=f"is slower here than {other}, which auto takes",
            change=changed(what_if.with_section, collective=by_auto),
        )


SUSPICION: Final = Suspicion(
    rank=180, key="collective.algorithm", needs=frozenset({"direct network", "collective"}), suspects=_algorithm
)
