"""Attacks on connections: spoofed sources, injected PSNs, forged answers, floods of NAKs and CNPs.

What an attacker on the path can do, because RDMA authenticates nobody, is tested as possible and says so.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from helpers.rdma_attacker import (
    FIRST_PSN,
    MTU,
    OPEN,
    SENT_PSN,
    STRANGER,
    Victim,
    naks,
    opcodes,
    under_attack,
)

from weftwork.policies.load import load
from weftwork.rdma.datagram import Datagram
from weftwork.rdma.verbs import AddressHandle, QpState, QpType, WcStatus, WrOpcode
from weftwork.wire.extended import Aeth, AethKind, AtomicAckEth, AtomicEth, Deth, Nak, Reth
from weftwork.wire.ib import CNP_BODY
from weftwork.wire.opcodes import Opcode

EVIL = b"EVIL" * 64


WORD = slice(OPEN.start, OPEN.start + 8)


UC = 0x20


HALF = 1 << 23


MS_PS = 1_000_000_000


def write(victim: Victim, *, opcode: int = Opcode.WRITE_ONLY, psn: int | None = None, **more: Any) -> Datagram:
    """A WRITE that the victim would execute from its peer."""
    reth = Reth(victim.region.addr, victim.region.rkey, 8)
    return victim.forge(opcode, (reth,), EVIL[:8], psn=psn, **more)


def answer(victim: Victim, kind: AethKind, value: int, psn: int, **more: Any) -> Datagram:
    return victim.forge(Opcode.ACKNOWLEDGE, (Aeth(kind, value, 1),), psn=psn, **more)


@pytest.mark.parametrize("service", [QpType.RC, QpType.UC])
def test_a_stranger_who_knows_all_numbers_is_dropped_by_his_address(service: QpType) -> None:
    with under_attack(service) as victim:
        opcode = Opcode.WRITE_ONLY | (UC if service is QpType.UC else 0)
        assert victim.attack(write(victim, opcode=opcode, source=STRANGER)) == []
        assert victim.qp.counters == {"stranger": 1}
        assert victim.qp.state is QpState.RTS


def test_a_stranger_cannot_answer_either() -> None:
    with under_attack() as victim:
        victim.post(WrOpcode.RDMA_WRITE)
        victim.answers()
        ack = answer(victim, AethKind.ACK, 31, SENT_PSN, source=STRANGER)
        nak = answer(victim, AethKind.NAK, Nak.REMOTE_ACCESS_ERROR, SENT_PSN, source=STRANGER)
        cnp = victim.forge(Opcode.CNP, raw=CNP_BODY, source=STRANGER, becn=True)
        assert victim.attack(ack, nak, cnp) == []
        assert victim.statuses() == []
        assert victim.qp.counters == {"stranger": 3}


@pytest.mark.parametrize("state", [QpState.RESET, QpState.INIT, QpState.ERR])
def test_a_queue_pair_that_is_not_connected_takes_nothing(state: QpState) -> None:
    with under_attack() as victim:
        victim.qp.modify(QpState.RESET)
        if state is not QpState.RESET:
            victim.qp.modify(state, victim.attr)
        assert victim.attack(write(victim)) == []
        assert sum(victim.qp.counters.values()) == 1


def test_a_number_that_nobody_has_is_counted() -> None:
    with under_attack() as victim:
        known = {victim.qp.qp_num, victim.bystander.qp_num}
        numbers = [number for number in (0, 1, 2, 0xFFFFFF, victim.qp.qp_num ^ 1) if number not in known]
        assert victim.attack(*(write(victim, destination_qp=number) for number in numbers)) == []
        assert victim.nic.counters == {"no_queue_pair": len(numbers)}


def test_packets_for_a_queue_pair_that_was_destroyed_are_counted() -> None:
    with under_attack() as victim:
        victim.post(WrOpcode.RDMA_WRITE)
        victim.answers()
        due_ps = victim.nic.next_timer_ps()
        assert due_ps is not None
        packets = [write(victim), answer(victim, AethKind.ACK, 31, SENT_PSN)]
        victim.nic.destroy_qp(victim.qp)
        assert victim.attack(*packets) == []
        victim.nic.on_timer(due_ps)  # the retransmission of a queue pair that is gone (as in CVE-2026-45910)
        assert victim.answers() == []
        assert victim.nic.counters == {"no_queue_pair": 2}


@pytest.mark.parametrize(
    ("mine", "theirs", "is_taken"),
    [
        (0xFFFF, 0xFFFF, True),
        (0xFFFF, 0x7FFF, True),
        (0x8001, 0x0001, True),
        (0x0001, 0x8001, True),
        (0xFFFF, 0x8001, False),
        (0x8001, 0x8002, False),
        (0x0001, 0x0001, False),
        (0x7FFF, 0x7FFF, False),
        (0x8000, 0x8000, False),
    ],
)
def test_a_packet_of_another_partition_is_dropped(mine: int, theirs: int, *, is_taken: bool) -> None:
    with under_attack(changed=WORD if is_taken else slice(0, 0), pkey=mine) as victim:
        assert len(victim.attack(write(victim, partition_key=theirs))) == is_taken
        assert victim.qp.counters["pkey_violation"] == 1 - is_taken
        assert victim.qp.state is QpState.RTS


@pytest.mark.parametrize("key", [0, 0x1235, 0x80001234, 0x80010000, 0xFFFFFFFF])
def test_a_datagram_with_a_wrong_queue_key_is_dropped(key: int) -> None:
    with under_attack(QpType.UD) as victim:
        victim.post_recv(1, 64)
        sent = victim.forge(Opcode.UD_SEND_ONLY, (Deth(key, 5),), EVIL[:8], source=STRANGER)
        assert victim.attack(sent) == []
        assert victim.statuses() == []
        assert victim.qp.counters == {"qkey_violation": 1}


def test_a_controlled_queue_key_cannot_be_claimed_in_a_request() -> None:
    """Bit 31 in a request sends the queue pair's own key (IBTA vol. 1, 10.2.5)."""
    with under_attack(QpType.UD) as victim:
        handle = AddressHandle(address=STRANGER)
        victim.post(WrOpcode.SEND, ah=handle, remote_qpn=1, remote_qkey=0x80010000)
        victim.post(WrOpcode.SEND, ah=handle, remote_qpn=1, remote_qkey=0x4321)
        keys = [packet.headers[0] for packet in victim.answers()]
        assert [header.queue_key for header in keys if isinstance(header, Deth)] == [0x1234, 0x4321]


def test_who_is_on_the_path_and_knows_the_next_psn_is_believed() -> None:
    """Possible, and no NIC that speaks RoCEv2 alone can tell: nothing in the packet is secret, the ICRC is no MAC."""
    with under_attack(changed=WORD) as victim:
        assert opcodes(victim.attack(write(victim))) == [Opcode.ACKNOWLEDGE]
        assert victim.memory[WORD] == EVIL[:8]
        true = write(victim, psn=FIRST_PSN)  # the peer's own packet of this number is a duplicate now
        assert opcodes(victim.attack(true)) == [Opcode.ACKNOWLEDGE]
        assert victim.qp.counters["duplicate_request"] == 1


def test_a_psn_that_is_one_ahead_is_refused_once() -> None:
    with under_attack() as victim:
        flood = [write(victim, psn=FIRST_PSN + 1 + number) for number in range(1000)]
        (nak,) = victim.attack(*flood)
        assert naks([nak]) == [Nak.PSN_SEQUENCE_ERROR]
        assert nak.bth.psn == FIRST_PSN
        assert victim.qp.counters == {"out_of_sequence": 1000}
        assert victim.qp.state is QpState.RTS


@pytest.mark.parametrize("offset", [-1, -2, -1000, HALF, HALF + 1])
def test_a_psn_behind_is_acknowledged_and_not_executed(offset: int) -> None:
    with under_attack() as victim:
        (ack,) = victim.attack(*[write(victim, psn=FIRST_PSN + offset)] * 100)
        header = ack.find(Aeth)
        assert header is not None
        assert (header.kind, ack.bth.psn) == (AethKind.ACK, FIRST_PSN - 1)
        assert victim.qp.counters == {"duplicate_request": 100}


def test_the_last_psn_ahead_is_ahead() -> None:
    with under_attack() as victim:
        assert naks(victim.attack(write(victim, psn=FIRST_PSN + HALF - 1))) == [Nak.PSN_SEQUENCE_ERROR]


def test_an_atomic_that_is_repeated_happens_once_and_one_that_never_was_not_at_all() -> None:
    with under_attack(changed=WORD) as victim:
        header = AtomicEth(victim.region.addr, victim.region.rkey, 1, 0)
        first = victim.forge(Opcode.FETCH_ADD, (header,))
        (said,) = victim.attack(first)
        once = bytes(victim.memory[WORD])
        assert victim.attack(first) == [said]
        assert victim.attack(victim.forge(Opcode.FETCH_ADD, (header,), psn=FIRST_PSN - 7)) == []
        assert victim.memory[WORD] == once
        assert once != victim.before[WORD]


def test_a_repeated_read_opens_nothing_that_a_first_one_would_not() -> None:
    with under_attack() as victim:
        for address, key in ((victim.region.addr, 1), (victim.region.addr - 8, victim.region.rkey)):
            again = victim.forge(Opcode.READ_REQUEST, (Reth(address, key, 8),), psn=FIRST_PSN - 1)
            assert victim.attack(again) == []
        assert victim.qp.state is QpState.RTS


def test_one_forged_psn_does_not_silence_the_peer_of_an_unreliable_connection() -> None:
    with under_attack(QpType.UC, changed=WORD) as victim:
        victim.attack(victim.forge(UC | Opcode.WRITE_MIDDLE, (), EVIL, psn=FIRST_PSN + (1 << 22)))
        assert victim.attack(write(victim, opcode=UC | Opcode.WRITE_ONLY, psn=FIRST_PSN)) == []
        assert victim.memory[WORD] == EVIL[:8]
        assert victim.qp.counters == {"out_of_sequence": 2}


def sending(victim: Victim, count: int = 1) -> None:
    """Let the victim send WRITEs of two packets each."""
    for _ in range(count):
        victim.post(WrOpcode.RDMA_WRITE, 2 * MTU, remote_addr=0, rkey=1)
    assert len(victim.answers()) == 2 * count


@pytest.mark.parametrize("offset", [2, 3, 1000, HALF - 1])
def test_an_ack_of_what_was_never_sent_completes_nothing(offset: int) -> None:
    with under_attack() as victim:
        sending(victim)
        for kind, value in ((AethKind.ACK, 31), (AethKind.NAK, Nak.REMOTE_ACCESS_ERROR), (AethKind.RNR_NAK, 0)):
            assert victim.attack(answer(victim, kind, value, SENT_PSN + offset)) == []
        assert victim.statuses() == []
        assert victim.qp.counters == {"unexpected_response": 3}
        assert victim.qp.state is QpState.RTS


def test_a_ghost_ack_of_what_was_sent_is_believed() -> None:
    """Possible on the path: the victim takes for done what the peer may never have got."""
    with under_attack() as victim:
        sending(victim)
        assert victim.attack(answer(victim, AethKind.ACK, 31, SENT_PSN + 1)) == []
        assert victim.statuses() == [WcStatus.SUCCESS]


def test_a_forged_refusal_ends_the_connection() -> None:
    """Possible on the path: one packet."""
    with under_attack() as victim:
        sending(victim)
        assert victim.attack(answer(victim, AethKind.NAK, Nak.REMOTE_ACCESS_ERROR, SENT_PSN)) == []
        assert victim.statuses() == [WcStatus.REM_ACCESS_ERR]
        assert victim.qp.counters == {"req_remote_access_errors": 1}
        assert victim.qp.state is QpState.ERR


@pytest.mark.parametrize("value", [4, 5, 17, 31])
def test_a_refusal_with_a_code_that_nobody_knows_does_nothing(value: int) -> None:
    with under_attack() as victim:
        sending(victim)
        assert victim.attack(*[answer(victim, AethKind.NAK, value, SENT_PSN)] * 10) == []
        assert victim.attack(*[answer(victim, AethKind.RESERVED, value, SENT_PSN)] * 10) == []
        assert victim.statuses() == []
        assert victim.qp.state is QpState.RTS


def test_a_flood_of_sequence_naks_makes_the_victim_repeat_itself_seven_times_at_most() -> None:
    with under_attack(retry_cnt=7) as victim:
        sending(victim, 4)
        sent = [len(victim.attack(answer(victim, AethKind.NAK, Nak.PSN_SEQUENCE_ERROR, SENT_PSN))) for _ in range(20)]
        assert sent == [8] * 7 + [0] * 13
        assert victim.statuses() == [WcStatus.RETRY_EXC_ERR] + [WcStatus.WR_FLUSH_ERR] * 3
        assert victim.qp.counters["req_transport_retries_exceeded"] == 1


def test_a_flood_of_rnr_naks_stalls_no_longer_than_its_retries_allow() -> None:
    with under_attack(rnr_retry=3) as victim:
        sending(victim)
        for _ in range(4):
            assert victim.attack(answer(victim, AethKind.RNR_NAK, 0, SENT_PSN)) == []
        assert victim.statuses() == [WcStatus.RNR_RETRY_EXC_ERR]
        assert victim.qp.counters["rnr_nak"] == 4


def test_an_rnr_nak_with_timer_code_0_stalls_for_655_ms() -> None:
    """Code 0 is the longest pause (IBTA vol. 1, table 45); seven retries never end, so that an attacker may go on."""
    with under_attack(rnr_retry=7) as victim:
        sending(victim)
        assert victim.attack(*[answer(victim, AethKind.RNR_NAK, 0, SENT_PSN)] * 1000) == []
        assert victim.qp.state is QpState.RTS
        sent = []
        for victim.now_ps in (655 * MS_PS, 655_359_999_999, 655_360_000_000):
            victim.nic.on_timer(victim.now_ps)
            sent.append(len(victim.answers()))
        assert sent == [0, 0, 2]


def test_a_forged_response_that_does_not_fit_its_read_ends_the_connection_and_writes_nothing() -> None:
    with under_attack() as victim:
        victim.post(WrOpcode.RDMA_READ, 8)
        assert opcodes(victim.answers()) == [Opcode.READ_REQUEST]
        forged = victim.forge(Opcode.READ_RESPONSE_ONLY, (Aeth(AethKind.ACK, 31, 1),), EVIL[:16], psn=SENT_PSN)
        assert victim.attack(forged) == []
        assert victim.statuses() == [WcStatus.BAD_RESP_ERR]


def test_responses_that_nobody_asked_for_write_nothing() -> None:
    with under_attack() as victim:
        ack = Aeth(AethKind.ACK, 31, 1)
        for psn in (SENT_PSN - 1, SENT_PSN, SENT_PSN + 1):
            for opcode in (Opcode.READ_RESPONSE_ONLY, Opcode.READ_RESPONSE_FIRST, Opcode.READ_RESPONSE_LAST):
                victim.attack(victim.forge(opcode, (ack,), EVIL[:8], psn=psn))
            victim.attack(victim.forge(Opcode.READ_RESPONSE_MIDDLE, (), EVIL, psn=psn))
            victim.attack(victim.forge(Opcode.ATOMIC_ACKNOWLEDGE, (ack, AtomicAckEth(7)), psn=psn))
        assert victim.qp.state is QpState.RTS
        assert victim.statuses() == []


@pytest.mark.parametrize(
    ("variant", "least_bps", "most_cuts"),
    [({}, 1_000_000_000, 13), ({"variant": "paper"}, 100_000_000, 50)],
    ids=["default", "paper"],
)
def test_a_flood_of_cnps_slows_the_victim_to_the_least_rate_and_no_further(
    variant: dict[str, str], least_bps: float, most_cuts: int
) -> None:
    """DCQCN cuts once in 4 us by default, at every CNP in the paper's variant, and never below its least rate."""
    line_bps = 100_000_000_000
    control = load("congestion_control", "dcqcn", variant)
    with under_attack(nic={"congestion_control": control, "line_rate_bps": line_bps}) as victim:
        sending(victim)
        rate = victim.qp.rate
        assert rate is not None
        rates = []
        for _ in range(50):
            victim.attack(*[victim.forge(Opcode.CNP, raw=CNP_BODY, psn=0, becn=True)] * 20)
            victim.now_ps += 1_000_000
            victim.nic.on_timer(victim.now_ps)
            rates.append(rate.rate_bps)
        assert victim.qp.counters["rp_cnp_handled"] == 1000
        assert min(rates) == least_bps
        cuts = sum(after < before for before, after in itertools.pairwise(rates))
        assert cuts <= most_cuts
        assert len(victim.nic._timers) < 500
        victim.attack(answer(victim, AethKind.ACK, 31, SENT_PSN + 1))
        assert victim.statuses() == [WcStatus.SUCCESS]


def test_cnps_change_nothing_where_no_control_runs() -> None:
    with under_attack() as victim:
        sending(victim)
        victim.attack(*[victim.forge(Opcode.CNP, raw=CNP_BODY, psn=0, becn=True)] * 100)
        assert victim.qp.counters == {"rp_cnp_handled": 100}
        victim.attack(answer(victim, AethKind.ACK, 31, SENT_PSN + 1))
        assert victim.statuses() == [WcStatus.SUCCESS]
