"""Attacks by malformed packets: lengths that lie, messages out of order, headers cut short, bits flipped."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address
from typing import Any

import pytest
from helpers.rdma_attacker import FIRST_PSN, MTU, OPEN, PEER, VICTIM, Victim, naks, opcodes, under_attack

from weftwork.rdma.verbs import QpState, QpType, WcStatus
from weftwork.wire.extended import AtomicEth, Deth, Feth, Ieth, ImmediateData, Nak, Reth
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.ib import CNP_BODY, Bth
from weftwork.wire.icrc import append_icrc
from weftwork.wire.ip import MORE_FRAGMENTS, Ipv4Header
from weftwork.wire.opcodes import SHAPES, VENDOR_OPCODES, TransportService
from weftwork.wire.opcodes import Opcode as Op
from weftwork.wire.rocev2 import RoceV2Packet, rocev2_packet

EVIL = b"EVIL" * 256
UC = 0x20
INVALID = [Nak.INVALID_REQUEST]
FIRST_PACKET = slice(OPEN.start, OPEN.start + MTU)
NOWHERE = slice(0, 0)


def reth(victim: Victim, length: int) -> tuple[Reth]:
    return (Reth(victim.region.addr, victim.region.rkey, length),)


@pytest.mark.parametrize(
    ("opcode", "length", "payload_bytes"),
    [
        (Op.WRITE_ONLY, 8, 12),
        (Op.WRITE_ONLY, 8, 4),
        (Op.WRITE_ONLY, 0, 4),
        (Op.WRITE_ONLY, 4, 0),
        (Op.WRITE_ONLY, MTU + 4, MTU + 4),
        (Op.WRITE_ONLY_IMMEDIATE, 8, 12),
        (Op.WRITE_FIRST, 2 * MTU, MTU - 4),
        (Op.WRITE_FIRST, 2 * MTU, MTU + 4),
        (Op.WRITE_FIRST, MTU, MTU),
        (Op.WRITE_FIRST, MTU - 1, MTU),
        (Op.ATOMIC_WRITE, 8, 4),
        (Op.ATOMIC_WRITE, 8, 12),
        (Op.ATOMIC_WRITE, 4, 8),
    ],
)
def test_a_length_that_is_not_that_of_the_payload_is_refused(opcode: int, length: int, payload_bytes: int) -> None:
    with under_attack() as victim:
        victim.post_recv(1, MTU)
        more = (ImmediateData(1),) if opcode == Op.WRITE_ONLY_IMMEDIATE else ()
        sent = victim.forge(opcode, (*reth(victim, length), *more), EVIL[:payload_bytes])
        assert naks(victim.attack(sent)) == INVALID
        assert victim.qp.counters["resp_invalid_request"] == 1
        assert victim.qp.state is QpState.ERR


@pytest.mark.parametrize(
    ("opcode", "payload_bytes"),
    [
        (Op.WRITE_LAST, MTU - 1),
        (Op.WRITE_LAST, MTU - 4),
        (Op.WRITE_LAST, 0),
        (Op.WRITE_LAST, MTU + 4),
        (Op.WRITE_MIDDLE, MTU),
        (Op.WRITE_MIDDLE, MTU - 4),
        (Op.WRITE_FIRST, MTU),
        (Op.WRITE_ONLY, 8),
        (Op.SEND_MIDDLE, MTU),
        (Op.SEND_LAST, MTU),
        (Op.SEND_ONLY, 8),
        (Op.READ_REQUEST, 0),
        (Op.FETCH_ADD, 0),
        (Op.FLUSH, 0),
    ],
)
def test_what_does_not_go_on_with_a_write_that_has_begun_is_refused(opcode: int, payload_bytes: int) -> None:
    with under_attack(changed=FIRST_PACKET) as victim:
        victim.post_recv(1, 4 * MTU)
        assert victim.attack(victim.forge(Op.WRITE_FIRST, reth(victim, 2 * MTU), EVIL[:MTU])) == []
        headers = tuple(
            {Reth: reth(victim, 8)[0], AtomicEth: AtomicEth(victim.region.addr, victim.region.rkey, 1, 0)}.get(
                kind, Feth(1, 0)
            )
            for kind in SHAPES[opcode].headers
        )
        assert naks(victim.attack(victim.forge(opcode, headers, EVIL[:payload_bytes]))) == INVALID
        assert victim.statuses() == [WcStatus.WR_FLUSH_ERR]


@pytest.mark.parametrize(
    ("opcode", "payload_bytes"),
    [
        (Op.SEND_MIDDLE, MTU - 4),
        (Op.SEND_MIDDLE, MTU + 4),
        (Op.SEND_MIDDLE, 0),
        (Op.SEND_LAST, 0),
        (Op.SEND_LAST, MTU + 4),
        (Op.SEND_FIRST, MTU),
        (Op.SEND_ONLY, 8),
        (Op.WRITE_MIDDLE, MTU),
        (Op.WRITE_LAST, 8),
    ],
)
def test_what_does_not_go_on_with_a_send_that_has_begun_is_refused(opcode: int, payload_bytes: int) -> None:
    with under_attack(changed=FIRST_PACKET) as victim:
        victim.post_recv(1, 4 * MTU)
        assert victim.attack(victim.forge(Op.SEND_FIRST, (), EVIL[:MTU])) == []
        assert naks(victim.attack(victim.forge(opcode, (), EVIL[:payload_bytes]))) == INVALID
        assert victim.statuses() == [WcStatus.WR_FLUSH_ERR]


@pytest.mark.parametrize(
    "opcode",
    [Op.SEND_MIDDLE, Op.SEND_LAST, Op.WRITE_MIDDLE, Op.WRITE_LAST, Op.SEND_LAST_IMMEDIATE, Op.SEND_LAST_INVALIDATE],
)
def test_a_middle_or_a_last_without_a_first_is_refused(opcode: int) -> None:
    with under_attack() as victim:
        victim.post_recv(1, 4 * MTU)
        headers = {Op.SEND_LAST_IMMEDIATE: (ImmediateData(1),), Op.SEND_LAST_INVALIDATE: (Ieth(1),)}.get(opcode, ())
        assert naks(victim.attack(victim.forge(opcode, headers, EVIL[:MTU]))) == INVALID


def test_an_unreliable_connection_drops_what_does_not_fit_and_goes_on() -> None:
    with under_attack(QpType.UC, changed=slice(OPEN.start, OPEN.start + MTU)) as victim:
        victim.post_recv(1, MTU)
        for opcode, headers, size in (
            (Op.SEND_LAST, (), 8),
            (Op.SEND_MIDDLE, (), MTU),
            (Op.WRITE_ONLY, reth(victim, 8), 12),
            (Op.WRITE_FIRST, reth(victim, 2 * MTU), MTU - 4),
            (Op.SEND_FIRST, (), MTU),
            (Op.SEND_LAST, (), 4),  # longer than the receive, which stays
            (Op.SEND_ONLY, (), MTU + 4),
            (Op.SEND_ONLY, (), 8),
        ):
            assert victim.attack(victim.forge(UC | opcode, headers, EVIL[:size])) == []
        assert victim.statuses() == [WcStatus.SUCCESS]
        assert victim.qp.state is QpState.RTS
        assert victim.qp.counters == {"resp_invalid_request": 3, "resp_local_length_error": 1}


def test_a_send_longer_than_its_receive_ends_a_reliable_connection() -> None:
    with under_attack(changed=FIRST_PACKET) as victim:
        victim.post_recv(1, MTU)
        victim.post_recv(2, MTU)
        assert victim.attack(victim.forge(Op.SEND_FIRST, (), EVIL[:MTU])) == []
        assert naks(victim.attack(victim.forge(Op.SEND_LAST, (), EVIL[:1]))) == INVALID
        assert victim.statuses() == [WcStatus.LOC_LEN_ERR, WcStatus.WR_FLUSH_ERR]
        assert victim.qp.counters["resp_local_length_error"] == 1


def test_a_datagram_longer_than_its_receive_is_dropped_and_the_receive_waits() -> None:
    with under_attack(QpType.UD, changed=slice(OPEN.start, OPEN.start + 48)) as victim:
        victim.post_recv(1, 48)
        deth = (Deth(0x1234, 9),)
        victim.attack(
            victim.forge(Op.UD_SEND_ONLY, deth, EVIL[:9]), victim.forge(Op.UD_SEND_ONLY, deth, EVIL[: MTU + 4])
        )
        assert victim.statuses() == []
        victim.attack(victim.forge(Op.UD_SEND_ONLY, deth, EVIL[:8]), victim.forge(Op.UD_SEND_ONLY, deth, EVIL[:8]))
        assert victim.statuses() == [WcStatus.SUCCESS]
        assert victim.qp.counters == {"resp_local_length_error": 1, "malformed": 1, "out_of_buffer": 1}
        assert victim.qp.state is QpState.RTS


# Headers


@pytest.mark.parametrize(
    ("opcode", "body", "pad_bytes"),
    [
        (Op.SEND_ONLY, b"", 1),
        (Op.SEND_ONLY, b"", 3),
        (Op.WRITE_ONLY, bytes(16), 1),
        (Op.READ_REQUEST, bytes(16), 2),
        (Op.ACKNOWLEDGE, bytes(4), 3),
        (Op.READ_REQUEST, bytes(20), 0),
        (Op.READ_REQUEST, bytes(20), 3),
        (Op.FETCH_ADD, bytes(32), 0),
        (Op.ACKNOWLEDGE, bytes(8), 0),
        (Op.WRITE_ONLY, bytes(12), 0),
        (Op.ATOMIC_WRITE, bytes(8), 0),
        (Op.FLUSH, bytes(16), 0),
        (Op.SEND_ONLY_INVALIDATE, b"", 0),
    ],
)
def test_padding_beyond_the_payload_and_headers_cut_short_are_dropped(opcode: int, body: bytes, pad_bytes: int) -> None:
    with under_attack() as victim:
        victim.post_recv(1, 64)
        assert victim.attack(victim.forge(opcode, raw=body, pad_bytes=pad_bytes)) == []
        assert victim.qp.counters == {"malformed": 1}
        assert victim.qp.state is QpState.RTS


@pytest.mark.parametrize("version", [1, 2, 15])
def test_another_version_of_the_transport_is_dropped(version: int) -> None:
    with under_attack() as victim:
        sent = victim.forge(Op.WRITE_ONLY, reth(victim, 8), EVIL[:8], transport_version=version)
        assert victim.attack(sent) == []
        assert victim.nic.counters == {"malformed": 1}


@pytest.mark.parametrize("service", [QpType.RC, QpType.UC, QpType.UD])
def test_opcodes_of_other_services_of_vendors_and_of_nobody_are_dropped(service: QpType) -> None:
    with under_attack(service) as victim:
        own = {QpType.RC: TransportService.RC, QpType.UC: TransportService.UC, QpType.UD: TransportService.UD}[service]
        wrong = [code for code in range(256) if code not in SHAPES or SHAPES[code].service is not own]
        wrong.remove(Op.CNP)
        assert set(VENDOR_OPCODES) < set(wrong)
        body = bytes(64)
        assert victim.attack(*(victim.forge(code, raw=body, psn=FIRST_PSN) for code in wrong)) == []
        assert victim.qp.counters == {"malformed": len(wrong)}
        assert victim.qp.state is QpState.RTS


def test_a_packet_cut_anywhere_is_dropped() -> None:
    with under_attack() as victim:
        whole = victim.forge(Op.WRITE_ONLY, reth(victim, 8), EVIL[:8]).parts[0]
        sample = victim.forge(Op.SEND_ONLY)
        for end in range(len(whole)):
            assert victim.attack(sample._replace(parts=(whole[:end],))) == []
        assert sum(victim.nic.counters.values()) == len(whole)
        assert set(victim.nic.counters) == {"malformed", "rx_icrc_encapsulated"}


def test_every_flipped_bit_is_found_but_in_the_byte_that_switches_write() -> None:
    with under_attack(changed=slice(OPEN.start, OPEN.start + 8)) as victim:
        whole = victim.forge(Op.WRITE_ONLY, reth(victim, 8), EVIL[:8])
        data = whole.parts[0]
        for bit in range(8 * len(data)):
            if bit // 8 == 4:  # FECN, BECN and reserved bits: not covered
                continue
            changed = bytearray(data)
            changed[bit // 8] ^= 1 << bit % 8
            assert victim.attack(whole._replace(parts=(bytes(changed),))) == []
        assert victim.qp.counters == {}
        assert victim.memory == victim.before
        assert opcodes(victim.attack(whole)) == [Op.ACKNOWLEDGE]


@pytest.mark.parametrize(
    "oddity",
    [
        {"source": b""},
        {"source": PEER + bytes(12)},
        {"destination": bytes((10, 0, 0, 9))},
        {"destination": b"\xff" * 4},
        {"destination": bytes(16)},
        {"destination": b""},
        {"source": PEER + bytes(12), "destination": VICTIM + bytes(12)},
        {"identification": 1},
        {"source_port": 4791},
        {"parts": (b"",)},
        {"parts": (bytes(16),)},
        {"parts": (bytes(65_536),)},
        {"parts": (bytes(1 << 20),)},
    ],
    ids=str,
)
def test_oddities_of_ip_and_udp_are_dropped(oddity: dict[str, Any]) -> None:
    with under_attack() as victim:
        sent = victim.forge(Op.WRITE_ONLY, reth(victim, 8), EVIL[:8])
        if "parts" in oddity and len(oddity["parts"][0]) > 16:
            oddity = {"parts": (sent.parts[0] + bytes(65_536),)}
        assert victim.attack(sent._replace(**oddity)) == []
        assert sum(victim.nic.counters.values()) == 1
        assert victim.qp.counters == {}


def test_fragments_and_options_of_ip_do_not_pass_the_codec_that_a_raw_driver_reads_with() -> None:
    made = rocev2_packet(
        source=IPv4Address(PEER), destination=IPv4Address(VICTIM), source_port=0xC000, bth=Bth(Op.SEND_ONLY, 5, 6)
    )
    assert isinstance(made.ip, Ipv4Header)
    fragments = (replace(made.ip, flags=MORE_FRAGMENTS), replace(made.ip, fragment_offset_bytes=8))
    for ip in fragments:
        with pytest.raises(MalformedPacket, match="fragment"):
            RoceV2Packet.decode(append_icrc((replace(made, ip=ip)).encode()[:-4]))
    with_options = replace(made.ip, options=b"\x94\x04\0\0").encode() + made.udp.encode() + made.bth.encode()
    with pytest.raises(MalformedPacket, match="options"):
        RoceV2Packet.decode(with_options + bytes(4))


def test_a_cnp_of_any_size_writes_nothing() -> None:
    with under_attack() as victim:
        for body in (b"", CNP_BODY, bytes(400)):
            assert victim.attack(victim.forge(Op.CNP, raw=body, psn=0, becn=True)) == []
        assert victim.qp.counters == {"rp_cnp_handled": 3}
