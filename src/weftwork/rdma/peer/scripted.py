"""A NIC that listens, and whose packets a script drops, changes, delays and makes up.

It has the five calls of `RdmaNic`, so that whatever drives a NIC drives it. Its own NIC keeps the protocol; the script
stands between this NIC and the wire. Messages of the connection manager pass untouched.
Leaves out: which rule takes a packet, see `rules`; bytes of packets, see `packets`; the judgement, see `judge`.
"""

from __future__ import annotations

import heapq
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import UsageError
from weftwork.rdma.cm_records import CmEventType, ConnParam
from weftwork.rdma.connection_manager import ConnectionManager
from weftwork.rdma.peer.packets import PeerForger, SeenPacket, see
from weftwork.rdma.peer.rules import RuleBook
from weftwork.rdma.peer.script import DEFAULT_PORT
from weftwork.rdma.peer.workload import bytes_of, peer_bytes, request_bytes, with_added
from weftwork.rdma.region import LocalRange, RemoteRange
from weftwork.rdma.requester import RcRequester
from weftwork.rdma.verbs import (
    ATOMIC_BYTES,
    AccessFlags,
    QpState,
    QpType,
    RecvWr,
    SendFlags,
    SendWr,
    WcOpcode,
    WrOpcode,
)
from weftwork.wire.ib import PSN_MODULUS
from weftwork.wire.mad import GENERAL_SERVICES_QP

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.rdma.cm_id import CmId
    from weftwork.rdma.cm_records import CmEvent
    from weftwork.rdma.datagram import Datagram
    from weftwork.rdma.nic import RdmaNic
    from weftwork.rdma.peer.script import AnswerKeys, PeerScript, PeerStep, RuleKeys

__all__ = ["ALL_RIGHTS", "TIMEOUT_UNIT_PS", "PeerReport", "ScriptedPeer"]

ALL_RIGHTS: Final = (
    AccessFlags.LOCAL_WRITE | AccessFlags.REMOTE_WRITE | AccessFlags.REMOTE_READ | AccessFlags.REMOTE_ATOMIC
)
TIMEOUT_UNIT_PS: Final = 4_096_000  # IBTA vol. 1, 9.7.6.1.3: 4.096 us x 2^timeout
_MOST_READS: Final = 16  # chosen: more than the end of a script takes at once
_HANDLE_BYTES: Final = 20
_FATAL: Final = frozenset({"nak-invalid", "nak-access", "nak-operational"})
_SINK_BYTES: Final = 1 << 16
_OPCODES: Final = {
    "write": WrOpcode.RDMA_WRITE,
    "read": WrOpcode.RDMA_READ,
    "send": WrOpcode.SEND,
    "fetch-add": WrOpcode.ATOMIC_FETCH_AND_ADD,
}
_REQUEST_OPCODES: Final = frozenset(WcOpcode) - {WcOpcode.RECV, WcOpcode.RECV_RDMA_WITH_IMM}


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerReport:
    """What a peer has seen.

    Parameters
    ----------
    is_connected, is_over : the other end has connected, and the connection has ended
    packets : in the order of time
    statuses : of the peer's own requests
    memory : ``unchanged``, ``written`` or ``other``
    value : first 8 bytes of the memory
    applied : packets that each rule took
    timeout_ps : of the connection, or None
    """

    is_connected: bool
    is_over: bool
    packets: tuple[SeenPacket, ...]
    statuses: tuple[str, ...]
    memory: str
    value: int
    applied: tuple[int, ...]
    timeout_ps: int | None


class ScriptedPeer:
    """A listening NIC with a script; it serves one connection.

    Parameters
    ----------
    script : to apply
    nic : of the address of the peer
    path_mtu : most bytes in a packet, or a function that gives them for an address
    stranger : address of another sender, for packets that pretend to come from there
    port : of the connection manager

    Attributes
    ----------
    is_over : the connection has ended
    """

    def __init__(
        self,
        script: PeerScript,
        nic: RdmaNic,
        *,
        path_mtu: int | Callable[[bytes], int] = 4096,
        stranger: bytes = b"",
        port: int = DEFAULT_PORT,
    ) -> None:
        self._script: Final = script
        self.nic: Final = nic
        self._stranger: Final = stranger
        self._manager: Final = ConnectionManager(nic, path_mtu=path_mtu)
        self._manager.listen(port)
        self._book: Final = RuleBook(script)
        self._pd: Final = nic.alloc_pd()
        self._cq: Final = nic.create_cq(1 << 14)
        self._qp: Final = nic.create_qp(self._pd, QpType.RC, (self._cq, self._cq), max_recv_wr=1024, sq_sig_all=True)
        self._before: Final = bytes_of("peer", peer_bytes(script), has_counter=script.end.does == "fetch-add")
        self._memory: Final = bytearray(self._before)
        self._region: Final = self._registered(self._memory, ALL_RIGHTS)
        size_bytes = max([step.size_bytes or 0 for step in script.peer] + [ATOMIC_BYTES])
        self._data: Final = self._registered(bytearray(bytes_of("data", size_bytes)), AccessFlags.LOCAL_WRITE)
        self._sink: Final = self._registered(bytearray(max(size_bytes, _SINK_BYTES)), AccessFlags.LOCAL_WRITE)
        self._packets: Final[list[SeenPacket]] = []
        self._departures: Final[list[tuple[int, int, Datagram]]] = []
        self._arrivals: Final[list[tuple[int, int, Datagram]]] = []
        self._held: Final[list[_Held]] = []
        self._order = 0
        self._now_ps = 0
        self._silent_until_ps: int | None = None
        self._refused_psn: int | None = None  # what is behind it is dropped until it comes again
        self._refuses_all = False
        self._forger: PeerForger | None = None
        self._first_psns: Final = {"end": 0, "peer": 0}
        self._conversation: CmId | None = None
        self._offered: tuple[RemoteRange | None, RemoteRange | None] = (None, None)
        self._step = 0
        self._steps_at_ps: int | None = None
        self._leave_at_ps: int | None = None
        self._posted = 0
        self._statuses: Final[list[str]] = []
        self.is_over = False
        self.is_connected = False

    def _registered(self, buffer: bytearray, access: AccessFlags) -> LocalRange:
        region = self.nic.memory.register(self._pd, buffer, access)
        return LocalRange(region, region.addr, region.length)

    # The five calls

    @property
    def address(self) -> bytes:
        """Address of the NIC."""
        return self.nic.address

    def receive(self, datagram: Datagram, now_ps: int) -> None:
        """Take a datagram that arrived; trains are taken packet by packet."""
        for packet in datagram.packets():
            if self._is_managed(packet):
                self.nic.receive(packet, now_ps)
                self._look(now_ps)
            else:
                self._handle(packet._replace(parts=(bytes(packet.payload()),)), "end", now_ps)

    def datagrams_to_send(self, now_ps: int, most: int = 256) -> list[Datagram]:
        """Take the datagrams to send now."""
        self._now_ps = now_ps
        while len(self._departures) < most:
            made = self.nic.datagrams_to_send(now_ps, 1)
            if not made:
                break
            for datagram in made:
                packet = datagram._replace(parts=(bytes(datagram.payload()),))
                if self._is_managed(packet):
                    self._depart(packet, now_ps)
                else:
                    self._handle(packet, "peer", now_ps)
        found: list[Datagram] = []
        while self._departures and self._departures[0][0] <= now_ps and len(found) < most:
            datagram = heapq.heappop(self._departures)[2]
            if not self._is_managed(datagram):
                self._packets.append(see(datagram, "peer", self._first_psns, now_ps))
            found.append(datagram)
        return found

    def next_timer_ps(self) -> int | None:
        """When to call `on_timer`, or None."""
        times = [self.nic.next_timer_ps(), self._steps_at_ps, self._leave_at_ps]
        times += [self._arrivals[0][0]] if self._arrivals else []
        times += [at_ps for at_ps, _, _ in self._departures[:1] if at_ps > self._now_ps]  # else the line is busy
        return min((at_ps for at_ps in times if at_ps is not None), default=None)

    def on_timer(self, now_ps: int) -> None:
        """Do all due work."""
        while self._arrivals and self._arrivals[0][0] <= now_ps:
            self.nic.receive(heapq.heappop(self._arrivals)[2], now_ps)
        due_ps = self.nic.next_timer_ps()
        if due_ps is not None and due_ps <= now_ps:
            self.nic.on_timer(now_ps)
        self._look(now_ps)
        if self._steps_at_ps is not None and self._steps_at_ps <= now_ps:
            self._steps_at_ps = None
            self._run_steps(now_ps)
        if self._leave_at_ps is not None and self._leave_at_ps <= now_ps:
            self._leave_at_ps = None
            self._disconnect()

    # Packets

    @staticmethod
    def _is_managed(datagram: Datagram) -> bool:
        """Whether a packet is one of the connection manager, in either direction."""
        return int.from_bytes(datagram.parts[0][5:8], "big") == GENERAL_SERVICES_QP

    def _handle(self, datagram: Datagram, sender: str, now_ps: int) -> None:
        """Apply the first rule that takes a packet."""
        seen = see(datagram, sender, self._first_psns, now_ps)
        if sender == "peer" and self._forger is not None:
            self._forger.note(datagram)
        is_silent = self._is_silent(now_ps)
        rule = None if is_silent else self._book.take(seen)
        if sender == "end":
            done = "silence" if is_silent else rule.do if rule is not None else ""
            if not done and self._is_refused(seen):
                done = "refused"
            self._packets.append(replace(seen, rule=done))
        if is_silent:
            return
        if rule is None:
            self._pass(datagram, seen, now_ps)
        elif rule.do == "hold":
            self._held.append(_Held(datagram, seen, rule.behind or 1))
        else:
            self._apply(rule, datagram, seen, now_ps)

    def _apply(self, rule: RuleKeys, datagram: Datagram, seen: SeenPacket, now_ps: int) -> None:
        if rule.do == "duplicate":
            for _ in range(1 + (rule.copies or 1)):
                self._pass(datagram, seen, now_ps)
        elif rule.do == "delay":
            self._pass(datagram, seen, now_ps, delay_ps=rule.by_ps or 0)
        elif rule.do == "corrupt":
            self._pass(_corrupted(datagram, rule), seen, now_ps)
        elif rule.do == "set" and rule.fields is not None and self._forger is not None:
            self._pass(self._forger.changed(datagram, rule.fields), seen, now_ps)
        elif rule.do == "answer" and rule.answer is not None:
            self._answer(rule.answer, seen, now_ps)
        elif rule.do == "inject":
            self._pass(datagram, seen, now_ps)
            self._inject(rule, seen, now_ps)
        elif rule.do == "silence":
            self._silent_until_ps = sys.maxsize if rule.for_ps is None else now_ps + rule.for_ps
        elif rule.do == "disconnect":
            self._pass(datagram, seen, now_ps)
            self._disconnect()

    def _is_silent(self, now_ps: int) -> bool:
        if self._silent_until_ps is not None and now_ps >= self._silent_until_ps:
            self._silent_until_ps = None
        return self._silent_until_ps is not None

    def _pass(self, datagram: Datagram, seen: SeenPacket, now_ps: int, delay_ps: int = 0) -> None:
        """Let a packet go on, and those behind it that it overtakes."""
        if seen.sender == "peer":
            self._depart(datagram, now_ps + delay_ps)
        elif not self._is_refused(seen):
            if delay_ps:
                self._order += 1
                heapq.heappush(self._arrivals, (now_ps + delay_ps, self._order, datagram))
            else:
                self.nic.receive(datagram, now_ps)
                self._look(now_ps)
        overtaken = [held for held in self._held if held.seen.sender == seen.sender]
        for held in overtaken:
            held.behind -= 1
            if held.behind == 0:
                self._held.remove(held)
                self._pass(held.datagram, held.seen, now_ps)

    def _depart(self, datagram: Datagram, at_ps: int) -> None:
        self._order += 1
        heapq.heappush(self._departures, (at_ps, self._order, datagram))

    def _is_refused(self, seen: SeenPacket) -> bool:
        """Whether a responder that has refused a packet drops this one as well."""
        if "request" not in seen.words or seen.psn is None:
            return False
        if self._refused_psn is not None and seen.psn == self._refused_psn:
            self._refused_psn = None
        return self._refuses_all or (self._refused_psn is not None and seen.psn > self._refused_psn)

    def _answer(self, keys: AnswerKeys, seen: SeenPacket, now_ps: int) -> None:
        """Answer in place of the own NIC, which does not get the packet."""
        if self._forger is None or self._is_refused(seen):
            return
        self._depart(self._forger.answer(keys, seen.psn_on_wire), now_ps)
        if keys.kind in {"rnr-nak", "nak-sequence"}:
            self._refused_psn = seen.psn
        self._refuses_all |= keys.kind in _FATAL

    def _inject(self, rule: RuleKeys, seen: SeenPacket, now_ps: int) -> None:
        if self._forger is None:
            return
        if rule.answer is not None:
            self._depart(self._forger.answer(rule.answer, seen.psn_on_wire), now_ps)
        elif rule.fields is not None:
            self._depart(self._forger.request(rule.fields, self._next_psn()), now_ps)

    def _next_psn(self) -> int:
        """PSN that the end expects next, if it has got all requests of the peer."""
        requester = self._qp.requester
        return (requester.sent_end if isinstance(requester, RcRequester) else 0) % PSN_MODULUS

    # The connection

    def _look(self, now_ps: int) -> None:
        """Take what has happened to the connection and to the requests."""
        while (event := self._manager.next_event()) is not None:
            self._take(event, now_ps)
        for wc in self._cq.poll(len(self._cq)):
            if wc.opcode in _REQUEST_OPCODES:
                self._statuses.append(wc.status.name)
                self._plan_to_leave(now_ps)

    def _take(self, event: CmEvent, now_ps: int) -> None:
        if event.event_type is CmEventType.CONNECT_REQUEST:
            if self._conversation is not None:
                event.id.reject()
                return
            self._conversation = event.id
            self._accept(event)
        elif event.id is not self._conversation:
            return
        elif event.event_type is CmEventType.ESTABLISHED:
            self.is_connected = True
            self._run_steps(now_ps)
        elif event.event_type is CmEventType.TIMEWAIT_EXIT:
            pass
        else:
            self.is_over = True
            self._leave_at_ps = self._steps_at_ps = None

    def _accept(self, event: CmEvent) -> None:
        self._offered = _offered(event.private_data)
        script = self._script
        param = ConnParam(
            private_data=self._region.remote.encode(),
            rnr_retry_count=script.rnr_retry,
            qp_access_flags=ALL_RIGHTS,
        )
        event.id.accept(self._qp, param)
        agreed = event.id.agreed
        if agreed is None:
            raise UsageError("connection: found no agreement behind accept")
        self._first_psns.update(end=agreed.rq_psn, peer=agreed.sq_psn)
        self._forger = PeerForger(
            (self.nic.address, event.id.address, self._stranger),
            (self._qp.qp_num, agreed.remote_qp_num),
            agreed.path_mtu,
            self._offered,
            self.nic.icrc_states,
        )
        if script.end.does == "send":
            size_bytes = request_bytes(script)
            for number in range(script.end.times):
                place = self._region[number * size_bytes : (number + 1) * size_bytes]
                self._qp.post_recv(RecvWr(wr_id=number, sg_list=(place.sge,)))

    def _disconnect(self) -> None:
        if self._conversation is not None and self.is_connected and not self.is_over:
            self._conversation.disconnect()

    # Requests of the peer

    def _run_steps(self, now_ps: int) -> None:
        if not self._script.peer or self.is_over:
            return
        if self._qp.state is QpState.RTS and self._qp.attr.max_rd_atomic < _MOST_READS:
            self._qp.attr = replace(self._qp.attr, max_rd_atomic=_MOST_READS)  # modify refuses what the script wants
        while self._step < len(self._script.peer):
            step = self._script.peer[self._step]
            self._step += 1
            if step.do == "wait":
                self._steps_at_ps = now_ps + (step.for_ps or 0)
                return
            for _ in range(step.times):
                self._do(step, now_ps)
        self._plan_to_leave(now_ps)

    def _do(self, step: PeerStep, now_ps: int) -> None:
        if step.do == "inject":
            if step.fields is not None and self._forger is not None:
                self._depart(self._forger.request(step.fields, self._next_psn()), now_ps)
            return
        offered = self._offered[0]
        size_bytes = ATOMIC_BYTES if step.do == "fetch-add" else step.size_bytes or 0
        local = self._data if step.do in {"write", "send"} else self._sink
        self._posted += 1
        self._qp.post_send(
            SendWr(
                wr_id=self._posted,
                opcode=_OPCODES[step.do],
                sg_list=(local[:size_bytes].sge,) if size_bytes else (),
                flags=SendFlags.SIGNALED,
                remote_addr=(offered.addr + (step.address_by or 0)) % (1 << 64) if offered is not None else 0,
                rkey=offered.rkey if offered is not None else 0,
                compare_add=1 if step.do == "fetch-add" else 0,
            )
        )

    def _plan_to_leave(self, now_ps: int) -> None:
        """Disconnect some time after the last request has ended."""
        is_done = self._step == len(self._script.peer) and len(self._statuses) == self._posted
        if self._script.peer and is_done and self._steps_at_ps is None and not self.is_over:
            self._leave_at_ps = now_ps + self._script.linger_ps

    # Afterwards

    def report(self) -> PeerReport:
        """What has been seen so far."""
        agreed = self._conversation.agreed if self._conversation is not None else None
        memory = bytes(self._memory)
        expected = self._expected_memory()
        return PeerReport(
            is_connected=self.is_connected,
            is_over=self.is_over,
            packets=tuple(self._packets),
            statuses=tuple(self._statuses),
            memory="unchanged" if memory == self._before else "written" if memory == expected else "other",
            value=int.from_bytes(memory[:ATOMIC_BYTES], sys.byteorder),
            applied=tuple(self._book.applied),
            timeout_ps=TIMEOUT_UNIT_PS << agreed.timeout if agreed is not None else None,
        )

    def _expected_memory(self) -> bytes:
        """Memory after the workload of the end."""
        script = self._script
        if script.end.does in {"write", "send"}:
            sent = bytes_of("end", request_bytes(script)) * script.end.times
            return sent + self._before[len(sent) :]
        if script.end.does == "fetch-add":
            return with_added(self._before, script.end.times)
        return self._before


@dataclass(slots=True)
class _Held:
    """A packet that waits until others have overtaken it."""

    datagram: Datagram
    seen: SeenPacket
    behind: int


def _corrupted(datagram: Datagram, rule: RuleKeys) -> Datagram:
    data = bytearray(datagram.payload())
    data[min(rule.byte or 0, len(data) - 1)] ^= rule.bits or 1
    return datagram._replace(parts=(bytes(data),))


def _offered(private_data: bytes) -> tuple[RemoteRange | None, RemoteRange | None]:
    """Memory that the end offers, and memory of another domain; None where it names none."""
    found = []
    for at in (0, _HANDLE_BYTES):
        part = private_data[at : at + _HANDLE_BYTES]
        is_there = len(part) == _HANDLE_BYTES and any(part)
        found.append(RemoteRange.decode(part) if is_there else None)
    return found[0], found[1]
