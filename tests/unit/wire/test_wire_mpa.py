"""MPA, DDP and RDMAP: records and bytes of iWARP."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.cases import case_count
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.base.errors import UsageError
from weftwork.wire.ddp import DdpTagged, DdpUntagged, decode_ddp
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.mpa import (
    MARKER_INTERVAL_BYTES,
    MOST_PRIVATE_BYTES,
    EnhancedSetup,
    Marker,
    MpaCrcError,
    MpaFrame,
    MpaMarkerError,
    decode_fpdu,
    encode_fpdu,
    fpdu_bytes,
    fpdu_stream_bytes,
    most_ulpdu_bytes,
)
from weftwork.wire.rdmap import (
    QUEUE_OF,
    AtomicOpcode,
    AtomicRequest,
    AtomicResponse,
    ImmediateMessage,
    RdmapOpcode,
    ReadRequest,
    Terminate,
    TerminateCode,
    rdmap_control,
)

MANY = settings(max_examples=case_count(plain=60, deep=1_000))


def bits(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, (1 << count) - 1)


FRAMES = st.builds(
    MpaFrame,
    is_reply=st.booleans(),
    revision=bits(8),
    wants_markers=st.booleans(),
    wants_crc=st.booleans(),
    rejects=st.booleans(),
    is_enhanced=st.booleans(),
    private_data=st.binary(max_size=MOST_PRIVATE_BYTES),
    reserved=bits(4),
)
SETUPS = st.builds(EnhancedSetup, bits(14), bits(14), st.booleans(), st.booleans(), st.booleans(), st.booleans())
MARKERS = st.builds(Marker, bits(16), bits(16))
TAGGED = st.builds(DdpTagged, bits(8), bits(32), bits(64), st.booleans(), bits(2), bits(4))
UNTAGGED = st.builds(DdpUntagged, bits(8), bits(32), bits(32), bits(32), bits(32), st.booleans(), bits(2), bits(4))
READS = st.builds(ReadRequest, bits(32), bits(64), bits(32), bits(32), bits(64))
ATOMICS = st.builds(
    AtomicRequest, bits(4), bits(32), bits(32), bits(64), bits(64), bits(64), bits(64), bits(64), bits(28)
)
RESPONSES = st.builds(AtomicResponse, bits(32), bits(64))
IMMEDIATES = st.builds(ImmediateMessage, bits(32), bits(32))
HEADERS = st.just(b"") | st.one_of(TAGGED, UNTAGGED).map(lambda header: header.encode())
TERMINATES = st.builds(Terminate, bits(4), bits(4), bits(8), st.none() | bits(16), HEADERS, st.just(b""), bits(13))
RECORDS = st.one_of(*(FRAMES, SETUPS, MARKERS, TAGGED, UNTAGGED, READS, ATOMICS, RESPONSES, IMMEDIATES, TERMINATES))
KINDS: list[Any] = [MpaFrame, EnhancedSetup, Marker, DdpTagged, DdpUntagged, ReadRequest, AtomicRequest]
KINDS += [AtomicResponse, ImmediateMessage, Terminate]
PLACES = st.none() | st.integers(0, MARKER_INTERVAL_BYTES // 4 - 1).map(lambda words: 4 * words)


@MANY
@given(record=RECORDS, behind=st.binary(max_size=40))
def test_a_record_comes_back_and_leaves_the_rest(record: Any, behind: bytes) -> None:
    decoded, rest = type(record).decode(record.encode() + behind)
    assert decoded == record
    assert bytes(rest) == behind


@MANY
@given(kind=st.sampled_from(KINDS), data=st.binary(max_size=80))
def test_any_bytes_give_a_record_or_the_documented_error(kind: Any, data: bytes) -> None:
    try:
        record, rest = kind.decode(data)
    except MalformedPacket:
        return
    assert record.encode() + bytes(rest) == data


@pytest.mark.parametrize("flags", [b"\x20\x00", b"\x40\x00"])
def test_a_terminate_that_announces_a_header_without_a_byte_of_it_is_refused(flags: bytes) -> None:
    with pytest.raises(MalformedPacket, match="found 0 bytes, wanted the header"):
        Terminate.decode(b"\x00\x00" + flags)


@MANY
@given(record=RECORDS, data=st.data())
def test_a_record_that_is_cut_is_refused(record: Any, data: st.DataObject) -> None:
    whole = record.encode()
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(MalformedPacket):
        type(record).decode(whole[:cut])


@MANY
@given(pieces=st.lists(st.binary(max_size=1500), max_size=4), place=PLACES, crc=st.booleans())
def test_an_fpdu_comes_back(pieces: list[bytes], place: int | None, crc: bool) -> None:  # noqa: FBT001
    made = encode_fpdu(pieces, to_marker_bytes=place, crc=crc)
    assert fpdu_stream_bytes(memoryview(made), place) == len(made)
    ulpdu, rest = decode_fpdu(made + b"next", to_marker_bytes=place, crc=crc)
    assert bytes(ulpdu) == b"".join(pieces)
    assert bytes(rest) == b"next"
    if place is None:
        assert len(made) == fpdu_bytes(len(ulpdu))


@MANY
@given(data=st.binary(max_size=1500), place=PLACES, bit=st.integers(0, 12_000))
def test_a_wrong_bit_of_an_fpdu_is_found(data: bytes, place: int | None, bit: int) -> None:
    made = bytearray(encode_fpdu([data], to_marker_bytes=place))
    made[bit // 8 % len(made)] ^= 1 << bit % 8
    try:
        decode_fpdu(bytes(made), to_marker_bytes=place)
    except MalformedPacket:
        return
    message = "a changed FPDU was taken for a right one"
    raise AssertionError(message)


@MANY
@given(data=st.binary(max_size=400), place=PLACES)
def test_any_bytes_give_a_segment_or_the_documented_error(data: bytes, place: int | None) -> None:
    try:
        decode_fpdu(data, to_marker_bytes=place, crc=False)
    except MalformedPacket:
        return


def test_a_marker_points_to_the_start_of_its_fpdu() -> None:
    """RFC 5044, 4.3: one every 512 bytes of the stream, the first in front of the first FPDU."""
    made = encode_fpdu([bytes(2000)], to_marker_bytes=0)
    assert [made[at : at + 4].hex() for at in range(0, len(made), 512)] == [
        *("00000000", "000001fc", "000003fc", "000005fc")
    ]
    wrong = bytearray(made)
    wrong[515] ^= 1
    with pytest.raises(MpaMarkerError, match="pointer of 509 bytes, wanted 508"):
        decode_fpdu(bytes(wrong), to_marker_bytes=0, crc=False)
    with pytest.raises(MpaCrcError):
        decode_fpdu(bytes(wrong), to_marker_bytes=0)


@pytest.mark.parametrize("markers", [False, True])
@pytest.mark.parametrize("segment_bytes", [536, 1220, 1448, 1460, 8948, 65_483])
def test_the_largest_segment_fits_one_of_tcp(segment_bytes: int, markers: bool) -> None:  # noqa: FBT001
    most = most_ulpdu_bytes(segment_bytes, markers=markers)
    places = range(0, 512, 4) if markers else [None]
    assert max(len(encode_fpdu([bytes(most)], to_marker_bytes=place)) for place in places) <= segment_bytes


def test_the_bytes_of_a_request_are_those_of_the_rfc() -> None:
    frame = MpaFrame(is_reply=False, wants_markers=True, private_data=b"ab")
    assert frame.encode() == b"MPA ID Req Frame\xc0\x01\x00\x02ab"
    setup = EnhancedSetup(3, 4, is_peer_to_peer=True, write_rtr=True)
    assert setup.encode().hex() == "80038004"


def test_a_frame_says_how_many_bytes_are_missing() -> None:
    whole = MpaFrame(is_reply=True, private_data=b"abcd").encode()
    assert [MpaFrame.missing_bytes(whole[:size]) for size in (0, 19, 20, 22, 24)] == [20, 1, 4, 2, 0]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"GET / HTTP/1.1\r\n", "found the key"),
        (b"MPA ID Rx", "found the key"),
        (b"MPA ID Req Frame\x40\x01\x02\x01", "513 bytes of private data, wanted up to 512"),
    ],
)
def test_a_frame_that_cannot_become_right_is_refused_at_once(data: bytes, words: str) -> None:
    with pytest.raises(MalformedPacket, match=words):
        MpaFrame.missing_bytes(data)


@pytest.mark.parametrize(
    "record",
    [
        MpaFrame(is_reply=False, private_data=bytes(513)),
        MpaFrame(is_reply=False, revision=256),
        EnhancedSetup(1 << 14, 0),
        Marker(1 << 16),
        DdpTagged(0, 1 << 32, 0),
        DdpUntagged(0, 0, 0, 1 << 32),
        ReadRequest(0, 0, -1, 0, 0),
        AtomicRequest(16, 0, 0, 0, 0),
        Terminate(0, 0, 256),
    ],
    ids=lambda record: type(record).__name__,
)
def test_what_does_not_fit_is_refused(record: Any) -> None:
    with pytest.raises(UsageError, match="wanted"):
        record.encode()


def test_a_segment_too_long_for_its_length_field_is_refused() -> None:
    with pytest.raises(UsageError, match="wanted 0 to 65535"):
        encode_fpdu([bytes(1 << 16)])


@MANY
@given(header=st.one_of(TAGGED, UNTAGGED), payload=st.binary(max_size=20))
def test_the_first_bit_tells_the_headers_of_ddp_apart(header: Any, payload: bytes) -> None:
    found, rest = decode_ddp(header.encode() + payload)
    assert found == header
    assert bytes(rest) == payload


def test_every_operation_has_a_queue_or_is_tagged() -> None:
    assert set(QUEUE_OF) == set(RdmapOpcode)
    assert {opcode for opcode, queue in QUEUE_OF.items() if queue is None} == {
        RdmapOpcode.WRITE,
        RdmapOpcode.READ_RESPONSE,
    }
    assert rdmap_control(RdmapOpcode.TERMINATE) == 0x47


@pytest.mark.parametrize("code", list(TerminateCode))
def test_a_terminate_names_its_code(code: TerminateCode) -> None:
    made = Terminate.of(code, 18, DdpUntagged(0x41, 0, 1, 7).encode(), bytes(28))
    found, rest = Terminate.decode(made.encode())
    assert found == made
    assert found.known is code
    assert len(rest) == 0


def by_bits(value: int, addend: int, ends: int) -> int:
    """FETCH_ADD of RFC 7306 bit by bit: no carry leaves a bit that is set in the mask."""
    result = carry = 0
    for place in range(64):
        total = (value >> place & 1) + (addend >> place & 1) + carry
        result |= (total & 1) << place
        carry = 0 if ends >> place & 1 else total >> 1
    return result


@MANY
@given(value=bits(64), addend=bits(64), ends=bits(64))
def test_a_masked_addition_has_no_carry_out_of_a_field(value: int, addend: int, ends: int) -> None:
    request = AtomicRequest(AtomicOpcode.FETCH_ADD, 0, 0, 0, addend, ends)
    assert request.result(value) == by_bits(value, addend, ends)


@MANY
@given(value=bits(64), compare=bits(64), swap=bits(64), masks=st.tuples(bits(64), bits(64)))
def test_a_masked_swap_looks_at_its_bits_alone(value: int, compare: int, swap: int, masks: tuple[int, int]) -> None:
    request = AtomicRequest(AtomicOpcode.COMPARE_SWAP, 0, 0, 0, swap, masks[0], compare, masks[1])
    is_equal = value & masks[1] == compare & masks[1]
    assert request.result(value) == (value & ~masks[0] | swap & masks[0] if is_equal else value)


def test_an_unknown_atomic_has_no_result() -> None:
    assert AtomicRequest(1, 0, 0, 0, 0).result(5) is None
