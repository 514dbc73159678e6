"""What a peer of an iWARP stream tries, and what it gets: each attack with the expected Terminate."""

from __future__ import annotations

import pytest
from helpers.iwarp_attacker import DEPTH, OPEN, PEER, Victim
from helpers.iwarp_pair import PORT, IwarpEnd, IwarpPair

from weftwork.rdma.cm_records import CmEventType, ConnParam
from weftwork.rdma.cm_states import CmState
from weftwork.rdma.iwarp.conversation import CLOSE_PS, STARTUP_PS
from weftwork.rdma.iwarp.setup import MpaOptions
from weftwork.rdma.queue_pair import NicLimits
from weftwork.rdma.verbs import AccessFlags, QpState, SendWr, WcStatus, WrOpcode
from weftwork.wire.ddp import DdpTagged, DdpUntagged
from weftwork.wire.mpa import FRAME_HEADER_BYTES, MOST_PRIVATE_BYTES, EnhancedSetup, MpaFrame
from weftwork.wire.rdmap import (
    AtomicOpcode,
    AtomicRequest,
    ImmediateMessage,
    RdmapOpcode,
    RdmapQueue,
    Terminate,
    TerminateCode,
    rdmap_control,
)

_T = TerminateCode


WRITE, READ = RdmapOpcode.WRITE, RdmapOpcode.READ_REQUEST


REQUEST = MpaFrame(is_reply=False).encode()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "found the key"),
        (MpaFrame(is_reply=True).encode(), "key of the other end"),
        (MpaFrame(is_reply=False, revision=3).encode(), "revision 3"),
        (MpaFrame(is_reply=False, revision=0).encode(), "revision 0"),
        (REQUEST[:18] + (MOST_PRIVATE_BYTES + 1).to_bytes(2, "big"), "513 bytes of private data"),
        (MpaFrame(is_reply=False, rejects=True).encode(), "rejects"),
        (MpaFrame(is_reply=False, revision=2, is_enhanced=True, private_data=b"abc").encode(), "found 3 bytes"),
        (REQUEST + b"x", "behind a request"),
    ],
    ids=["no MPA", "reply", "revision 3", "revision 0", "private data", "rejects", "no depths", "bytes behind"],
)
@pytest.mark.parametrize("piece_bytes", [1, 1000])
def test_a_wrong_request_closes_the_stream(data: bytes, words: str, piece_bytes: int) -> None:
    victim = Victim(accepts=False)
    for at in range(0, len(data), piece_bytes):
        victim.send(data[at : at + piece_bytes])
    assert victim.id.is_over
    assert victim.taken() == b""
    assert words in victim.id.why
    assert not victim.end.manager._conversations
    assert victim.end.manager.counters == {"startup_refused": 1}
    assert victim.end.kinds() == []  # a request of which the user has not heard is withdrawn


def test_bytes_behind_a_request_that_waits_close_the_stream_and_tell_the_user() -> None:
    victim = Victim(accepts=False)
    victim.send(REQUEST)
    assert victim.end.kinds() == [CmEventType.CONNECT_REQUEST]
    victim.send(b"x")
    assert victim.id.is_over
    assert victim.end.kinds() == [CmEventType.CONNECT_REQUEST, CmEventType.REJECTED]


@pytest.mark.parametrize("sent", [b"", REQUEST[:1], REQUEST[:-1]], ids=["nothing", "a byte", "all but one"])
def test_a_slow_request_is_given_up(sent: bytes) -> None:
    """Slow-loris: bytes that trickle do not prolong the time."""
    victim = Victim(accepts=False)
    manager = victim.end.manager
    manager.start_clocks(0)
    assert manager.next_timer_ps() == STARTUP_PS
    for number, byte in enumerate(sent):
        manager.start_clocks(number)
        victim.send(bytes([byte]))
    manager.on_timer(STARTUP_PS - 1)
    assert not victim.id.is_over
    manager.on_timer(STARTUP_PS)
    assert victim.id.is_over
    assert manager.counters["startup_timeout"] == 1
    assert manager.next_timer_ps() is None


def test_a_stream_that_has_not_started_holds_one_frame_at_most() -> None:
    victim = Victim(accepts=False)
    frame = MpaFrame(is_reply=False, private_data=bytes(MOST_PRIVATE_BYTES)).encode()
    for byte in frame[:-1]:
        victim.send(bytes([byte]))
    assert len(victim.id._frame) == FRAME_HEADER_BYTES + MOST_PRIVATE_BYTES - 1


def test_a_flood_of_streams_keeps_nobody_out() -> None:
    """The oldest stream without a request makes room; a peer that asks at once is served."""
    end = IwarpEnd(1, limits=NicLimits(max_cm_pending=8))
    end.manager.listen(PORT)
    flood = [end.manager.accepted(PEER, PORT) for _ in range(100)]
    assert sum(found is not None and not found.is_over for found in flood) == 8
    assert end.manager.counters["startup_evicted"] == 92
    honest = end.manager.accepted(bytes((10, 0, 0, 7)), PORT)
    assert honest is not None
    honest.opened(1460)
    honest.received(memoryview(REQUEST))
    assert end.kinds() == [CmEventType.CONNECT_REQUEST]


def test_requests_beyond_the_backlog_are_refused() -> None:
    end = IwarpEnd(1)
    end.manager.listen(PORT, backlog=2)
    made = [end.manager.accepted(PEER, PORT) for _ in range(3)]
    for found in made:
        assert found is not None
        found.opened(1460)
        found.received(memoryview(REQUEST))
    assert end.kinds() == [CmEventType.CONNECT_REQUEST] * 2
    assert made[2] is not None
    reply, _ = MpaFrame.decode(b"".join(made[2].bytes_to_send()))
    assert reply.rejects
    assert end.manager.counters["backlog_full"] == 1


def test_conversations_are_limited() -> None:
    end = IwarpEnd(1, limits=NicLimits(max_cm_id=3, max_cm_pending=100))
    end.manager.listen(PORT)
    assert [end.manager.accepted(PEER, PORT) is None for _ in range(5)] == [False] * 3 + [True] * 2
    assert end.manager.accepted(PEER, PORT + 1) is None
    assert end.manager.counters == {"too_many": 2, "no_listener": 1}


def test_an_initiator_that_never_sends_its_first_message_is_given_up() -> None:
    victim = Victim(accepts=False)
    setup = EnhancedSetup(4, 4, is_peer_to_peer=True, write_rtr=True)
    victim.send(MpaFrame(is_reply=False, revision=2, is_enhanced=True, private_data=setup.encode()).encode())
    victim.end.take_events()
    victim.id.accept(victim.qp)
    assert victim.id.state is CmState.REP_SENT
    victim.end.manager.start_clocks(0)
    victim.end.manager.on_timer(STARTUP_PS)
    assert victim.id.is_over
    assert victim.qp.state is QpState.ERR
    assert victim.end.kinds()[1:] == [CmEventType.UNREACHABLE, CmEventType.TIMEWAIT_EXIT]


def test_a_peer_that_never_closes_is_closed() -> None:
    victim = Victim()
    victim.id.disconnect()
    victim.taken()
    victim.end.manager.start_clocks(0)
    victim.end.manager.on_timer(CLOSE_PS)
    assert victim.id.is_over
    assert not victim.end.manager._conversations


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n    ", CmEventType.CONNECT_ERROR),
        (REQUEST, CmEventType.CONNECT_ERROR),
        (MpaFrame(is_reply=True).encode(), CmEventType.CONNECT_ERROR),  # revision 1 to a request of revision 2
        (MpaFrame(is_reply=True, revision=2).encode(), CmEventType.CONNECT_ERROR),
        (MpaFrame(is_reply=True, revision=3).encode(), CmEventType.CONNECT_ERROR),
        (MpaFrame(is_reply=True, rejects=True, private_data=b"no").encode(), CmEventType.REJECTED),
    ],
    ids=["no MPA", "request", "revision 1", "no depths", "revision 3", "rejection"],
)
def test_a_wrong_reply_ends_the_attempt(reply: bytes, kind: CmEventType) -> None:
    end = IwarpEnd(1)
    end.manager.connect(PEER, PORT, end.qp)
    found = end.manager.take_to_open()
    assert found is not None
    found.opened(1460)
    found.bytes_sent(len(b"".join(found.bytes_to_send())))
    found.received(memoryview(reply))
    assert end.kinds()[:1] == [kind]
    assert found.is_over
    assert end.qp.state is QpState.ERR


@pytest.mark.parametrize(
    ("setup", "code"),
    [
        (EnhancedSetup(4, 17, is_peer_to_peer=True, write_rtr=True), _T.MPA_INSUFFICIENT_DEPTH),
        (EnhancedSetup(4, 4, is_peer_to_peer=True, send_rtr=True), _T.MPA_NO_MATCHING_RTR),
        (EnhancedSetup(4, 4, write_rtr=True), _T.MPA_NO_MATCHING_RTR),  # A is to be repeated (RFC 6581, 9.1)
    ],
    ids=["depth", "RTR", "flag A"],
)
def test_a_reply_that_agrees_on_too_much_gets_a_terminate(setup: EnhancedSetup, code: TerminateCode) -> None:
    victim = Victim(accepts=False)
    end = victim.end
    end.manager.connect(PEER, PORT, end.qp)
    found = end.manager.take_to_open()
    assert found is not None
    victim.id = found
    found.opened(1460)
    victim.taken()
    reply = MpaFrame(is_reply=True, revision=2, is_enhanced=True, private_data=setup.encode())
    found.received(memoryview(reply.encode()))
    victim.check_refused(code)
    assert end.kinds() == [CmEventType.CONNECT_ERROR]


def test_a_wrong_crc_ends_the_stream_and_places_nothing() -> None:
    victim = Victim()
    header = DdpTagged(rdmap_control(WRITE), victim.open.rkey, victim.open.addr).encode()
    made = bytearray(victim.writer.frame((header, b"evil")))
    made[-1] ^= 1
    victim.send(bytes(made))
    victim.check_refused(_T.MPA_CRC)


def test_a_misplaced_marker_ends_the_stream() -> None:
    victim = Victim(options=MpaOptions(markers=True, crc=False))
    victim.writer._crc = False  # type: ignore[misc] # markers alone are to be wrong
    victim.qp._reader._crc = False  # type: ignore[misc]
    made = bytearray(victim.writer.frame((DdpTagged(rdmap_control(WRITE), 0, 0).encode(),)))
    assert made[:4] == bytes(4)
    made[3] = 4
    victim.send(bytes(made))
    victim.check_refused(_T.MPA_FRAMING)


@pytest.mark.parametrize(("first", "size_bytes"), [(0xC1, 0), (0xC1, 1), (0xC1, 13), (0x41, 1), (0x41, 17)])
def test_a_segment_shorter_than_its_header_ends_the_stream(first: int, size_bytes: int) -> None:
    victim = Victim()
    victim.segment(bytes([first, rdmap_control(WRITE)]).ljust(size_bytes, b"\0")[:size_bytes])
    victim.check_refused(_T.MPA_FRAMING)


def test_a_close_in_the_middle_of_an_fpdu_is_a_lost_stream() -> None:
    victim = Victim()
    victim.post_recv(10)
    header = DdpTagged(rdmap_control(WRITE), victim.open.rkey, victim.open.addr).encode()
    victim.send(victim.writer.frame((header, b"evil"))[:-1])
    victim.id.peer_closed()
    victim.check_unchanged()
    assert victim.qp.refused is _T.MPA_STREAM_LOST
    assert victim.qp.counters["stream_lost"] == 1
    assert [wc.status for wc in victim.end.poll()] == [WcStatus.WR_FLUSH_ERR]
    assert CmEventType.DISCONNECTED in victim.end.kinds()
    assert "in the middle of a message" in victim.end.manager.last_why


@pytest.mark.parametrize("version", [0, 2, 3])
def test_versions_are_checked(version: int) -> None:
    victim = Victim()
    victim.tagged(WRITE, victim.open.rkey, victim.open.addr, b"evil", version=version)
    victim.check_refused(_T.DDP_TAGGED_VERSION)
    victim = Victim()
    victim.untagged(RdmapOpcode.SEND, RdmapQueue.SEND, 1, b"evil", version=version)
    victim.check_refused(_T.DDP_UNTAGGED_VERSION)
    victim = Victim()
    victim.tagged(WRITE, victim.open.rkey, victim.open.addr, b"evil", upper=rdmap_control(WRITE, version))
    victim.check_refused(_T.RDMAP_VERSION)


@pytest.mark.parametrize("queue", [4, 5, 1 << 31, (1 << 32) - 1])
def test_unknown_queues_are_refused(queue: int) -> None:
    victim = Victim()
    victim.untagged(RdmapOpcode.SEND, queue, 1, b"evil")
    victim.check_refused(_T.DDP_INVALID_QUEUE)


def test_an_atomic_response_that_nobody_asked_for_is_refused() -> None:
    victim = Victim()
    victim.untagged(RdmapOpcode.ATOMIC_RESPONSE, RdmapQueue.ATOMIC_RESPONSE, 1, bytes(12))
    victim.check_refused(_T.RDMAP_UNSPECIFIC)


@pytest.mark.parametrize("message", [0, 1, 3, 1 << 31], ids=["before the first", "replay", "gap", "far away"])
def test_messages_come_in_order_and_once(message: int) -> None:
    victim = Victim()
    victim.post_recv(64)
    victim.post_recv(64)
    victim.untagged(RdmapOpcode.SEND, RdmapQueue.SEND, 1, b"first")
    victim.untagged(RdmapOpcode.SEND, RdmapQueue.SEND, message, b"evil")
    victim.check_refused(_T.DDP_MESSAGE_NUMBER)
    assert [wc.status for wc in victim.end.poll()] == [WcStatus.SUCCESS, WcStatus.WR_FLUSH_ERR]


@pytest.mark.parametrize("offset", [0, 3, 5, 1 << 31], ids=["again", "overlap", "gap", "far away"])
def test_segments_of_a_message_follow_each_other(offset: int) -> None:
    victim = Victim()
    victim.post_recv(64)
    victim.untagged(RdmapOpcode.SEND, RdmapQueue.SEND, 1, b"four", is_last=False)
    victim.untagged(RdmapOpcode.SEND, RdmapQueue.SEND, 1, b"evil", offset=offset)
    victim.check_refused(_T.DDP_MESSAGE_OFFSET)
    assert [wc.status for wc in victim.end.poll()] == [WcStatus.WR_FLUSH_ERR]


def test_a_message_does_not_change_its_operation() -> None:
    victim = Victim()
    victim.post_recv(64)
    victim.untagged(RdmapOpcode.SEND, RdmapQueue.SEND, 1, b"four", is_last=False)
    victim.untagged(RdmapOpcode.SEND_INVALIDATE, RdmapQueue.SEND, 1, b"evil", offset=4, upper_word=victim.open.rkey)
    victim.check_refused(_T.RDMAP_UNEXPECTED_OPCODE)


def test_a_message_longer_than_its_receive_is_refused() -> None:
    victim = Victim()
    victim.post_recv(6)
    victim.untagged(RdmapOpcode.SEND, RdmapQueue.SEND, 1, b"four", is_last=False)
    victim.untagged(RdmapOpcode.SEND, RdmapQueue.SEND, 1, b"evil", offset=4)
    victim.check_refused(_T.DDP_TOO_LONG)
    assert [wc.status for wc in victim.end.poll()] == [WcStatus.LOC_LEN_ERR]


def test_a_message_without_a_receive_is_refused() -> None:
    victim = Victim()
    victim.untagged(RdmapOpcode.SEND, RdmapQueue.SEND, 1, b"evil")
    terminate = victim.check_refused(_T.DDP_NO_BUFFER)
    header, _ = DdpUntagged.decode(terminate.ddp_header)
    assert (header.queue, header.message, terminate.segment_bytes) == (0, 1, 18 + 4)


@pytest.mark.parametrize(
    ("offset", "code"),
    [
        (-1, _T.DDP_BOUNDS),
        (len(OPEN) - 3, _T.DDP_BOUNDS),
        (len(OPEN), _T.DDP_BOUNDS),
        (1 << 40, _T.DDP_BOUNDS),
    ],
    ids=["below", "across the end", "above", "far away"],
)
def test_a_write_outside_its_region_is_refused(offset: int, code: TerminateCode) -> None:
    victim = Victim()
    victim.tagged(WRITE, victim.open.rkey, victim.open.addr + offset, b"evil")
    terminate = victim.check_refused(code)
    header, _ = DdpTagged.decode(terminate.ddp_header)
    assert (header.stag, terminate.segment_bytes, terminate.rdmap_header) == (victim.open.rkey, 18, b"")


def test_an_offset_that_wraps_is_refused() -> None:
    victim = Victim()
    victim.tagged(WRITE, victim.open.rkey, (1 << 64) - 2, b"evil")
    victim.check_refused(_T.DDP_OFFSET_WRAP)
    victim = Victim()
    victim.read(victim.open.rkey, (1 << 64) - 2, 4)
    victim.check_refused(_T.RDMAP_OFFSET_WRAP)
    victim = Victim()
    victim.read(victim.open.rkey, victim.open.addr, 4, sink_offset=(1 << 64) - 2)
    victim.check_refused(_T.RDMAP_OFFSET_WRAP)


def test_keys_are_checked() -> None:
    for key, code in (
        (lambda victim: victim.open.rkey ^ 1, _T.DDP_INVALID_STAG),
        (lambda victim: victim.open.lkey, _T.DDP_INVALID_STAG),
        (lambda victim: victim.foreign.rkey, _T.DDP_NOT_ASSOCIATED),
        (lambda victim: victim.readable.rkey, _T.RDMAP_ACCESS),
    ):
        victim = Victim()
        victim.tagged(WRITE, key(victim), victim.open.addr, b"evil")
        victim.check_refused(code)


def test_a_read_is_checked_and_its_request_is_repeated() -> None:
    for key, code in (
        (lambda victim: victim.open.rkey ^ 1, _T.RDMAP_INVALID_STAG),
        (lambda victim: victim.foreign.rkey, _T.RDMAP_NOT_ASSOCIATED),
        (lambda victim: victim.writable.rkey, _T.RDMAP_ACCESS),
    ):
        victim = Victim()
        victim.read(key(victim), victim.open.addr, 4)
        terminate = victim.check_refused(code)
        assert terminate.rdmap_header[:4] == (0x51).to_bytes(4, "big")
        assert len(terminate.rdmap_header) == 28
    victim = Victim()
    victim.read(victim.open.rkey, victim.open.addr, len(OPEN) + 1)
    victim.check_refused(_T.RDMAP_BOUNDS)


@pytest.mark.parametrize("what", ["write", "read", "atomic"])
def test_a_queue_pair_without_the_right_gives_nothing(what: str) -> None:
    victim = Victim(access=AccessFlags(0))
    if what == "write":
        victim.tagged(WRITE, victim.open.rkey, victim.open.addr, b"evil")
    elif what == "read":
        victim.read(victim.open.rkey, victim.open.addr, 4)
    else:
        request = AtomicRequest(AtomicOpcode.FETCH_ADD, 1, victim.open.rkey, victim.open.addr, 1)
        victim.untagged(RdmapOpcode.ATOMIC_REQUEST, RdmapQueue.READ_REQUEST, 1, request.encode())
    victim.check_refused(_T.RDMAP_ACCESS)


def test_of_nothing_neither_key_nor_place_is_checked() -> None:
    victim = Victim()
    victim.tagged(WRITE, 0xBAD, 0)
    victim.read(0xBAD, 0, 0)
    ((header, body),) = victim.answers()
    assert isinstance(header, DdpTagged)
    assert (header.upper & 0xF, header.stag, header.is_last, body) == (RdmapOpcode.READ_RESPONSE, 0x51, True, b"")
    assert not victim.qp.is_over


@pytest.mark.parametrize("addr", [1, 2, 4])
def test_an_atomic_that_is_not_aligned_is_refused(addr: int) -> None:
    victim = Victim()
    place = victim.open.addr + -victim.open.addr % 8 + addr
    request = AtomicRequest(AtomicOpcode.FETCH_ADD, 1, victim.open.rkey, place, 1)
    victim.untagged(RdmapOpcode.ATOMIC_REQUEST, RdmapQueue.READ_REQUEST, 1, request.encode())
    victim.check_refused(_T.RDMAP_UNSPECIFIC)


def test_an_unknown_atomic_is_refused() -> None:
    victim = Victim()
    place = victim.open.addr + -victim.open.addr % 8
    request = AtomicRequest(1, 1, victim.open.rkey, place, 1)
    victim.untagged(RdmapOpcode.ATOMIC_REQUEST, RdmapQueue.READ_REQUEST, 1, request.encode())
    victim.check_refused(_T.RDMAP_UNEXPECTED_OPCODE)


def test_a_region_that_was_deregistered_is_refused() -> None:
    victim = Victim()
    victim.end.nic.memory.deregister(victim.open)
    victim.tagged(WRITE, victim.open.rkey, victim.open.addr, b"evil")
    victim.check_refused(_T.DDP_INVALID_STAG)


def test_a_key_that_may_not_be_invalidated_is_refused() -> None:
    victim = Victim()
    victim.post_recv(64)
    victim.untagged(RdmapOpcode.SEND_INVALIDATE, RdmapQueue.SEND, 1, upper_word=victim.open.rkey)
    victim.check_refused(_T.RDMAP_CANNOT_INVALIDATE)


@pytest.mark.parametrize("opcode", [0xC, 0xD, 0xE, 0xF, RdmapOpcode.SEND, RdmapOpcode.TERMINATE])
def test_unexpected_operations_are_refused(opcode: int) -> None:
    victim = Victim()
    victim.tagged(opcode, victim.open.rkey, victim.open.addr, b"evil")
    victim.check_refused(_T.RDMAP_UNEXPECTED_OPCODE)


@pytest.mark.parametrize("opcode", [*range(0xC, 0x10), WRITE, READ, RdmapOpcode.READ_RESPONSE])
def test_unexpected_operations_of_a_queue_are_refused(opcode: int) -> None:
    victim = Victim()
    victim.post_recv(64)
    victim.untagged(opcode, RdmapQueue.SEND, 1, b"evil")
    victim.check_refused(_T.RDMAP_UNEXPECTED_OPCODE)


def test_no_more_reads_are_taken_than_agreed() -> None:
    victim = Victim()
    for message in range(1, DEPTH + 1):
        victim.read(victim.open.rkey, victim.open.addr, 100, message=message)
    assert not victim.qp.is_over
    victim.read(victim.open.rkey, victim.open.addr, 100, message=DEPTH + 1)
    victim.check_refused(_T.DDP_NO_BUFFER)


def test_a_response_that_nobody_asked_for_is_refused() -> None:
    victim = Victim()
    victim.tagged(RdmapOpcode.READ_RESPONSE, 0x51, 0, b"evil")
    victim.check_refused(_T.DDP_INVALID_STAG)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"stag": 1}, _T.DDP_INVALID_STAG),
        ({"offset": 1}, _T.DDP_BOUNDS),
        ({"is_last": False}, _T.DDP_BOUNDS),
        ({"payload": bytes(9)}, _T.DDP_BOUNDS),
        ({"payload": bytes(7)}, _T.DDP_BOUNDS),
    ],
    ids=["sink", "place", "not the last", "too long", "too short"],
)
def test_a_response_fits_its_request_to_the_byte(change: dict[str, object], code: TerminateCode) -> None:
    victim = Victim()
    victim.tagged(WRITE, 0, 0)  # the first message of the initiator
    before = bytes(victim.end.buffer)
    victim.end.qp.post_send(read_of(victim, 8))
    ((header, body),) = victim.answers()
    assert isinstance(header, DdpUntagged)
    fields: dict[str, object] = {"stag": int.from_bytes(body[:4], "big"), "offset": 0, "payload": b"response"}
    fields |= change
    victim.tagged(RdmapOpcode.READ_RESPONSE, **fields)  # type: ignore[arg-type]
    victim.check_refused(code)
    assert (bytes(victim.end.buffer) == before) is True
    assert [wc.status for wc in victim.end.poll()] == [WcStatus.WR_FLUSH_ERR]


def read_of(victim: Victim, size_bytes: int) -> SendWr:
    return SendWr(wr_id=1, opcode=WrOpcode.RDMA_READ, sg_list=(victim.end.sge(0, size_bytes),))


@pytest.mark.parametrize("body", [b"", b"\x10", Terminate.of(_T.MPA_CRC).encode() + b"more", b"\x00\x00\xe0\x00"])
def test_a_wrong_terminate_is_not_answered(body: bytes) -> None:
    victim = Victim()
    victim.untagged(RdmapOpcode.TERMINATE, RdmapQueue.TERMINATE, 1, body)
    assert victim.answers() == []
    assert victim.qp.is_over
    assert victim.qp.state is QpState.ERR


@pytest.mark.parametrize("message", [0, 2])
def test_a_terminate_with_a_wrong_number_is_not_answered(message: int) -> None:
    victim = Victim()
    victim.untagged(RdmapOpcode.TERMINATE, RdmapQueue.TERMINATE, message, Terminate.of(_T.MPA_CRC).encode())
    assert victim.answers() == []
    assert victim.qp.is_over


def test_a_terminate_about_a_terminate_makes_no_loop() -> None:
    pair = IwarpPair()
    for qp in pair.qps:
        qp._refuse(_T.RDMAP_UNSPECIFIC)
    pair.run()
    assert [qp.counters["tx_terminate"] for qp in pair.qps] == [1, 1]
    assert all(conversation.is_over for conversation in pair.ids)


def test_immediate_data_is_checked() -> None:
    victim = Victim()
    message = ImmediateMessage(7).encode()
    victim.untagged(RdmapOpcode.IMMEDIATE, RdmapQueue.SEND, 1, message)
    victim.check_refused(_T.DDP_NO_BUFFER)
    victim = Victim()
    victim.post_recv(0)
    victim.untagged(RdmapOpcode.IMMEDIATE, RdmapQueue.SEND, 1, message, is_last=False)
    victim.check_refused(_T.DDP_TOO_LONG)
    victim = Victim()
    victim.post_recv(0)
    victim.untagged(RdmapOpcode.IMMEDIATE, RdmapQueue.SEND, 1, message[:7])
    victim.check_refused(_T.DDP_MESSAGE_OFFSET)


def test_a_responder_waits_until_it_has_heard_the_initiator() -> None:
    victim = Victim()
    victim.end.qp.post_send(read_of(victim, 8))
    assert victim.taken() == b""
    victim.tagged(WRITE, 0, 0)
    assert victim.taken() != b""


def test_the_param_of_both_ends_bounds_the_depth() -> None:
    pair = IwarpPair(param=(ConnParam(responder_resources=3, initiator_depth=5), ConnParam(initiator_depth=9)))
    agreed = [conversation.agreed for conversation in pair.ids]
    assert [(found.max_rd_atomic, found.max_dest_rd_atomic) for found in agreed if found] == [(5, 3), (3, 5)]
