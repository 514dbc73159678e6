"""RoCEv2 over IPv6: larger IP headers, and optional VLAN tags.

Every routed packet has the larger header; the network may want the tag. A transport turns the section ``transport`` of
a scenario into numbers: sizes of frames, rules of recovery. docs/howto/own-transport.md explains every part.

    weftwork run transport.yaml    simulates an incast with these headers
    weftwork test transport.py     sends a permutation and checks that the keys of the scenario are kept

Source: IBTA vol. 1, annex A17 (RoCEv2 over IPv4 or IPv6); RFC 8200, section 3; IEEE 802.1Q, clause 9.
Leaves out: extension headers.
"""

from __future__ import annotations

from weftwork.spec.plug_in import Findings, Flag, Record, TransportKind, row
from weftwork.spec.scenario.transport import TransportSection
from weftwork.spec.transport import Transport
from weftwork.transports.rocev2 import transport

IPV6_BYTES = 40  # RFC 8200, section 3
IPV4_BYTES = 20  # RFC 791, section 3.1, without options
VLAN_TAG_BYTES = 4  # IEEE 802.1Q, clause 9
LEAST_MTU_BYTES = 1_024  # chosen: below it headers would be more than a tenth of the bytes


class Keys(Record):
    """Keys of ``transport`` besides those of every transport.

    Every transport has ``mtu``, for example.
    """

    vlan_tag: bool = row(
        "vlan_tag",
        Flag(),
        default=False,
        text="Whether frames have an 802.1Q tag, which carries their priority.",
        source="chosen: priorities by DSCP, as routed networks do",
    )


def check(section: TransportSection, keys: Keys, found: Findings) -> None:
    """Note contradictions between keys, by key."""
    if keys.vlan_tag and section.mtu_bytes < LEAST_MTU_BYTES:
        text = f"found {section.mtu_bytes:,} B with vlan_tag, wanted {LEAST_MTU_BYTES:,} B or more"
        found.wrong("mtu", text)


def build(section: TransportSection, keys: Keys) -> Transport:
    """Return the record for the engines.

    It is RoCEv2 over IPv4, with larger frames of every routed kind.
    """
    plain = transport(section)
    more_bytes = IPV6_BYTES - IPV4_BYTES + (VLAN_TAG_BYTES if keys.vlan_tag else 0)
    routed = ("data_overhead_bytes", "ack_bytes", "cnp_bytes", "credit_bytes")  # pause frames stay on one link
    sizes = {name: getattr(plain, name) + more_bytes for name in routed}
    return plain.model_copy(update={"name": "rocev2 over ipv6", **sizes})


TRANSPORT = TransportKind(keys=Keys, check=check, build=build, source="IBTA vol. 1, annex A17; RFC 8200, section 3")
