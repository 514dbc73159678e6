"""No capture, whatever its bytes, raises anything but the documented error; what is written comes back."""

from __future__ import annotations

import pytest
from helpers.captures import answer, captured, cnp, management, nak, read, read_response, write
from helpers.cases import case_count
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.rdma.capture import CaptureExplainer
from weftwork.rdma.findings import find_trouble
from weftwork.wire.cm import CM_MESSAGES, CmReply, CmRequest, decode_cm
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.hpcc_int import IntPath
from weftwork.wire.mad import MAD_BYTES
from weftwork.wire.pcap import (
    LINK_ETHERNET,
    LINK_INFINIBAND,
    LINK_LINUX_COOKED,
    LINK_LINUX_COOKED_2,
    LINK_RAW_IP,
    CapturedPacket,
)
from weftwork.wire.pcapng import encode_pcapng, read_capture

MANY = settings(max_examples=case_count(plain=200, deep=1_000))
CONVERSATION = [
    management("a", CmRequest(local_comm_id=1, local_qpn=0x11, starting_psn=7)),
    management("b", CmReply(local_comm_id=2, remote_comm_id=1, local_qpn=0x22, starting_psn=100)),
    *write("a", 100, 3),
    nak("b", 101),
    read("a", 103, 1024),
    *read_response("b", 103, 4),
    cnp("b"),
    answer("b", 106),
]
FILE = b"".join(encode_pcapng(captured(CONVERSATION)))
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
PACKETS = st.builds(
    lambda time_ns, data, more, link_type, interface, comment: CapturedPacket(
        time_ns, data, len(data) + more, link_type, interface, comment
    ),
    st.integers(0, 2**64 - 1),
    st.binary(max_size=100),
    st.integers(0, 2_000),
    st.sampled_from([LINK_ETHERNET, LINK_INFINIBAND, LINK_RAW_IP, LINK_LINUX_COOKED, LINK_LINUX_COOKED_2, 105]),
    TEXT,
    TEXT,
)


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """Draw a copy with some bytes replaced, and perhaps without its end."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)) | st.just(len(data)))])


@given(packets=st.lists(PACKETS, max_size=5))
def test_a_written_capture_comes_back(packets: list[CapturedPacket]) -> None:
    file = b"".join(encode_pcapng(packets))
    assert list(read_capture(file)) == packets


@MANY
@given(file=st.binary(max_size=200) | damaged(FILE))
def test_any_file_is_explained_or_refused(file: bytes) -> None:
    seen = CaptureExplainer()
    try:
        for packet in read_capture(file):
            seen.explain(packet)
    except MalformedPacket as error:
        refused = str(error)
    else:
        refused = "at byte"
    assert "at byte" in refused
    assert len(find_trouble(seen)) <= 12


@MANY
@given(
    data=st.data(),
    frames=st.lists(st.sampled_from(CONVERSATION), min_size=1, max_size=30),
)
def test_any_packets_in_any_order_are_explained(data: st.DataObject, frames: list[bytes]) -> None:
    seen = CaptureExplainer()
    for frame in frames:
        changed = data.draw(st.just(frame) | damaged(frame))
        (row,) = seen.explain(
            CapturedPacket(0, changed, data.draw(st.sampled_from([len(changed), len(frame), 1 << 32])))
        )
        assert row.number == seen.packets
    assert sum(seen.kinds.values()) == len(frames)
    assert all(flow.missing >= 0 for flow in seen.flows.by_key.values())
    assert len(find_trouble(seen)) <= 12


@given(packet=PACKETS)
def test_any_bytes_of_any_link_are_explained(packet: CapturedPacket) -> None:
    assert CaptureExplainer().explain(packet)[0].size_bytes == packet.original_bytes


@given(attribute=st.sampled_from(sorted(CM_MESSAGES)), body=st.binary(min_size=MAD_BYTES - 24, max_size=MAD_BYTES - 24))
def test_every_bit_of_a_message_of_management_comes_back(attribute: int, body: bytes) -> None:
    head = b"\1\7\2\3" + bytes(12) + attribute.to_bytes(2, "big") + bytes(6)
    header, message = decode_cm(head + body)
    assert header.encode() + message.encode() == head + body


@given(data=st.binary(max_size=130))
def test_telemetry_is_read_to_the_bit_or_refused(data: bytes) -> None:
    try:
        block, rest = IntPath.decode(data)
    except MalformedPacket:
        return
    assert block.encode() + bytes(rest) == data


@pytest.mark.parametrize("copies", [1, 2])
def test_the_conversation_itself_is_read_to_its_end(copies: int) -> None:
    """The cases above begin with packets that are right: otherwise they would show nothing."""
    seen = CaptureExplainer()
    for packet in captured(CONVERSATION * copies):
        seen.explain(packet)
    assert (seen.unread, seen.unmatched.total()) == (0, 0)
