"""Queues that change their size, regions that change under their keys, inline data without a region."""

from __future__ import annotations

from random import Random

import pytest

from weftwork.base.errors import UsageError
from weftwork.rdma.completion import CompletionQueue
from weftwork.rdma.memory import MemoryTable, ProtectionDomain
from weftwork.rdma.nic import RdmaNic
from weftwork.rdma.queue_pair import NicLimits
from weftwork.rdma.receive_queue import RecvQueue
from weftwork.rdma.requests import SendEntry, refused_text
from weftwork.rdma.verbs import AccessFlags, QpType, RecvWr, SendFlags, SendWr, Sge, Wc, WcOpcode, WcStatus, WrOpcode

RIGHTS = AccessFlags.LOCAL_WRITE | AccessFlags.REMOTE_WRITE | AccessFlags.MW_BIND


def completion(qp_num: int) -> Wc:
    return Wc(wr_id=0, status=WcStatus.SUCCESS, opcode=WcOpcode.SEND, qp_num=qp_num)


def test_a_completion_queue_holds_what_its_new_size_says() -> None:
    queue = CompletionQueue(1)
    queue.add(completion(5))
    queue.resize(2)
    queue.add(completion(6))
    assert not queue.is_overrun
    with pytest.raises(UsageError, match="found 1, wanted room for 2 completions"):
        queue.resize(1)
    assert queue.cqe == 2


def test_the_completions_of_one_queue_pair_are_dropped() -> None:
    queue = CompletionQueue(4)
    for number in (5, 6, 5):
        queue.add(completion(number))
    queue.discard(5)
    assert [wc.qp_num for wc in queue.poll(4)] == [6]


def test_a_receive_queue_holds_what_its_new_size_says() -> None:
    queue = RecvQueue(1, 1, is_shared=True)
    queue.post(RecvWr(wr_id=1))
    with pytest.raises(UsageError, match="which is its limit"):
        queue.post(RecvWr(wr_id=2))
    queue.resize(2)
    queue.post(RecvWr(wr_id=2))
    with pytest.raises(UsageError, match="wanted room for 2 receives"):
        queue.resize(1)


def test_a_shared_queue_frees_its_place_once_no_queue_pair_uses_it() -> None:
    nic = RdmaNic(b"\x7f\0\0\1", random=Random(1), limits=NicLimits(max_srq=1))
    srq, cq = nic.create_srq(4), nic.create_cq(4)
    qp = nic.create_qp(nic.alloc_pd(), QpType.RC, (cq, cq), srq=srq)
    with pytest.raises(UsageError, match="found a queue pair that takes from it"):
        nic.destroy_srq(srq)
    nic.destroy_qp(qp)
    nic.destroy_srq(srq)
    nic.create_srq(4)


def test_a_region_changes_domain_memory_and_rights_under_its_keys() -> None:
    table = MemoryTable(Random(1), 8)
    old_pd, new_pd = ProtectionDomain(), ProtectionDomain()
    old, new = bytearray(16), bytearray(32)
    region = table.register(old_pd, old, RIGHTS)
    changed = table.reregister(region, new_pd, new, AccessFlags.LOCAL_WRITE)
    assert (changed.lkey, changed.rkey, changed.length) == (region.lkey, region.rkey, 32)
    piece = Sge(changed.addr, 32, changed.lkey)
    assert table.local(new_pd, piece, AccessFlags.LOCAL_WRITE) is not None
    assert table.local(old_pd, piece, AccessFlags.LOCAL_WRITE) is None
    assert table.local(new_pd, Sge(region.addr, 16, region.lkey), AccessFlags.LOCAL_WRITE) is None
    assert table.remote(new_pd, changed.rkey, changed.addr, 8, AccessFlags.REMOTE_WRITE, 2) is None
    assert table.revocations == 1
    with pytest.raises(UsageError, match="not registered here"):
        table.deregister(region) if table.reregister(region, new_pd, new, RIGHTS) else None
    table.deregister(changed)
    assert len(table) == 0


def test_a_region_with_windows_or_wrong_rights_stays_as_it_is() -> None:
    table, pd, buffer = MemoryTable(Random(1), 8), ProtectionDomain(), bytearray(16)
    region = table.register(pd, buffer, RIGHTS)
    with pytest.raises(UsageError, match="wanted local write"):
        table.reregister(region, pd, buffer, AccessFlags.REMOTE_WRITE)
    window = table.allocate_window(pd, 1)
    assert table.bind(window, region, (region.addr, 8), AccessFlags.REMOTE_WRITE, 2)
    with pytest.raises(UsageError, match="has windows"):
        table.reregister(region, pd, buffer, RIGHTS)
    assert table.local(pd, Sge(region.addr, 16, region.lkey), AccessFlags.LOCAL_WRITE) is not None


def test_inline_bytes_are_the_message_and_need_no_region() -> None:
    wr = SendWr(wr_id=1, opcode=WrOpcode.SEND, flags=SendFlags.INLINE, inline_data=b"without a region")
    assert refused_text(wr, QpType.RC, 1, 64) is None
    entry = SendEntry(wr, 256)
    entry.copy_inline(MemoryTable(Random(1), 8), ProtectionDomain())
    assert entry.length == 16
    assert b"".join(map(bytes, entry.packet(0).pieces)) == b"without a region"


@pytest.mark.parametrize(
    "wr",
    [
        SendWr(wr_id=1, opcode=WrOpcode.SEND, inline_data=b"x"),
        SendWr(wr_id=1, opcode=WrOpcode.SEND, flags=SendFlags.INLINE, inline_data=b"x", sg_list=(Sge(1, 1, 1),)),
        SendWr(wr_id=1, opcode=WrOpcode.SEND, flags=SendFlags.INLINE, inline_data=bytes(65)),
    ],
)
def test_inline_bytes_come_alone_with_the_flag_and_fit(wr: SendWr) -> None:
    assert refused_text(wr, QpType.RC, 1, 64) is not None
