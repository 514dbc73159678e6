"""Two managers and a bad wire: both ends are connected alike, or both learn that they are not; nothing is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from helpers.cm_pair import CmPair
from helpers.rdma_encapsulations import ENCAPSULATIONS
from helpers.rdma_pair import BadWire
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.rdma.cm_id import CmId
from weftwork.rdma.cm_records import CmEvent, CmEventType, ConnParam
from weftwork.rdma.cm_states import CmState
from weftwork.rdma.encapsulation import Encapsulation
from weftwork.rdma.verbs import QpState, SendWr, WcStatus, WrOpcode

E = CmEventType
CHANCES = st.sampled_from([0.0, 0.05, 0.3, 0.6])
BAD_WIRES = st.builds(
    BadWire, loss=CHANCES, reorder=CHANCES, duplicate=CHANCES, corrupt=CHANCES, seed=st.integers(0, 1 << 16)
)
PARAMS = st.builds(
    ConnParam,
    responder_resources=st.integers(0, 128),
    initiator_depth=st.integers(0, 128),
    retry_count=st.integers(0, 7),
    rnr_retry_count=st.integers(0, 7),
    timeout=st.integers(1, 31),
    path_mtu=st.sampled_from([None, 256, 4096]),
    selective_repeat=st.booleans(),
)


def mirrored(agreed: Any, qp_num: int) -> dict[str, Any]:
    """What the other end has to have agreed on."""
    return {
        "remote_qp_num": qp_num,
        "rq_psn": agreed.sq_psn,
        "sq_psn": agreed.rq_psn,
        "max_rd_atomic": agreed.max_dest_rd_atomic,
        "max_dest_rd_atomic": agreed.max_rd_atomic,
    }


class Users:
    """The users of both ends: end 1 answers as it is told, both note what they hear."""

    def __init__(self, pair: CmPair, param: ConnParam, *, answer: str) -> None:
        self.pair, self.param, self.answer = pair, param, answer
        self.heard: dict[CmId, list[CmEventType]] = {}
        self.theirs: list[CmId] = []

    def react(self, _end: int, event: CmEvent) -> None:
        self.heard.setdefault(event.id, []).append(event.event_type)
        if event.event_type is not E.CONNECT_REQUEST:
            return
        self.theirs.append(event.id)
        if self.answer == "late":
            event.id.send_mra()
        if self.answer == "reject":
            event.id.reject(b"no")
        else:
            event.id.accept(self.pair.qp(1), self.param)


@settings(max_examples=200, deadline=None)
@given(
    wire=BAD_WIRES,
    params=st.tuples(PARAMS, PARAMS),
    answer=st.sampled_from(["accept", "late", "reject"]),
    retries=st.sampled_from([0, 1, 3, 15]),
    encapsulation=st.sampled_from(list(ENCAPSULATIONS.values())),
)
def test_both_ends_are_connected_alike_or_both_learn_that_they_are_not(
    wire: BadWire, params: tuple[ConnParam, ConnParam], answer: str, retries: int, encapsulation: Encapsulation
) -> None:
    manager = {"response_timeout": 10, "cm_retries": retries}
    pair = CmPair(wire, manager=manager, managers=({}, {"path_mtu": 2048}), encapsulation=encapsulation)
    users = Users(pair, params[1], answer=answer)
    asked = params[0]
    mine = pair.cms[0].connect(pair.addresses[1], 4420, pair.qp(0), asked)
    assert pair.live(users.react)
    connected = [theirs for theirs in users.theirs if theirs.state is CmState.ESTABLISHED]
    heard = users.heard.get(mine, [])
    if connected:
        (theirs,) = connected
        assert mine.state is CmState.ESTABLISHED
        assert mine.agreed is not None
        assert theirs.agreed is not None
        assert mine.qp is not None
        assert theirs.qp is not None
        assert theirs.agreed == replace(
            mine.agreed, **mirrored(mine.agreed, mine.qp.qp_num), rnr_retry=asked.rnr_retry_count
        )
        assert mine.agreed.rnr_retry == params[1].rnr_retry_count
        assert mine.agreed.path_mtu == min(asked.path_mtu or 1024, 2048)
        assert mine.agreed.selective_repeat == (asked.selective_repeat and params[1].selective_repeat)
        assert mine.agreed.max_rd_atomic == min(asked.initiator_depth, params[1].responder_resources)
        assert mine.qp.state is theirs.qp.state is QpState.RTS
        assert mine.qp.attr.dest_qp_num == theirs.qp.qp_num
        assert heard == [E.ESTABLISHED]
        assert users.heard[theirs] == [E.CONNECT_REQUEST, E.ESTABLISHED]
    elif mine.state is CmState.ESTABLISHED:  # the RTUs were lost, and the REJ with them: no message can tell this end
        assert wire.loss or wire.corrupt
        assert heard == [E.ESTABLISHED]
        assert all(E.UNREACHABLE in users.heard[theirs] for theirs in users.theirs)
        assert mine.qp is not None
        mine.qp.post_send(SendWr(wr_id=1, opcode=WrOpcode.SEND))
        assert pair.live(users.react)
        assert [wc.status for wc in pair.cqs[0].poll(9)] == [WcStatus.RETRY_EXC_ERR]  # its first request does
    else:
        assert mine.state is CmState.IDLE
        assert heard[0] in {E.UNREACHABLE, E.REJECTED} or heard[:2] == [E.ESTABLISHED, E.DISCONNECTED]
        assert heard[0] is E.REJECTED or wire.loss or wire.corrupt
        assert answer == "reject" or wire.loss or wire.corrupt
        assert mine.qp is not None
        assert mine.qp.state is QpState.ERR
    mine.disconnect()
    assert pair.live(users.react)
    for theirs in users.theirs:
        assert users.heard[theirs][-1] in {
            E.CONNECT_REQUEST,
            E.REJECTED,
            E.CONNECT_ERROR,
            E.TIMEWAIT_EXIT,
            E.ESTABLISHED,
        }
        theirs.disconnect()  # a DREQ of the other end may have been lost each time
    assert pair.live(users.react)
    assert pair.left_over() == []
    for conversation in (mine, *users.theirs):
        assert conversation.state is CmState.IDLE
        if conversation.qp is not None:
            assert conversation.qp.state is QpState.ERR
            pair.nics[0 if conversation is mine else 1].destroy_qp(conversation.qp)
    assert [set(end._qps) for end in pair.nics] == [{1}, {1}]


@settings(max_examples=150, deadline=None)
@given(data=st.data(), strange=st.lists(st.tuples(st.integers(0, 7), st.binary(max_size=8)), min_size=1, max_size=20))
def test_whatever_arrives_nothing_is_raised_and_nothing_is_kept(
    data: st.DataObject, strange: list[tuple[int, bytes]]
) -> None:
    pair = CmPair(manager={"response_timeout": 10, "cm_retries": 1})
    mine, theirs = pair.establish(private_data=b"hello")
    mine.disconnect()
    second, _ = pair.request()
    mads = [bytes(datagram.payload()[20:-4]) for datagram in pair.wire.sent]
    for number, change in strange:
        mad = bytearray(mads[number % len(mads)])
        at = data.draw(st.integers(0, len(mad) - len(change)))
        mad[at : at + len(change)] = change
        pair.forge(number % 2, bytes(mad))
        pair.soon()
    users = Users(pair, ConnParam(), answer="reject")
    assert pair.live(users.react)
    for conversation in {mine, theirs, second, *(event.id for event in pair.events[1])}:
        if conversation.state is CmState.REQ_RCVD:
            conversation.reject()
    assert pair.live(users.react)
    assert pair.left_over() == []
