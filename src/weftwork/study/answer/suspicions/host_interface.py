"""PCIe of hosts that is slower than their links.

Leaves out: a few hosts unlike their peers (`weftwork.study.answer.suspicions.odd_nic`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.grammar import plural
from weftwork.base.units import RATE, format_quantity
from weftwork.study.answer.suspect import Suspect, are_few, changed
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.prepare import what_if

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["SUSPICION"]


def _host_interface(records: RunRecords) -> Iterator[Suspect]:
    """PCIe of hosts that is slower than their links; a few hosts unlike their peers are suspects of their own."""
    fabric = records.prepared.fabric
    ports, rate_bps = fabric.ports, fabric.links["rate_bps"]
    of_hosts = np.flatnonzero(np.isin(ports.node, fabric.hosts))
    pcie_bps = np.array([nic.pcie_rate_bps for nic in fabric.nics])[fabric.node_device[ports.node[of_hosts]]]
    is_slower = (pcie_bps > 0) & (pcie_bps < rate_bps[ports.link[of_hosts]])
    if not is_slower.any() or (records.is_by_packet and records.evidence.is_full):
        return
    hosts = len(np.unique(ports.node[of_hosts[is_slower]]))
    if len(fabric.nics) > 1 and are_few(hosts, len(fabric.hosts)):
        return
    nics = tuple(nic.model_copy(update={"pcie_rate_bps": 0}) for nic in fabric.nics)
    slow = of_hosts[is_slower]
    yield Suspect(
        kind="setting",
        name="PCIe",
        key="fabric.nic.pcie_rate",
        text=(
            f"takes {format_quantity(RATE, int(pcie_bps[is_slower].min()))} at"
            f" {plural(len(slow), 'NIC port')}, whose links bring"
            f" {format_quantity(RATE, int(rate_bps[ports.link[slow]].max()))}"
        ),
        change=changed(what_if.on_fabric, nics=nics),
    )


SUSPICION: Final = Suspicion(
    rank=140,
    key="fabric.nic.pcie_rate",
    suspects=_host_interface,
)
