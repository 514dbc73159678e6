"""The state machine of a queue pair, as tables.

A queue pair climbs RESET > INIT > RTR > RTS one step at a time: first it takes posted receives, then it receives, then
it sends. SQD lets requests in flight end and starts no new one. What goes wrong at a reliable connection ends in ERR,
where all work is flushed; a failed send of an unreliable service stops sending alone, in SQE.
Source: IBTA vol. 1, 10.3.1 and figure 124.
Leaves out: attributes, see `attributes`; path migration.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from weftwork.rdma.verbs import QpState, QpType

__all__ = ["AFTER", "MODIFY", "PROCESSES_RECEIVES", "TAKES_RECEIVES", "TAKES_SENDS", "QpEvent"]

_S = QpState


class QpEvent(Enum):
    """Failure or end of a queue pair."""

    SEND_FAILED = "a send request failed"
    RECEIVE_FAILED = "a request of the peer or a receive failed"


# The states that the user may ask for, from each state.
MODIFY: Final[dict[QpState, frozenset[QpState]]] = {
    _S.RESET: frozenset({_S.RESET, _S.INIT, _S.ERR}),
    _S.INIT: frozenset({_S.RESET, _S.INIT, _S.RTR, _S.ERR}),
    _S.RTR: frozenset({_S.RESET, _S.RTS, _S.ERR}),
    _S.RTS: frozenset({_S.RESET, _S.RTS, _S.SQD, _S.ERR}),
    _S.SQD: frozenset({_S.RESET, _S.RTS, _S.SQD, _S.ERR}),
    _S.SQE: frozenset({_S.RESET, _S.RTS, _S.ERR}),
    _S.ERR: frozenset({_S.RESET, _S.ERR}),
}
# The state after something went wrong, by type.
AFTER: Final[dict[tuple[QpType, QpEvent], QpState]] = {
    (QpType.RC, QpEvent.SEND_FAILED): _S.ERR,
    (QpType.UC, QpEvent.SEND_FAILED): _S.SQE,
    (QpType.UD, QpEvent.SEND_FAILED): _S.SQE,
    (QpType.RC, QpEvent.RECEIVE_FAILED): _S.ERR,
    (QpType.UC, QpEvent.RECEIVE_FAILED): _S.ERR,
    (QpType.UD, QpEvent.RECEIVE_FAILED): _S.ERR,
}
# In SQE and ERR posted work is taken and flushed.
TAKES_RECEIVES: Final = frozenset({_S.INIT, _S.RTR, _S.RTS, _S.SQD, _S.SQE, _S.ERR})
TAKES_SENDS: Final = frozenset({_S.RTS, _S.SQD, _S.SQE, _S.ERR})
PROCESSES_RECEIVES: Final = frozenset({_S.RTR, _S.RTS, _S.SQD, _S.SQE})
