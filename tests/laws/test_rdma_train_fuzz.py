"""A train is what its packets are one by one: whatever is wrong in it, the NIC reacts to both in the same way."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address
from typing import Any

from helpers.cases import case_count
from helpers.rdma_attacker import FIRST_PSN, FRONT_BYTES, MTU, OPEN, PEER, SENT_PSN, VICTIM, Victim
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.rdma.datagram import Datagram
from weftwork.rdma.verbs import WrOpcode
from weftwork.wire.extended import Aeth, AethKind, Reth
from weftwork.wire.ib import PSN_MODULUS, Bth
from weftwork.wire.ip import Ipv4Header
from weftwork.wire.opcodes import Opcode
from weftwork.wire.rocev2 import rocev2_packet

PORT = 0xC000
SIZE_BYTES = 12 + MTU + 4  # BTH, payload, ICRC
MESSAGE_BYTES = OPEN.stop - OPEN.start
HARMS = [
    "psn",
    "psn",
    "opcode",
    "opcode",
    "queue pair",
    "partition",
    "version",
    "solicited",
    "bit",
    "padding",
    "identification",
]
MIDDLE = {"write": Opcode.WRITE_MIDDLE, "send": Opcode.SEND_MIDDLE, "read": Opcode.READ_RESPONSE_MIDDLE}
OTHERS = [
    Opcode.SEND_MIDDLE,
    Opcode.WRITE_MIDDLE,
    Opcode.READ_RESPONSE_MIDDLE,
    Opcode.SEND_LAST,
    Opcode.WRITE_LAST,
    0x27,
]
LAST = {"write": Opcode.WRITE_LAST, "send": Opcode.SEND_LAST, "read": Opcode.READ_RESPONSE_MIDDLE}


def payload_of(header: Bth, body: bytes, identification: int) -> bytes:
    """Payload of UDP, whose ICRC counts the identification of IPv4."""
    made = rocev2_packet(
        source=IPv4Address(PEER), destination=IPv4Address(VICTIM), source_port=PORT, bth=header, body=body
    )
    assert isinstance(made.ip, Ipv4Header)
    return replace(made, ip=replace(made.ip, identification=identification)).encode()[FRONT_BYTES:]


def begun(kind: str) -> tuple[Victim, int]:
    """A victim that has got the first packet of a message, and the PSN that it expects next."""
    victim = Victim()
    if kind == "write":
        reth = Reth(victim.region.addr, victim.region.rkey, MESSAGE_BYTES)
        victim.nic.receive(victim.forge(Opcode.WRITE_FIRST, (reth,), b"F" * MTU), 0)
    elif kind == "send":
        victim.post_recv(1, MESSAGE_BYTES - MTU // 2)
        victim.nic.receive(victim.forge(Opcode.SEND_FIRST, (), b"F" * MTU), 0)
    else:
        victim.post(WrOpcode.RDMA_READ, MESSAGE_BYTES, remote_addr=0, rkey=1)
        victim.answers()
        aeth = Aeth(AethKind.ACK, 31, 0)
        victim.nic.receive(victim.forge(Opcode.READ_RESPONSE_FIRST, (aeth,), b"F" * MTU, psn=SENT_PSN), 0)
    return victim, (SENT_PSN if kind == "read" else FIRST_PSN) + 1


@st.composite
def trains(draw: st.DrawFn, kind: str, first_psn: int, qp_num: int) -> list[bytes]:
    """Packets that follow each other, some of them with one thing changed; the last may be shorter."""
    found: list[bytes] = []
    psn = first_psn
    asks = draw(st.booleans())  # all of them or none: a train is acknowledged to its end, which is legal
    harms = draw(st.dictionaries(st.integers(0, 15), st.sampled_from(HARMS), max_size=2))
    for number in range(draw(st.integers(2, 20))):
        harm = harms.get(number, "none")
        psn += draw(st.sampled_from([-1, 1, 5])) if harm == "psn" else 0
        header = Bth(
            draw(st.sampled_from(OTHERS)) if harm == "opcode" else MIDDLE[kind],
            qp_num ^ (harm == "queue pair"),
            psn % PSN_MODULUS,
            ack_request=asks,
            pad_bytes=3 if harm == "padding" else 0,
            partition_key=draw(st.sampled_from([0x7FFE, 0x7FFF, 0x8001])) if harm == "partition" else 0xFFFF,
            solicited_event=harm == "solicited",
            migrated=draw(st.booleans()),
            transport_version=harm == "version",
        )
        body = bytes([number + 1]) * MTU
        packet = bytearray(payload_of(header, body, number + 100 * (harm == "identification")))
        if harm == "bit":
            packet[draw(st.integers(0, len(packet) - 1))] ^= 1 << draw(st.integers(0, 7))
        found.append(bytes(packet))
        psn += 1
    if draw(st.booleans()):
        header = Bth(LAST[kind], qp_num, psn % PSN_MODULUS, ack_request=True)
        body = b"L" * draw(st.sampled_from([4, 8, MTU - 4]))
        found.append(payload_of(header, body, len(found)))
    return found


def seen(victim: Victim) -> tuple[Any, ...]:
    """All that a train may change."""
    answers = [(one.bth, one.headers) for one in victim.answers()]
    counters = dict(victim.qp.counters), dict(victim.nic.counters)
    return bytes(victim.memory), victim.qp.state, counters, answers, victim.statuses()


@settings(max_examples=case_count(plain=150, deep=1_000))
@given(kind=st.sampled_from(sorted(MIDDLE)), data=st.data())
def test_a_train_is_what_its_packets_are_one_by_one(kind: str, data: st.DataObject) -> None:
    (whole, psn), (single, _) = begun(kind), begun(kind)
    assert whole.qp.qp_num == single.qp.qp_num
    packets = data.draw(trains(kind, psn, whole.qp.qp_num))
    whole.nic.receive(Datagram(PEER, VICTIM, PORT, (b"".join(packets),), segment_bytes=SIZE_BYTES), 0)
    for number, packet in enumerate(packets):
        single.nic.receive(Datagram(PEER, VICTIM, PORT, (packet,), identification=number), 0)
    assert seen(whole)[1:] == seen(single)[1:]
    assert whole.memory == single.memory
    whole.check(OPEN)
