"""NICs of a few hosts with less PCIe behind them than nearly all others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.units import RATE, format_quantity
from weftwork.study.answer.ids import ids_of_nodes
from weftwork.study.answer.suspect import Suspect, are_few, changed
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.answer.suspicions._peers import names_like, usual_value, with_usual
from weftwork.study.prepare import what_if

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["SUSPICION"]


def _slow_nics(records: RunRecords) -> Iterator[Suspect]:
    fabric = records.prepared.fabric
    if len(fabric.nics) < 2:
        return
    pcie_bps = np.array([nic.pcie_rate_bps or 2**62 for nic in fabric.nics])[fabric.node_device[fabric.hosts]]
    usual_bps = usual_value(pcie_bps)
    slow = np.flatnonzero(pcie_bps < usual_bps)
    if not are_few(len(slow), len(fabric.hosts)):
        return
    device = fabric.node_device.copy()
    usual = int(fabric.node_device[fabric.hosts[int(np.argmax(pcie_bps == usual_bps))]])
    device[fabric.hosts[slow]] = usual
    nics = with_usual(fabric.nics, set(device[fabric.hosts].tolist()), fabric.nics[usual])
    yield Suspect(
        kind="nic",
        name=names_like([fabric.node_names[node] for node in fabric.hosts[slow].tolist()]),
        ids=ids_of_nodes(fabric, fabric.hosts[slow].tolist()),
        key="fabric",
        text=f"has {format_quantity(RATE, int(pcie_bps[slow].min()))} of PCIe behind its NIC, less than its peers",
        change=changed(what_if.on_fabric, node_device=device, nics=nics),
    )


SUSPICION: Final = Suspicion(
    rank=50,
    key="fabric",
    standing="wrong",
    suspects=_slow_nics,
)
