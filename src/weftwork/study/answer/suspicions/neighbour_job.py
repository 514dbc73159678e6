"""Other jobs on the same fabric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.spec.answer import CulpritIds
from weftwork.study.answer.suspect import Suspect, changed
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.prepare import what_if

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["ALONE", "SUSPICION"]

ALONE: Final = "alone"


def _neighbours(records: RunRecords) -> Iterator[Suspect]:
    prepared = records.prepared
    for index in range(len(prepared.jobs)):
        others = [job.name for place, job in enumerate(prepared.jobs) if place != index]
        yield Suspect(
            kind="job",
            name=" and ".join(others),
            key=f"jobs.{1 - index}" if len(others) == 1 else "jobs",
            text=f"shares the fabric with {prepared.jobs[index].name}",
            change=changed(what_if.alone, index),
            job=index,
            ids=CulpritIds(jobs=tuple(place for place in range(len(prepared.jobs)) if place != index)),
            case=ALONE,
        )


SUSPICION: Final = Suspicion(
    rank=30, key="jobs", standing="wrong", needs=frozenset({"several jobs"}), suspects=_neighbours
)
