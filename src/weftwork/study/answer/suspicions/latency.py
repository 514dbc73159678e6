"""Delays of links and switches, where a collective leaves all resources idle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.study.answer.suspect import Suspect
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.prepare import what_if

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weftwork.study.prepare.prepared import Prepared

__all__ = ["SUSPICION"]

_SHORT: Final = 16  # of the delays of links and switches; chosen: what is left costs little beside the whole


def _latency(_: RunRecords) -> Iterator[Suspect]:
    yield Suspect(
        kind="part",
        name="latency",
        key="fabric",
        text=f"of links and switches adds up over the steps, compared with a {_SHORT}th of it",
        change=_with_short_delays,
    )


def _with_short_delays(prepared: Prepared) -> Prepared:
    links = prepared.fabric.links.copy()
    links["delay_ps"] = np.maximum(1, links["delay_ps"] // _SHORT)
    servers = tuple(
        server.model_copy(update={"nvlink_latency_ps": server.nvlink_latency_ps // _SHORT})
        for server in prepared.fabric.servers
    )
    return what_if.on_fabric(prepared, links=links, servers=servers)


SUSPICION: Final = Suspicion(
    rank=260, key="fabric", needs=frozenset({"collective", "idle resources"}), suspects=_latency
)
