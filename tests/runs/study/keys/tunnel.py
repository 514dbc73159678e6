"""RoCEv2 with 50 bytes more on every packet, as in a tunnel.

Source: none. Leaves out: the tunnel's own control packets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.spec.plug_in import Record, TransportKind
from weftwork.transports.rocev2 import transport

if TYPE_CHECKING:
    from weftwork.spec.scenario.transport import TransportSection
    from weftwork.spec.transport import Transport

TUNNEL_BYTES = 50  # chosen: VXLAN's


def build(section: TransportSection, _: Record) -> Transport:
    """Add the tunnel's header to what RoCEv2 sends."""
    plain = transport(section)
    more = {"data_overhead_bytes": plain.data_overhead_bytes + TUNNEL_BYTES}
    return plain.model_copy(update={"name": "tunnel", "ack_bytes": plain.ack_bytes + TUNNEL_BYTES, **more})


TRANSPORT = TransportKind(build=build, source="none")
