"""A NIC of the InfiniBand transport: five calls, and the objects of the verbs.

It does no I/O and reads no clock. Whoever drives it hands datagrams in and takes datagrams out, and passes the time:
a socket driver, a simulator and a test drive the same object.
Source: IBTA vol. 1, chapters 9 to 11 and annex A17.
Leaves out: sockets, extended reliable connections, the subnet manager's world.
"""

from __future__ import annotations

import heapq
import random as randomness
from collections import Counter, deque
from typing import TYPE_CHECKING, Final, Protocol

from weftwork.base.errors import UsageError
from weftwork.base.grammar import plural
from weftwork.rdma.completion import CompletionChannel, CompletionQueue
from weftwork.rdma.datagram import BTH, LARGEST_BYTES, SMALLEST_BYTES, Datagram, IcrcStates, PacketFlow, is_intact
from weftwork.rdma.encapsulation import ROCE_V2
from weftwork.rdma.memory import MemoryTable, ProtectionDomain
from weftwork.rdma.multicast import MULTICAST_QP, MulticastGroups
from weftwork.rdma.number_prefix import PREFIX_BITS, QP_NUM_BITS, behind_prefix, low_numbers
from weftwork.rdma.peer_processes import PeerProcesses
from weftwork.rdma.queue_pair import AsyncEvent, NicLimits, RdmaQueuePair
from weftwork.rdma.rate_control import RateControl
from weftwork.rdma.receive_queue import RecvQueue
from weftwork.rdma.resting import RestingNumbers
from weftwork.rdma.sender_proof import NumberedSourcePorts
from weftwork.rdma.verbs import QpState, QpType
from weftwork.wire.fields import check_fits
from weftwork.wire.ib import BTH_BYTES, PSN_MODULUS
from weftwork.wire.icrc import ICRC_BYTES

if TYPE_CHECKING:
    from random import Random

    from weftwork.policies.load import LoadedPolicy
    from weftwork.rdma.encapsulation import Encapsulation
    from weftwork.rdma.peer_processes import PeerWatch
    from weftwork.rdma.sender_proof import SourcePorts

__all__ = ["NicEnd", "RdmaNic"]

_FIRST_QP: Final = 2  # IBTA vol. 1, 3.9.3: 0 and 1 are for management
_QP_NUMBERS: Final = MULTICAST_QP  # that one is for multicast
_BURST: Final = 16  # chosen: packets of a queue pair before the next one's turn
_MOST_DATAGRAMS: Final = 256  # chosen: of one call, so that arrivals are not kept waiting


class NicEnd(Protocol):
    """Receiver of the datagrams to one queue pair number.

    It is a queue pair, or the connection manager at number 1.
    """

    @property
    def qp_num(self) -> int:
        """Number of the queue pair."""

    def receive(
        self, datagram: Datagram, header: tuple[int, int, int, int, int], body: memoryview, now_ps: int
    ) -> None:
        """Take a packet with a correct ICRC."""

    def next_datagram(self, now_ps: int) -> Datagram | None:
        """Make the next packet that may go now, or None."""

    def next_timer_ps(self) -> int | None:
        """Next instant at which `on_timer` has work, or None."""

    def on_timer(self, now_ps: int) -> None:
        """Do all due work."""


class RdmaNic:
    """A NIC with one address.

    Parameters
    ----------
    address : IP address or GID, 4 or 16 bytes in network order
    encapsulation : headers in front of BTH
    random : draws queue pair numbers, PSNs and keys; by default the system's, which nobody can guess
    limits : on its objects
    congestion_control : step for every connection, or None
    line_rate_bps : of its port; congestion control starts there
    number_prefix : 8 bits, the top ones of every queue pair number and communication ID; a driver steers by them where
        several processes share the port; None draws them as well
    makes_trains : a datagram to send may hold many packets, see `Datagram`; a driver asks for it
    source_ports : of UDP, from which packets of connections leave; by default they prove nothing about a sender
    peer_watch : port that hears when a process of its machine ends, or None

    Attributes
    ----------
    memory : regions and windows
    source_ports : see there
    peers : who is told of the end of a peer's process
    groups : multicast groups; whoever attaches a queue pair also lets the port join
    counters : packets dropped before they reached a queue pair, by reason
    ended_counters : of queue pairs that were destroyed, summed by name
    """

    def __init__(  # noqa: PLR0913 - the options, all by name
        self,
        address: bytes,
        *,
        encapsulation: Encapsulation = ROCE_V2,
        random: Random | None = None,
        limits: NicLimits | None = None,
        congestion_control: LoadedPolicy | None = None,
        line_rate_bps: int = 100_000_000_000,
        number_prefix: int | None = None,
        makes_trains: bool = False,
        source_ports: SourcePorts | None = None,
        peer_watch: PeerWatch | None = None,
    ) -> None:
        if number_prefix is not None:
            check_fits("number_prefix", number_prefix, PREFIX_BITS)
        self.address: Final = address
        self.encapsulation: Final = encapsulation
        self.limits = limits if limits is not None else NicLimits()
        self.number_prefix: Final = number_prefix
        self.makes_trains: Final = makes_trains
        self._random: Final = random if random is not None else randomness.SystemRandom()
        self.source_ports: Final = source_ports if source_ports is not None else NumberedSourcePorts()
        self.peers: Final = PeerProcesses(peer_watch)
        self.memory = MemoryTable(self._random, self.limits.max_mr)
        self.groups: Final = MulticastGroups(self.limits)
        self.counters: Counter[str] = Counter()
        self.ended_counters: Counter[str] = Counter()
        self._congestion_control: Final = congestion_control
        self._line_rate_bps: Final = line_rate_bps
        self._qps: dict[int, NicEnd] = {}
        numbers = (_QP_NUMBERS if number_prefix is None else low_numbers(QP_NUM_BITS)) - 1 - _FIRST_QP
        # A peer with our limits remembers so many connections, and refuses a new one of the same number.
        self._resting: Final = RestingNumbers(min(self.limits.max_cm_id, (numbers - self.limits.max_qp) // 2))
        self._cqs = 0
        self._srqs = 0
        self._ready: dict[NicEnd, None] = {}
        self._timers: list[tuple[int, int]] = []  # instant and queue pair; of a queue pair the earliest counts
        self._armed: dict[int, int] = {}
        self._events: deque[AsyncEvent] = deque()
        self.icrc_states: Final = IcrcStates(encapsulation)
        self._flows: dict[tuple[bytes, int, int], PacketFlow] = {}

    # Objects

    def alloc_pd(self) -> ProtectionDomain:
        """Make a protection domain."""
        return ProtectionDomain()

    def create_cq(self, cqe: int, channel: CompletionChannel | None = None) -> CompletionQueue:
        """Make a completion queue; UsageError beyond the limits."""
        if not 0 < cqe <= self.limits.max_cqe or self._cqs >= self.limits.max_cq:
            raise UsageError(
                f"cqe: found {cqe}, wanted 1 to {self.limits.max_cqe} in at most {plural(self.limits.max_cq, 'queue')}"
            )
        self._cqs += 1
        return CompletionQueue(cqe, channel)

    def destroy_cq(self, cq: CompletionQueue) -> None:
        """Free the place of a completion queue.

        No queue pair may complete there any more.
        """
        if any(cq in end.cqs for end in self._qps.values() if isinstance(end, RdmaQueuePair)):
            raise UsageError("completion queue: found a queue pair that completes there, wanted none")
        self._cqs -= 1

    def create_srq(self, max_wr: int, max_sge: int = 1) -> RecvQueue:
        """Make a shared receive queue; UsageError beyond the limits."""
        if self._srqs >= self.limits.max_srq:
            raise UsageError(f"shared receive queues: found {self._srqs}, which is the limit")
        self._check_queue(max_wr, max_sge)
        self._srqs += 1
        return RecvQueue(max_wr, max_sge, is_shared=True)

    def destroy_srq(self, srq: RecvQueue) -> None:
        """Free the place of a shared receive queue.

        UsageError while a queue pair takes receives from it.
        """
        if any(srq is end.recv_queue for end in self._qps.values() if isinstance(end, RdmaQueuePair)):
            raise UsageError("shared receive queue: found a queue pair that takes from it, wanted none")
        self._srqs -= 1

    def create_qp(
        self,
        pd: ProtectionDomain,
        qp_type: QpType,
        cqs: tuple[CompletionQueue, CompletionQueue],
        *,
        max_recv_wr: int = 256,
        srq: RecvQueue | None = None,
        sq_sig_all: bool = False,
    ) -> RdmaQueuePair:
        """Make a queue pair with a random number, in RESET.

        Parameters
        ----------
        pd : protection domain
        qp_type : transport service
        cqs : where sends and where receives complete
        max_recv_wr : receives that can be posted, without a shared queue
        srq : shared queue to take receives from
        sq_sig_all : every send completes with an entry

        Raises
        ------
        UsageError : beyond the limits
        """
        if len(self._qps) >= self.limits.max_qp:  # the connection manager counts as one
            raise UsageError(f"queue pairs: found {len(self._qps)}, which is the limit")
        self._check_queue(max_recv_wr, 1)
        number = self._draw_qp_num()
        while number in self._qps or number in self._resting:
            number = self._draw_qp_num()
        queue = srq if srq is not None else RecvQueue(max_recv_wr, self.limits.max_sge)
        qp = self._make_qp(number, qp_type, pd, cqs, queue, sq_sig_all=sq_sig_all)
        if self._congestion_control is not None and qp_type is not QpType.UD:
            qp.rate = RateControl(self._congestion_control, self._line_rate_bps, qp.attr.path_mtu)
        self._qps[number] = qp
        return qp

    def _make_qp(
        self,
        number: int,
        qp_type: QpType,
        pd: ProtectionDomain,
        cqs: tuple[CompletionQueue, CompletionQueue],
        queue: RecvQueue,
        *,
        sq_sig_all: bool,
    ) -> RdmaQueuePair:
        return RdmaQueuePair(self, number, qp_type, pd, cqs, queue, sq_sig_all=sq_sig_all)

    def find_qp(self, qp_num: int) -> RdmaQueuePair | None:
        """Queue pair with a number, or None."""
        found = self._qps.get(qp_num)
        return found if isinstance(found, RdmaQueuePair) else None

    def destroy_qp(self, qp: RdmaQueuePair) -> None:
        """Forget a queue pair; its completions stay."""
        for group in self.groups.of(qp):
            self.groups.detach(qp, group)
        if self._qps.pop(qp.qp_num, None) is not None:
            self._resting.add(qp.qp_num)
            self.peers.leave(qp)
            self.ended_counters.update(qp.counters)
        self._ready.pop(qp, None)
        self._armed.pop(qp.qp_num, None)
        qp.state = QpState.RESET

    def attach(self, end: NicEnd) -> None:
        """Register another receiver for a queue pair number; UsageError if taken."""
        if end.qp_num in self._qps:
            raise UsageError(f"qp_num: found {end.qp_num}, which has an owner on this NIC")
        self._qps[end.qp_num] = end

    def ends(self) -> tuple[NicEnd, ...]:
        """Queue pairs and other receivers, in the order in which they were made."""
        return tuple(self._qps.values())

    def random_psn(self) -> int:
        """Draw a first PSN."""
        return self._random.randrange(PSN_MODULUS)

    def random_bits(self, bits: int) -> int:
        """Draw a random number of this many bits."""
        return self._random.getrandbits(bits)

    def _draw_qp_num(self) -> int:
        if self.number_prefix is None:
            return self._random.randrange(_FIRST_QP, _QP_NUMBERS)
        low = self._random.randrange(_FIRST_QP, low_numbers(QP_NUM_BITS) - 1)
        return behind_prefix(self.number_prefix, low, QP_NUM_BITS)

    def _check_queue(self, max_wr: int, max_sge: int) -> None:
        if not 0 < max_wr <= self.limits.max_qp_wr or not 0 < max_sge <= self.limits.max_sge:
            most = f"1 to {self.limits.max_qp_wr} and 1 to {self.limits.max_sge}"
            raise UsageError(f"max_wr, max_sge: found {max_wr} and {max_sge}, wanted {most}")

    # The five calls

    def receive(self, datagram: Datagram, now_ps: int) -> None:
        """Take a datagram that arrived.

        Nothing is raised, whatever its bytes.

        Parameters
        ----------
        datagram : as it arrived
        now_ps : instant, never less than before
        """
        payload = memoryview(datagram.payload())
        if datagram.segment_bytes:
            self._receive_train(datagram, payload, now_ps)
            return
        if not SMALLEST_BYTES <= len(payload) <= LARGEST_BYTES or len(payload) % 4:
            self.counters["malformed"] += 1
            return
        header = BTH.unpack_from(payload)
        takers: tuple[NicEnd, ...]
        number = header[3] & 0xFFFFFF
        qp = self._qps.get(number)
        address, takers = self.address, (qp,) if qp is not None else ()
        if qp is None and number == MULTICAST_QP:
            address, takers = datagram.destination, self.groups.members(datagram.destination)
        if not takers:
            self.counters["no_queue_pair"] += 1
            return
        if header[1] & 0xF or len(datagram.source) != len(self.address) or datagram.destination != address:
            self.counters["malformed"] += 1
            return
        if not is_intact(datagram, payload, self.icrc_states):
            self.counters["rx_icrc_encapsulated"] += 1
            return
        for taker in takers:
            taker.receive(datagram, header, payload[BTH_BYTES:-ICRC_BYTES], now_ps)
            self.wake(taker)

    def _receive_train(self, datagram: Datagram, payload: memoryview, now_ps: int) -> None:
        """Take packets that arrived by one call.

        Those in the middle of a message are taken together, the others one by one.
        """
        size_bytes = datagram.segment_bytes
        at = number = 0
        while at < len(payload):
            taken = 0
            if len(payload) - at >= size_bytes >= SMALLEST_BYTES:
                qp = self._qps.get(int.from_bytes(payload[at + 5 : at + 8], "big"))
                if isinstance(qp, RdmaQueuePair) and datagram.destination == self.address:
                    taken = qp.trains.receive(datagram, payload[at:], number, now_ps)
                    if taken:
                        self.wake(qp)
            if taken == 0:
                taken = 1
                packet = payload[at : at + size_bytes]
                self.receive(datagram._replace(parts=(packet,), segment_bytes=0, identification=None), now_ps)
            at += taken * size_bytes
            number += taken

    def datagrams_to_send(self, now_ps: int, most: int = _MOST_DATAGRAMS) -> list[Datagram]:
        """Take the datagrams to send now.

        Parameters
        ----------
        now_ps : instant, never less than before
        most : datagrams to take

        Returns
        -------
        datagrams, whose views of memory hold until the next call; nothing where there is nothing more to send
        """
        found: list[Datagram] = []
        while self._ready and len(found) < most:
            qp = next(iter(self._ready))
            del self._ready[qp]
            for _ in range(_BURST):
                made = qp.next_datagram(now_ps)
                if made is None:
                    break
                found.append(made)
                if len(found) >= most:
                    self._ready[qp] = None  # it may have more
                    break
            else:
                self._ready[qp] = None  # it may have more, after the others
            self._arm(qp)
        return found

    def next_timer_ps(self) -> int | None:
        """When to call `on_timer`, or None.

        It is asked after `datagrams_to_send`. `on_timer` may find nothing due, but is never too late.
        """
        while self._timers and self._armed.get(self._timers[0][1]) != self._timers[0][0]:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def on_timer(self, now_ps: int) -> None:
        """Do all due work."""
        due_ps = self.next_timer_ps()
        while due_ps is not None and due_ps <= now_ps:
            _, number = heapq.heappop(self._timers)
            del self._armed[number]
            qp = self._qps[number]
            qp.on_timer(now_ps)
            self.wake(qp)
            due_ps = self.next_timer_ps()

    def next_event(self) -> AsyncEvent | None:
        """Take the next event, or None; completions are in their queues."""
        return self._events.popleft() if self._events else None

    # For queue pairs

    def wake(self, qp: NicEnd) -> None:
        """Mark a queue pair that has packets to send.

        The next `datagrams_to_send` asks it.
        """
        self._ready[qp] = None

    def tell(self, event: AsyncEvent) -> None:
        """Queue an event."""
        self._events.append(event)

    def flow(self, destination: bytes, source_port: int, dscp: int) -> PacketFlow:
        """Find or make a flow from here.

        UsageError for an address that no packet from here can reach.
        """
        key = (destination, source_port, dscp)
        if key not in self._flows:
            self.encapsulation.check_path(self.address, destination, dscp)
            if len(self._flows) >= self.limits.max_qp:
                self._flows.clear()
            self._flows[key] = PacketFlow(self.address, destination, source_port, self.icrc_states, dscp=dscp)
        return self._flows[key]

    def _arm(self, qp: NicEnd) -> None:
        """Set the wake-up for a queue pair's earliest timer.

        A timer that has moved later is found to be early and set again.
        """
        at_ps = qp.next_timer_ps()
        armed_ps = self._armed.get(qp.qp_num)
        if at_ps is not None and (armed_ps is None or at_ps < armed_ps):
            self._armed[qp.qp_num] = at_ps
            heapq.heappush(self._timers, (at_ps, qp.qp_num))
