"""Datagrams that the host's processor makes: all that the record of a transport has and RoCEv2 does not use.

Messages arrive in any order, each packet costs the processor of both hosts time, switches cut what finds no room or
links give credit, and a NIC keeps little of a connection. For tests, not for results.

Source: none.
Leaves out: a wire format of its own.
"""

from __future__ import annotations

from weftwork.spec.plug_in import DURATION, SIZE, Measure, Record, TransportKind, row
from weftwork.spec.scenario.transport import TransportSection
from weftwork.spec.transport import Transport
from weftwork.transports.rocev2 import transport


class Keys(Record):
    packet_ps: int = row(
        "packet_cost", Measure(quantity=DURATION), default="150ns", source="chosen: none", text="Of each packet."
    )
    kilobyte_ps: int = row(
        "kilobyte_cost", Measure(quantity=DURATION), default="20ns", source="chosen: none", text="Of 1,000 bytes."
    )
    cap_bytes: int = row(
        "cap", Measure(quantity=SIZE), default="256KiB", source="chosen: none", text="Of bytes in flight."
    )


def build(section: TransportSection, keys: Keys) -> Transport:
    plain = transport(section)
    changes = {
        "name": "datagrams",
        "ordering": "none",
        "host_packet_ps": keys.packet_ps,
        "host_byte_ps": keys.kilobyte_ps,
        "inflight_cap_bytes": keys.cap_bytes,
        "connection_state_bytes": 64,
        "telemetry_hop_bytes": 4,
    }
    return plain.model_copy(update=changes)


TRANSPORT = TransportKind(
    keys=Keys,
    build=build,
    source="none",
    defaults={
        "congestion_control": "fixed-window",
        "load_balancing": "spray",
        "recovery": "selective-repeat",
        "resend": "at-once",
        "flow_control": "none",
        "trimming": True,
        "timeout": "200us",
        "mtu": "2KiB",
    },
)
