"""The state machine of a connection, as tables.

The active side asks, the passive side listens. The active side goes IDLE > REQ_SENT > ESTABLISHED, the passive side
IDLE > REQ_RCVD > REP_SENT > ESTABLISHED. Where the user moves the queue pair, the active side stays in REP_RCVD until
the user confirms. A REQ asks, a REP agrees, an RTU says that the REP has come. An MRA says that an answer takes time, a
REJ refuses. A DREQ closes, and a DREP answers it. TIMEWAIT answers late duplicates and keeps a queue pair from being
used again too soon.
Source: IBTA vol. 1, 12.9.5 (active), 12.9.6 (passive), 12.9.7 (TimeWait), by the names of enum ib_cm_state in Linux
include/rdma/ib_cm.h.
Leaves out: DREQ_RCVD, since a DREQ is answered at once; path migration; datagram services, see `cm_services`.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

__all__ = ["AGAIN", "HAS_PEER_QP", "NEXT", "PENDING", "RESENDS", "CmInput", "CmState"]


class CmState(Enum):
    """State of a conversation (enum ib_cm_state).

    It is IDLE before it starts and after it is over.
    """

    IDLE = "idle"
    REQ_SENT = "REQ sent"
    MRA_REQ_RCVD = "MRA for the REQ received"
    REP_RCVD = "REP received"
    REQ_RCVD = "REQ received"
    MRA_REQ_SENT = "MRA for the REQ sent"
    REP_SENT = "REP sent"
    MRA_REP_RCVD = "MRA for the REP received"
    ESTABLISHED = "established"
    DREQ_SENT = "DREQ sent"
    TIMEWAIT = "time wait"


class CmInput(Enum):
    """Input of the state machine: a user's call, a peer's message, or the clock."""

    CONNECT = "the user connects"
    ASK_TIME = "the user asks for more time"
    ACCEPT = "the user accepts"
    REFUSE = "this end refuses, or the user withdraws"
    CONFIRM = "the user has moved the queue pair"
    DISCONNECT = "the user disconnects"
    GET_REQ = "REQ"
    GET_MRA = "MRA"
    GET_REP = "REP"
    HOLD_REP = "REP, and the user moves the queue pair"
    GET_RTU = "RTU"
    GET_REJ = "REJ"
    GET_DREQ = "DREQ"
    GET_DREP = "DREP"
    RETRY = "an answer is late"
    GIVE_UP = "an answer has not come"


_S, _I = CmState, CmInput

# What is not listed changes nothing: a call of the user is refused, a message of the peer is dropped or is in AGAIN.
NEXT: Final[dict[tuple[CmState, CmInput], CmState]] = {
    (_S.IDLE, _I.CONNECT): _S.REQ_SENT,
    (_S.REQ_SENT, _I.GET_MRA): _S.MRA_REQ_RCVD,
    (_S.REQ_SENT, _I.GET_REP): _S.ESTABLISHED,
    (_S.REQ_SENT, _I.GET_REJ): _S.IDLE,
    (_S.REQ_SENT, _I.RETRY): _S.REQ_SENT,
    (_S.REQ_SENT, _I.GIVE_UP): _S.TIMEWAIT,
    (_S.REQ_SENT, _I.REFUSE): _S.TIMEWAIT,
    (_S.MRA_REQ_RCVD, _I.GET_REP): _S.ESTABLISHED,
    (_S.MRA_REQ_RCVD, _I.GET_REJ): _S.IDLE,
    (_S.MRA_REQ_RCVD, _I.RETRY): _S.REQ_SENT,
    (_S.MRA_REQ_RCVD, _I.GIVE_UP): _S.TIMEWAIT,
    (_S.MRA_REQ_RCVD, _I.REFUSE): _S.TIMEWAIT,
    (_S.REQ_SENT, _I.HOLD_REP): _S.REP_RCVD,
    (_S.MRA_REQ_RCVD, _I.HOLD_REP): _S.REP_RCVD,
    (_S.REP_RCVD, _I.CONFIRM): _S.ESTABLISHED,
    (_S.REP_RCVD, _I.GET_REJ): _S.TIMEWAIT,
    (_S.REP_RCVD, _I.GIVE_UP): _S.TIMEWAIT,
    (_S.REP_RCVD, _I.REFUSE): _S.TIMEWAIT,
    (_S.IDLE, _I.GET_REQ): _S.REQ_RCVD,
    (_S.REQ_RCVD, _I.ASK_TIME): _S.MRA_REQ_SENT,
    (_S.REQ_RCVD, _I.ACCEPT): _S.REP_SENT,
    (_S.REQ_RCVD, _I.REFUSE): _S.TIMEWAIT,
    (_S.REQ_RCVD, _I.GET_REJ): _S.IDLE,
    (_S.REQ_RCVD, _I.GIVE_UP): _S.TIMEWAIT,
    (_S.MRA_REQ_SENT, _I.ASK_TIME): _S.MRA_REQ_SENT,
    (_S.MRA_REQ_SENT, _I.ACCEPT): _S.REP_SENT,
    (_S.MRA_REQ_SENT, _I.REFUSE): _S.TIMEWAIT,
    (_S.MRA_REQ_SENT, _I.GET_REJ): _S.IDLE,
    (_S.MRA_REQ_SENT, _I.GIVE_UP): _S.TIMEWAIT,
    (_S.REP_SENT, _I.GET_MRA): _S.MRA_REP_RCVD,
    (_S.REP_SENT, _I.GET_RTU): _S.ESTABLISHED,
    (_S.REP_SENT, _I.GET_REJ): _S.TIMEWAIT,
    (_S.REP_SENT, _I.GET_DREQ): _S.TIMEWAIT,
    (_S.REP_SENT, _I.RETRY): _S.REP_SENT,
    (_S.REP_SENT, _I.GIVE_UP): _S.TIMEWAIT,
    (_S.REP_SENT, _I.REFUSE): _S.TIMEWAIT,
    (_S.MRA_REP_RCVD, _I.GET_RTU): _S.ESTABLISHED,
    (_S.MRA_REP_RCVD, _I.GET_REJ): _S.TIMEWAIT,
    (_S.MRA_REP_RCVD, _I.GET_DREQ): _S.TIMEWAIT,
    (_S.MRA_REP_RCVD, _I.RETRY): _S.REP_SENT,
    (_S.MRA_REP_RCVD, _I.GIVE_UP): _S.TIMEWAIT,
    (_S.MRA_REP_RCVD, _I.REFUSE): _S.TIMEWAIT,
    (_S.ESTABLISHED, _I.DISCONNECT): _S.DREQ_SENT,
    (_S.ESTABLISHED, _I.GET_DREQ): _S.TIMEWAIT,
    (_S.ESTABLISHED, _I.GET_REJ): _S.TIMEWAIT,  # the peer has given up on the RTU
    (_S.DREQ_SENT, _I.GET_DREQ): _S.TIMEWAIT,
    (_S.DREQ_SENT, _I.GET_DREP): _S.TIMEWAIT,
    (_S.DREQ_SENT, _I.GET_REJ): _S.TIMEWAIT,
    (_S.DREQ_SENT, _I.RETRY): _S.DREQ_SENT,
    (_S.DREQ_SENT, _I.GIVE_UP): _S.TIMEWAIT,
    (_S.TIMEWAIT, _I.GIVE_UP): _S.IDLE,
}
# Messages that come twice because the answer was lost: the last message of this end goes again.
AGAIN: Final = frozenset(
    {
        (_S.MRA_REQ_SENT, _I.GET_REQ),
        (_S.REP_SENT, _I.GET_REQ),
        (_S.ESTABLISHED, _I.GET_REP),
        (_S.TIMEWAIT, _I.GET_REQ),
        (_S.TIMEWAIT, _I.GET_REP),
    }
)
RESENDS: Final = frozenset({_S.REQ_SENT, _S.MRA_REQ_RCVD, _S.REP_SENT, _S.MRA_REP_RCVD, _S.DREQ_SENT})
PENDING: Final = frozenset({_S.REQ_RCVD, _S.MRA_REQ_SENT})  # the user has not answered yet
HAS_PEER_QP: Final = frozenset({_S.REP_RCVD, _S.REP_SENT, _S.MRA_REP_RCVD, _S.ESTABLISHED, _S.DREQ_SENT})
