"""The host's processor in the flow engine, which limits rates.

A transport that costs it time sends and takes bytes no faster than it can.
Source: `docs/models/flow-engine.md`, section Who shares what; `docs/models/packet-engine.md` has it packet by packet.
Leaves out: packets smaller than the MTU, which cost as much as full ones; each port has a processor of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.engine.rows.fabric import Instant

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.spec.transport import Transport

__all__ = ["ProcessorRates"]


class ProcessorRates:
    """Rates under the limits of the processor.

    Without a cost it changes nothing.

    Parameters
    ----------
    transport : its cost of a packet and of a byte, and the frames that they come in
    """

    def __init__(self, transport: Transport) -> None:
        self.cost_ps = transport.host_cost_ps(transport.mtu_bytes)
        self.frame_bits = 8 * (transport.mtu_bytes + transport.data_overhead_bytes + transport.telemetry_bytes)
        self.gap_bits = 8 * transport.interframe_bytes

    def sending_bps(self, rate_bps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sending rates of NIC ports: the slower of link and processor.

        Parameters
        ----------
        rate_bps : of the links
        """
        if not self.cost_ps:
            return rate_bps
        return np.minimum(rate_bps, (self.frame_bits + self.gap_bits) * SECOND_PS // self.cost_ps)

    def taking_bps(self, rate_bps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Receiving rates of hosts, one processor cost after the other.

        Parameters
        ----------
        rate_bps : of the host interfaces, 0: at once
        """
        if not self.cost_ps:
            return rate_bps
        bus_ps = np.where(rate_bps > 0, self.frame_bits * SECOND_PS / np.maximum(rate_bps, 1), 0.0)
        return (self.frame_bits * SECOND_PS / (bus_ps + self.cost_ps)).astype(np.int64)

    def instants(self, instants: NDArray[np.void], of_host: NDArray[np.bool_]) -> NDArray[np.void]:
        """Instants of rate changes, with the rates after the processor's limits.

        Parameters
        ----------
        instants : `INSTANT_DTYPE`
        of_host : shape (ports,), whether the link of a port has a host at one end
        """
        if not self.cost_ps:
            return instants
        changed = instants.copy()
        links = (instants["code"] == Instant.RATE) & of_host[instants["port"]]
        changed["value"][links] = self.sending_bps(instants["value"][links])
        buses = instants["code"] == Instant.HOST_RATE
        changed["value"][buses] = self.taking_bps(instants["value"][buses])
        return changed
