"""Rows of a transport: packets and recovery for the packet engine, sizes on the wire and costs of losses for flows.

Source: `weftwork.spec.transport`; docs/models/flow-losses.md.
"""

from __future__ import annotations

from typing import Final

from weftwork.engine.rows.declare import Header, Input, RowType, real, whole

__all__ = ["HEADER", "LOSS_RULES", "LOSS_RULES_DTYPE", "TRANSPORT", "WIRE_SIZES"]

TRANSPORT: Final = Input(
    struct="TransportRow",
    text="A transport as the packet engine takes it.",
    members=(
        whole("mtu_bytes", "payload of a full packet"),
        whole("data_overhead_bytes", "headers of a data packet"),
        whole("first_extra_bytes", "further headers of a message's first packet"),
        whole("telemetry_bytes", "of a packet that carries in-band telemetry, beside its hops"),
        whole("ack_bytes", "frame of an ACK or NAK"),
        whole("cnp_bytes", "frame of a CNP"),
        whole("credit_bytes", "frame of a CREDIT or REQUEST"),
        whole("pause_frame_bytes", "frame of flow control"),
        whole("interframe_bytes", "preamble and gap of each frame"),
        whole("go_back_n", "1: a NAK makes the sender go back"),
        whole("reorder_tolerant", "1: the receiver keeps packets that come early"),
        whole("reorder_window_packets", "that a receiver keeps behind a gap"),
        whole("ack_every", "packets of an acknowledgement"),
        whole("retransmission_timeout_ps", "of a queue pair"),
        whole("retry_limit", "timeouts in a row before the queue pair fails"),
        whole("end_to_end_credits", "of a receiver; 0: not used"),
        whole("selective_repeat", "1: only lost packets are sent again"),
        whole("reorder_threshold_packets", "selective repeat: a packet overtaken by more is lost"),
        whole("resends_at_once", "selective repeat, 1: a lost packet does not wait for the window"),
        whole("telemetry_hop_bytes", "that each switch adds"),
        whole("echo_bytes", "of all echoes in an ACK or NAK"),
        whole("trim_bytes", "frame of a packet that was cut; 0: it is dropped"),
        whole("timeout_low_ps", "timeout with few packets outstanding; 0: the same as with many"),
        whole("timeout_low_packets", "at most so many are few"),
        whole("link_credits", "1: links give credit, and nobody pauses"),
        whole("credit_quantum_bytes", "that a link returns at a time"),
        whole("in_any_order", "1: messages of a connection are delivered in any order"),
        whole("matches_any", "1: a receive takes whichever message comes first"),
        whole("inflight_cap_bytes", "payload of one connection; 0: no cap"),
        whole("connection_state_bytes", "that one end of a connection takes at its NIC_ROW"),
        whole("host_packet_ps", "of the host's processor for each data packet, at both ends"),
        whole("host_byte_ps", "the same for 1,000 bytes of payload"),
        whole("replies_follow", "1: ACKs and NAKs take the entropy of the packet that they answer"),
    ),
)
WIRE_SIZES: Final = Input(
    struct="WireSizesRow",
    space="flow",
    text="Sizes of a packet on the wire; telemetry counts as overhead.",
    members=(
        whole("mtu_bytes", "payload of a full packet"),
        whole("overhead_bytes", "headers of a data packet"),
        whole("first_extra_bytes", "further headers of a message's first packet"),
        whole("gap_bytes", "preamble and gap of each frame"),
        whole("ack_bytes", "frame of an ACK"),
        whole("ack_every", "packets of an acknowledgement"),
    ),
)
LOSS_RULES: Final = RowType(
    struct="LossRules",
    space="flow",
    text="Recovery of a transport, and how much more losses cost the slowest of flows side by side than one of them.",
    fields=(
        real("timeout_ps", "of a retransmission"),
        whole("goes_back", "1: what was sent in a round trip behind a lost packet is sent again"),
        whole("waits_always", "1: only a timeout tells of a loss"),
        whole("waits_at_gaps", "1: a gap is told once: a packet lost again, or a lost NAK, waits for a timeout"),
        real("kept_packets", "behind a gap, so that losses among them are repaired by one timeout"),
        real("repeats", "times the mean number of losses"),
        real("waits", "times the mean number of timeouts inside messages"),
        real("end_waits", "times the mean number of timeouts behind the last packet of a message"),
        real("call_waits", "the same of a collective as one operation"),
    ),
)

LOSS_RULES_DTYPE: Final = LOSS_RULES.dtype
HEADER: Final = Header(
    name="transport", text="A transport as each engine takes it.", parts=(TRANSPORT, WIRE_SIZES, LOSS_RULES)
)
