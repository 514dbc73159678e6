"""Whatever arrives, the NIC raises nothing, changes no memory that is not open, and serves its other queue pairs."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.cases import case_count
from helpers.rdma_attacker import MTU, OPEN, PEER, PEER_QP, SENT_PSN, STRANGER, VICTIM, Victim, seal
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.policies.load import load
from weftwork.rdma.datagram import Datagram
from weftwork.rdma.states import MODIFY
from weftwork.rdma.verbs import AddressHandle, QpState, QpType, WrOpcode
from weftwork.wire.extended import AtomicEth, Deth, Feth, Ieth, ImmediateData, Reth
from weftwork.wire.ib import PSN_MODULUS, Bth
from weftwork.wire.opcodes import SHAPES, OpcodeShape, Position

MANY = settings(max_examples=case_count(plain=150, deep=500))
SERVICES = st.sampled_from([QpType.RC, QpType.UC, QpType.UD])
OPEN_BYTES = OPEN.stop - OPEN.start
AROUND_MTU = st.sampled_from([0, 1, 3, 4, 8, MTU - 4, MTU - 1, MTU, MTU + 1, MTU + 4, 2 * MTU])
LENGTHS = AROUND_MTU | st.sampled_from([OPEN_BYTES, OPEN_BYTES + 1, 1 << 31, (1 << 32) - 1])
BITS24, BITS32, BITS64 = (st.integers(0, (1 << bits) - 1) for bits in (24, 32, 64))
WANTED = {
    QpType.RC: [code for code, shape in SHAPES.items() if shape.name.startswith("RC ")],
    QpType.UC: [code for code, shape in SHAPES.items() if shape.name.startswith("UC ")],
    QpType.UD: [code for code, shape in SHAPES.items() if shape.name.startswith("UD ")],
}


def to_state(victim: Victim, state: QpState) -> None:
    """Take the queue pair to a state, by the steps that the table allows."""
    victim.qp.modify(QpState.RESET)
    if state in {QpState.SQE, QpState.SQD}:
        victim.connect()
        if state is QpState.SQD:
            victim.qp.modify(state)
        victim.qp.state = state  # a failed send of an unreliable service leads to SQE
        return
    way = {QpState.RESET: 0, QpState.INIT: 1, QpState.RTR: 2, QpState.RTS: 3}.get(state, 1)
    for step in (QpState.INIT, QpState.RTR, QpState.RTS)[:way]:
        victim.qp.modify(step, victim.attr if step is QpState.INIT else None)
    if state is QpState.ERR:
        victim.qp.modify(state)


@st.composite
def any_packet(draw: st.DrawFn, number: int) -> Datagram:
    """Bytes of no structure, bytes behind a BTH that finds the queue pair, and the same with a right ICRC."""
    source = draw(st.sampled_from([PEER, STRANGER, VICTIM, b"", bytes(16)]))
    body = draw(st.binary(max_size=80))
    header = Bth(draw(st.integers(0, 255)), number, draw(BITS24), transport_version=draw(st.sampled_from([0, 0, 3])))
    if len(source) == 4 and draw(st.booleans()):
        return seal(header, body + bytes(-len(body) % 4), source=source, ecn=draw(st.integers(0, 3)))
    data = body if draw(st.booleans()) else header.encode() + body
    return Datagram(source, draw(st.sampled_from([VICTIM, PEER, b""])), draw(st.integers(0, 65_535)), (data,))


@pytest.mark.parametrize("state", list(QpState), ids=lambda state: state.name)
@MANY
@given(service=SERVICES, data=st.data())
def test_any_bytes_in_any_state_raise_nothing_and_change_nothing(
    state: QpState, service: QpType, data: st.DataObject
) -> None:
    victim = Victim(service)
    to_state(victim, state)
    for _ in range(data.draw(st.integers(1, 5))):
        victim.nic.receive(data.draw(any_packet(victim.qp.qp_num)), victim.now_ps)
        victim.answers()
    victim.check()


HARMS = ["queue pair", "source", "partition", "version", "psn", "opcode", "bit", "padding"]
HARMS += ["lengths", "address"] * 4
GOES_ON = {Position.FIRST: {Position.MIDDLE, Position.LAST}, Position.MIDDLE: {Position.MIDDLE, Position.LAST}}
STARTS = {Position.FIRST, Position.ONLY}


class Forger:
    """Makes packets that the victim expects next, half of them with one thing changed before the ICRC is made."""

    def __init__(self, victim: Victim, draw: st.DrawFn, *, knows_key: bool) -> None:
        self.victim = victim
        self.draw = draw
        self.knows_key = knows_key
        self.last: OpcodeShape | None = None

    def opcode(self) -> int:
        """One that goes on with the message that has begun, or begins one."""
        last, victim = self.last, self.victim
        wanted = GOES_ON.get(last.position, STARTS) if last is not None else STARTS
        fitting = [
            code
            for code in WANTED[victim.qp_type]
            if SHAPES[code].position in wanted
            and (wanted is STARTS or last is None or SHAPES[code].operation // 6 == last.operation // 6)
        ]
        return self.draw(st.sampled_from(fitting))

    def header(self, kind: type, length: int, harm: str) -> Any:
        """An extended header; where it is harmed, with values at the edges of what the victim allows."""
        draw, victim = self.draw, self.victim
        start = victim.region.addr
        key = victim.region.rkey
        if not self.knows_key:
            key = draw(BITS32.filter(lambda one: one != victim.region.rkey))
        if harm == "address":
            edges = [-1, -8, 1, 4, OPEN_BYTES - 8, OPEN_BYTES - 7, OPEN_BYTES - MTU, OPEN_BYTES - MTU + 8, OPEN_BYTES]
            start = start + draw(st.sampled_from(edges)) if draw(st.integers(0, 9)) else draw(BITS64)
        if kind is Reth:
            return Reth(start, key, draw(LENGTHS) if harm == "lengths" else length)
        if kind is AtomicEth:
            return AtomicEth(start, key, draw(BITS64), draw(st.sampled_from([0, 5])))
        if kind is Deth:
            return Deth(draw(st.sampled_from([0x80001234, 0])) if harm == "address" else 0x1234, draw(BITS24))
        if kind is Feth:
            return Feth(draw(st.integers(0, 15)), draw(st.integers(0, 3))) if harm == "lengths" else Feth(1, 0)
        if kind is Ieth:
            return Ieth(key)
        data = draw(st.binary(min_size=8, max_size=8))
        return ImmediateData.decode(data)[0] if kind is ImmediateData else kind.decode(data)[0]

    def packet(self) -> Datagram:
        """The next packet."""
        draw, victim = self.draw, self.victim
        harm = draw(st.sampled_from(["none"] * len(HARMS) + HARMS))
        opcode = draw(st.integers(0, 255)) if harm == "opcode" else self.opcode()
        shape = SHAPES.get(opcode, SHAPES[WANTED[victim.qp_type][0]])
        is_part = shape.position in {Position.FIRST, Position.MIDDLE}
        payload = MTU if is_part else draw(st.sampled_from([8, MTU - 3, MTU])) if shape.has_payload else 0
        length = 2 * MTU if shape.position is Position.FIRST else payload or 8
        payload = draw(AROUND_MTU) if harm == "lengths" else payload
        headers = b"".join(self.header(kind, length, harm).encode() for kind in shape.headers)
        body = bytearray(headers + b"E" * payload)
        body += bytes(-len(body) % 4)
        if body and harm == "bit":
            body[draw(st.integers(0, len(body) - 1))] ^= 1 << draw(st.integers(0, 7))
        ahead = draw(st.sampled_from([1, 2, -1, -2, 255, 4096, 1 << 22, 1 << 23, -(1 << 22)])) if harm == "psn" else 0
        base = victim.psn
        if shape.is_response:
            base = SENT_PSN + draw(st.integers(0, 3))
        elif harm in {"none", "bit", "lengths", "address", "padding"}:
            victim.psn, self.last = (victim.psn + 1) % PSN_MODULUS, shape
        header = Bth(
            opcode,
            PEER_QP if harm == "queue pair" else victim.qp.qp_num,
            (base + ahead) % PSN_MODULUS,
            ack_request=draw(st.booleans()),
            pad_bytes=draw(st.integers(0, 3)) if harm == "padding" else -payload % 4,
            partition_key=draw(st.sampled_from([0x7FFF, 0x1234])) if harm == "partition" else 0xFFFF,
            solicited_event=draw(st.booleans()),
            transport_version=harm == "version",
        )
        return seal(
            header, bytes(body), source=STRANGER if harm == "source" else PEER, ecn=draw(st.sampled_from([2, 3]))
        )


OWN = {
    QpType.RC: [
        *(WrOpcode.RDMA_WRITE, WrOpcode.RDMA_READ, WrOpcode.SEND),
        *(WrOpcode.ATOMIC_FETCH_AND_ADD, WrOpcode.ATOMIC_WRITE, WrOpcode.FLUSH),
    ],
    QpType.UC: [WrOpcode.RDMA_WRITE, WrOpcode.SEND],
    QpType.UD: [WrOpcode.SEND],
}


def act(draw: st.DrawFn, victim: Victim) -> None:
    """Something that the user or the clock does between two packets."""
    what = draw(st.sampled_from(["clock", "post", "receive", "modify", "revoke", "connect"]))
    if what == "clock":
        due_ps = victim.nic.next_timer_ps()
        victim.now_ps = due_ps if due_ps is not None else victim.now_ps + 1_000_000
        victim.nic.on_timer(victim.now_ps)
    elif what == "post" and victim.qp.state in {QpState.RTS, QpState.SQD, QpState.ERR}:
        opcode = draw(st.sampled_from(OWN[victim.qp_type]))
        length = 0 if opcode is WrOpcode.FLUSH else draw(st.sampled_from([8, MTU]))
        victim.post(opcode, length, ah=AddressHandle(address=PEER), rkey=1, remote_qpn=2, remote_qkey=3)
    elif what == "receive" and victim.qp.state is not QpState.RESET:
        victim.post_recv(1, draw(st.sampled_from([8, MTU, 2 * MTU])))
    elif what == "modify":
        victim.qp.modify(draw(st.sampled_from(sorted(MODIFY[victim.qp.state]))), victim.attr)
    elif what == "revoke":
        victim.nic.memory.deregister(victim.region)
        victim.region = victim.register(OPEN, victim.region.access)
    else:
        victim.connect()


@MANY
@given(service=SERVICES, is_controlled=st.booleans(), data=st.data())
def test_packets_that_are_almost_right_touch_nothing_but_what_is_open(
    service: QpType, *, is_controlled: bool, data: st.DataObject
) -> None:
    nic = {"congestion_control": load("congestion_control", "dcqcn")} if is_controlled else {}
    victim = Victim(service, nic=nic)
    forger = Forger(victim, data.draw, knows_key=True)
    for _ in range(data.draw(st.integers(1, 20))):
        if victim.qp.state in {QpState.ERR, QpState.RESET} and data.draw(st.booleans()):
            victim.connect()
            forger.last = None
        if len(victim.qp.recv_queue) == 0 and victim.qp.state is not QpState.RESET:
            victim.post_recv(1, data.draw(st.sampled_from([8, MTU, MTU + 8, 2 * MTU])))
        if data.draw(st.integers(0, 4)) == 0:
            act(data.draw, victim)
        else:
            victim.nic.receive(forger.packet(), victim.now_ps)
        victim.answers()
    victim.check(OPEN)


@MANY
@given(service=st.sampled_from([QpType.RC, QpType.UC]), data=st.data())
def test_without_a_key_and_without_a_receive_not_one_byte_changes(service: QpType, data: st.DataObject) -> None:
    victim = Victim(service)
    forger = Forger(victim, data.draw, knows_key=False)
    for _ in range(data.draw(st.integers(1, 10))):
        if victim.qp.state is QpState.ERR:
            victim.connect()
            forger.last = None
        victim.nic.receive(forger.packet(), victim.now_ps)
        assert all(len(one.payload) == 0 for one in victim.answers())  # nothing is read either
    victim.check()
