"""ATOMIC WRITE happens once, however often its packet comes."""

import pytest
from helpers.rdma_pair import Pair

from weftwork.rdma.verbs import WrOpcode


@pytest.mark.parametrize("attr", [{}, {"selective_repeat": True}])
def test_an_atomic_write_that_comes_again_changes_nothing(attr: dict[str, bool]) -> None:
    pair = Pair(**attr)
    pair.buffers[0][:16] = b"earlier!later..."
    for at in (0, 8):
        pair.post(0, WrOpcode.ATOMIC_WRITE, sg_list=(pair.sge(0, at, 8),), **pair.remote(0, 64))
    assert pair.run()
    answers = len(pair.sent)
    pair.nics[1].receive(pair.sent[0], pair.now_ps)
    assert pair.run()
    assert pair.buffers[1][64:72] == b"later..."
    assert len(pair.sent) == answers + 1  # it is answered again
    assert pair.qps[1].counters["duplicate_request"] == 1
