"""Credits between links: bytes in flight of each lane.

They follow from the buffer behind the lane and its length.
Source: `docs/models/packet-engine.md`, section Credits between links; lanes and credits as InfiniBand has them (IBTA
vol. 1, 7.9).
Leaves out: how credits come back, which the engines do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.base.grammar import plural
from weftwork.engine.headroom import full_frame_bytes
from weftwork.spec.fabric import SWITCH

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.base.findings import Findings
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.transport import Transport

__all__ = ["port_credits"]


def port_credits(
    fabric: Fabric, transport: Transport, classes: int, delay_ps: NDArray[np.int64], findings: Findings
) -> NDArray[np.int64]:
    """Buffer of each lane by receiving port.

    Parameters
    ----------
    fabric, transport : whose buffers and sizes
    classes : lanes of a link
    delay_ps : shape (ports,), of the direction that leaves a port, the far end's latency included
    findings : take one mistake for each kind of device whose buffer does not suffice

    Returns
    -------
    shape (ports,), bytes, 0 without credits
    """
    ports = fabric.ports
    room = np.zeros(len(ports.node), np.int64)
    if not transport.link_credits:
        return room
    frame, quantum = full_frame_bytes(transport), transport.credit_quantum_bytes
    rates = fabric.links["rate_bps"][ports.link].astype(np.int64)
    round_trip_ps = delay_ps + delay_ps[ports.peer]
    in_flight = np.array(
        [-(-rate * trip // (8 * SECOND_PS)) for rate, trip in zip(rates.tolist(), round_trip_ps.tolist(), strict=True)]
    )
    need = in_flight.astype(np.int64) + 2 * frame + quantum
    is_switch = fabric.node_kind[ports.node] == SWITCH
    together = np.bincount(ports.node, weights=need, minlength=len(fabric.node_names)).astype(np.int64)
    for port in range(len(room)):
        node = int(ports.node[port])
        if is_switch[port]:
            buffer = fabric.switches[int(fabric.node_device[node])].buffer_bytes
            room[port] = buffer * int(need[port]) // (classes * int(together[node]))
        else:
            nic = fabric.nics[int(fabric.node_device[node])]
            room[port] = need[port]
            if nic.has_host_interface:
                room[port] = min(room[port], nic.receive_buffer_bytes // classes)
    least = 2 * frame + quantum
    short = np.flatnonzero(room < least)
    named: set[str] = set()
    for port in short.tolist():
        name = "switch.buffer" if is_switch[port] else "nic.receive_buffer"
        if name in named:
            continue
        named.add(name)
        text = (
            f"credits leave {room[port]:,} B for each of {plural(classes, 'lane')} of a link of"
            f" '{fabric.node_names[ports.node[port]]}', wanted {least:,} B or more: two full frames and a quantum of"
            f" {quantum:,} B; take a larger buffer, fewer priorities, or flow_control: pfc"
        )
        findings.wrong(f"fabric.{name}", text)
    return room
