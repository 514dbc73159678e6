"""The connection manager, one rule at a time: two ends, virtual time, and what their events say."""

from __future__ import annotations

from helpers.cm_pair import CmPair

from weftwork.rdma.cm_records import CmEventType, ConnParam
from weftwork.rdma.cm_states import CmState
from weftwork.rdma.verbs import QpState

E = CmEventType


def test_a_connection_is_made_used_and_closed() -> None:
    pair = CmPair()
    mine, theirs = pair.request(private_data=b"hello", initiator_depth=5, responder_resources=3, retry_count=4)
    (asked,) = pair.events[1]
    assert asked.private_data == b"hello".ljust(56, b"\0")
    assert (theirs.state, mine.state) == (CmState.REQ_RCVD, CmState.REQ_SENT)
    theirs.accept(pair.qp(1), ConnParam(private_data=b"welcome", rnr_retry_count=2, initiator_depth=2))
    pair.soon()
    (ready,) = pair.take(0)
    assert (ready.event_type, ready.private_data.rstrip(b"\0"), ready.status) == (E.ESTABLISHED, b"welcome", 0)
    assert pair.types(1) == [E.ESTABLISHED]
    assert mine.qp is not None
    assert theirs.qp is not None
    assert mine.qp.state is theirs.qp.state is QpState.RTS
    assert mine.agreed is not None
    assert theirs.agreed is not None
    assert (mine.agreed.max_rd_atomic, mine.agreed.max_dest_rd_atomic) == (5, 2)
    assert (theirs.agreed.max_rd_atomic, theirs.agreed.max_dest_rd_atomic) == (2, 5)
    assert (mine.agreed.retry_cnt, theirs.agreed.retry_cnt) == (4, 4)
    assert (mine.agreed.rnr_retry, theirs.agreed.rnr_retry) == (2, 7)
    assert mine.qp.attr.qp_access_flags == theirs.qp.attr.qp_access_flags == 0
    mine.disconnect()
    assert mine.qp.state is QpState.ERR
    assert pair.run()
    assert pair.types(0) == pair.types(1) == [E.DISCONNECTED, E.TIMEWAIT_EXIT]
    assert pair.names() == ["REQ", "REP", "RTU", "DREQ", "DREP"]
