"""The keys of ``transport`` in a scenario, as rows.

A row has unit, default, allowed values, one sentence and source.
Leaves out: what one key means for another (`weftwork.spec.scenario.checks`), parameters of policies (their own rows).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import get_args

from pydantic import Field

from weftwork.base.errors import Mistake
from weftwork.base.units import DURATION, SIZE
from weftwork.spec.device import PRIORITIES, Record
from weftwork.spec.scenario.choice import NoKeys
from weftwork.spec.scenario.choices import TRANSPORTS
from weftwork.spec.scenario.effects import NO_ACKS, NO_LOSS, NO_ORDER, NO_PRIORITIES, NO_QUEUES, Effect
from weftwork.spec.scenario.kinds import Choice, Flag, Measure, OfferKind, PolicyChoiceKind, Whole
from weftwork.spec.scenario.policies import PRESETS, PolicyChoice, QueuePairUse
from weftwork.spec.scenario.rows import row
from weftwork.spec.transport import ReplyEntropy

__all__ = ["TransportCheck", "TransportSection"]


class TransportSection(Record):
    """Packets, recovery and congestion control of messages."""

    protocol: str = row(
        "protocol",
        OfferKind(folder=TRANSPORTS),
        default="rocev2",
        text="Packet formats and rules of the connection.",
        source="IBTA vol. 1, annex A17",
    )
    options: Record = Field(default_factory=NoKeys)  # the protocol's own keys
    congestion_control: PolicyChoice = row(
        "congestion_control",
        PolicyChoiceKind(folder="congestion_control"),
        default="dcqcn",
        text="Policy that sets a sender's rate and window.",
        source="Zhu et al., SIGCOMM 2015, doi:10.1145/2785956.2787484: made for RoCEv2",
        effect=Effect(flows="get their fair share of every link immediately"),
    )
    load_balancing: str = row(
        "load_balancing",
        Choice(options=tuple(PRESETS)),
        default="ecmp",
        text="Preset of `path_selection` and `port_selection`; each of them may also be set alone.",
        source="RFC 2992: what switches do as shipped",
    )
    path_selection: PolicyChoice = row(
        "path_selection",
        PolicyChoiceKind(folder="path_selection"),
        absent="as load_balancing says",
        text="Policy that chooses the entropy of a packet at the NIC.",
        source="see load_balancing",
    )
    port_selection: PolicyChoice = row(
        "port_selection",
        PolicyChoiceKind(folder="port_selection"),
        absent="as load_balancing says",
        text="Policy that chooses among equal ports at a switch.",
        source="see load_balancing",
    )
    flow_control: str = row(
        "flow_control",
        Choice(options=("pfc", "credits", "none")),
        default="pfc",
        text="Whether switches and NICs pause each other, give each other credit on every link, or drop.",
        source="IEEE 802.1Qbb; credits: IBTA vol. 1, 7.9",
        effect=Effect(flows=NO_QUEUES),
    )
    credit_quantum_bytes: int | None = row(
        "credit_quantum",
        Measure(quantity=SIZE, low=64, high=1_000_000),
        only=("flow_control", ("credits",)),
        absent="8KiB",
        text="Bytes that a port gathers before it returns credit for them.",
        source="chosen: two packets of the largest MTU; smaller ones cost the link more frames",
        effect=Effect(flows=NO_QUEUES),
    )
    trimming: bool | None = row(
        "trimming",
        Flag(),
        only=("flow_control", ("none",)),
        absent="false",
        text="Whether a switch cuts a data packet that finds no room to its headers, which then travel on and are"
        " answered by a NAK; needs recovery: selective-repeat.",
        source="Handley et al., SIGCOMM 2017, doi:10.1145/3098822.3098825: NDP; no RoCEv2 NIC is known to do it",
        effect=Effect(flows=NO_QUEUES),
    )
    trim_priority: int | None = row(
        "trim_priority",
        Whole(low=0, high=PRIORITIES - 1, unit="priority"),
        only=("trimming", ("true",)),
        absent="control_priority",
        text="Priority of packets that were cut.",
        source="chosen: as NDP, whose headers go before data",
        effect=Effect(flows=NO_QUEUES),
    )
    recovery: str = row(
        "recovery",
        Choice(
            options=("go-back-n", "timeout", "selective-repeat"),
            later={"trimming": "packets are cut with trimming: true, and sent again under selective-repeat"},
        ),
        default="go-back-n",
        text="Retransmission of lost packets. `go-back-n` sends all packets from the first lost one on again, after a"
        " NAK or a timeout; `timeout` does so after a timeout alone; `selective-repeat` sends only missing packets"
        " again.",
        source="IBTA vol. 1, 9.7: reliable connections; Mittal et al., SIGCOMM 2018, doi:10.1145/3230543.3230557:"
        " selective repeat",
        effect=Effect(flows=NO_LOSS, lossy_flows="", reordered_flows=""),
    )
    mtu_bytes: int = row(
        "mtu",
        Measure(quantity=SIZE, allowed=(256, 512, 1024, 2048, 4096)),
        default=4096,
        text="Largest payload of a packet.",
        source="IBTA vol. 1, path MTU; chosen: the largest",
    )
    ack_every: int = row(
        "ack_every",
        Whole(low=1, high=65_536, unit="packets"),
        default=1,
        text="Packets that one acknowledgement covers.",
        source="chosen: an ACK per packet, as most simulators and windows assume",
        effect=Effect(flows=NO_ACKS),
    )
    reply_entropy: ReplyEntropy | None = row(
        "reply_entropy",
        Choice(options=get_args(ReplyEntropy)),
        absent="as the path selection declares: echoed if the NIC sprays, else own",
        text="UDP source port of ACKs and NAKs: that of their queue pair, or that of the packet which they answer.",
        source="uet-htsim, htsim/sim/uecpacket.h, UecAckPacket::newpkt: echoed; chosen: own for all others",
        effect=Effect(flows=NO_ACKS, needs=("entropies",)),
    )
    timeout_ps: int = row(
        "timeout",
        Measure(quantity=DURATION, low=1_000_000),
        default="67.108864ms",
        text="Time without progress after which a sender goes back.",
        source="IBTA vol. 1, 9.7.6.1.3: 4.096 us x 2^14, exponent 14 as verbs examples use",
        effect=Effect(flows=NO_LOSS, lossy_flows=""),
    )
    retry_limit: int = row(
        "retry_limit",
        Whole(low=0, high=7, unit="timeouts"),
        default=7,
        text="Timeouts in a row after which a connection fails.",
        source="IBTA vol. 1: a three-bit count; chosen: the largest",
        effect=Effect(flows=NO_LOSS, lossy_flows="send again as often as it takes"),
    )
    reorder_tolerant: bool = row(
        "reorder_tolerant",
        Flag(),
        default=False,
        text="Whether the receiver keeps packets that come out of order.",
        source="chosen: plain RoCEv2 does not",
        effect=Effect(flows=NO_ORDER, lossy_flows="", reordered_flows=""),
    )
    reorder_window_packets: int | None = row(
        "reorder_window",
        Whole(low=1, high=2**20, unit="packets"),
        absent="1024 if the receiver keeps them",
        text="Packets beyond the next expected one that the receiver keeps.",
        source="chosen: 4 MiB, above the BDP of 400 Gb/s x 50 us",
        effect=Effect(flows=NO_ORDER),
    )
    reorder_threshold_packets: int | None = row(
        "reorder_threshold",
        Whole(low=0, high=2**20, unit="packets"),
        only=("recovery", ("selective-repeat",)),
        absent="0 if the packets of a connection keep one path, else 128",
        text="Under selective repeat, packets by which one must be overtaken before it counts as lost.",
        source="Mittal et al., SIGCOMM 2018: 0 on one path; chosen: 128 when sprayed, 0.5 MiB, some 10 us at 400 Gb/s",
        effect=Effect(flows=NO_ORDER),
    )
    resend: str | None = row(
        "resend",
        Choice(options=("by-window", "at-once")),
        only=("recovery", ("selective-repeat",)),
        absent="by-window",
        text="Under selective repeat, when a packet that is known to be lost is sent again: when the window has room"
        " for it, or at once, whatever the window says.",
        source="RFC 6675, section 5: a retransmission takes room in the pipe",
        effect=Effect(flows=NO_LOSS, lossy_flows="have no window that a retransmission would wait for"),
    )
    end_to_end_credits: int = row(
        "end_to_end_credits",
        Whole(low=0, high=32_768, unit="messages"),
        default=0,
        text="Receive buffers that a receiver announces in the AETH; 0 turns end-to-end credits off.",
        source="IBTA vol. 1, 9.7.7.2: codes up to 32,768; chosen: off, writes need none",
        effect=Effect(flows=NO_ACKS),
    )
    queue_pairs: int = row(
        "queue_pairs",
        Whole(low=1, high=256, unit="queue pairs"),
        absent="1; 4 with load_balancing e-ecmp or flow-splitting",
        text="Queue pairs of each connection, each with a separate entropy.",
        source="NCCL, NCCL_IB_QPS_PER_CONNECTION: 1; chosen: 4, as public launch scripts set",
    )
    queue_pair_use: QueuePairUse = row(
        "queue_pair_use",
        Choice(options=get_args(QueuePairUse)),
        absent="in-turn for traffic and with load_balancing e-ecmp, else split",
        text="Whether a message is split evenly over the queue pairs of its connection, or takes the next one in turn.",
        source="NCCL, NCCL_IB_SPLIT_DATA_ON_QPS: 1 splits, 0 takes turns; E-ECMP takes turns: Gangidi et al., SIGCOMM"
        " 2024",
    )
    data_priority: int = row(
        "data_priority",
        Whole(low=0, high=PRIORITIES - 1, unit="priority"),
        default=3,
        text="Priority of data packets; lossless under PFC.",
        source="chosen: 3, as vendors' RoCE guides configure",
        effect=Effect(flows=NO_PRIORITIES),
    )
    control_priority: int = row(
        "control_priority",
        Whole(low=0, high=PRIORITIES - 1, unit="priority"),
        default=6,
        text="Priority of ACKs and CNPs.",
        source="mlxconfig query: CNP 802.1p 6",
        effect=Effect(flows=NO_PRIORITIES),
    )
    interframe_bytes: int = row(
        "interframe",
        Measure(quantity=SIZE, high=1_000),
        default="20B",
        text="Bytes on the wire between frames.",
        source="IEEE 802.3: preamble and delimiter 8, gap 12",
    )
    force: bool = row(
        "force",
        Flag(),
        default=False,
        text="Run a combination that is known to be wrong, such as spraying under go-back-N.",
        source="chosen: wrong combinations are refused",
    )


# a transport with its policies -> mistakes that they make together; the path of each is `transport.<kind>`
TransportCheck = Callable[[TransportSection], Sequence[Mistake]]
