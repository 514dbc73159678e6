"""Attacks on memory: forged, foreign and stale keys, bounds, rights, windows. What is not open stays as it was."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable

import pytest
from helpers.cases import Saw, case_count
from helpers.rdma_attacker import FIRST_PSN, MTU, OPEN, Victim, naks, opcodes, under_attack
from helpers.rdma_pair import ALL

from weftwork.base.errors import UsageError
from weftwork.rdma.datagram import IcrcStates
from weftwork.rdma.memory import MemoryWindow
from weftwork.rdma.verbs import AccessFlags, QpState, QpType, SendWr, WcStatus, WrOpcode
from weftwork.wire.extended import AtomicEth, Feth, Ieth, Nak, Reth
from weftwork.wire.opcodes import Opcode

EVIL = b"EVIL" * 64
WORD = slice(OPEN.start, OPEN.start + 8)
ACCESS, INVALID = Nak.REMOTE_ACCESS_ERROR, Nak.INVALID_REQUEST
UC = 0x20  # above the opcodes of a reliable connection
R = AccessFlags


def ask(victim: Victim, opcode: int, address: int, key: int, length: int = 8) -> list[Nak]:
    """Send one request for the memory of the victim, and return the NAKs."""
    headers: tuple[object, ...] = (Reth(address, key, length),)
    payload = b""
    if opcode in {Opcode.COMPARE_SWAP, Opcode.FETCH_ADD}:
        headers = (AtomicEth(address, key, 0xE711, 0),)
    elif opcode == Opcode.FLUSH:
        headers = (Feth(1, 0), *headers)
    elif opcode in {Opcode.WRITE_ONLY, Opcode.ATOMIC_WRITE, Opcode.WRITE_FIRST, UC | Opcode.WRITE_ONLY}:
        payload = EVIL[: min(length, MTU)]
    return naks(victim.attack(victim.forge(opcode, headers, payload)))


EVERY_WAY = [Opcode.WRITE_ONLY, Opcode.READ_REQUEST, Opcode.FETCH_ADD, Opcode.COMPARE_SWAP, Opcode.ATOMIC_WRITE]
EVERY_WAY += [Opcode.FLUSH]


def zero(_victim: Victim) -> int:
    return 0


def foreign(victim: Victim) -> int:
    return victim.register(OPEN, ALL, victim.nic.alloc_pd()).rkey


def stale(victim: Victim) -> int:
    region = victim.register(OPEN, ALL)
    victim.nic.memory.deregister(region)
    return region.rkey


def registered_again(victim: Victim) -> int:
    key = stale(victim)
    assert victim.register(OPEN, ALL).rkey != key
    return key


def window(victim: Victim, kind: int, qp_num: int, place: slice = OPEN) -> MemoryWindow:
    memory, region = victim.nic.memory, victim.region
    made = memory.allocate_window(victim.pd, kind)
    start = region.addr + place.start - OPEN.start
    assert memory.bind(made, region, (start, place.stop - place.start), ALL, qp_num)
    return made


def unbound(victim: Victim) -> int:
    return victim.nic.memory.allocate_window(victim.pd, 1).rkey


def bound_before(victim: Victim) -> int:
    made = window(victim, 1, victim.qp.qp_num)
    key = made.rkey
    assert victim.nic.memory.bind(made, victim.region, (victim.region.addr, 8), ALL, victim.qp.qp_num)
    return key


def freed(victim: Victim) -> int:
    made = window(victim, 1, victim.qp.qp_num)
    victim.nic.memory.free_window(made)
    return made.rkey


def of_another_queue_pair(victim: Victim) -> int:
    return window(victim, 2, victim.bystander.qp_num).rkey


def invalidated(victim: Victim) -> int:
    made = window(victim, 2, victim.qp.qp_num)
    assert victim.nic.memory.invalidate(victim.pd, made.rkey, victim.qp.qp_num)
    return made.rkey


@pytest.mark.parametrize("opcode", EVERY_WAY, ids=lambda opcode: opcode.name)
@pytest.mark.parametrize(
    "key",
    [
        lambda victim: victim.region.rkey ^ 1,
        lambda victim: victim.region.rkey ^ 1 << 31,
        lambda victim: victim.region.rkey + 1,
        lambda victim: victim.region.lkey,
        zero,
        foreign,
        stale,
        registered_again,
        unbound,
        bound_before,
        freed,
        of_another_queue_pair,
        invalidated,
    ],
    ids=[
        *("lowest bit", "highest bit", "next key", "local key", "zero"),
        *("foreign domain", "deregistered", "registered again"),
        *("unbound window", "window bound again", "freed window", "window of another", "invalidated window"),
    ],
)
def test_a_key_that_does_not_open_is_refused_and_ends_the_connection(key: Callable[[Victim], int], opcode: int) -> None:
    with under_attack() as victim:
        assert ask(victim, opcode, victim.region.addr, key(victim)) == [ACCESS]
        assert victim.qp.state is QpState.ERR
        assert victim.qp.counters["resp_remote_access_errors"] == 1
        right = Reth(victim.region.addr, victim.region.rkey, 8)
        assert victim.attack(victim.forge(Opcode.WRITE_ONLY, (right,), EVIL[:8])) == []
        assert victim.qp.counters["not_accepted"] == 1


@pytest.mark.parametrize("opcode", [Opcode.WRITE_ONLY, Opcode.READ_REQUEST], ids=lambda opcode: opcode.name)
@pytest.mark.parametrize(
    ("offset", "length"),
    [
        (-1, 1),
        (-1, 8),
        (OPEN.stop - OPEN.start, 1),
        (OPEN.stop - OPEN.start - 7, 8),
        (OPEN.start, 8),
        (-OPEN.start, 8),
    ],
    ids=["just below", "across the start", "just above", "across the end", "far above", "far below"],
)
def test_what_lies_outside_a_region_is_refused(opcode: int, offset: int, length: int) -> None:
    with under_attack() as victim:
        assert ask(victim, opcode, victim.region.addr + offset, victim.region.rkey, length) == [ACCESS]


@pytest.mark.parametrize(("address", "length"), [((1 << 64) - 4, 8), ((1 << 64) - 1, 1), ((1 << 64) - 8, 8), (0, 8)])
@pytest.mark.parametrize("opcode", [Opcode.WRITE_ONLY, Opcode.READ_REQUEST], ids=lambda opcode: opcode.name)
def test_addresses_do_not_wrap(opcode: int, address: int, length: int) -> None:
    with under_attack() as victim:
        assert ask(victim, opcode, address, victim.region.rkey, length) == [ACCESS]


@pytest.mark.parametrize("length", [OPEN.stop - OPEN.start + 1, 1 << 31, (1 << 32) - 1])
def test_a_length_beyond_the_region_is_refused_before_the_first_byte(length: int) -> None:
    with under_attack() as victim:
        assert ask(victim, Opcode.WRITE_FIRST, victim.region.addr, victim.region.rkey, length) == [ACCESS]
    with under_attack() as victim:
        assert ask(victim, Opcode.READ_REQUEST, victim.region.addr, victim.region.rkey, length) == [ACCESS]


def test_a_length_that_wraps_back_into_the_region_is_refused() -> None:
    with under_attack() as victim:
        start = victim.region.addr + 64
        assert ask(victim, Opcode.READ_REQUEST, start, victim.region.rkey, (1 << 32) - 64) == [ACCESS]


def test_a_window_opens_its_range_and_not_its_region() -> None:
    place = slice(OPEN.start + 64, OPEN.start + 128)
    for offset, length in ((-1, 8), (57, 8), (64, 8), (-64, 8)):
        with under_attack() as victim:
            made = window(victim, 2, victim.qp.qp_num, place)
            assert ask(victim, Opcode.WRITE_ONLY, made.addr + offset, made.rkey, length) == [ACCESS]
    with under_attack(changed=slice(place.start, place.start + 8)) as victim:
        made = window(victim, 2, victim.qp.qp_num, place)
        (ack,) = victim.attack(victim.forge(Opcode.WRITE_ONLY, (Reth(made.addr, made.rkey, 8),), EVIL[:8]))
        assert ack.bth.opcode == Opcode.ACKNOWLEDGE


def test_of_no_bytes_neither_key_nor_address_matter() -> None:
    with under_attack() as victim:  # IBTA vol. 1, 9.4.1.1: legal
        write = victim.forge(Opcode.WRITE_ONLY, (Reth(3, 5, 0),))
        read = victim.forge(Opcode.READ_REQUEST, (Reth(3, 5, 0),))
        assert opcodes(victim.attack(write, read)) == [Opcode.ACKNOWLEDGE, Opcode.READ_RESPONSE_ONLY]
        assert victim.qp.state is QpState.RTS


NEEDS = {
    Opcode.WRITE_ONLY: R.REMOTE_WRITE,
    Opcode.READ_REQUEST: R.REMOTE_READ,
    Opcode.FETCH_ADD: R.REMOTE_ATOMIC,
    Opcode.COMPARE_SWAP: R.REMOTE_ATOMIC,
    Opcode.ATOMIC_WRITE: R.REMOTE_WRITE,
    Opcode.FLUSH: R.FLUSH_GLOBAL,
}


@pytest.mark.parametrize("opcode", EVERY_WAY, ids=lambda opcode: opcode.name)
@pytest.mark.parametrize(
    "right", [R.REMOTE_WRITE, R.REMOTE_READ, R.REMOTE_ATOMIC, R.FLUSH_GLOBAL], ids=lambda r: r.name
)
def test_a_right_opens_no_other(opcode: Opcode, right: AccessFlags) -> None:
    changed = WORD if right is NEEDS[opcode] and right & (R.REMOTE_WRITE | R.REMOTE_ATOMIC) else slice(0, 0)
    with under_attack(changed=changed) as victim:
        region = victim.register(OPEN, R.LOCAL_WRITE | right)
        if right is NEEDS[opcode]:
            headers = (Reth(region.addr, region.rkey, 8),)
            answers = victim.attack(
                victim.forge(Opcode.FLUSH, (Feth(1, 0), *headers))
                if opcode is Opcode.FLUSH
                else victim.forge(opcode, (AtomicEth(region.addr, region.rkey, 1, 0),))
                if right is R.REMOTE_ATOMIC
                else victim.forge(opcode, headers, EVIL[:8] if right is R.REMOTE_WRITE else b"")
            )
            assert len(answers) == 1
            assert victim.qp.state is QpState.RTS
        else:
            assert ask(victim, opcode, region.addr, region.rkey) == [ACCESS]


@pytest.mark.parametrize("opcode", EVERY_WAY, ids=lambda opcode: opcode.name)
def test_a_queue_pair_gives_no_right_that_it_was_not_given(opcode: Opcode) -> None:
    with under_attack(access=ALL & ~NEEDS[opcode]) as victim:
        assert ask(victim, opcode, victim.region.addr, victim.region.rkey) == [INVALID]
        assert victim.qp.counters["resp_invalid_request"] == 1


def test_remote_writing_without_local_writing_cannot_even_be_registered() -> None:
    with under_attack() as victim, pytest.raises(UsageError, match="local write"):
        victim.register(OPEN, R.REMOTE_WRITE)


@pytest.mark.parametrize("opcode", [Opcode.FETCH_ADD, Opcode.COMPARE_SWAP, Opcode.ATOMIC_WRITE])
@pytest.mark.parametrize("offset", [1, 4, 7])
def test_an_atomic_across_words_is_refused(opcode: int, offset: int) -> None:
    with under_attack() as victim:
        assert ask(victim, opcode, victim.region.addr + offset, victim.region.rkey) == [INVALID]


def begin_write(victim: Victim, key: int) -> None:
    """Send the first of three packets of a WRITE, which is allowed."""
    assert victim.attack(victim.forge(Opcode.WRITE_FIRST, (Reth(victim.region.addr, key, 3 * MTU),), EVIL)) == []


FIRST_PACKET = slice(OPEN.start, OPEN.start + MTU)


@pytest.mark.parametrize("kind", ["region", "window", "invalidated", "freed"])
def test_a_key_that_is_taken_back_stops_a_write_on_its_way(kind: str) -> None:
    with under_attack(changed=FIRST_PACKET) as victim:
        memory = victim.nic.memory
        if kind == "region":
            region = victim.register(OPEN, ALL)
            begin_write(victim, region.rkey)
            memory.deregister(region)
        else:
            made = window(victim, 2 if kind == "invalidated" else 1, victim.qp.qp_num)
            begin_write(victim, made.rkey)
            if kind == "window":
                assert memory.bind(made, victim.region, (0, 0), ALL, victim.qp.qp_num)
            elif kind == "invalidated":
                assert memory.invalidate(victim.pd, made.rkey, victim.qp.qp_num)
            else:
                memory.free_window(made)
        assert naks(victim.attack(victim.forge(Opcode.WRITE_MIDDLE, (), EVIL))) == [ACCESS]


def test_a_key_that_is_taken_back_stops_a_read_on_its_way() -> None:
    with under_attack() as victim:
        region = victim.register(OPEN, ALL)
        victim.nic.receive(victim.forge(Opcode.READ_REQUEST, (Reth(region.addr, region.rkey, 4 * MTU),)), 0)
        victim.nic.memory.deregister(region)
        answers = victim.answers()
        assert naks(answers) == [ACCESS]
        assert victim.qp.state is QpState.ERR


def test_a_key_of_another_that_is_taken_back_stops_nobody() -> None:
    with under_attack(changed=slice(OPEN.start, OPEN.start + 3 * MTU)) as victim:
        begin_write(victim, victim.region.rkey)
        stale(victim)
        assert victim.attack(victim.forge(Opcode.WRITE_MIDDLE, (), EVIL)) == []
        (ack,) = victim.attack(victim.forge(Opcode.WRITE_LAST, (), EVIL))
        assert ack.bth.opcode == Opcode.ACKNOWLEDGE
        reth = Reth(victim.region.addr, victim.region.rkey, 2 * MTU)
        victim.nic.receive(victim.forge(Opcode.READ_REQUEST, (reth,)), 0)
        stale(victim)
        assert opcodes(victim.answers()) == [Opcode.READ_RESPONSE_FIRST, Opcode.READ_RESPONSE_LAST]


def test_memory_of_a_receive_that_is_deregistered_takes_no_more() -> None:
    with under_attack(changed=FIRST_PACKET) as victim:
        region, victim.region = victim.region, victim.register(OPEN, ALL)
        victim.post_recv(7, 3 * MTU)
        assert victim.attack(victim.forge(Opcode.SEND_FIRST, (), EVIL)) == []
        victim.nic.memory.deregister(victim.region)
        assert naks(victim.attack(victim.forge(Opcode.SEND_MIDDLE, (), EVIL))) == [Nak.REMOTE_OPERATIONAL_ERROR]
        assert victim.statuses() == [WcStatus.LOC_PROT_ERR]
        victim.region = region


def invalidate_remotely(victim: Victim, key: int) -> list[Nak]:
    victim.post_recv(1, 8)
    return naks(victim.attack(victim.forge(Opcode.SEND_ONLY_INVALIDATE, (Ieth(key),), EVIL[:8])))


def test_a_peer_can_take_back_only_its_own_window() -> None:
    for kind in (1, 2):
        with under_attack(changed=WORD) as victim:
            made = window(victim, kind, victim.bystander.qp_num if kind == 2 else victim.qp.qp_num)
            assert invalidate_remotely(victim, made.rkey) == [ACCESS]
            assert made.region is victim.region
            assert victim.statuses() == [WcStatus.MW_BIND_ERR]
    with under_attack(changed=WORD) as victim:
        assert invalidate_remotely(victim, victim.region.rkey) == [ACCESS]  # a region is not for the peer to close
        victim.connect()
        assert ask(victim, Opcode.WRITE_FIRST, victim.region.addr, victim.region.rkey, 0) == [INVALID]


def test_what_is_bound_is_not_taken_away_locally() -> None:
    with under_attack() as victim:
        made = window(victim, 2, victim.bystander.qp_num)
        with pytest.raises(UsageError, match="1 window bound"):
            victim.nic.memory.deregister(victim.region)
        for key in (made.rkey, victim.region.rkey, 12345):
            victim.connect()
            victim.qp.post_send(SendWr(wr_id=1, opcode=WrOpcode.LOCAL_INV, invalidate_rkey=key))
            assert victim.answers() == []
            assert victim.statuses() == [WcStatus.MW_BIND_ERR]
        assert made.region is victim.region


# Guessing


def test_random_keys_open_nothing_on_an_unreliable_connection(saw: Saw) -> None:
    """A wrong key is dropped there (IBTA vol. 1, 9.9.3), so that guessing goes on at the speed of the line."""
    tries = case_count(plain=20_000, deep=1_000_000)
    with under_attack(QpType.UC) as victim:
        luck = random.Random(9)
        sample = victim.forge(UC | Opcode.WRITE_ONLY, (Reth(victim.region.addr, 1, 8),), EVIL[:8])
        packet = bytearray(sample.parts[0])
        front = IcrcStates().of((sample.source, sample.destination, sample.source_port), len(packet))
        state = zlib.crc32(b"\xff", zlib.crc32(packet[:4], front))  # behind the bytes that never change
        opened = {region.rkey for region in (victim.region, victim.own_region)}
        for number in range(tries):
            key = luck.getrandbits(32)
            assert key not in opened
            packet[9:12] = ((FIRST_PSN + number) % (1 << 24)).to_bytes(3, "big")
            packet[20:24] = key.to_bytes(4, "big")
            packet[-4:] = zlib.crc32(packet[5:-4], state).to_bytes(4, "little")
            victim.nic.receive(sample._replace(parts=(bytes(packet),)), 0)
        assert victim.qp.counters == {"resp_remote_access_errors": tries}
        assert victim.qp.state is QpState.RTS
    saw(tries)


def test_every_guess_of_a_key_costs_a_connection(saw: Saw) -> None:
    tries = case_count(plain=2_000, deep=100_000)
    with under_attack() as victim:
        luck = random.Random(10)
        for _ in range(tries):
            key = luck.getrandbits(32)
            assert key not in {victim.region.rkey, victim.own_region.rkey}
            opcode = luck.choice(EVERY_WAY)
            assert ask(victim, opcode, victim.region.addr, key) == [ACCESS]
            assert victim.qp.state is QpState.ERR
            victim.connect()
        assert victim.qp.counters["resp_remote_access_errors"] == tries
    saw(tries)


def test_all_lower_eight_bits_of_a_key_matter() -> None:
    with under_attack(QpType.UC) as victim:  # where keys are index << 8 | key, 255 tries find the key of a known index
        for bits in range(1, 256):
            reth = Reth(victim.region.addr, victim.region.rkey ^ bits, 8)
            victim.attack(victim.forge(UC | Opcode.WRITE_ONLY, (reth,), EVIL[:8]))
        assert victim.qp.counters["resp_remote_access_errors"] == 255
