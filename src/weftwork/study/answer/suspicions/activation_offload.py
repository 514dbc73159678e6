"""Activations that go to the memory of the host and return, over a link that computing does not hide.

The price of that link is the time that a run saves without their transfers, at the same memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.base.units import RATE, format_quantity
from weftwork.study.answer.suspect import Suspect
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.answer.suspicions._training import job_index, job_standing
from weftwork.study.prepare import what_if

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["SUSPICION"]


def _host_link(records: RunRecords) -> Iterator[Suspect]:
    prepared = records.prepared
    for index, job in enumerate(prepared.jobs):
        path = prepared.scenario.job_path(index)
        if job.plan.offloaded_layers:
            (server,) = prepared.fabric.servers
            yield Suspect(
                kind="setting",
                name="the link to the host",
                key=f"{path}.offloaded_layers",
                text=f"carries the activations of {plural(job.plan.offloaded_layers, 'layer')} out and back at"
                f" {format_quantity(RATE, server.host_link_bps)} a GPU and direction",
                change=what_if.with_fast_host_links,
                job=job_index(prepared, index),
                standing=job_standing(prepared),
            )


SUSPICION: Final = Suspicion(
    rank=90, key="training.offloaded_layers", needs=frozenset({"training"}), suspects=_host_link
)
