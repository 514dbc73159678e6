"""The operations of iWARP between two ends in memory."""

from __future__ import annotations

import pytest
from helpers.iwarp_pair import IwarpPair
from helpers.rdma_pair import ALL

from weftwork.base.errors import UsageError
from weftwork.rdma.cm_records import CmEventType, ConnParam
from weftwork.rdma.cm_states import CmState
from weftwork.rdma.iwarp.setup import MpaOptions
from weftwork.rdma.queue_pair import EventType, NicLimits
from weftwork.rdma.verbs import (
    AccessFlags,
    MwBind,
    QpAttr,
    QpState,
    QpType,
    RecvWr,
    SendFlags,
    SendWr,
    Wc,
    WcOpcode,
    WcStatus,
    WrOpcode,
)
from weftwork.wire.rdmap import TerminateCode

MARKERS = MpaOptions(markers=True)
VARIANTS = {
    "plain": (MpaOptions(), MpaOptions()),
    "markers": (MARKERS, MARKERS),
    "markers one way": (MpaOptions(), MARKERS),
    "no crc": (MpaOptions(crc=False), MpaOptions(crc=False)),
    "revision 1": (MpaOptions(revision=1), MpaOptions()),
    "revision 1, markers": (MpaOptions(revision=1, markers=True), MARKERS),
}


def same(found: bytes | bytearray, wanted: bytes) -> bool:
    """Whether bytes are equal; a difference of many would take long to print."""
    return bytes(found) == wanted


def successes(found: list[Wc]) -> list[WcOpcode]:
    assert [wc.status for wc in found] == [WcStatus.SUCCESS] * len(found)
    return [wc.opcode for wc in found]


@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("length", [0, 1, 1000, 1427, 1428, 1429, 20_000])
def test_write_read_and_send_move_the_bytes(options: tuple[MpaOptions, MpaOptions], length: int) -> None:
    pair = IwarpPair(options=options, seed=length, most_bytes=3000, memory_bytes=1 << 17)
    a, b = pair.ends
    sent, theirs = bytes(a.buffer), bytes(b.buffer)
    pair.post_recv(1, 80_000, 20_000)
    pair.post(0, WrOpcode.RDMA_WRITE, 0, length, there=100)
    pair.post(0, WrOpcode.SEND, 300, length)
    pair.post(0, WrOpcode.RDMA_READ, 30_000, length, there=20_400)
    pair.run()
    assert successes(a.poll()) == [WcOpcode.RDMA_WRITE, WcOpcode.SEND, WcOpcode.RDMA_READ]
    assert [wc.byte_len for wc in b.poll()] == [length]
    assert same(b.buffer[100 : 100 + length], sent[:length])
    assert same(b.buffer[80_000 : 80_000 + length], sent[300 : 300 + length])
    assert same(a.buffer[30_000 : 30_000 + length], theirs[20_400 : 20_400 + length])
    assert same(bytes(b.buffer[:100]), theirs[:100])
    assert a.kinds() == [CmEventType.ESTABLISHED]


@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
def test_the_accepting_end_may_speak_first(options: tuple[MpaOptions, MpaOptions]) -> None:
    pair = IwarpPair(options=options)
    wanted = bytes(pair.ends[1].buffer[:5000])
    pair.post(1, WrOpcode.RDMA_WRITE, 0, 5000, there=7)
    pair.run()
    if options[0].revision == 1:  # RFC 5044, 7.1.2: it waits until it has heard the other end
        assert pair.ends[1].poll() == []
        pair.post(0, WrOpcode.RDMA_WRITE)
        pair.run()
    assert successes(pair.ends[1].poll()) == [WcOpcode.RDMA_WRITE]
    assert same(pair.ends[0].buffer[7:5007], wanted)


def test_atomics_return_the_value_before() -> None:
    pair = IwarpPair()
    a, b = pair.ends
    b.buffer[8:16] = (40).to_bytes(8, "little")
    pair.post(0, WrOpcode.ATOMIC_FETCH_AND_ADD, 0, 8, there=8, compare_add=2)
    pair.post(0, WrOpcode.ATOMIC_CMP_AND_SWP, 8, 8, there=8, compare_add=42, swap=7)
    pair.post(0, WrOpcode.ATOMIC_CMP_AND_SWP, 16, 8, there=8, compare_add=42, swap=9)
    pair.run()
    assert successes(a.poll()) == [WcOpcode.FETCH_ADD, WcOpcode.COMP_SWAP, WcOpcode.COMP_SWAP]
    assert [int.from_bytes(a.buffer[at : at + 8], "little") for at in (0, 8, 16)] == [40, 42, 7]
    assert int.from_bytes(b.buffer[8:16], "little") == 7


def test_immediate_data_follows_a_write_and_leaves_the_memory_of_its_receive() -> None:
    pair = IwarpPair()
    a, b = pair.ends
    sent, before = bytes(a.buffer), bytes(b.buffer)
    pair.post_recv(1, 0, 100, wr_id=5)
    pair.post(0, WrOpcode.RDMA_WRITE_WITH_IMM, 0, 3000, there=1000, imm_data=0xABCD)
    pair.run()
    (wc,) = b.poll()
    assert (wc.wr_id, wc.opcode, wc.byte_len, wc.imm_data) == (5, WcOpcode.RECV_RDMA_WITH_IMM, 3000, 0xABCD)
    assert same(b.buffer[1000:4000], sent[:3000])
    assert same(b.buffer[:1000], before[:1000])


@pytest.mark.parametrize("solicited", [False, True])
def test_a_send_can_invalidate_and_ask_for_an_event(solicited: bool) -> None:  # noqa: FBT001
    pair = IwarpPair()
    a, b = pair.ends
    window = b.nic.memory.allocate_window(b.pd, 2)
    bind = MwBind(region=b.mr, addr=b.mr.addr, length=64, access=AccessFlags.REMOTE_WRITE)
    key = window.rkey
    assert b.nic.memory.bind(
        window, b.mr, (b.mr.addr, 64), bind.access, b.qp.qp_num, rkey=key + 1 if key & 1 else key ^ 1
    )
    pair.post_recv(1, 0, 100)
    flags = SendFlags.SIGNALED | (SendFlags.SOLICITED if solicited else SendFlags(0))
    pair.post(0, WrOpcode.SEND_WITH_INV, 0, 10, invalidate_rkey=window.rkey, flags=flags)
    pair.run()
    (wc,) = b.poll()
    assert (wc.status, wc.invalidated_rkey, wc.solicited) == (WcStatus.SUCCESS, window.rkey, solicited)
    assert window.region is None
    assert successes(a.poll()) == [WcOpcode.SEND]


def test_a_write_through_a_window_lands_until_it_is_invalidated() -> None:
    pair = IwarpPair()
    a, b = pair.ends
    window = b.nic.memory.allocate_window(b.pd, 1)
    key = b.qp.bind_mw(1, window, MwBind(region=b.mr, addr=b.mr.addr, length=8, access=AccessFlags.REMOTE_WRITE))
    pair.run()
    assert successes(b.poll()) == [WcOpcode.BIND_MW]
    wanted = bytes(a.buffer[:8])
    pair.post(0, WrOpcode.RDMA_WRITE, 0, 8, rkey=key)
    pair.run()
    assert same(b.buffer[:8], wanted)
    pair.post(0, WrOpcode.RDMA_WRITE, 0, 8, there=8, rkey=key)
    pair.run()
    assert pair.qps[1].refused is TerminateCode.DDP_BOUNDS


def test_no_more_reads_are_asked_for_than_agreed() -> None:
    few = ConnParam(responder_resources=2, initiator_depth=16, qp_access_flags=ALL)
    pair = IwarpPair(param=(ConnParam(qp_access_flags=ALL), few))
    assert pair.ids[0].agreed is not None
    assert pair.ids[0].agreed.max_rd_atomic == 2
    for number in range(10):
        pair.post(0, WrOpcode.RDMA_READ, 100 * number, 100, there=200 * number, wr_id=number)
    pair.run()
    found = pair.ends[0].poll()
    assert successes(found) == [WcOpcode.RDMA_READ] * 10
    assert [wc.wr_id for wc in found] == list(range(10))


def test_completions_keep_the_order_of_the_requests() -> None:
    pair = IwarpPair(most_bytes=700)
    kinds = [WrOpcode.RDMA_READ, WrOpcode.RDMA_WRITE, WrOpcode.ATOMIC_FETCH_AND_ADD, WrOpcode.RDMA_WRITE] * 5
    for number, opcode in enumerate(kinds):
        flags = SendFlags.SIGNALED | (SendFlags.FENCE if number % 4 == 3 else SendFlags(0))
        pair.post(0, opcode, 0, 8 if "ATOMIC" in opcode.name else 4000, wr_id=number, flags=flags)
    pair.run()
    assert [wc.wr_id for wc in pair.ends[0].poll()] == list(range(20))


def test_a_send_without_a_receive_ends_the_stream() -> None:
    """RoCE lets the sender wait (RNR); DDP has no such thing (RFC 5041, 7.1)."""
    pair = IwarpPair()
    a, b = pair.ends
    pair.post(0, WrOpcode.SEND, 0, 10)
    pair.run()
    assert pair.qps[1].refused is TerminateCode.DDP_NO_BUFFER
    assert pair.qps[0].terminated_by is not None
    assert pair.qps[0].terminated_by.known is TerminateCode.DDP_NO_BUFFER
    assert [qp.state for qp in pair.qps] == [QpState.ERR, QpState.ERR]
    assert successes(a.poll()) == [WcOpcode.SEND]  # the system had taken its bytes
    assert a.kinds()[-2:] == [CmEventType.DISCONNECTED, CmEventType.TIMEWAIT_EXIT]
    assert b.kinds()[-2:] == [CmEventType.DISCONNECTED, CmEventType.TIMEWAIT_EXIT]
    assert "DDP_NO_BUFFER" in a.manager.last_why


def test_a_refused_read_fails_and_all_behind_it_is_flushed() -> None:
    pair = IwarpPair()
    pair.post(0, WrOpcode.RDMA_READ, 0, 10, wr_id=1)
    pair.post(0, WrOpcode.RDMA_READ, 0, 10, rkey=0x1234, wr_id=2)
    pair.post(0, WrOpcode.RDMA_READ, 0, 10, wr_id=3)
    pair.run()
    found = [(wc.wr_id, wc.status) for wc in pair.ends[0].poll()]
    assert found[1:] == [(2, WcStatus.REM_ACCESS_ERR), (3, WcStatus.WR_FLUSH_ERR)]
    assert found[0][0] == 1
    assert pair.qps[0].terminated_by is not None
    assert pair.qps[0].terminated_by.known is TerminateCode.RDMAP_INVALID_STAG


def test_local_memory_that_is_not_registered_fails_behind_the_requests_before_it() -> None:
    pair = IwarpPair()
    a, b = pair.ends
    pair.post(0, WrOpcode.RDMA_READ, 0, 10, wr_id=1)
    bad = SendWr(wr_id=2, opcode=WrOpcode.RDMA_WRITE, sg_list=(a.sge(1 << 20, 10),), rkey=b.mr.rkey)
    a.qp.post_send(bad)
    pair.run()
    assert [(wc.wr_id, wc.status) for wc in a.poll()] == [(1, WcStatus.SUCCESS), (2, WcStatus.LOC_PROT_ERR)]
    assert pair.qps[1].terminated_by is not None
    assert pair.qps[1].terminated_by.known is TerminateCode.LOCAL_CATASTROPHIC


def test_a_receive_that_is_too_short_ends_with_an_error() -> None:
    pair = IwarpPair()
    pair.post_recv(1, 0, 5)
    pair.post(0, WrOpcode.SEND, 0, 6)
    pair.run()
    assert [wc.status for wc in pair.ends[1].poll()] == [WcStatus.LOC_LEN_ERR]
    assert pair.qps[1].refused is TerminateCode.DDP_TOO_LONG


def test_a_region_that_goes_while_it_is_read_ends_the_stream() -> None:
    pair = IwarpPair(memory_bytes=1 << 20)
    a, b = pair.ends
    other = b.nic.memory.register(b.pd, bytearray(1 << 20), ALL)
    pair.post(0, WrOpcode.RDMA_READ, 0, 1 << 20, remote_addr=other.addr, rkey=other.rkey)
    pair.most_bytes = 5000
    for _ in range(8):
        pair.streams[0].step(pair.luck, pair.most_bytes)
    b.nic.memory.deregister(other)
    pair.run()
    assert pair.qps[1].refused is TerminateCode.RDMAP_INVALID_STAG
    assert [wc.status for wc in a.poll()] == [WcStatus.WR_FLUSH_ERR]


def test_disconnecting_flushes_and_tells_both_ends() -> None:
    pair = IwarpPair()
    pair.post_recv(0, 0, 10, wr_id=1)
    pair.post_recv(1, 0, 10, wr_id=2)
    pair.ids[0].disconnect()
    pair.run()
    for number, end in enumerate(pair.ends):
        assert [(wc.wr_id, wc.status) for wc in end.poll()] == [(number + 1, WcStatus.WR_FLUSH_ERR)]
        assert end.kinds()[-2:] == [CmEventType.DISCONNECTED, CmEventType.TIMEWAIT_EXIT]
        assert pair.ids[number].state is CmState.IDLE
        assert pair.ids[number].is_over
    assert not pair.ends[0].manager._conversations
    assert not pair.ends[0].manager._by_qp


def test_what_was_framed_before_a_disconnect_still_arrives_whole() -> None:
    pair = IwarpPair(most_bytes=100)
    wanted = bytes(pair.ends[0].buffer[:3000])
    pair.post(0, WrOpcode.RDMA_WRITE, 0, 3000)
    pair.streams[0].step(pair.luck, 100)
    pair.ids[0].disconnect()
    pair.run()
    assert [wc.status for wc in pair.ends[0].poll()] == [WcStatus.WR_FLUSH_ERR]
    assert same(pair.ends[1].buffer[:3000], wanted)
    assert pair.qps[1].refused is None


def test_a_queue_pair_that_is_destroyed_ends_its_stream() -> None:
    pair = IwarpPair()
    pair.ends[0].nic.destroy_qp(pair.qps[0])
    assert pair.ends[0].manager.take_ready() == [pair.ids[0]]
    pair.run()
    for end in pair.ends:
        assert end.kinds()[-2:] == [CmEventType.DISCONNECTED, CmEventType.TIMEWAIT_EXIT]
        assert not end.manager._by_qp


def test_in_sqd_no_request_begins() -> None:
    pair = IwarpPair()
    a = pair.ends[0]
    a.qp.modify(QpState.SQD)
    pair.post(0, WrOpcode.RDMA_WRITE, 0, 10)
    pair.run()
    assert a.poll() == []
    event = a.nic.next_event()
    assert event is not None
    assert event.event_type is EventType.SQ_DRAINED
    a.qp.modify(QpState.RTS)
    pair.run()
    assert successes(a.poll()) == [WcOpcode.RDMA_WRITE]


def test_an_overrun_completion_queue_ends_the_stream() -> None:
    pair = IwarpPair(param=None)
    a = pair.ends[0]
    small = a.nic.create_cq(1)
    a.qp = a.nic.create_qp(a.pd, QpType.RC, (small, small))
    pair.connect(ConnParam(qp_access_flags=ALL), ConnParam(qp_access_flags=ALL))
    for _ in range(3):
        pair.post(0, WrOpcode.RDMA_WRITE, 0, 10)
    pair.run()
    assert a.qp.state is QpState.ERR
    assert pair.ends[1].kinds()[-2:] == [CmEventType.DISCONNECTED, CmEventType.TIMEWAIT_EXIT]


def test_a_shared_receive_queue_serves_the_sends() -> None:
    pair = IwarpPair(param=None)
    b = pair.ends[1]
    queue = b.nic.create_srq(4)
    b.qp = b.new_qp(srq=queue)
    pair.connect(ConnParam(qp_access_flags=ALL), ConnParam(qp_access_flags=ALL))
    queue.post(RecvWr(wr_id=9, sg_list=(b.sge(0, 10),)))
    pair.post(0, WrOpcode.SEND, 0, 10)
    pair.run()
    assert [wc.wr_id for wc in b.poll()] == [9]


@pytest.mark.parametrize(
    ("opcode", "words"),
    [
        (WrOpcode.SEND_WITH_IMM, "use RDMA_WRITE_WITH_IMM"),
        (WrOpcode.FLUSH, "wire iWARP does not have; a READ"),
        (WrOpcode.ATOMIC_WRITE, "use ATOMIC_CMP_AND_SWP"),
    ],
)
def test_what_iwarp_lacks_is_refused(opcode: WrOpcode, words: str) -> None:
    pair = IwarpPair()
    with pytest.raises(UsageError, match=words):
        pair.post(0, opcode, 0, 8)
    assert pair.qps[0].state is QpState.RTS


def test_a_request_past_the_end_of_the_address_space_is_refused() -> None:
    with pytest.raises(UsageError, match="pass 2\\^64"):
        IwarpPair().post(0, WrOpcode.RDMA_WRITE, 0, 8, remote_addr=(1 << 64) - 7)


@pytest.mark.parametrize("service", [QpType.UC, QpType.UD])
def test_unreliable_services_are_refused(service: QpType) -> None:
    end = IwarpPair(param=None).ends[0]
    with pytest.raises(UsageError, match="wanted RC"):
        end.nic.create_qp(end.pd, service, (end.cq, end.cq))


def test_a_queue_pair_without_a_stream_does_not_reach_rtr() -> None:
    qp = IwarpPair(param=None).ends[0].qp
    qp.modify(QpState.INIT, QpAttr())
    with pytest.raises(UsageError, match="found no stream"):
        qp.modify(QpState.RTR)
    assert qp.state is QpState.INIT


def test_a_queue_pair_can_be_connected_again_after_reset() -> None:
    pair = IwarpPair()
    pair.ids[0].disconnect()
    pair.run()
    for end in pair.ends:
        end.qp.modify(QpState.RESET)
        end.poll()
    pair.connect(ConnParam(qp_access_flags=ALL), ConnParam(qp_access_flags=ALL))
    pair.post(0, WrOpcode.RDMA_READ, 0, 5000)
    pair.run()
    assert successes(pair.ends[0].poll()) == [WcOpcode.RDMA_READ]


def test_the_limits_of_the_nic_hold() -> None:
    pair = IwarpPair(limits=NicLimits(max_cm_id=1), param=None)
    a, b = pair.ends
    a.manager.connect(b.nic.address, 1, a.qp)
    with pytest.raises(UsageError, match="the limit"):
        a.manager.connect(b.nic.address, 1, a.new_qp())
