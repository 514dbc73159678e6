"""Messages of communication management, and in-band telemetry: layouts by hand, refusals."""

from __future__ import annotations

import pytest

from weftwork.base.errors import UsageError
from weftwork.wire.cm import (
    CM_MESSAGES,
    CmDisconnectRequest,
    CmMessage,
    CmPath,
    CmReject,
    CmReply,
    CmRequest,
    CmServiceReply,
    CmWait,
    decode_cm,
    encode_cm,
)
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.hpcc_int import IntHop, IntPath
from weftwork.wire.mad import MAD_BYTES, MAD_HEADER_BYTES, MadHeader
from weftwork.wire.rnr import RNR_TIMERS_US, rnr_timer_us

ALL_ONES = b"\xff" * (MAD_BYTES - MAD_HEADER_BYTES)


def test_a_datagram_begins_with_its_header() -> None:
    sent = encode_cm(CmReply(local_comm_id=1), transaction=0x0102030405060708)
    assert sent[:24].hex() == "010702030000000001020304050607080013000000000000"
    assert len(sent) == MAD_BYTES


@pytest.mark.parametrize(
    ("message", "at", "encoded"),
    [
        # places as in Linux include/rdma/ibta_vol1_c12.h, counted from the end of the header
        (CmRequest(local_comm_id=0x11223344), 0, "11223344"),
        (CmRequest(service_id=0x0000000001061234), 8, "0000000001061234"),
        (CmRequest(local_qpn=0xABCDEF, responder_resources=4), 32, "abcdef04"),
        (CmRequest(remote_response_timeout=0x1F), 43, "f8"),
        (CmRequest(transport_service=1, has_flow_control=1), 43, "03"),
        (CmRequest(starting_psn=0x123456, retry_count=7), 44, "12345607"),
        (CmRequest(path_mtu=5, rnr_retry_count=7), 50, "57"),
        (CmRequest(primary=CmPath(remote_gid=255, flow_label=0xABCDE, packet_rate=3)), 72, "00" * 15 + "ffabcde003"),
        (CmRequest(alternate=CmPath(local_lid=0x1234)), 96, "1234"),
        (CmRequest(private_data=b"hi"), 140, "6869"),
        (CmReply(local_qpn=0xABCDEF), 12, "abcdef00"),
        (CmReply(target_ack_delay=0x1F, failover_accepted=1, has_flow_control=1), 26, "fb"),
        (CmReject(message_rejected=1, rejected_info_bytes=2, reason=28), 8, "4004001c"),
        (CmWait(message_received=2, service_timeout=1), 8, "8008"),
        (CmDisconnectRequest(remote_qpn=0x112233), 8, "112233"),
        (CmServiceReply(service_qpn=0x1, queue_key=0x80010000), 8, "00000100000000000000000080010000"),
    ],
)  # fmt: skip
def test_a_field_is_where_the_specification_puts_it(message: CmMessage, at: int, encoded: str) -> None:
    data = message.encode()
    size_bytes = len(encoded) // 2
    assert data[at : at + size_bytes].hex() == encoded
    assert not any(data[:at] + data[at + size_bytes :])


@pytest.mark.parametrize("kind", CM_MESSAGES.values(), ids=lambda kind: kind.NAME)
def test_every_bit_of_a_message_comes_back(kind: type[CmMessage]) -> None:
    record, rest = kind.decode(ALL_ONES + b"rest")
    assert (record.encode(), bytes(rest)) == (ALL_ONES, b"rest")
    assert kind.decode(kind().encode())[0].encode() == kind().encode()
    # no two fields have a bit in common
    bits = [bit for f in kind.LAYOUT.fields for bit in range(f.byte * 8 + f.bit, f.byte * 8 + f.bit + f.bits)]
    assert len(bits) == len(set(bits))
    assert max(bits) < kind.LAYOUT.data_byte * 8


def test_the_kind_of_a_message_is_the_attribute_of_its_datagram() -> None:
    names = {kind.NAME: attribute for attribute, kind in CM_MESSAGES.items()}
    assert names == {
        "REQ": 0x10, "MRA": 0x11, "REJ": 0x12, "REP": 0x13, "RTU": 0x14, "DREQ": 0x15, "DREP": 0x16,
        "SIDR_REQ": 0x17, "SIDR_REP": 0x18,
    }  # fmt: skip
    header, message = decode_cm(encode_cm(CmReject(reason=28), transaction=5))
    assert (header.transaction, type(message), message.reason) == (5, CmReject, 28)  # type: ignore[attr-defined] # a CmReject


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (bytes(23), "MAD: found 23 bytes, wanted at least 24"),
        (MadHeader(0x10, 1).encode() + bytes(231), "REQ: found 231 bytes, wanted at least 232"),
        (MadHeader(0x19, 1).encode() + bytes(232), "CM: found attribute 0x0019, wanted one of REQ to SIDR_REP"),
        (MadHeader(0x10, 1, management_class=3).encode() + bytes(232), r"MAD: found class 0x03, wanted 0x07 \(CM\)"),
    ],
)
def test_what_is_no_message_says_why(data: bytes, message: str) -> None:
    with pytest.raises(MalformedPacket, match=message):
        decode_cm(data)


@pytest.mark.parametrize(
    "message",
    [
        CmRequest(local_qpn=1 << 24),
        CmRequest(primary=CmPath(flow_label=1 << 20)),
        CmRequest(private_data=bytes(93)),
        CmReject(reason=-1),
        CmReply(reserved=1 << 288),
    ],
)
def test_what_does_not_fit_is_refused(message: CmMessage) -> None:
    with pytest.raises(UsageError, match="wanted"):
        message.encode()


def test_telemetry_is_laid_out_as_in_the_paper() -> None:
    hop = IntHop(rate_code=2, time_ns=0xABCDEF, sent_units=0x12345, queue_units=0x6789)
    path = IntPath(path_id=0x123, hops=(hop, hop))
    assert path.encode().hex() == "2123" + "2abcdef123456789" * 2
    assert IntPath.decode(path.encode() + b"rest") == (path, b"rest")
    assert hop.rate_bps == 100_000_000_000
    assert hop._replace(rate_code=15).rate_bps is None


def test_telemetry_that_breaks_off_or_does_not_fit_is_refused() -> None:
    with pytest.raises(MalformedPacket, match="found 8 bytes, wanted 16, 8 a hop"):
        IntPath.decode(bytes.fromhex("2123") + bytes(8))
    with pytest.raises(UsageError, match="found 16, wanted up to 15"):
        IntPath(path_id=0, hops=(IntHop(0, 0, 0, 0),) * 16).encode()
    with pytest.raises(UsageError, match="queue_units"):
        IntHop(0, 0, 0, 1 << 16).encode()


def test_timers_of_a_receiver_that_is_not_ready() -> None:
    # each is a half or a third more than the one before, so a misprint breaks the order
    assert len(RNR_TIMERS_US) == 32
    assert list(RNR_TIMERS_US[1:]) == sorted(RNR_TIMERS_US[1:])
    assert rnr_timer_us(25) == 61_440
    assert {later / sooner for sooner, later in zip(RNR_TIMERS_US[5:-2:2], RNR_TIMERS_US[7::2], strict=True)} == {2.0}
