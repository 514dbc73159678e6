"""A few switches of a tier that are another device than nearly all the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.spec.fabric import HOST
from weftwork.study.answer.ids import ids_of_nodes
from weftwork.study.answer.suspect import Suspect, are_few, changed
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.answer.suspicions._peers import names_like, unlike_peers, usual_value, with_usual
from weftwork.study.prepare import what_if

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["SUSPICION"]


def _odd_switches(records: RunRecords) -> Iterator[Suspect]:
    fabric = records.prepared.fabric
    is_switch = fabric.node_kind != HOST
    for tier in np.unique(fabric.node_tier[is_switch]).tolist():
        own = np.flatnonzero(is_switch & (fabric.node_tier == tier))
        usual = usual_value(fabric.node_device[own])
        odd = own[fabric.node_device[own] != usual]
        if not are_few(len(odd), len(own)):
            continue
        device = fabric.node_device.copy()
        device[odd] = usual
        left = set(device[is_switch].tolist())
        switches = with_usual(fabric.switches, left, fabric.switches[usual])
        yield Suspect(
            kind="switch",
            name=names_like([fabric.node_names[node] for node in odd.tolist()]),
            ids=ids_of_nodes(fabric, odd.tolist()),
            key="fabric",
            text=unlike_peers(fabric.switches[int(fabric.node_device[odd[0]])], fabric.switches[usual]),
            change=changed(what_if.on_fabric, node_device=device, switches=switches),
        )


SUSPICION: Final = Suspicion(
    rank=60,
    key="fabric",
    standing="wrong",
    suspects=_odd_switches,
)
