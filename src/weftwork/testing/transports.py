"""Named checks of a transport's contract.

They hold for the catalogue and for a user's own file.
Leaves out: whether its packets are what the standard says; `weftwork.wire` and its tests know that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from weftwork.base.errors import CodeError, ConfigError
from weftwork.spec.scenario.choice import PatternInput
from weftwork.spec.scenario.choices import PATTERNS, TRANSPORTS
from weftwork.spec.scenario.migrations import SCHEMA
from weftwork.spec.scenario.transport import TransportSection
from weftwork.spec.transport import Transport
from weftwork.spec.wire_format import PostedMessages, SentPacket, WireFormat
from weftwork.testing.choices import key_findings, offer_findings, read
from weftwork.testing.runs import finished
from weftwork.topology.build import fabric_of_section
from weftwork.wire.ethernet import ETHERNET_HEADER_BYTES, FCS_BYTES

if TYPE_CHECKING:
    from weftwork.spec.wire_format import PacketKind

__all__ = ["check_transport", "sent_findings", "transport_document", "wire_findings"]

_FABRIC = {"topology": "leaf-spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 2}


def check_transport(transport: str | Path, keys: Mapping[str, object] = {}) -> list[str]:
    """Read the keys, resolve the transport, and send a permutation.

    It is among four hosts.

    Parameters
    ----------
    transport : a name of the catalogue, or the path of your file
    keys : of the section ``transport`` besides, as a scenario has them, such as ``{"mtu": 1024}``

    Returns
    -------
    what is wrong, a sentence each; empty if nothing is
    """
    label = str(transport)
    document = transport_document(label, keys)
    findings = list(offer_findings(TRANSPORTS, label, TransportSection))
    findings = findings or list(key_findings(TRANSPORTS, label, "transport", document))
    return findings or list(sent_findings(label, document))


def wire_findings(wire: WireFormat, transport: Transport) -> Iterator[str]:
    """Yield frames of a wire format that are not as long as the engines' record says.

    Parameters
    ----------
    wire : format of the transport's packets
    transport : resolved, for a run without fields of policies
    """
    posted = PostedMessages(np.array([transport.mtu_bytes, 2 * transport.mtu_bytes]), transport.mtu_bytes)
    frames: dict[str, tuple[PacketKind, int, int]] = {
        "a message of one packet": ("DATA", 0, transport.first_extra_bytes),
        "the last packet of a message": ("DATA", 2, 0),
        "an ACK": ("ACK", 3, 0),
        "a NAK": ("NAK", 2, 0),
    }  # fmt: skip
    for name, (kind, seq, extra_bytes) in frames.items():
        if kind not in wire.kinds:
            continue
        is_data = kind == "DATA"
        payload_bytes = transport.mtu_bytes if is_data else 0
        data_bytes = payload_bytes + transport.data_overhead_bytes + extra_bytes
        packet = SentPacket(
            kind=kind,
            source=IPv4Address("10.0.0.1"),
            target=IPv4Address("10.0.0.2"),
            ttl=64,
            dscp=24,
            entropy=0xC123,
            queue_pair=0x11,
            seq=seq,
            payload_bytes=payload_bytes,
            asks_ack=is_data,
            is_marked=False,
            is_cut=False,
            messages_done=0,
            credit_code=0,
            refused_seq=-1,
            amount_bytes=0,
            posted=posted,
            transport=transport,
        )
        frame_bytes = ETHERNET_HEADER_BYTES + len(wire.encode(packet)) + FCS_BYTES
        simulated_bytes = data_bytes if is_data else transport.ack_bytes
        if frame_bytes != simulated_bytes:
            yield f"{name} is a frame of {frame_bytes} B on the wire, and the engines take {simulated_bytes} B"
        said_bytes = wire.data_frame_bytes(payload_bytes, packet.place.is_first) if is_data else wire.answer_frame_bytes
        if said_bytes != frame_bytes:
            yield f"{name} is a frame of {frame_bytes} B on the wire, and the format says {said_bytes} B"


def transport_document(label: str, keys: Mapping[str, object]) -> dict[str, Any]:
    """Return a scenario with a permutation of four hosts over a transport."""
    return {
        "schema": SCHEMA,
        "fabric": _FABRIC,
        "transport": {"protocol": label, **keys},
        "traffic": {"pattern": "permutation", "size": "20KB"},
    }


def sent_findings(label: str, document: Mapping[str, object]) -> Iterator[str]:
    """Yield mistakes in the record for the engines, and in its run."""
    scenario = read(document)
    section = scenario.transport
    try:
        with TRANSPORTS.blaming(label):
            built = TRANSPORTS.load(label).build(section, section.options)
        made = TRANSPORTS.want(label, built, Transport, "build")
    except (CodeError, ConfigError) as wrong:
        yield f"there is no transport: {wrong}"
        return
    kept = {name: (getattr(made, name), getattr(section, name))
            for name in ("mtu_bytes", "data_priority", "control_priority", "recovery", "ack_every")}  # fmt: skip
    for name, (found, wanted) in kept.items():
        if found != wanted:
            yield f"{name} is {found}, and the scenario says {wanted}"
    wire: object = TRANSPORTS.load(label).wire  # a file written by hand
    if wire is not None and not isinstance(wire, WireFormat):
        yield f"wire is a {type(wire).__name__}, wanted a WireFormat"
    elif wire is not None:
        yield from wire_findings(wire, made)
    given = PatternInput(hosts=4, host_rate_bps=1, seed=1, priority=-1, queue_pairs=1)
    job = PATTERNS["permutation"].job(scenario.traffic_section.options, given)
    yield from finished(fabric_of_section(scenario.fabric, directory=Path.cwd()), job, made)
