"""Two ends and a bad wire: every message arrives once, whole and in order, or the queue pair says why not."""

import random

from helpers.rdma_encapsulations import ENCAPSULATIONS
from helpers.rdma_pair import BadWire, Pair, bad_wires
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.rdma.encapsulation import Encapsulation
from weftwork.rdma.verbs import QpState, WcStatus, WrOpcode

RETRIES = {WcStatus.RETRY_EXC_ERR, WcStatus.RNR_RETRY_EXC_ERR}
SIZES = st.sampled_from([0, 1, 8, 255, 256, 257, 1000, 4096])
KINDS = st.sampled_from(["send", "imm", "write", "write-imm", "read", "add", "flush", "atomic-write"])
SPAN = 8192
RNR_PAUSE_PS = 640_000_000  # code 12, the default


def start(pair: Pair, index: int, kind: str, size: int) -> None:
    at = index * SPAN
    mine = (pair.sge(0, at, size),)
    opcode = {
        "send": WrOpcode.SEND,
        "imm": WrOpcode.SEND_WITH_IMM,
        "write": WrOpcode.RDMA_WRITE,
        "write-imm": WrOpcode.RDMA_WRITE_WITH_IMM,
        "read": WrOpcode.RDMA_READ,
        "add": WrOpcode.ATOMIC_FETCH_AND_ADD,
        "flush": WrOpcode.FLUSH,
        "atomic-write": WrOpcode.ATOMIC_WRITE,
    }[kind]
    if kind == "add":
        mine = (pair.sge(0, at, 8),)
        pair.post(0, opcode, index, sg_list=mine, compare_add=1, **pair.remote(0, len(pair.buffers[1]) - 8))
    elif kind == "flush":
        pair.post(0, opcode, index, flush_bytes=size, **pair.remote(0, at))
    elif kind == "atomic-write":  # all to one place
        pair.buffers[0][at : at + 8] = index.to_bytes(8, "little")
        mine = (pair.sge(0, at, 8),)
        pair.post(0, opcode, index, sg_list=mine, **pair.remote(0, len(pair.buffers[1]) - 16))
    else:
        pair.post(0, opcode, index, sg_list=mine, imm_data=index, **pair.remote(0, at))


@settings(max_examples=150, deadline=None)
@given(
    wire=bad_wires(),
    work=st.lists(st.tuples(KINDS, SIZES), min_size=1, max_size=12),
    mtu=st.sampled_from([256, 1024, 4096]),
    retries=st.sampled_from([0, 3, 7]),
    trains=st.booleans(),
    late_receives=st.booleans(),
    selective=st.sampled_from([(False, False), (True, True), (True, True), (True, False), (False, True)]),
    encapsulation=st.sampled_from(list(ENCAPSULATIONS.values())),
)
def test_every_message_arrives_once_whole_and_in_order_or_the_queue_pair_says_why(
    *,
    wire: BadWire,
    work: list[tuple[str, int]],
    mtu: int,
    retries: int,
    trains: bool,
    late_receives: bool,
    selective: tuple[bool, bool],
    encapsulation: Encapsulation,
) -> None:
    ends = [{"selective_repeat": has} for has in selective]
    nic = {"makes_trains": trains}
    pair = Pair(wire, path_mtu=mtu, retry_cnt=retries, nic=nic, encapsulation=encapsulation, by_end=ends)
    source = random.Random(1)
    pair.buffers[0][:] = source.randbytes(len(pair.buffers[0]))
    for index, (kind, _) in enumerate(work):
        if kind == "read":
            pair.buffers[1][index * SPAN : (index + 1) * SPAN] = source.randbytes(SPAN)
    pair.buffers[1][-16:] = b"\xff" * 8 + bytes(8)
    want = bytes(pair.buffers[0]), bytes(pair.buffers[1])
    for index, (kind, size) in enumerate(work):
        start(pair, index, kind, size)
    taken = [index for index, (kind, _) in enumerate(work) if kind in {"send", "imm", "write-imm"}]
    for index in taken:
        if late_receives:
            pair.run(pair.now_ps + RNR_PAUSE_PS // 2)
        pair.post_recv(1, index, index * SPAN, work[index][1])
    assert pair.run()
    sent, received = pair.poll(0), pair.poll(1)
    assert [wc.wr_id for wc in sent] == list(range(len(work)))  # each ends, in order
    good = [wc.wr_id for wc in sent if wc.status is WcStatus.SUCCESS]
    assert good == list(range(len(good)))
    if len(good) < len(work):
        assert sent[len(good)].status in RETRIES
        assert {wc.status for wc in sent[len(good) + 1 :]} <= {WcStatus.WR_FLUSH_ERR}
        assert pair.qps[0].state is QpState.ERR
        # selective repeat with a peer that has to be sent all again needs retries behind a pause as well
        assert wire.loss or wire.reorder or wire.corrupt or selective == (True, False)
    adds = sum(kind == "add" for kind, _ in work[: len(good)])
    executed = int.from_bytes(pair.buffers[1][-8:], "little")
    assert adds <= executed <= sum(kind == "add" for kind, _ in work)
    seen = [int.from_bytes(pair.buffers[0][i * SPAN : i * SPAN + 8], "little") for i in good if work[i][0] == "add"]
    assert seen == list(range(adds))  # each happened once
    stored = [index for index, (kind, _) in enumerate(work) if kind == "atomic-write"]
    last = int.from_bytes(pair.buffers[1][-16:-8], "little")
    done = [index for index in stored if index in good]
    assert last in stored[max(0, len(done) - 1) :] or (not done and last == (1 << 64) - 1)  # none happened again later
    assert [wc.wr_id for wc in received] == taken[: len(received)]
    assert set(taken) & set(good) <= {wc.wr_id for wc in received}
    for wc in received:
        kind, size = work[wc.wr_id]
        assert (wc.status, wc.byte_len) == (WcStatus.SUCCESS, size)
        assert wc.imm_data == (None if kind == "send" else wc.wr_id)
    for index in good:
        kind, size = work[index]
        span = slice(index * SPAN, index * SPAN + size)
        if kind == "read":
            assert pair.buffers[0][span] == want[1][span]
        elif kind not in {"add", "flush", "atomic-write"}:
            assert pair.buffers[1][span] == want[0][span]
            assert pair.buffers[1][span.stop : (index + 1) * SPAN] == bytes(SPAN - size)
