"""Attributes of the verbs: each value that hardware refuses is refused, with nothing changed; others are taken.

The tables name for each verb and attribute the values that are accepted, with the source; what is drawn outside them
has to be refused by an error that names the attribute.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from helpers.cm_pair import CmPair
from helpers.rdma_pair import ALL, Pair
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.errors import UsageError
from weftwork.rdma.cm_records import ConnParam
from weftwork.rdma.nic import RdmaNic
from weftwork.rdma.verbs import (
    AccessFlags,
    AddressHandle,
    MwBind,
    QpAttr,
    QpState,
    QpType,
    RecvWr,
    SendFlags,
    SendWr,
    Sge,
    WrOpcode,
)

if TYPE_CHECKING:
    from collections.abc import Callable

S, T, W = QpState, QpType, WrOpcode
BEYOND = 1 << 70  # further than any field
FOR_READERS = AccessFlags.REMOTE_READ
UNKNOWN_BITS = st.sampled_from([1 << bit for bit in (*range(5, 8), *range(10, 31))])  # enum ibv_access_flags


def bits(count: int) -> tuple[st.SearchStrategy[Any], st.SearchStrategy[Any]]:
    return numbers(0, (1 << count) - 1)


def numbers(least: int, most: int) -> tuple[st.SearchStrategy[Any], st.SearchStrategy[Any]]:
    """Values that are accepted, and others; the borders are drawn often."""
    good = st.sampled_from([least, most]) | st.integers(least, most)
    bad = st.sampled_from([least - 1, most + 1]) | st.integers(most + 1, BEYOND) | st.integers(-BEYOND, least - 1)
    return good, bad


class Bench:
    """Two connected NICs, and one object of each kind."""

    def __init__(self, qp_type: QpType = T.RC) -> None:
        self.pair = Pair(qp_type=qp_type, memory_bytes=4096)
        self.nic: RdmaNic = self.pair.nics[0]
        self.pd = self.pair.pds[0]
        self.cqs = (self.pair.cqs[0], self.pair.cqs[0])
        self.qp = self.pair.qps[0]
        self.region = self.pair.mrs[0]

    def state(self) -> tuple[Any, ...]:
        """What no refusal may change."""
        nic, qp = self.nic, self.qp
        queues = (len(qp.requester.entries), len(qp.recv_queue), len(self.cqs[0]))
        return len(nic.ends()), nic._cqs, nic._srqs, len(nic.memory), qp.state, qp.attr, queues

    def send(self, opcode: WrOpcode = W.SEND, **more: Any) -> None:
        self.qp.post_send(SendWr(wr_id=1, opcode=opcode, **more))

    def bind(self, **more: Any) -> None:
        window = self.nic.memory.allocate_window(self.pd, 1)
        given_values = {"region": self.region, "addr": self.region.addr, "length": 16, "access": FOR_READERS} | more
        try:
            self.qp.bind_mw(1, window, MwBind(**given_values))
        finally:
            self.nic.memory.free_window(window)


@dataclass(frozen=True)
class Row:
    """An attribute of a verb: how it is called with a value, which values are accepted and which are not, and why."""

    verb: str
    attribute: str
    call: Callable[[Bench, Any], object]
    values: tuple[st.SearchStrategy[Any], st.SearchStrategy[Any]]
    source: str
    qp_type: QpType = T.RC


def request(attribute: str, count: int, opcode: WrOpcode, qp_type: QpType = T.RC, **more: Any) -> Row:
    """A number of a send request that has this many bits on the wire."""

    def call(bench: Bench, value: int) -> None:
        bench.send(opcode, **more, **{attribute: value})

    return Row("post_send", attribute, call, bits(count), "IBTA vol. 1, 9.3 to 9.6; annex A19", qp_type)


ELSEWHERE = AddressHandle(address=bytes([10, 0, 0, 9]))
LIMITS = "chosen limits of the NIC, as max_* of ibv_query_device(3)"
FIELDS = "struct ibv_sge of libibverbs"
RIGHTS = "ib_check_mr_access in Linux include/rdma/ib_verbs.h"
ROWS = (
    Row("create_cq", "cqe", lambda b, v: b.nic.create_cq(v), numbers(1, 1 << 20), LIMITS),
    Row("create_srq", "max_wr", lambda b, v: b.nic.create_srq(v), numbers(1, 16_384), LIMITS),
    Row("create_srq", "max_sge", lambda b, v: b.nic.create_srq(1, v), numbers(1, 32), LIMITS),
    Row(
        *("create_qp", "max_wr", lambda b, v: b.nic.create_qp(b.pd, T.RC, b.cqs, max_recv_wr=v)),
        *(numbers(1, 16_384), LIMITS),
    ),
    Row(
        *("reg_mr", "access", lambda b, v: b.nic.memory.register(b.pd, bytearray(8), AccessFlags(v))),
        (
            st.sampled_from([0, 1, 3, 4, 9, 16, 31, 1 | 1 << 8]),
            UNKNOWN_BITS.map(lambda bit: bit | 1) | st.sampled_from([2, 8, 10, 14, 26]),
        ),
        RIGHTS,
    ),
    Row(
        *("alloc_mw", "window_type", lambda b, v: b.nic.memory.allocate_window(b.pd, v)),
        *(numbers(1, 2), "ibv_alloc_mw(3)"),
    ),
    Row("bind_mw", "access", lambda b, v: b.bind(access=AccessFlags(v)), (
        st.sampled_from([0, 2, 4, 6, 8, 14]), UNKNOWN_BITS | st.sampled_from([1, 16, 5, 1 << 8])), "ibv_bind_mw(3)"),
    Row("bind_mw", "bind", lambda b, v: b.bind(length=v), (st.integers(1, 4096), st.integers(-BEYOND, -1)), FIELDS),
    Row("bind_mw", "bind", lambda b, v: b.bind(addr=v), (st.integers(0, 1 << 63), numbers(0, 1 << 64)[1]), FIELDS),
    Row("modify_qp", "qp_access_flags", lambda b, v: b.qp.modify(
        S.RTS, replace(b.qp.attr, qp_access_flags=AccessFlags(v))),
        (st.sampled_from([0, 1, 2, 4, 8, 15, 1 << 8]), UNKNOWN_BITS), RIGHTS),
    Row("post_send", "flags", lambda b, v: b.send(flags=SendFlags(v)), (
        st.integers(0, 15), st.sampled_from([1 << bit for bit in range(4, 31)])), "enum ibv_send_flags"),
    Row("post_send", "sg_list", lambda b, v: b.send(sg_list=(Sge(b.region.addr, v, b.region.lkey),)), bits(32), FIELDS),
    Row("post_send", "sg_list", lambda b, v: b.send(sg_list=(Sge(v, 8, b.region.lkey),)), bits(64), FIELDS),
    Row("post_send", "sg_list", lambda b, v: b.send(sg_list=(Sge(b.region.addr, 1, b.region.lkey),) * v), (
        st.integers(0, 32), st.integers(33, 64)), LIMITS),
    Row("post_recv", "sg_list", lambda b, v: b.qp.post_recv(
        RecvWr(wr_id=1, sg_list=(Sge(b.region.addr, v, b.region.lkey),))), bits(32), FIELDS),
    Row("post_recv", "sg_list", lambda b, v: b.qp.post_recv(
        RecvWr(wr_id=1, sg_list=(Sge(v, 8, b.region.lkey),))), bits(64), FIELDS),
    request("imm_data", 32, W.SEND_WITH_IMM),
    request("invalidate_rkey", 32, W.SEND_WITH_INV),
    request("rkey", 32, W.RDMA_WRITE),
    request("remote_addr", 64, W.RDMA_WRITE),
    request("compare_add", 64, W.ATOMIC_FETCH_AND_ADD),
    request("swap", 64, W.ATOMIC_CMP_AND_SWP),
    request("flush_bytes", 32, W.FLUSH),
    request("flush_placement", 4, W.FLUSH),
    request("flush_selectivity", 2, W.FLUSH),
    request("remote_qpn", 24, W.SEND, T.UD, ah=ELSEWHERE),
    request("remote_qkey", 32, W.SEND, T.UD, ah=ELSEWHERE),
)  # fmt: skip


def row_id(row: Row) -> str:
    return f"{row.verb}-{row.attribute}"


@pytest.mark.parametrize("row", ROWS, ids=row_id)
@given(data=st.data())
def test_a_value_is_taken_or_refused_as_the_table_says(row: Row, data: st.DataObject) -> None:
    bench = Bench(row.qp_type)
    row.call(bench, data.draw(row.values[0]))
    before = bench.state()
    with pytest.raises(UsageError, match=row.attribute):
        row.call(bench, data.draw(row.values[1]))
    assert bench.state() == before


# Parameters of a connection: fields of REQ and REP, IBTA vol. 1, 12.6.5 and 12.6.8; private data as rdma_connect(3).
PARAMETERS = {
    "responder_resources": numbers(0, 128),
    "initiator_depth": numbers(0, 128),
    "retry_count": bits(3),
    "rnr_retry_count": bits(3),
    "timeout": bits(5),
    "cm_retries": bits(4),
    "answer_wait_ps": (st.integers(10**9, 10**15), st.integers(-BEYOND, 0)),
    "path_mtu": (st.sampled_from([256, 512, 1024, 2048, 4096]), st.sampled_from([0, -1, 255, 1500, 8192])),
    "private_data": (st.binary(max_size=56), st.binary(min_size=57, max_size=300)),
    "qp_access_flags": (st.sampled_from([0, 2, 6, 15]).map(AccessFlags), UNKNOWN_BITS.map(AccessFlags)),
}


@pytest.mark.parametrize("name", PARAMETERS)
@given(data=st.data())
def test_a_parameter_of_a_connection_is_taken_or_refused(name: str, data: st.DataObject) -> None:
    good, bad = PARAMETERS[name]
    pair = CmPair()
    qp = pair.qp(0)
    state, attr = qp.state, qp.attr
    with pytest.raises(UsageError, match=name):
        pair.cms[0].connect(pair.addresses[1], 7, qp, replace(ConnParam(), **{name: data.draw(bad)}))
    assert (qp.state, qp.attr, pair.cms[0].conversations()) == (state, attr, ())
    pair.cms[0].connect(pair.addresses[1], 7, qp, replace(ConnParam(), **{name: data.draw(good)}))


@given(bits(16)[1], st.integers(-5, 0))
def test_a_port_and_a_backlog_that_no_listener_can_have_are_refused(port: int, backlog: int) -> None:
    manager = CmPair().cms[0]
    for values in ((port, 1), (7, backlog), (0, 1)):
        with pytest.raises(UsageError, match="port"):
            manager.listen(*values)
    assert manager.ports() == ()


# Attributes that each change of the state takes, by type: qp_state_table in Linux drivers/infiniband/core/verbs.c,
# without the port, alternate paths and the state before. A line: change, then what RC, UC and UD take.
ACCESS = "qp_access_flags"
KERNEL = {
    (S.RTR, S.RTS): (
        f"timeout retry_cnt rnr_retry sq_psn max_rd_atomic min_rnr_timer {ACCESS}",
        f"sq_psn {ACCESS}",
        "sq_psn qkey",
    ),
    (S.RTS, S.RTS): (f"{ACCESS} min_rnr_timer", ACCESS, "qkey"),
    (S.RTS, S.SQD): ("", "", ""),
    (S.RTS, S.ERR): ("", "", ""),
    (S.SQD, S.SQD): (
        f"remote_address timeout retry_cnt rnr_retry max_rd_atomic max_dest_rd_atomic {ACCESS} pkey min_rnr_timer",
        f"remote_address {ACCESS} pkey",
        "pkey qkey",
    ),
    (S.SQD, S.RTS): (f"{ACCESS} min_rnr_timer", ACCESS, "qkey"),
}
OTHER_VALUES: dict[str, Any] = {
    "remote_address": bytes([10, 0, 0, 7]),
    "dest_qp_num": 77,
    "path_mtu": 512,
    "rq_psn": 5,
    "sq_psn": 6,
    "max_rd_atomic": 2,
    "max_dest_rd_atomic": 3,
    "min_rnr_timer": 3,
    "timeout": 9,
    "retry_cnt": 2,
    "rnr_retry": 1,
    ACCESS: FOR_READERS,
    "pkey": 0x8005,
    "qkey": 99,
}
# What counts for a type: the union of its rows.
OF_TYPE = {
    T.RC: frozenset(OTHER_VALUES) - {"qkey"},
    T.UC: frozenset({"remote_address", "dest_qp_num", "path_mtu", "rq_psn", "sq_psn", ACCESS, "pkey"}),
    T.UD: frozenset({"sq_psn", "pkey", "qkey"}),
}
PATHS = {S.RTR: (S.INIT, S.RTR), S.RTS: (S.INIT, S.RTR, S.RTS), S.SQD: (S.INIT, S.RTR, S.RTS, S.SQD)}


@pytest.mark.parametrize("qp_type", QpType)
@given(change=st.sampled_from(sorted(KERNEL)), name=st.sampled_from(sorted(OTHER_VALUES)))
def test_a_change_of_the_state_sets_the_attributes_of_the_kernels_table(
    qp_type: QpType, change: tuple[QpState, QpState], name: str
) -> None:
    nic = RdmaNic(bytes([10, 0, 0, 1]))
    cq = nic.create_cq(8)
    qp = nic.create_qp(nic.alloc_pd(), qp_type, (cq, cq))
    before = QpAttr(remote_address=bytes([10, 0, 0, 2]), qp_access_flags=ALL)
    for state in PATHS[change[0]]:
        qp.modify(state, before)
    wanted = replace(before, **{name: OTHER_VALUES[name]})
    takes = KERNEL[change][list(QpType).index(qp_type)].split()
    if name in takes or name not in OF_TYPE[qp_type]:
        qp.modify(change[1], wanted)
        assert (qp.state, qp.attr) == (change[1], wanted)
    else:
        with pytest.raises(UsageError, match=name):
            qp.modify(change[1], wanted)
        assert (qp.state, qp.attr) == (change[0], before)


@pytest.mark.parametrize("address", [b"", bytes(3), bytes(16)], ids=["none", "three-bytes", "other-family"])
def test_an_address_that_no_packet_can_reach_leaves_the_state(address: bytes) -> None:
    nic = RdmaNic(bytes([10, 0, 0, 1]))
    cq = nic.create_cq(8)
    qp = nic.create_qp(nic.alloc_pd(), T.RC, (cq, cq))
    qp.modify(S.INIT)
    for attr in (QpAttr(remote_address=address), None):
        with pytest.raises(UsageError, match="address"):
            qp.modify(S.RTR, attr)
        assert (qp.state, qp.attr) == (S.INIT, QpAttr())


def test_every_attribute_of_a_request_has_a_row() -> None:
    numbers_of_a_request = {
        *("imm_data", "invalidate_rkey", "remote_addr", "rkey", "compare_add", "swap", "remote_qpn", "remote_qkey"),
        *("flush_bytes", "flush_placement", "flush_selectivity", "flags", "sg_list"),
    }
    described = {"wr_id", "opcode", "inline_data", "ah", "window", "bind"}  # no number, or returned as it is
    assert set(SendWr.__dataclass_fields__) == numbers_of_a_request | described
    assert {row.attribute for row in ROWS if row.verb == "post_send"} == numbers_of_a_request
    assert set(PARAMETERS) | {"selective_repeat", "moves_qp"} == set(ConnParam.__dataclass_fields__)
    assert set(OTHER_VALUES) | {"selective_repeat"} == set(QpAttr.__dataclass_fields__)
