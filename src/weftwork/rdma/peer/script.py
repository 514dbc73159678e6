"""A script of the peer as a record: the other end's workload, the peer's own requests, and the rules for packets.

Every key is a row, as in a scenario: reading, messages and the JSON Schema are made from the rows.
Leaves out: the expected reaction, see `expectations`; reading a file, see `reading`.
"""

from __future__ import annotations

from typing import Final

from weftwork.base.units import DURATION, SIZE
from weftwork.rdma.peer.expectations import Expectation
from weftwork.rdma.peer.packet_words import ANSWERS, PACKETS, REQUESTS
from weftwork.rdma.psn_order import PATH_MTUS_BYTES
from weftwork.spec.device import Record
from weftwork.spec.scenario.kinds import Choice, Flag, Listing, Measure, Number, Section, SectionList, Text, Whole
from weftwork.spec.scenario.rows import REQUIRED, row

__all__ = [
    "DEFAULT_PORT",
    "AnswerKeys",
    "EndKeys",
    "PacketKeys",
    "PeerScript",
    "PeerStep",
    "RuleKeys",
]

DEFAULT_PORT: Final = 7471  # chosen: the port of rping in rdma-core
_HALF: Final = 1 << 23  # half of all PSNs
_NONE: Final = "chosen: none"
_USER: Final = "chosen: the user does"
_REACH: Final = 1 << 40  # chosen: bytes; farther than any region


class EndKeys(Record):
    """The workload that the other end does, and its connection."""

    does: str = row(
        "does",
        Choice(options=("write", "read", "send", "fetch-add", "nothing")),
        default="nothing",
        text="Request that the other end makes to the memory of the peer.",
        source="chosen: a scenario about requests of the peer",
    )
    size_bytes: int = row(
        "size", Measure(quantity=SIZE, high=1 << 24), default="16KiB", text="Size of each request.",
        source="chosen: 16 packets of the default path MTU",
    )  # fmt: skip
    times: int = row(
        "times", Whole(low=1, high=1000), default=1, text="Number of requests, posted at once.", source="chosen: one"
    )
    offers_bytes: int | None = row(
        "offers",
        Measure(quantity=SIZE, low=64, high=1 << 24),
        absent="no memory is offered",
        text="Size of the memory that the other end offers to the peer.",
        source=_NONE,
    )
    rights: tuple[str, ...] = row(
        "rights",
        Listing(item=Choice(options=("write", "read", "atomic"))),
        default=("write", "read", "atomic"),
        text="Rights of the peer on the offered memory.",
        source="chosen: all",
    )
    receives: int = row(
        "receives", Whole(low=0, high=100), default=0, text="Number of receives that the other end posts.",
        source="chosen: none",
    )  # fmt: skip
    receive_bytes: int = row(
        "receive_size", Measure(quantity=SIZE, high=1 << 20), default="4KiB", text="Size of each receive.",
        source="chosen: 4 packets of the default path MTU",
    )  # fmt: skip
    path_mtu: int = row(
        "path_mtu", Measure(quantity=SIZE, allowed=PATH_MTUS_BYTES), default="1024", text="Path MTU of the connection.",
        source="chosen: the largest that fits an Ethernet MTU of 1,500 bytes",
    )  # fmt: skip
    timeout: int = row(
        "timeout", Whole(low=0, high=31), default=10, text="Timeout t of an answer: 4.096 us x 2^t.",
        source="chosen: 4.2 ms, so that a scenario is short",
    )  # fmt: skip
    retry_count: int = row(
        "retry_count", Whole(low=0, high=7), default=7, text="Attempts after a timeout or a gap.",
        source="chosen: the most",
    )  # fmt: skip
    reads_at_once: int = row(
        "reads_at_once", Whole(low=1, high=16), default=4, text="READs and atomics that the other end takes at once.",
        source="chosen: fewer than the peer can ask for",
    )  # fmt: skip
    congestion_control: str | None = row(
        "congestion_control",
        Choice(options=("dcqcn",)),
        absent="packets are sent at line rate",
        text="Congestion control of the other end.",
        source=_NONE,
    )
    stays_ps: int = row(
        "stays", Measure(quantity=DURATION), default="0s", text="Time between the last completion and the disconnect.",
        source="chosen: none",
    )  # fmt: skip


class PacketKeys(Record):
    """Fields of a packet that a rule sets, or of a packet that the peer makes up."""

    packet: str | None = row(
        "packet", Choice(options=tuple(REQUESTS)), absent="the opcode is not changed",
        text="Opcode; headers that it has and the packet lacks are made up.", source=_NONE,
    )  # fmt: skip
    psn_by: int | None = row(
        "psn_by", Whole(low=-_HALF, high=_HALF), absent="the right PSN", text="Distance from the right PSN.",
        source=_NONE,
    )  # fmt: skip
    key: str | None = row(
        "key",
        Choice(options=("wrong", "foreign", "zero")),
        absent="the right key",
        text="Remote key: one that nobody drew, one of another protection domain of the end, or 0.",
        source=_NONE,
    )
    address_by: int | None = row(
        "address_by", Whole(low=-_REACH, high=_REACH), absent="the right address",
        text="Distance from the right address in bytes.", source=_NONE,
    )  # fmt: skip
    dma_bytes: int | None = row(
        "dma_length", Measure(quantity=SIZE, high=(1 << 32) - 1), absent="the length of the message",
        text="Length in the RETH.", source=_NONE,
    )  # fmt: skip
    payload_bytes: int | None = row(
        "payload", Measure(quantity=SIZE, high=8192), absent="the payload is not changed",
        text="Size of the payload; it is cut, or filled with 0xEE.", source=_NONE,
    )  # fmt: skip
    pad: int | None = row(
        "pad", Whole(low=0, high=3), absent="the right pad count", text="Pad count in the BTH.", source=_NONE
    )
    version: int | None = row(
        "version", Whole(low=0, high=15), absent="0", text="Transport version (TVer) in the BTH.", source=_NONE
    )
    partition: int | None = row(
        "partition", Whole(low=0, high=0xFFFF), absent="the right one", text="Partition key (P_Key) in the BTH.",
        source=_NONE,
    )  # fmt: skip
    asks: bool | None = row(
        "ack_request", Flag(), absent="not changed", text="Whether the packet asks for an ACK.", source=_NONE
    )
    source: str | None = row(
        "source", Choice(options=("stranger",)), absent="the peer",
        text="Sender: an IP address that the connection does not have.", source=_NONE,
    )  # fmt: skip


class AnswerKeys(Record):
    """An answer that the peer makes up."""

    kind: str = row("kind", Choice(options=ANSWERS), default=REQUIRED, text="Kind of answer.", source=_USER)
    psn_by: int = row(
        "psn_by", Whole(low=-_HALF, high=_HALF), default=0, text="Distance from the PSN of the matched packet.",
        source="chosen: the packet itself",
    )  # fmt: skip
    timer: int | None = row(
        "timer", Whole(low=0, high=31), only=("kind", ("rnr-nak",)), default=12,
        text="Timer code of an RNR NAK: 0 is 655.36 ms, 1 is 0.01 ms.", source="IBTA vol. 1, 9.7.5.2.8",
    )  # fmt: skip


class RuleKeys(Record):
    """A rule: which packets, and what is done to them."""

    sender: str = row(
        "from", Choice(options=("end", "peer")), default=REQUIRED, text="Sender of the packets.", source=_USER
    )
    packet: str = row(
        "packet", Choice(options=PACKETS), default="any", text="Kind of the packets.", source="chosen: every packet"
    )
    psn: int | None = row(
        "psn", Whole(low=-_HALF, high=_HALF), absent="every PSN",
        text="PSN of the packets, counted from the first PSN of the requester.", source=_NONE,
    )  # fmt: skip
    nth: int = row(
        "nth", Whole(low=1, high=1_000_000), default=1, text="First matching packet that the rule takes.",
        source="chosen: the first",
    )  # fmt: skip
    times: int | None = row(
        "times", Whole(low=1, high=1_000_000), absent="all from there on",
        text="Number of matching packets that the rule takes.", source=_NONE,
    )  # fmt: skip
    chance: float | None = row(
        "chance", Number(above=0, high=1, unit="probability"), absent="every time",
        text="Probability that the rule takes a matching packet; the draws follow from seed.", source=_NONE,
    )  # fmt: skip
    do: str = row(
        "do",
        Choice(
            options=(
                *("drop", "duplicate", "delay", "hold", "corrupt", "set"),
                *("answer", "inject", "silence", "disconnect"),
            )
        ),
        default=REQUIRED,
        text="Action.",
        source=_USER,
    )  # fmt: skip
    copies: int | None = row(
        "copies", Whole(low=1, high=100), default=1, only=("do", ("duplicate",)), text="Number of further copies.",
        source="chosen: one",
    )  # fmt: skip
    by_ps: int | None = row(
        "by", Measure(quantity=DURATION, low=1), only=("do", ("delay",)), default="1ms", text="Delay of the packet.",
        source="chosen: longer than a way there and back",
    )  # fmt: skip
    behind: int | None = row(
        "behind", Whole(low=1, high=1000), only=("do", ("hold",)), default=1,
        text="Number of later packets of this sender that overtake it.", source="chosen: one",
    )  # fmt: skip
    byte: int | None = row(
        "byte", Whole(low=0, high=8191), only=("do", ("corrupt",)), default=20,
        text="Byte to change, counted from the start of the BTH; the ICRC is not made right.",
        source="chosen: behind the BTH",
    )  # fmt: skip
    bits: int | None = row(
        "bits", Whole(low=1, high=255), only=("do", ("corrupt",)), default=1, text="Bits of the byte to turn over.",
        source="chosen: one bit",
    )  # fmt: skip
    fields: PacketKeys | None = row(
        "set", Section(model=PacketKeys, optional=True),
        text="Fields of the packet, or of the packet to inject; the ICRC is right.", source=_NONE,
    )  # fmt: skip
    answer: AnswerKeys | None = row(
        "answer", Section(model=AnswerKeys, optional=True), text="Answer to send.", source=_NONE
    )
    for_ps: int | None = row(
        "for", Measure(quantity=DURATION, low=1), only=("do", ("silence",)), absent="for ever",
        text="Time without packets in both directions; messages of the connection manager pass.", source=_NONE,
    )  # fmt: skip


class PeerStep(Record):
    """A request of the peer, in order; all are posted as soon as the connection is established."""

    do: str = row(
        "do", Choice(options=("write", "read", "send", "fetch-add", "inject", "wait")), default=REQUIRED,
        text="Request to the offered memory, a made-up packet, or a pause.", source=_USER,
    )  # fmt: skip
    size_bytes: int | None = row(
        "size", Measure(quantity=SIZE, high=1 << 24), default="4KiB", only=("do", ("write", "read", "send")),
        text="Size of the request.", source="chosen: 4 packets of the default path MTU",
    )  # fmt: skip
    address_by: int | None = row(
        "address_by", Whole(low=-_REACH, high=_REACH), default=0, only=("do", ("write", "read", "fetch-add")),
        text="Distance from the start of the offered memory in bytes.", source="chosen: its start",
    )  # fmt: skip
    times: int = row("times", Whole(low=1, high=1000), default=1, text="Number of them.", source="chosen: one")
    fields: PacketKeys | None = row(
        "set", Section(model=PacketKeys, optional=True), text="Fields of the packet to inject.", source=_NONE
    )
    for_ps: int | None = row(
        "for", Measure(quantity=DURATION, low=1), default="1ms", only=("do", ("wait",)), text="Length of the pause.",
        source="chosen: longer than a way there and back",
    )  # fmt: skip


class PeerScript(Record):
    """A scenario of the peer."""

    schema_version: int = row(
        "schema", Whole(low=1, high=1), default=REQUIRED, text="Version of the language.", source=_USER
    )
    name: str = row("name", Text(longest=60), default=REQUIRED, text="Name of the scenario.", source=_USER)
    shows: str = row("shows", Text(longest=300), default=REQUIRED, text="What happens, in a sentence.", source=_USER)
    clause: str = row(
        "source", Text(), default=REQUIRED, text="Where the expected reaction is specified.", source=_USER
    )
    seed: int = row("seed", Whole(low=0), default=1, text="Seed of the draws of rules.", source="chosen: none")
    rnr_retry: int = row(
        "rnr_retry", Whole(low=0, high=7), default=7,
        text="Attempts of the other end after an RNR NAK, which the peer tells it as they connect; 7 never gives up.",
        source="IBTA vol. 1, 9.7.5.2.8",
    )  # fmt: skip
    linger_ps: int = row(
        "linger", Measure(quantity=DURATION), default="200ms",
        text="Time between the peer's last request and its disconnect.",
        source="chosen: longer than any answer takes",
    )  # fmt: skip
    end: EndKeys = row("end", Section(model=EndKeys), text="The other end.", source=_USER)
    rules: tuple[RuleKeys, ...] = row(
        "rules", SectionList(model=RuleKeys), text="Rules for packets; the first that takes a packet decides.",
        source=_NONE,
    )  # fmt: skip
    peer: tuple[PeerStep, ...] = row("peer", SectionList(model=PeerStep), text="Requests of the peer.", source=_NONE)
    expect: tuple[Expectation, ...] = row(
        "expect", SectionList(model=Expectation), text="Expected reaction.", source=_USER
    )
