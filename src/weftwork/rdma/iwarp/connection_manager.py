"""The connection manager of a NIC for iWARP: its streams, and who waits for an answer.

Its calls for users are those of the manager over datagrams. Its calls for the driver are here too. Its memory is
bounded whatever arrives: a stream whose start-up is not over holds one frame, for a limited time, and the oldest such
stream makes room for a new one.
Source: RFC 5044, 7.1 and 10 (security); the names of librdmacm's rdma_cma.h.
Leaves out: one conversation, see `conversation`; sockets, see ``drivers.iwarp``.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Final, cast

from weftwork.base.errors import UsageError
from weftwork.rdma.cm_records import CmEventType, CmRejReason, ConnParam
from weftwork.rdma.cm_states import CmState
from weftwork.rdma.iwarp.conversation import IwarpCmId
from weftwork.wire.fields import check_fits

if TYPE_CHECKING:
    from weftwork.rdma.cm_id import CmId
    from weftwork.rdma.cm_records import CmEvent
    from weftwork.rdma.iwarp.nic import IwarpNic
    from weftwork.rdma.queue_pair import RdmaQueuePair

__all__ = ["IwarpListener", "IwarpManager"]


class IwarpListener:
    """A port on which requests are accepted.

    Parameters
    ----------
    manager : whose
    port : 16 bits
    backlog : requests that may wait for an answer
    """

    def __init__(self, manager: IwarpManager, port: int, backlog: int) -> None:
        self._manager: Final = manager
        self.port: Final = port
        self.backlog: Final = backlog

    @property
    def pending(self) -> int:
        """Requests that wait."""
        return self._manager.pending(self.port)

    def close(self) -> None:
        """Accept no more requests; waiting requests can still be answered."""
        self._manager.forget_listener(self)


class IwarpManager:
    """Connections of one NIC.

    Parameters
    ----------
    nic : whose queue pairs are connected

    Attributes
    ----------
    counters : streams that were refused or dropped, by reason
    left_ports : on which nobody listens any more; the driver closes them
    last_why : what ended the last stream that ended by an error, in words
    """

    def __init__(self, nic: IwarpNic) -> None:
        self.nic = nic
        self.counters: Counter[str] = Counter()
        self.last_why = ""
        self.left_ports: set[int] = set()
        self._listeners: dict[int, IwarpListener] = {}
        self._conversations: dict[IwarpCmId, None] = {}
        self._starting: dict[IwarpCmId, None] = {}  # accepted, and without a whole request; oldest first
        self._by_qp: dict[RdmaQueuePair, IwarpCmId] = {}
        self._events: deque[CmEvent] = deque()
        self._ready: dict[IwarpCmId, None] = {}
        self._to_open: deque[IwarpCmId] = deque()
        # Deadlines by length of the wait, each in order; a wait that has changed starts at the next `start_clocks`.
        self._deadlines: dict[int, dict[IwarpCmId, int]] = {}
        self._waits: dict[IwarpCmId, int] = {}
        self._to_start: dict[IwarpCmId, None] = {}

    # Calls of the user

    def listen(self, port: int, backlog: int = 64) -> IwarpListener:
        """Accept requests on a port; the driver opens it.

        Parameters
        ----------
        port : 1 to 65,535
        backlog : requests that may wait for an answer; more are refused

        Raises
        ------
        UsageError : the port has a listener, or a number does not fit
        """
        check_fits("port", port, 16)
        if port in self._listeners or port == 0 or backlog < 1:
            raise UsageError(f"port, backlog: found {port} and {backlog}, wanted a free port from 1 and at least 1")
        self._listeners[port] = IwarpListener(self, port, backlog)
        return self._listeners[port]

    def connect(self, address: bytes, port: int, qp: RdmaQueuePair, param: ConnParam | None = None) -> CmId:
        """Ask a peer for a connection.

        The queue pair goes to INIT at once, and to RTS with the event ESTABLISHED.

        Parameters
        ----------
        address : IP address of the peer, 4 or 16 bytes in network order
        port : on which it listens
        qp : in RESET or INIT
        param : this end's parameters

        Raises
        ------
        UsageError : too many conversations, or the address, the queue pair or a parameter does not fit
        """
        check_fits("port", port, 16)
        if len(address) != len(self.nic.address) or port == 0:
            raise UsageError(f"address, port: found {len(address)} bytes and {port}, wanted the IP version of this NIC")
        if len(self._conversations) >= self.nic.limits.max_cm_id:
            raise UsageError(f"connections: found {len(self._conversations)}, which is the limit")
        made = IwarpCmId(self, address, port, is_active=True)
        made.connect(qp, param if param is not None else ConnParam())
        self._conversations[made] = None
        self._to_open.append(made)
        return cast("CmId", made)

    def next_event(self) -> CmEvent | None:
        """Take the next event, or None."""
        return self._events.popleft() if self._events else None

    def forget_listener(self, listener: IwarpListener) -> None:
        """Accept no more requests on a port."""
        if self._listeners.get(listener.port) is listener:
            del self._listeners[listener.port]
            self.left_ports.add(listener.port)

    def pending(self, port: int) -> int:
        """Requests on a port that wait for an answer."""
        return sum(found.state is CmState.REQ_RCVD and found.port == port for found in self._conversations)

    # Calls of the driver

    def take_to_open(self) -> IwarpCmId | None:
        """Conversation whose stream is to be opened, or None."""
        return self._to_open.popleft() if self._to_open else None

    def accepted(self, address: bytes, port: int) -> IwarpCmId | None:
        """Take a stream that a peer has opened; None if it is to be closed at once.

        Parameters
        ----------
        address : of the peer
        port : on which it came
        """
        if port not in self._listeners:
            self.counters["no_listener"] += 1
            return None
        if len(self._starting) >= self.nic.limits.max_cm_pending:
            self.counters["startup_evicted"] += 1
            next(iter(self._starting)).on_timer()
        if len(self._conversations) >= self.nic.limits.max_cm_id:
            self.counters["too_many"] += 1
            return None
        made = IwarpCmId(self, address, port, is_active=False)
        self._conversations[made] = self._starting[made] = None
        self.moved(made)
        return made

    @property
    def is_ready(self) -> bool:
        """Whether `take_ready` has something."""
        return bool(self._ready) or self.nic.is_ready

    def take_ready(self) -> list[IwarpCmId]:
        """Conversations that may have bytes to send or be over, each once."""
        for end in self.nic.take_ready():
            found = self._by_qp.get(end)  # type: ignore[call-overload] # of a stream, every end is a queue pair
            if found is not None:
                self._ready[found] = None
        ready = list(self._ready)
        self._ready.clear()
        for found in ready:
            found.look()
        return ready

    def start_clocks(self, now_ps: int) -> None:
        """Start the clocks of waits that have changed."""
        for found in self._to_start:
            before = self._waits.pop(found, None)
            if before is not None:
                self._deadlines[before].pop(found, None)
            if found.wait_ps is not None:
                self._waits[found] = found.wait_ps
                self._deadlines.setdefault(found.wait_ps, {})[found] = now_ps + found.wait_ps
        self._to_start.clear()

    def next_timer_ps(self) -> int | None:
        """Next instant at which `on_timer` has work, or None."""
        return min((next(iter(row.values())) for row in self._deadlines.values() if row), default=None)

    def on_timer(self, now_ps: int) -> None:
        """Give up on conversations whose wait is over."""
        for row in list(self._deadlines.values()):
            while row:
                found, at_ps = next(iter(row.items()))
                if at_ps > now_ps:
                    break
                if found.state is CmState.IDLE:
                    self.counters["startup_timeout"] += 1
                del row[found]
                self._waits.pop(found, None)
                found.on_timer()

    # For conversations

    def tell(self, event: CmEvent) -> None:
        """Queue an event for the user."""
        self._events.append(event)

    def withdraw(self, conversation: IwarpCmId) -> bool:
        """Withdraw a request that the user has not seen.

        Returns whether it existed.
        """
        for event in self._events:
            is_of_it = cast("IwarpCmId", event.id) is conversation
            if is_of_it and event.event_type is CmEventType.CONNECT_REQUEST:
                self._events.remove(event)
                return True
        return False

    def moved(self, conversation: IwarpCmId) -> None:
        """Note that the state or the wait has changed, or that there are bytes to send."""
        self._ready[conversation] = None
        if conversation.why:
            self.last_why = conversation.why
        if conversation.wait_ps != self._waits.get(conversation):
            self._to_start[conversation] = None
        if conversation.state is not CmState.IDLE or conversation.is_over:
            self._starting.pop(conversation, None)
        if conversation.is_over:
            self._forget(conversation)

    def claim(self, qp: RdmaQueuePair, conversation: IwarpCmId) -> None:
        """Assign a queue pair to a conversation; UsageError if it is taken."""
        if qp in self._by_qp:
            raise UsageError(f"qp: found number {qp.qp_num} in use by another conversation, wanted a free one")
        self._by_qp[qp] = conversation

    def refusal(self, conversation: IwarpCmId) -> CmRejReason | None:
        """Why a whole request is refused, or None."""
        listener = self._listeners.get(conversation.port)
        if listener is None:
            return CmRejReason.INVALID_SERVICE_ID
        if listener.pending >= listener.backlog:
            self.counters["backlog_full"] += 1
            return CmRejReason.NO_RESOURCES
        return None

    def _forget(self, conversation: IwarpCmId) -> None:
        self._conversations.pop(conversation, None)
        if conversation.state is CmState.IDLE and conversation.qp is None and conversation.why:
            self.counters["startup_refused"] += 1
        if conversation.qp is not None and self._by_qp.get(conversation.qp) is conversation:
            del self._by_qp[conversation.qp]
