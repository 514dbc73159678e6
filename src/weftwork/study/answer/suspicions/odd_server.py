"""A few servers with other links between their GPUs than nearly all servers of as many GPUs and NIC ports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.study.answer.ids import ids_of_nodes
from weftwork.study.answer.suspect import Suspect, are_few, changed
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.answer.suspicions._peers import names_like, unlike_peers, usual_value, with_usual
from weftwork.study.prepare import what_if

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["SUSPICION"]


def _odd_servers(records: RunRecords) -> Iterator[Suspect]:
    fabric = records.prepared.fabric
    if fabric.node_server is None:
        return
    hosts = fabric.hosts
    shapes = np.array([(server.gpus, server.nic_ports) for server in fabric.servers], np.int64)
    shape = shapes[fabric.node_server[hosts]]
    for wanted in np.unique(shape, axis=0):
        own = hosts[(shape == wanted).all(axis=1)]
        usual = usual_value(fabric.node_server[own])
        odd = own[fabric.node_server[own] != usual]
        if not are_few(len(odd), len(own)):
            continue
        kind = fabric.node_server.copy()
        kind[odd] = usual
        servers = with_usual(fabric.servers, set(kind[hosts].tolist()), fabric.servers[usual])
        yield Suspect(
            kind="server",
            name=names_like([fabric.node_names[node] for node in odd.tolist()]),
            ids=ids_of_nodes(fabric, odd.tolist()),
            key="fabric",
            text=unlike_peers(fabric.servers[int(fabric.node_server[odd[0]])], fabric.servers[usual]),
            change=changed(what_if.on_fabric, node_server=kind, servers=servers),
        )


SUSPICION: Final = Suspicion(
    rank=70,
    key="fabric",
    standing="wrong",
    suspects=_odd_servers,
)
