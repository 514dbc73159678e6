"""Every state of a conversation meets every input: the table says what becomes of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from helpers.cm_pair import CmPair
from helpers.rdma_pair import SECOND_PS

from weftwork.base.errors import UsageError
from weftwork.rdma.cm_id import CmId
from weftwork.rdma.cm_states import AGAIN, NEXT, PENDING, RESENDS, CmInput, CmState
from weftwork.rdma.verbs import QpState
from weftwork.wire.cm import (
    CmDisconnectReply,
    CmDisconnectRequest,
    CmMessage,
    CmReady,
    CmReject,
    CmReply,
    CmWait,
)

S, N = CmState, CmInput


def in_state(pair: CmPair, state: CmState, *, moves_qp: bool = True) -> tuple[int, CmId]:
    """An end and its conversation in a state, reached by messages and calls alone."""
    if state is S.REQ_SENT:
        return 0, pair.connect(moves_qp=moves_qp)
    if state in {S.ESTABLISHED, S.DREQ_SENT, S.TIMEWAIT, S.IDLE}:
        mine, _ = pair.establish()
        if state is not S.ESTABLISHED:
            mine.disconnect()
        if state is S.TIMEWAIT:
            pair.soon()
        elif state is S.IDLE:
            assert pair.run()
        return 0, mine
    mine, theirs = pair.request(moves_qp=moves_qp and state is not S.REP_RCVD)
    if state is S.REP_RCVD:
        theirs.accept(pair.qp(1))
        pair.soon()
        return 0, mine
    if state is S.MRA_REQ_RCVD:
        theirs.send_mra()
        pair.soon()
        return 0, mine
    if state is S.MRA_REQ_SENT:
        theirs.send_mra()
    elif state in {S.REP_SENT, S.MRA_REP_RCVD}:
        theirs.accept(pair.qp(1))
    if state is S.MRA_REP_RCVD:
        pair.nics[1].datagrams_to_send(pair.wire.now_ps)
        wait = CmWait(local_comm_id=mine.local_comm_id, remote_comm_id=theirs.local_comm_id, message_received=1)
        pair.forge(1, wait, theirs._transaction)
    return 1, theirs


def message_of(what: CmInput, conversation: CmId) -> CmMessage:
    local, remote = conversation.remote_comm_id or 77, conversation.local_comm_id
    ids = {"local_comm_id": local, "remote_comm_id": remote}
    if what is N.GET_REQ:
        return conversation._request
    if what is N.GET_MRA:
        return CmWait(**ids, message_received=0 if conversation.is_active else 1, service_timeout=5)
    if what is N.GET_DREQ:
        return CmDisconnectRequest(**ids, remote_qpn=conversation.qp.qp_num if conversation.qp is not None else 0)
    if what in {N.GET_REP, N.HOLD_REP}:
        return CmReply(**ids, local_qpn=1234)
    kind = {N.GET_RTU: CmReady, N.GET_REJ: CmReject, N.GET_DREP: CmDisconnectReply}[what]
    return kind(**ids)


def apply(pair: CmPair, end: int, conversation: CmId, what: CmInput) -> None:
    """Let an input happen."""
    calls: dict[CmInput, Callable[[], None]] = {
        N.ASK_TIME: conversation.send_mra,
        N.ACCEPT: lambda: conversation.accept(pair.qp(end)),
        N.REFUSE: conversation.reject,
        N.CONFIRM: conversation.establish,
        N.DISCONNECT: conversation.disconnect,
    }
    if what in calls:
        with contextlib.suppress(UsageError):
            calls[what]()
    elif what in {N.RETRY, N.GIVE_UP}:
        if what is N.GIVE_UP:
            conversation._retries_left = 0
        pair.nics[end].datagrams_to_send(pair.wire.now_ps)
        assert conversation.deadline_ps is not None
        pair.wire.now_ps = conversation.deadline_ps
        pair.nics[end].on_timer(pair.wire.now_ps)
    else:
        is_close = what is N.GET_DREP
        transaction = conversation._close_transaction if is_close else conversation._transaction
        pair.forge(end, message_of(what, conversation), transaction)


def expected(state: CmState, what: CmInput) -> CmState:
    if what is N.DISCONNECT and (state, what) not in NEXT and state not in PENDING:
        what = N.REFUSE  # an attempt is given up
    elif what is N.REFUSE and state not in PENDING:
        return state  # the user rejects requests alone
    elif (state, what) == (S.REQ_RCVD, N.GET_REQ):
        return S.MRA_REQ_SENT  # the peer waits for an answer and is told so
    return NEXT.get((state, what), state)


@pytest.mark.parametrize("state", CmState)
@pytest.mark.parametrize("what", [what for what in CmInput if what is not N.CONNECT])  # it makes a new one
def test_every_state_meets_every_input(state: CmState, what: CmInput) -> None:
    pair = CmPair()
    end, conversation = in_state(pair, state, moves_qp=what is not N.HOLD_REP)
    assert conversation.state is state
    has_clock = (what is N.RETRY and state in RESENDS) or (what is N.GIVE_UP and state not in {S.ESTABLISHED, S.IDLE})
    if (what in {N.RETRY, N.GIVE_UP} and not has_clock) or (state, what) == (S.IDLE, N.GET_REQ):
        assert what is N.GET_REQ or (state, what) not in NEXT
        return
    apply(pair, end, conversation, what)
    assert conversation.state is expected(state, what)
    if conversation.qp is not None and conversation._param.moves_qp:
        is_over = conversation.state in {S.DREQ_SENT, S.TIMEWAIT, S.IDLE}
        assert (conversation.qp.state is QpState.ERR) == is_over
    if conversation.state in PENDING:
        conversation.reject()
    assert pair.run()
    conversation.disconnect()
    assert pair.run()
    assert conversation.state is S.IDLE
    assert pair.wire.now_ps < 600 * SECOND_PS


def test_the_tables_agree() -> None:
    assert not AGAIN & set(NEXT)
    assert {state for state, what in NEXT if what is N.RETRY} == RESENDS
    assert {state for state, what in NEXT if what is N.ACCEPT} == PENDING
    assert {state for state, _ in NEXT} == set(NEXT.values()) == set(CmState)
