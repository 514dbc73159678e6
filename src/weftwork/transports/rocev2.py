"""RoCEv2 reliable connections: wire frame sizes, and rules of the scenario.

It is the transport as the engines see it.
Source: IBTA vol. 1, annex A17, over IPv4 without VLAN tags; a message is an RDMA WRITE, whose first packet carries an
RETH.
Leaves out: IPv6, READ and SEND (other headers, same rules). Selective repeat is no part of IBTA vol. 1: NICs do it in
ways of their own, and its NAK is taken to fit the AETH of an ACK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from weftwork.spec.scenario.choice import NoKeys, TransportKind
from weftwork.spec.transport import Transport
from weftwork.wire.ethernet import MINIMUM_FRAME_BYTES
from weftwork.wire.rocev2 import cnp_frame_bytes, rocev2_ack_frame_bytes, rocev2_data_frame_bytes
from weftwork.wire.rocev2_frames import FORMAT

if TYPE_CHECKING:
    from weftwork.spec.scenario.transport import TransportSection

__all__ = ["TRANSPORT", "transport"]


def transport(section: TransportSection, _: NoKeys | None = None) -> Transport:
    """Resolve the transport section of a scenario to numbers.

    Under PFC the priority of the data is lossless, and no other; under credits none is, since each class has credit.
    What is left of a packet that was cut are the headers of a message's first packet, whichever it was.

    Parameters
    ----------
    section : of a scenario that has been checked
    """
    full_bytes = rocev2_data_frame_bytes(section.mtu_bytes)
    first_bytes = rocev2_data_frame_bytes(section.mtu_bytes, first=True) - section.mtu_bytes  # all headers
    given: dict[str, Any] = {}
    if section.reorder_window_packets is not None:
        given["reorder_window_packets"] = section.reorder_window_packets
    if section.reorder_threshold_packets is not None:
        given["reorder_threshold_packets"] = section.reorder_threshold_packets
    if section.resend is not None:
        given["resend"] = section.resend
    if section.credit_quantum_bytes is not None:
        given["credit_quantum_bytes"] = section.credit_quantum_bytes
    return Transport(
        name="rocev2",
        mtu_bytes=section.mtu_bytes,
        data_overhead_bytes=full_bytes - section.mtu_bytes,
        first_extra_bytes=first_bytes + section.mtu_bytes - full_bytes,
        ack_bytes=rocev2_ack_frame_bytes(),
        cnp_bytes=cnp_frame_bytes(),
        credit_bytes=rocev2_ack_frame_bytes(),
        pause_frame_bytes=MINIMUM_FRAME_BYTES,
        interframe_bytes=section.interframe_bytes,
        data_priority=section.data_priority,
        control_priority=section.control_priority,
        lossless_priorities=(section.data_priority,) if section.flow_control == "pfc" else (),
        recovery=section.recovery,  # type: ignore[arg-type]  # the scenario has tested the word
        reorder_tolerant=section.reorder_tolerant,
        ack_every=section.ack_every,
        retransmission_timeout_ps=section.timeout_ps,
        retry_limit=section.retry_limit,
        reply_entropy=section.reply_entropy,
        end_to_end_credits=section.end_to_end_credits,
        link_credits=section.flow_control == "credits",
        trim_bytes=max(MINIMUM_FRAME_BYTES, first_bytes) if section.trimming else 0,
        trim_priority=section.trim_priority,
        **given,
    )


TRANSPORT: Final = TransportKind[NoKeys](source="IBTA vol. 1, annex A17", build=transport, wire=FORMAT)
