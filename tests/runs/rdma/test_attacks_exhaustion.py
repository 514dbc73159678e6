"""Attacks on resources: more requests than agreed, no receives left, floods. What the NIC keeps stays bounded."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from helpers.rdma_attacker import FIRST_PSN, MTU, OPEN, PEER, SENT_PSN, STRANGER, Victim, naks, opcodes, under_attack

from weftwork.base.errors import UsageError
from weftwork.rdma.datagram import Datagram
from weftwork.rdma.queue_pair import EventType, NicLimits
from weftwork.rdma.verbs import QpState, QpType, WcStatus, WrOpcode
from weftwork.wire.extended import Aeth, AethKind, AtomicEth, Deth, Nak, Reth
from weftwork.wire.opcodes import Opcode
from weftwork.wire.transport import TransportPacket

EVIL = b"EVIL" * 64
WORD = slice(OPEN.start, OPEN.start + 8)


def ask(victim: Victim, opcode: Opcode, *, psn: int | None = None, length: int = 8) -> Datagram:
    header: Reth | AtomicEth = Reth(victim.region.addr, victim.region.rkey, length)
    if opcode is Opcode.FETCH_ADD:
        header = AtomicEth(victim.region.addr, victim.region.rkey, 1, 0)
    payload = EVIL[:8] if opcode in {Opcode.WRITE_ONLY, Opcode.ATOMIC_WRITE} else b""
    return victim.forge(opcode, (header,), payload, psn=psn)


def kinds(answers: list[TransportPacket]) -> list[AethKind]:
    return [header.kind for answer in answers if (header := answer.find(Aeth)) is not None]


ANSWERED = [Opcode.READ_REQUEST, Opcode.FETCH_ADD, Opcode.ATOMIC_WRITE]


@pytest.mark.parametrize("opcode", ANSWERED, ids=lambda opcode: opcode.name)
def test_more_reads_and_atomics_at_once_than_agreed_are_refused(opcode: Opcode) -> None:
    with under_attack(changed=slice(0, 0) if opcode is Opcode.READ_REQUEST else WORD, max_dest_rd_atomic=4) as victim:
        answers = victim.attack(*(ask(victim, opcode) for _ in range(5)))
        assert len(answers) == 5
        assert naks(answers[4:]) == [Nak.INVALID_REQUEST]
        assert victim.qp.state is QpState.ERR


@pytest.mark.parametrize("opcode", ANSWERED, ids=lambda opcode: opcode.name)
def test_none_agreed_means_none(opcode: Opcode) -> None:
    with under_attack(max_dest_rd_atomic=0) as victim:
        assert naks(victim.attack(ask(victim, opcode))) == [Nak.INVALID_REQUEST]


def test_a_receive_that_is_not_there_is_asked_for_once_per_attempt() -> None:
    with under_attack() as victim:
        first = victim.forge(Opcode.SEND_ONLY, (), EVIL[:8], psn=FIRST_PSN)
        assert kinds(victim.attack(first)) == [AethKind.RNR_NAK]
        behind = [victim.forge(Opcode.SEND_ONLY, (), EVIL[:8], psn=FIRST_PSN + 1 + index) for index in range(1000)]
        assert victim.attack(*behind) == []
        assert victim.qp.counters == {"rnr_nak_sent": 1, "out_of_sequence": 1000}
        again = victim.attack(*[first] * 1000)
        assert len(again) <= 2 * 4 + 8
        assert victim.qp.state is QpState.RTS


def test_one_peer_can_empty_a_shared_receive_queue_and_the_others_wait_unharmed() -> None:
    """Possible: receives that are shared are shared with whoever sends first. The limit tells the user in time."""
    with under_attack(changed=WORD, srq=8) as victim:
        assert victim.srq is not None
        victim.srq.limit = 4
        other = victim.nic.create_qp(victim.pd, QpType.RC, (victim.cq, victim.cq), srq=victim.srq)
        for state in (QpState.INIT, QpState.RTR, QpState.RTS):
            other.modify(state, victim.attr if state is QpState.INIT else None)
        for wr_id in range(8):
            victim.post_recv(wr_id, 8, victim.srq)
        answers = victim.attack(*(victim.forge(Opcode.SEND_ONLY, (), EVIL[:8]) for _ in range(9)))
        assert kinds(answers) == [AethKind.ACK, AethKind.RNR_NAK]
        assert victim.statuses() == [WcStatus.SUCCESS] * 8
        event = victim.nic.next_event()
        assert event is not None
        assert event.event_type is EventType.SRQ_LIMIT_REACHED
        waits = victim.forge(Opcode.SEND_ONLY, (), EVIL[:8], psn=FIRST_PSN, to=other)
        assert kinds(victim.attack(waits)) == [AethKind.RNR_NAK]
        victim.post_recv(9, 8, victim.srq)
        assert opcodes(victim.attack(waits)) == [Opcode.ACKNOWLEDGE]
        assert victim.statuses() == [WcStatus.SUCCESS]


def test_datagrams_without_a_receive_are_dropped() -> None:
    with under_attack(QpType.UD) as victim:
        sent = victim.forge(Opcode.UD_SEND_ONLY, (Deth(0x1234, 5),), EVIL[:8], source=STRANGER)
        assert victim.attack(*[sent] * 500) == []
        assert victim.qp.counters == {"out_of_buffer": 500}
        assert victim.qp.state is QpState.RTS


def test_a_completion_queue_that_is_overrun_ends_its_own_queue_pair_alone() -> None:
    with under_attack(changed=WORD) as victim:
        victim.qp.recv_cq = small = victim.nic.create_cq(2)
        for wr_id in range(4):
            victim.post_recv(wr_id, 8)
        victim.attack(*(victim.forge(Opcode.SEND_ONLY, (), EVIL[:8]) for _ in range(4)))
        assert small.is_overrun
        assert len(small) == 2
        assert victim.qp.state is QpState.ERR
        told = [event.event_type for event in iter(victim.nic.next_event, None)]
        assert told == [EventType.CQ_ERR, EventType.QP_FATAL]


def test_objects_are_counted_and_the_next_one_is_refused() -> None:
    limits = NicLimits(max_qp=4, max_cq=3, max_srq=1, max_mr=5)
    with under_attack(limits=limits) as victim:
        nic = victim.nic
        victim.register(OPEN, victim.region.access)
        victim.register(OPEN, victim.region.access)
        nic.memory.allocate_window(victim.pd, 1)
        nic.create_cq(1)
        nic.create_srq(1)
        while len(nic._qps) < 4:
            nic.create_qp(victim.pd, QpType.UD, (victim.cq, victim.cq))
        with pytest.raises(UsageError, match="max_mr"):
            victim.register(OPEN, victim.region.access)
        with pytest.raises(UsageError, match="max_mr"):
            nic.memory.allocate_window(victim.pd, 2)
        with pytest.raises(UsageError, match="queue pairs"):
            nic.create_qp(victim.pd, QpType.RC, (victim.cq, victim.cq))
        with pytest.raises(UsageError, match="at most 3 queues"):
            nic.create_cq(1)
        with pytest.raises(UsageError, match="shared receive queues"):
            nic.create_srq(1)
        nic.destroy_qp(victim.qp)
        nic.create_qp(victim.pd, QpType.RC, (victim.cq, victim.cq))


def held(victim: Victim) -> int:
    """Objects that packets can make the NIC keep, counted, apart from its own."""
    nic, qp = victim.nic, victim.qp
    responder = qp._rc
    kept = len(nic.icrc_states._states) + len(nic._flows) + len(nic._timers) + len(nic._events) + len(nic._ready)
    if responder is not None:
        kept += len(responder._answers) + len(responder._kept)
    return kept + len(qp.counters) + len(nic.counters) + len(victim.cq)


FLOODS: dict[str, Callable[[Victim, int], Datagram]] = {
    "repeated WRITEs": lambda v, n: ask(v, Opcode.WRITE_ONLY, psn=FIRST_PSN - 1 - n % 50),
    "repeated READs": lambda v, n: ask(v, Opcode.READ_REQUEST, psn=FIRST_PSN - 1 - n % 50, length=4 * MTU),
    "repeated READs and WRITEs": lambda v, n: ask(
        v, (Opcode.READ_REQUEST, Opcode.WRITE_ONLY)[n % 2], psn=FIRST_PSN - 1 - n % 50
    ),
    "atomics that never were": lambda v, n: ask(v, Opcode.FETCH_ADD, psn=FIRST_PSN - 1 - n % 50),
    "SENDs without a receive": lambda v, n: v.forge(Opcode.SEND_ONLY, (), EVIL[:8], psn=FIRST_PSN + n % 2),
    "PSNs ahead": lambda v, n: ask(v, Opcode.WRITE_ONLY, psn=FIRST_PSN + 1 + n),
    "source ports": lambda v, n: ask(v, Opcode.WRITE_ONLY, psn=FIRST_PSN + 1)._replace(source_port=n),
    "identifications": lambda v, n: ask(v, Opcode.WRITE_ONLY, psn=FIRST_PSN + 1)._replace(identification=n),
    "sources": lambda v, n: ask(v, Opcode.WRITE_ONLY, psn=FIRST_PSN + 1)._replace(source=n.to_bytes(4, "big")),
    "sizes": lambda v, n: v.forge(Opcode.SEND_ONLY, raw=bytes(4 * (n % 400)), psn=FIRST_PSN + 1),
    "queue pairs": lambda v, n: v.forge(Opcode.SEND_ONLY, psn=FIRST_PSN + 1, destination_qp=n),
    "opcodes": lambda v, n: v.forge(n % 256, raw=bytes(32), psn=FIRST_PSN + 1 + n),
    "ACKs": lambda v, n: v.forge(Opcode.ACKNOWLEDGE, (Aeth(AethKind(n % 4), n % 32, 0),), psn=SENT_PSN + 3 + n),
}
MOST_HELD = 4096 + 100  # the bounded table of ICRC states, and some of everything else


@pytest.mark.parametrize("flood", FLOODS, ids=str)
def test_what_a_flood_leaves_behind_is_bounded(flood: str) -> None:
    with under_attack() as victim:
        victim.post(WrOpcode.RDMA_WRITE, 2 * MTU, rkey=1)
        victim.answers()
        make = FLOODS[flood]
        most = 0
        for number in range(5000):
            victim.nic.receive(make(victim, number), victim.now_ps)
            most = max(most, held(victim))
        many_keys = flood in {"source ports", "identifications", "sources"}
        assert most <= (MOST_HELD if many_keys else 500)
        assert len(victim.answers()) <= 100  # whoever floods is not answered packet by packet
        assert victim.qp.state in {QpState.RTS, QpState.ERR}


def test_connections_that_come_and_go_leave_nothing_behind() -> None:
    with under_attack() as victim:
        before = None
        for _ in range(300):
            victim.post(WrOpcode.RDMA_WRITE, 8, rkey=1)
            victim.attack(ask(victim, Opcode.READ_REQUEST))
            nak = victim.forge(Opcode.ACKNOWLEDGE, (Aeth(AethKind.NAK, 2, 0),), psn=SENT_PSN)
            victim.attack(nak)
            assert victim.statuses() == [WcStatus.REM_ACCESS_ERR]
            assert list(iter(victim.nic.next_event, None)) != []
            victim.connect()
            before = before if before is not None else held(victim)
        assert held(victim) <= before + 300  # timers that are no longer set go when their time comes
        victim.now_ps = 10**12
        victim.nic.on_timer(victim.now_ps)
        assert len(victim.nic._timers) == 0


def test_an_answer_goes_to_the_peer_and_never_to_who_asked() -> None:
    with under_attack() as victim:
        for source in (PEER, STRANGER):
            sent = victim.forge(Opcode.READ_REQUEST, (Reth(victim.region.addr, victim.region.rkey, 8),), source=source)
            victim.nic.receive(sent, 0)
        assert {one.destination for one in victim.nic.datagrams_to_send(0)} == {PEER}
