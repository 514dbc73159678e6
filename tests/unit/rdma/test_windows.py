"""Memory windows, bound by posted requests and taken back by either end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from helpers.rdma_pair import ALL, Pair

from weftwork.base.errors import UsageError
from weftwork.rdma.memory import MemoryWindow
from weftwork.rdma.queue_pair import RdmaQueuePair
from weftwork.rdma.verbs import (
    AccessFlags,
    MwBind,
    QpState,
    QpType,
    RecvWr,
    SendFlags,
    SendWr,
    WcOpcode,
    WcStatus,
    WrOpcode,
    inc_rkey,
)

W = WrOpcode
OK = WcStatus.SUCCESS
SIGNALED = SendFlags.SIGNALED


def window_of(pair: Pair, window_type: int) -> tuple[MemoryWindow, MwBind]:
    """A window of the second end, and a binding to 64 bytes of it."""
    region = pair.mrs[1]
    bind = MwBind(region=region, addr=region.addr + 64, length=64, access=AccessFlags.REMOTE_WRITE)
    return pair.nics[1].memory.allocate_window(pair.pds[1], window_type), bind


def bind_request(window: MemoryWindow, bind: MwBind, wr_id: int = 0, **more: Any) -> SendWr:
    more = {"rkey": inc_rkey(window.rkey), "flags": SIGNALED} | more
    return SendWr(wr_id=wr_id, opcode=W.BIND_MW, window=window, bind=bind, **more)


def write(pair: Pair, qp: RdmaQueuePair, rkey: int, offset: int = 64) -> WcStatus:
    """Status of a WRITE by the first end under a key of the second."""
    place = {"remote_addr": pair.mrs[1].addr + offset, "rkey": rkey}
    qp.post_send(SendWr(wr_id=9, opcode=W.RDMA_WRITE, sg_list=(pair.sge(0, 0, 8),), flags=SIGNALED, **place))
    assert pair.run()
    (wc,) = (wc for wc in pair.poll(0) if wc.wr_id == 9)
    return wc.status


@pytest.mark.parametrize("attr", [{}, {"selective_repeat": True}])
def test_a_posted_binding_comes_before_what_is_posted_behind_it(attr: dict[str, Any]) -> None:
    pair = Pair(**attr)
    window, bind = window_of(pair, 2)
    old, new = window.rkey, inc_rkey(window.rkey)
    pair.post_recv(0, 5, 0, 8)
    pair.qps[1].post_send(bind_request(window, bind, 1))
    pair.post(1, W.SEND, 2, sg_list=(pair.sge(1, 0, 8),))
    assert window.rkey == old  # posted, not executed
    assert pair.run()
    assert [(wc.wr_id, wc.status, wc.opcode) for wc in pair.poll(1)] == [
        (1, OK, WcOpcode.BIND_MW),
        (2, OK, WcOpcode.SEND),
    ]
    assert (window.rkey, window.region) == (new, pair.mrs[1])
    assert write(pair, pair.qps[0], new) is OK


def test_a_window_of_type_1_is_open_to_every_queue_pair_of_the_domain() -> None:
    pair = Pair()
    others = pair.connect()
    window, bind = window_of(pair, 1)
    first = pair.qps[1].bind_mw(1, window, bind)
    assert pair.run()
    assert window.rkey == first
    assert [write(pair, qp, first) for qp in (pair.qps[0], others[0])] == [OK, OK]
    second = pair.qps[1].bind_mw(2, window, replace(bind, addr=bind.addr + 64))
    assert pair.run()
    assert write(pair, others[0], second, 128) is OK
    assert write(pair, others[0], first) is WcStatus.REM_ACCESS_ERR  # the key before
    pair.qps[1].bind_mw(3, window, replace(bind, length=0))
    assert pair.run()
    assert window.region is None
    assert write(pair, pair.qps[0], window.rkey) is WcStatus.REM_ACCESS_ERR
    assert {wc.status for wc in pair.poll(1) if wc.wr_id in {1, 2, 3}} == {OK}


def test_a_window_of_type_2_is_open_to_the_queue_pair_that_bound_it() -> None:
    pair = Pair()
    others = pair.connect()
    window, bind = window_of(pair, 2)
    pair.qps[1].post_send(bind_request(window, bind))
    assert pair.run()
    assert write(pair, pair.qps[0], window.rkey) is OK
    assert write(pair, others[0], window.rkey) is WcStatus.REM_ACCESS_ERR
    assert pair.qps[1].state is QpState.RTS


def test_a_peer_invalidates_a_window_and_it_is_bound_again() -> None:
    pair = Pair()
    window, bind = window_of(pair, 2)
    for turn in range(3):
        pair.qps[1].post_send(bind_request(window, bind, turn))
        assert pair.run()
        assert [wc.status for wc in pair.poll(1)] == [OK]
        rkey = window.rkey
        assert write(pair, pair.qps[0], rkey) is OK
        pair.qps[1].post_recv(RecvWr(wr_id=7))
        pair.post(0, W.SEND_WITH_INV, turn, invalidate_rkey=rkey)
        assert pair.run()
        assert [(wc.status, wc.invalidated_rkey) for wc in pair.poll(1)] == [(OK, rkey)]
        assert [wc.status for wc in pair.poll(0)] == [OK]
        assert window.region is None
    assert write(pair, pair.qps[0], window.rkey) is WcStatus.REM_ACCESS_ERR
    pair.nics[1].memory.deregister(pair.mrs[1])  # nothing is bound to it


def test_the_owner_invalidates_a_window_by_a_request() -> None:
    pair = Pair()
    window, bind = window_of(pair, 2)
    pair.qps[1].post_send(bind_request(window, bind, 1))
    pair.post(1, W.LOCAL_INV, 2, invalidate_rkey=inc_rkey(window.rkey))
    pair.post(1, W.LOCAL_INV, 3, invalidate_rkey=inc_rkey(window.rkey))
    assert pair.run()
    assert [(wc.wr_id, wc.status) for wc in pair.poll(1)] == [(1, OK), (2, OK), (3, WcStatus.MW_BIND_ERR)]
    assert write(pair, pair.qps[0], window.rkey) is WcStatus.RETRY_EXC_ERR  # the owner is in error
    assert pair.qps[1].state is QpState.ERR


def test_a_window_of_type_1_is_not_invalidated() -> None:
    pair = Pair()
    window, bind = window_of(pair, 1)
    rkey = pair.qps[1].bind_mw(1, window, bind)
    assert pair.run()
    pair.qps[1].post_recv(RecvWr(wr_id=7))
    pair.post(0, W.SEND_WITH_INV, invalidate_rkey=rkey)
    assert pair.run()
    assert [wc.status for wc in pair.poll(0)] == [WcStatus.REM_ACCESS_ERR]
    assert window.region is pair.mrs[1]


@pytest.mark.parametrize("service", [QpType.RC, QpType.UC])
@pytest.mark.parametrize(
    "wrong",
    [
        "bounds below",
        "bounds above",
        "no right to bind",
        "remote without local write",
        "other domain",
        "deregistered",
        "bound",
        "same key",
        "empty",
    ],
)
def test_a_binding_that_may_not_be_fails_and_changes_nothing(service: QpType, wrong: str) -> None:
    pair = Pair(qp_type=service)
    memory = pair.nics[1].memory
    window, bind = window_of(pair, 2)
    rkey = inc_rkey(window.rkey)
    match wrong:
        case "bounds below":
            bind = replace(bind, addr=bind.region.addr - 1)
        case "bounds above":
            bind = replace(bind, addr=bind.region.addr + bind.region.length - 63)
        case "no right to bind" | "remote without local write":
            access = AccessFlags.LOCAL_WRITE if wrong == "no right to bind" else AccessFlags.MW_BIND
            region = memory.register(pair.pds[1], bytearray(64), access)
            bind = replace(bind, region=region, addr=region.addr)
        case "other domain":
            window = memory.allocate_window(pair.nics[1].alloc_pd(), 2)
            rkey = inc_rkey(window.rkey)
        case "deregistered":
            region = memory.register(pair.pds[1], bytearray(64), ALL)
            bind = replace(bind, region=region, addr=region.addr)
            memory.deregister(region)
        case "bound":
            pair.qps[1].post_send(bind_request(window, bind))
            assert pair.run()
            pair.poll(1)
            rkey = inc_rkey(window.rkey)
        case "same key":
            rkey = window.rkey
        case "empty":
            bind = replace(bind, length=0)
    before = window.rkey, window.region
    pair.qps[1].post_send(bind_request(window, bind, 1, rkey=rkey))
    pair.post(1, W.SEND, 2)
    assert pair.run()
    assert [(wc.wr_id, wc.status) for wc in pair.poll(1)] == [(1, WcStatus.MW_BIND_ERR), (2, WcStatus.WR_FLUSH_ERR)]
    assert (window.rkey, window.region) == before


def test_a_fence_keeps_a_binding_behind_reads() -> None:
    for flags, is_bound in ((SIGNALED, True), (SIGNALED | SendFlags.FENCE, False)):
        pair = Pair()
        window, bind = window_of(pair, 2)
        pair.post(1, W.RDMA_READ, 1, sg_list=(pair.sge(1, 0, 8),), **pair.remote(1, 0))
        pair.qps[1].post_send(bind_request(window, bind, 2, flags=flags))
        for datagram in pair.nics[1].datagrams_to_send(0):
            pair.carry(0, datagram)
        assert (window.region is not None) is is_bound
        assert pair.run()
        assert [(wc.wr_id, wc.status) for wc in pair.poll(1)] == [(1, OK), (2, OK)]


def test_what_is_no_binding_is_refused_when_it_is_posted() -> None:
    pair = Pair()
    window, bind = window_of(pair, 2)
    qp = pair.qps[1]
    with pytest.raises(UsageError, match="wanted 1"):
        qp.bind_mw(1, window, bind)
    with pytest.raises(UsageError, match="of its index"):
        qp.post_send(bind_request(window, bind, rkey=window.rkey ^ 0x100))
    with pytest.raises(UsageError, match="window of type 2"):
        qp.post_send(bind_request(*window_of(pair, 1)))
    with pytest.raises(UsageError, match="wanted both"):
        qp.post_send(SendWr(wr_id=1, opcode=W.BIND_MW))
    with pytest.raises(UsageError, match="at most"):
        qp.post_send(bind_request(window, replace(bind, access=AccessFlags.MW_BIND)))
    assert pair.run()
    assert window.region is None
