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
from weftwork.wire.opcodes import SHAPES, Position

MANY = settings(max_examples=case_count(plain=100, deep=3_000))
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


def header_of(kind: type, draw: st.DrawFn, victim: Victim, length: int | None, *, knows_key: bool) -> Any:
    """An extended header whose values lie at the edges of what the victim allows."""
    key = victim.region.rkey if knows_key else draw(BITS32.filter(lambda one: one != victim.region.rkey))
    start = victim.region.addr
    edges = [start - 1, start + 1, start + 8, start + OPEN_BYTES - 8, start + OPEN_BYTES]
    address = start if length is not None else draw(st.sampled_from(edges) | BITS64)
    if kind is Reth:
        return Reth(address, key, length if length is not None else draw(LENGTHS))
    if kind is AtomicEth:
        return AtomicEth(address, key, draw(BITS64), draw(st.sampled_from([0, 5])))
    if kind is Deth:
        return Deth(draw(st.sampled_from([0x1234, 0x1234, 0x80001234, 0])), draw(BITS24))
    if kind is Feth:
        return Feth(1, 0) if length is not None else Feth(draw(st.integers(0, 15)), draw(st.integers(0, 3)))
    if kind is Ieth:
        return Ieth(key)
    data = draw(st.binary(min_size=8, max_size=8))
    return ImmediateData.decode(data)[0] if kind is ImmediateData else kind.decode(data)[0]


@st.composite
def almost_right(draw: st.DrawFn, victim: Victim, *, knows_key: bool) -> Datagram:
    """A packet of the service of the victim, near what it expects, with fields changed before the ICRC is made."""
    opcode = draw(st.sampled_from(WANTED[victim.qp_type])) if draw(st.integers(0, 9)) else draw(st.integers(0, 255))
    shape = SHAPES.get(opcode)
    is_honest = draw(st.integers(0, 3)) > 0  # about its lengths
    payload, length = draw(AROUND_MTU), None
    if is_honest and shape is not None:
        is_part = shape.position in {Position.FIRST, Position.MIDDLE}
        payload = MTU if is_part else draw(st.sampled_from([8, MTU])) if shape.has_payload else 0
        length = 2 * MTU if shape.position is Position.FIRST else payload or 8
    kinds = shape.headers if shape is not None else ()
    headers = b"".join(header_of(kind, draw, victim, length, knows_key=knows_key).encode() for kind in kinds)
    body = bytearray(headers + draw(st.sampled_from([b"\0", b"E"])) * payload)
    body += bytes(-len(body) % 4)
    if body and draw(st.integers(0, 19)) == 0:
        body[draw(st.integers(0, len(body) - 1))] ^= 1 << draw(st.integers(0, 7))
    base = SENT_PSN if shape is not None and shape.is_response else victim.psn
    ahead = draw(st.sampled_from([0] * 9 + [1, 2, -1, -2, 255, 4096, 1 << 22, 1 << 23, -(1 << 22)]))
    if base == victim.psn and ahead == 0:
        victim.psn = (victim.psn + 1) % PSN_MODULUS
    pad_bytes = -payload % 4 if is_honest else draw(st.integers(0, 3))
    header = Bth(
        opcode,
        draw(st.sampled_from([victim.qp.qp_num] * 19 + [PEER_QP])),
        (base + ahead) % PSN_MODULUS,
        ack_request=draw(st.booleans()),
        pad_bytes=pad_bytes,
        partition_key=draw(st.sampled_from([0xFFFF] * 18 + [0x7FFF, 0x1234])),
        solicited_event=draw(st.booleans()),
        transport_version=draw(st.sampled_from([0] * 19 + [1])),
    )
    return seal(
        header, bytes(body), source=draw(st.sampled_from([PEER] * 19 + [STRANGER])), ecn=draw(st.integers(0, 3))
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
    victim.post_recv(1, 2 * MTU)
    for _ in range(data.draw(st.integers(1, 20))):
        if data.draw(st.integers(0, 3)) == 0:
            act(data.draw, victim)
        else:
            victim.nic.receive(data.draw(almost_right(victim, knows_key=True)), victim.now_ps)
        victim.answers()
    victim.check(OPEN)


@MANY
@given(service=st.sampled_from([QpType.RC, QpType.UC]), data=st.data())
def test_without_a_key_and_without_a_receive_not_one_byte_changes(service: QpType, data: st.DataObject) -> None:
    victim = Victim(service)
    for _ in range(data.draw(st.integers(1, 10))):
        if victim.qp.state is QpState.ERR:
            victim.connect()
        packet = data.draw(almost_right(victim, knows_key=False))
        victim.nic.receive(packet, victim.now_ps)
        assert all(len(one.payload) == 0 for one in victim.answers())  # nothing is read either
    victim.check()
