"""Unreliable services on a bad wire: a message arrives whole or not at all, and is never mixed with another."""

import random

from helpers.rdma_encapsulations import ENCAPSULATIONS
from helpers.rdma_pair import BadWire, Pair, bad_wires
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.rdma.encapsulation import Encapsulation
from weftwork.rdma.unreliable import GRH_BYTES
from weftwork.rdma.verbs import AddressHandle, QpState, QpType, WcStatus, WrOpcode

MTU = 256
MOST_BYTES = 4096
SPAN = 2 * MOST_BYTES  # a receive, and a place to write to
SIZES = st.sampled_from([0, 1, 8, 255, 256, 257, 1000, MOST_BYTES])
KINDS = {
    "imm": WrOpcode.SEND_WITH_IMM,
    "write": WrOpcode.RDMA_WRITE,
    "write-imm": WrOpcode.RDMA_WRITE_WITH_IMM,
}

EACH = st.sampled_from(list(ENCAPSULATIONS.values()))


def filled(pair: Pair) -> bytes:
    pair.buffers[0][:] = random.Random(1).randbytes(len(pair.buffers[0]))
    return bytes(pair.buffers[0])


@settings(max_examples=150, deadline=None)
@given(
    wire=bad_wires(),
    work=st.lists(st.tuples(st.sampled_from(sorted(KINDS)), SIZES), min_size=1, max_size=20),
    psn=st.sampled_from([0, 7, 0xFFFFF0]),
    encapsulation=EACH,
)
def test_a_message_of_uc_arrives_once_and_whole_and_in_order_or_not_at_all(
    wire: BadWire, work: list[tuple[str, int]], psn: int, encapsulation: Encapsulation
) -> None:
    pair = Pair(wire, qp_type=QpType.UC, path_mtu=MTU, sq_psn=psn, rq_psn=psn, encapsulation=encapsulation)
    want = filled(pair)
    for index, (kind, size) in enumerate(work):
        at = index * SPAN
        pair.post_recv(1, index, at, MOST_BYTES)
        place = pair.remote(0, at + MOST_BYTES) if kind != "imm" else {}
        pair.post(0, KINDS[kind], index, sg_list=(pair.sge(0, at, size),), imm_data=index, **place)
    assert pair.run()
    assert [(wc.wr_id, wc.status) for wc in pair.poll(0)] == [(index, WcStatus.SUCCESS) for index in range(len(work))]
    received = pair.poll(1)
    assert [wc.wr_id for wc in received] == list(range(len(received)))  # a receive of a dropped message serves again
    arrived = [wc.imm_data for wc in received if wc.imm_data is not None]
    assert len(arrived) == len(received)
    assert arrived == sorted(set(arrived))
    for wc in received:
        assert wc.imm_data is not None
        kind, size = work[wc.imm_data]
        assert (wc.status, wc.byte_len) == (WcStatus.SUCCESS, size)
        start = wc.wr_id * SPAN if kind == "imm" else wc.imm_data * SPAN + MOST_BYTES
        message = want[wc.imm_data * SPAN : wc.imm_data * SPAN + size]
        assert pair.buffers[1][start : start + size] == message
    if not (wire.loss or wire.reorder or wire.corrupt):
        assert arrived == [index for index, (kind, _) in enumerate(work) if kind != "write"]
    assert pair.qps[1].state is QpState.RTS
    assert len(pair.sent) == sum(max(1, -(-size // MTU)) for _, size in work)  # no answer, and nothing again


@settings(max_examples=150, deadline=None)
@given(wire=bad_wires(), sizes=st.lists(st.integers(0, MTU), min_size=1, max_size=20), encapsulation=EACH)
def test_a_datagram_arrives_whole_and_as_often_as_the_wire_says(
    wire: BadWire, sizes: list[int], encapsulation: Encapsulation
) -> None:
    pair = Pair(wire, qp_type=QpType.UD, path_mtu=MTU, encapsulation=encapsulation)
    want = filled(pair)
    to = AddressHandle(address=pair.nics[1].address)
    for index in range(2 * len(sizes)):
        pair.post_recv(1, index, index * SPAN, GRH_BYTES + MTU)
    for index, size in enumerate(sizes):
        receiver = {"remote_qpn": pair.qps[1].qp_num, "remote_qkey": pair.qps[1].attr.qkey}
        piece = (pair.sge(0, index * MTU, size),)
        pair.post(0, WrOpcode.SEND_WITH_IMM, index, sg_list=piece, imm_data=index, ah=to, **receiver)
    assert pair.run()
    assert [(wc.wr_id, wc.status) for wc in pair.poll(0)] == [(index, WcStatus.SUCCESS) for index in range(len(sizes))]
    received = pair.poll(1)
    assert [wc.wr_id for wc in received] == list(range(len(received)))
    for wc in received:
        assert wc.imm_data is not None
        size = sizes[wc.imm_data]
        assert (wc.status, wc.byte_len, wc.src_qp) == (WcStatus.SUCCESS, GRH_BYTES + size, pair.qps[0].qp_num)
        start = wc.wr_id * SPAN + GRH_BYTES
        assert pair.buffers[1][start : start + size] == want[wc.imm_data * MTU : wc.imm_data * MTU + size]
    arrived = [wc.imm_data for wc in received if wc.imm_data is not None]
    assert all(arrived.count(index) <= (2 if wire.duplicate else 1) for index in range(len(sizes)))
    if not (wire.loss or wire.corrupt):
        assert set(arrived) == set(range(len(sizes)))
    if not wire.reorder:
        assert arrived == sorted(arrived)
    assert pair.qps[1].state is QpState.RTS
