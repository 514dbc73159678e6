"""The NIC, one rule at a time: two ends, virtual time, and what the completions say."""

from __future__ import annotations

from helpers.rdma_nic import OK, W, opcodes, statuses
from helpers.rdma_pair import Pair

from weftwork.policies.load import load
from weftwork.wire.opcodes import Opcode


def test_marks_slow_the_sender_by_the_steps_of_the_simulator() -> None:
    times = []
    for marks in (False, True):
        pair = Pair(nic={"congestion_control": load("congestion_control", "dcqcn"), "line_rate_bps": 10_000_000_000})
        pair.mark = marks
        for _ in range(4):
            pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, 100_000),), **pair.remote(0, 0))
        assert pair.run()
        assert statuses(pair, 0) == [OK] * 4
        times.append(pair.last_sent_ps)
        assert (Opcode.CNP in opcodes(pair)) is marks
        assert (pair.qps[0].counters["rp_cnp_handled"] > 0) is marks
    assert times[1] > 2 * times[0]
