"""The other end of a script on Weftwork's own NIC: it connects, does the workload, and notes what happened to it.

It has the five calls of `RdmaNic`. The judgement in `judge` reads its report.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weftwork.rdma.cm_records import CmEventType, CmRejReason, ConnParam
from weftwork.rdma.cm_states import CmState
from weftwork.rdma.connection_manager import ConnectionManager
from weftwork.rdma.peer.end_memory import EndMemory
from weftwork.rdma.peer.script import DEFAULT_PORT
from weftwork.rdma.peer.scripted import ALL_RIGHTS
from weftwork.rdma.peer.workload import request_bytes
from weftwork.rdma.region import RemoteRange
from weftwork.rdma.verbs import (
    QpState,
    QpType,
    RecvWr,
    SendFlags,
    SendWr,
    WcOpcode,
    WrOpcode,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.rdma.cm_records import CmEvent
    from weftwork.rdma.datagram import Datagram
    from weftwork.rdma.nic import RdmaNic
    from weftwork.rdma.peer.script import PeerScript

__all__ = ["EndReport", "ScriptEnd"]

_MOST_RECEIVES: Final = 256
_OPCODES: Final = {
    "write": WrOpcode.RDMA_WRITE,
    "read": WrOpcode.RDMA_READ,
    "send": WrOpcode.SEND,
    "fetch-add": WrOpcode.ATOMIC_FETCH_AND_ADD,
}
_ENDS: Final = frozenset(
    {CmEventType.CONNECT_ERROR, CmEventType.UNREACHABLE, CmEventType.REJECTED, CmEventType.DISCONNECTED}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class EndReport:
    """What happened to the other end.

    Parameters
    ----------
    failure : why there was no connection, or an empty text
    is_over : the connection has ended, or there was none
    statuses, received : of its requests and of its receives, in order
    state : of the queue pair before the connection ended
    memory : ``unchanged``, ``written`` or ``other``; canaries around the offered memory count
    value : first 8 bytes of the offered memory
    fetched : values that atomics have returned
    counters : of the queue pair and of the NIC
    """

    failure: str
    is_over: bool
    statuses: tuple[str, ...]
    received: tuple[str, ...]
    state: str
    memory: str
    value: int
    fetched: tuple[int, ...]
    counters: dict[str, int]


class ScriptEnd:
    """A NIC that connects to a scripted peer and does the workload of the script.

    Parameters
    ----------
    script : that the peer has as well
    nic : of the address of this end
    peer_address : 4 or 16 bytes in network order
    path_mtu : most bytes in a packet, or a function that gives them for an address
    port : on which the peer listens

    Attributes
    ----------
    is_over : the connection has ended, or there was none
    """

    def __init__(
        self,
        script: PeerScript,
        nic: RdmaNic,
        peer_address: bytes,
        *,
        path_mtu: int | Callable[[bytes], int] = 4096,
        port: int = DEFAULT_PORT,
    ) -> None:
        self._script: Final = script
        self.nic: Final = nic
        self._manager: Final = ConnectionManager(nic, path_mtu=path_mtu)
        self._pd: Final = nic.alloc_pd()
        self._cq: Final = nic.create_cq(1 << 14)
        self._qp: Final = nic.create_qp(
            self._pd, QpType.RC, (self._cq, self._cq), max_recv_wr=_MOST_RECEIVES, sq_sig_all=True
        )
        self._memory: Final = EndMemory(script, nic, self._pd)
        end = script.end
        param = ConnParam(
            private_data=self._memory.handles(),
            path_mtu=end.path_mtu,
            timeout=end.timeout,
            retry_count=end.retry_count,
            responder_resources=end.reads_at_once,
            qp_access_flags=ALL_RIGHTS,
        )
        self._conversation: Final = self._manager.connect(peer_address, port, self._qp, param)
        for number, place in enumerate(self._memory.receives):
            self._qp.post_recv(RecvWr(wr_id=number, sg_list=(place.sge,)))
        self._statuses: Final[list[str]] = []
        self._received: Final[list[str]] = []
        self._state = QpState.RESET
        self._leave_at_ps: int | None = None
        self._failure = ""
        self.is_over = False

    # The five calls

    @property
    def address(self) -> bytes:
        """Address of the NIC."""
        return self.nic.address

    def receive(self, datagram: Datagram, now_ps: int) -> None:
        """Take a datagram that arrived."""
        self.nic.receive(datagram, now_ps)
        self._look(now_ps)

    def datagrams_to_send(self, now_ps: int, most: int = 256) -> list[Datagram]:
        """Take the datagrams to send now."""
        return self.nic.datagrams_to_send(now_ps, most)

    def next_timer_ps(self) -> int | None:
        """When to call `on_timer`, or None."""
        times = (self.nic.next_timer_ps(), self._leave_at_ps)
        return min((at_ps for at_ps in times if at_ps is not None), default=None)

    def on_timer(self, now_ps: int) -> None:
        """Do all due work."""
        due_ps = self.nic.next_timer_ps()
        if due_ps is not None and due_ps <= now_ps:
            self.nic.on_timer(now_ps)
        self._look(now_ps)
        if self._leave_at_ps is not None and self._leave_at_ps <= now_ps:
            self._leave_at_ps = None
            if not self.is_over:
                self._conversation.disconnect()

    # The workload

    def _look(self, now_ps: int) -> None:
        if self._conversation.state is CmState.ESTABLISHED:
            self._state = self._qp.state  # that of a connection that lives; the manager ends it in ERR
        for wc in self._cq.poll(len(self._cq)):
            is_receive = wc.opcode in {WcOpcode.RECV, WcOpcode.RECV_RDMA_WITH_IMM}
            if self._conversation.state is CmState.ESTABLISHED or not is_receive:
                (self._received if is_receive else self._statuses).append(wc.status.name)
        while (event := self._manager.next_event()) is not None:
            self._take(event)
        end = self._script.end
        is_done = end.does != "nothing" and len(self._statuses) == end.times
        if is_done and self._leave_at_ps is None and self._conversation.state is CmState.ESTABLISHED:
            self._leave_at_ps = now_ps + end.stays_ps

    def _take(self, event: CmEvent) -> None:
        if event.event_type is CmEventType.ESTABLISHED:
            self._post(RemoteRange.decode(event.private_data))
        elif event.event_type in _ENDS:
            self.is_over = True
            if event.event_type is not CmEventType.DISCONNECTED:
                known = {int(reason): f" ({reason.name})" for reason in CmRejReason}
                self._failure = event.event_type.value + known.get(event.status, "")

    def _post(self, remote: RemoteRange) -> None:
        script, end = self._script, self._script.end
        size_bytes = request_bytes(script)
        for number in range(end.times if end.does != "nothing" else 0):
            at = 0 if end.does == "fetch-add" else number * size_bytes
            local = self._memory.data[:size_bytes]
            if self._memory.sink is not None:
                local = self._memory.sink[number * size_bytes : (number + 1) * size_bytes]
            self._qp.post_send(
                SendWr(
                    wr_id=number,
                    opcode=_OPCODES[end.does],
                    sg_list=(local.sge,) if size_bytes else (),
                    flags=SendFlags.SIGNALED,
                    remote_addr=remote.addr + at if end.does != "send" else 0,
                    rkey=remote.rkey if end.does != "send" else 0,
                    compare_add=1 if end.does == "fetch-add" else 0,
                )
            )

    # Afterwards

    def report(self) -> EndReport:
        """What has happened so far."""
        counters = Counter(self.nic.counters)
        counters.update(self._qp.counters)
        return EndReport(
            failure=self._failure,
            is_over=self.is_over,
            statuses=tuple(self._statuses),
            received=tuple(self._received),
            state=self._state.name,
            memory=self._memory.outcome(),
            value=self._memory.value(),
            fetched=self._memory.fetched(),
            counters=dict(counters),
        )
