"""ECN thresholds of every port.

A port has those of its switch, else thresholds in proportion to its rate.
Source: alibaba-edu/High-Precision-Congestion-Control, simulation/run.py (`weftwork.spec.device.Ecn`).
Leaves out: links that a fault degrades: a switch is configured for the rate that the link should have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weftwork.spec.fabric import SWITCH

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.base.findings import Findings
    from weftwork.spec.fabric import Fabric

__all__ = ["check_thresholds", "least_unmarked_bytes", "thresholds_bytes"]


def thresholds_bytes(fabric: Fabric) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Kmin and kmax of every port.

    Hosts have 0, as their NICs mark nothing.

    Returns
    -------
    two of shape (ports,)
    """
    ports = fabric.ports
    kmin, kmax = np.zeros(len(ports.node), np.int64), np.zeros(len(ports.node), np.int64)
    rates = fabric.links["rate_bps"][ports.link]
    marks = fabric.node_kind[ports.node] == SWITCH
    for kind, device in enumerate(fabric.switches):
        own = marks & (fabric.node_device[ports.node] == kind)
        for rate in np.unique(rates[own]).tolist():
            kmin[own & (rates == rate)], kmax[own & (rates == rate)] = device.ecn.thresholds_bytes(int(rate))
    return kmin, kmax


def least_unmarked_bytes(fabric: Fabric) -> list[int]:
    """The shortest queue above which a port marks, by kind of switch.

    It is the port's kmin, or its kmax if pmax is 0. Of a kind without links it is what the switch was given.
    """
    ports = fabric.ports
    kmin, kmax = thresholds_bytes(fabric)
    is_switch = fabric.node_kind[ports.node] == SWITCH
    found = []
    for kind, device in enumerate(fabric.switches):
        per_port, given = (kmin, device.ecn.kmin_bytes) if device.ecn.pmax > 0 else (kmax, device.ecn.kmax_bytes)
        own = per_port[is_switch & (fabric.node_device[ports.node] == kind)]
        found.append(int(own.min()) if len(own) else given or 0)
    return found


def check_thresholds(fabric: Fabric, findings: Findings) -> None:
    """Find a given threshold that contradicts a derived threshold.

    The derived threshold follows the rate of the port.
    """
    ports = fabric.ports
    kmin, kmax = thresholds_bytes(fabric)
    wrong = np.flatnonzero(kmin > kmax)
    if not len(wrong):
        return
    port = int(wrong[0])
    node = ports.node[port]
    device = fabric.switches[fabric.node_device[node]]
    rate = int(fabric.links["rate_bps"][ports.link[port]])
    key, other = ("kmin", "kmax") if device.ecn.kmin_bytes is not None else ("kmax", "kmin")
    text = (
        f"found kmin {kmin[port]:,} B and kmax {kmax[port]:,} B at '{fabric.node_names[node]}', wanted kmin at most"
        f" kmax; {other} follows from the port's {rate / 1e9:g} Gb/s unless it is given too"
    )
    findings.wrong(f"fabric.switch.ecn.{key}", text)
