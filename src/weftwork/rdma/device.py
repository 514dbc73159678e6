"""A software RDMA device: the NIC, its port, and its packet mover.

Its methods are the verbs, by the names of libibverbs without ``ibv_``. Packets move in a thread of the device
(``with``), in the loop of asyncio (``async with``), or only while the caller waits or calls `progress` (neither).
Source: IBTA vol. 1, chapter 11; rdma-core libibverbs.
Leaves out: connections, see `connection`; the protocol, see `nic`.
"""

from __future__ import annotations

import asyncio
import os
import select
import threading
import time
import weakref
from typing import TYPE_CHECKING, Final, Self

from weftwork.base.errors import UsageError, WeftworkError
from weftwork.rdma.bells import close_all, make_bell, milliseconds, ring, silence
from weftwork.rdma.callbacks import Callbacks
from weftwork.rdma.drivers.rocev2 import over_port
from weftwork.rdma.queue_pair import EventType
from weftwork.rdma.status import StatusDoor
from weftwork.rdma.turns import FairLock
from weftwork.rdma.verbs import AccessFlags, QpState
from weftwork.rdma.wires import WireOptions, open_wire

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from weftwork.policies.load import LoadedPolicy
    from weftwork.rdma.completion import CompletionChannel, CompletionQueue
    from weftwork.rdma.device_parts import Conversations, PacketMover, VirtualTime, WirePort
    from weftwork.rdma.drivers.port import DatagramPort
    from weftwork.rdma.memory import MemoryRegion, MemoryWindow, ProtectionDomain, WritableBuffer
    from weftwork.rdma.nic import RdmaNic
    from weftwork.rdma.queue_pair import AsyncEvent, NicLimits, RdmaQueuePair
    from weftwork.rdma.receive_queue import RecvQueue
    from weftwork.rdma.verbs import QpAttr, QpType, RecvWr, SendWr, Wc

__all__ = ["RdmaDevice"]

_LOCAL: Final = AccessFlags.LOCAL_WRITE
_GRACE_S: Final = 0.001  # chosen: a thread that waits again and again is not disturbed by that of the device
_SPIN_S: Final = 0.0003  # chosen: a way there and back between two such NICs; then a thread that waits sleeps
_STEPS_OF_A_TURN: Final = 32  # chosen: then other work of the loop of asyncio has its turn


class RdmaDevice:
    """A device with one address of this machine.

    Parameters
    ----------
    address : loopback unless told otherwise: nobody outside this machine can send to it
    wire : how packets reach the peer, one of ``weftwork.rdma.wires.WIRES``
    port : another port than the UDP port of the address, such as one of a wire in memory
    checks_identification : receive by a raw socket, so that every bit that the ICRC covers is checked (see ``raw``)
    offload : let the system cut and join packets (UDP_SEGMENT, UDP_GRO)
    limits : on objects; None lets a queue pair have as many packets on their way as the receive buffer holds
    congestion_control : for every connection, by its name in the catalogue such as dcqcn or as loaded, or None; each
        packet is then sent by itself
    line_rate_bps : where congestion control starts

    Raises
    ------
    UsageError : the address or its port is not to be had

    Attributes
    ----------
    nic, port : the parts
    is_closed : it takes no work any more
    closed : set when the system has back what it gave
    """

    def __init__(
        self,
        address: str = "127.0.0.1",
        *,
        wire: str = "rocev2",
        port: DatagramPort | None = None,
        checks_identification: bool = False,
        offload: bool = True,
        limits: NicLimits | None = None,
        congestion_control: LoadedPolicy | str | None = None,
        line_rate_bps: int = 100_000_000_000,
    ) -> None:
        options = WireOptions(
            checks_identification=checks_identification,
            offload=offload,
            limits=limits,
            congestion_control=congestion_control,
            line_rate_bps=line_rate_bps,
        )
        opened = open_wire(wire, address, options) if port is None else over_port(port, options)
        self.port: Final[WirePort] = opened.port
        self.nic: Final[RdmaNic] = opened.nic
        self._driver: Final[PacketMover] = opened.mover
        self._time: Final[VirtualTime | None] = opened.time
        self._make_manager: Final = opened.make_manager
        self._others_at_port: Final = opened.others_at_port
        self._lock: Final = FairLock()
        self._callbacks: Final = Callbacks()
        self._events: Final[list[AsyncEvent]] = []
        self._bell: Final = make_bell()
        self._end: Final = make_bell()  # rung once, when the device closes
        self._give_back: Final = weakref.finalize(self, close_all, self._bell, self._end)
        self._door: Final = StatusDoor(self) if self._time is None else None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._sleeps_until_s: float | None = None
        self._is_sleeping = False
        self._waiters = 0
        self._left: Final = threading.Event()  # by the last who waits, once the device closes
        self._attended_until_s = 0.0
        self._closing: Final = threading.Event()
        self.is_closed = False
        self.closed: Final = threading.Event()
        self._at_close: Final[dict[object, Callable[[], None]]] = {}
        self._failure: Exception | None = None
        _open.add(self)

    # Memory

    def alloc_pd(self) -> ProtectionDomain:
        """Make a protection domain."""
        return self.nic.alloc_pd()

    def reg_mr(self, pd: ProtectionDomain, buffer: WritableBuffer, access: AccessFlags = _LOCAL) -> MemoryRegion:
        """Register a buffer without a copy.

        Nobody else may touch it unless ``access`` says so.
        """
        with self._lock:
            return self.nic.memory.register(pd, buffer, access)

    def dereg_mr(self, mr: MemoryRegion) -> None:
        """Forget a region; UsageError while windows are bound to it."""
        with self._lock:
            self.nic.memory.deregister(mr)

    def alloc_mw(self, pd: ProtectionDomain, window_type: int) -> MemoryWindow:
        """Make a memory window of type 1 or 2."""
        with self._lock:
            return self.nic.memory.allocate_window(pd, window_type)

    def dealloc_mw(self, mw: MemoryWindow) -> None:
        """Forget a memory window."""
        with self._lock:
            self.nic.memory.free_window(mw)

    # Queues

    def create_cq(self, cqe: int, channel: CompletionChannel | None = None) -> CompletionQueue:
        """Make a completion queue.

        Without a separate channel, `wait_cq` can wait for it.
        """
        with self._lock:
            return self.nic.create_cq(cqe, self._callbacks.channel if channel is None else channel)

    def destroy_cq(self, cq: CompletionQueue) -> None:
        """Forget a completion queue; UsageError while a queue pair uses it."""
        with self._lock:
            self.nic.destroy_cq(cq)
            self._callbacks.set_for(cq, None)

    def create_srq(self, max_wr: int, max_sge: int = 1) -> RecvQueue:
        """Make a shared receive queue."""
        with self._lock:
            return self.nic.create_srq(max_wr, max_sge)

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
        """Make a queue pair; see `RdmaNic.create_qp`."""
        with self._lock:
            return self.nic.create_qp(pd, qp_type, cqs, max_recv_wr=max_recv_wr, srq=srq, sq_sig_all=sq_sig_all)

    def destroy_qp(self, qp: RdmaQueuePair) -> None:
        """Forget a queue pair."""
        with self._lock:
            for group in self.nic.groups.of(qp):
                self._leave(qp, group)
            self.nic.destroy_qp(qp)

    def attach_mcast(self, qp: RdmaQueuePair, group: bytes) -> None:
        """Let a queue pair of type UD take the datagrams of a group.

        Parameters
        ----------
        qp : any number of queue pairs may be in a group
        group : IP multicast address, 4 or 16 bytes in network order

        Raises
        ------
        UsageError : see `MulticastGroups.attach`; or the port cannot join the group
        """
        with self._lock:
            self._check_open()
            if self.nic.groups.attach(qp, group):
                try:
                    self.port.join(group)
                except UsageError:
                    self.nic.groups.detach(qp, group)
                    raise

    def detach_mcast(self, qp: RdmaQueuePair, group: bytes) -> None:
        """Take a queue pair out of a group; UsageError if it is not in it."""
        with self._lock:
            self._leave(qp, group)

    def _leave(self, qp: RdmaQueuePair, group: bytes) -> None:
        if self.nic.groups.detach(qp, group):
            self.port.leave(group)

    def modify_qp(self, qp: RdmaQueuePair, state: QpState, attr: QpAttr | None = None) -> None:
        """Take a queue pair to another state; see `RdmaQueuePair.modify`."""
        with self._lock:
            qp.modify(state, attr)
            self.kick()

    def post_send(self, qp: RdmaQueuePair, *wrs: SendWr) -> None:
        """Post requests and send the packets that may go at once."""
        with self._lock:
            for wr in wrs:
                qp.post_send(wr)
            self.kick()

    def post_recv(self, qp: RdmaQueuePair, *wrs: RecvWr) -> None:
        """Post receives."""
        with self._lock:
            self._check_open()
            for wr in wrs:
                qp.post_recv(wr)
            if qp.state is QpState.ERR:
                self._dispatch()  # it has ended at once

    def post_srq_recv(self, srq: RecvQueue, *wrs: RecvWr) -> None:
        """Post receives that several queue pairs share."""
        with self._lock:
            for wr in wrs:
                srq.post(wr)

    def poll_cq(self, cq: CompletionQueue, most: int = 1) -> list[Wc]:
        """Take completions.

        Without a thread or a loop, packets move first.
        """
        if self._time is not None and not len(cq):
            self._time.poll(self._looks(lambda: len(cq) > 0))
        with self._lock:
            if self._thread is None and self._loop is None and not len(cq):
                self._step()
            return cq.poll(most)

    def wait_cq(self, cq: CompletionQueue, timeout_s: float | None = None) -> bool:
        """Wait for completions in a queue; False after the timeout."""
        return self.wait(lambda: len(cq) > 0, timeout_s)

    def get_async_event(self) -> AsyncEvent | None:
        """Take the oldest asynchronous event, or None.

        For example, a failed or drained queue pair.
        """
        with self._lock:
            return self._events.pop(0) if self._events else None

    # For connections

    def on_completion(self, cq: CompletionQueue, handler: Callable[[], None] | None) -> None:
        """Register a function for new completions of this device; None removes it.

        The function is called whenever the completion queue gets a completion.
        """
        with self._lock:
            self._callbacks.set_for(cq, handler)

    def on_close(self, key: object, handler: Callable[[], None] | None) -> None:
        """Register a function for the device's closing; None removes it.

        It is called while the device still sends.
        """
        if handler is None:
            self._at_close.pop(key, None)
        else:
            self._at_close[key] = handler

    def after_step(self, handler: Callable[[], None]) -> None:
        """Register a function that runs after packets have moved."""
        self._callbacks.after.append(handler)

    def make_manager(self) -> Conversations:
        """Make the connection manager of this device; UsageError for a second one."""
        return self._make_manager()

    def port_error(self, *, is_silent: bool) -> str:
        """What is known at the port about a failure, or an empty text.

        Parameters
        ----------
        is_silent : the peer has not answered; somebody else may have its packets
        """
        others = self._others_at_port() if is_silent else ""
        return ". ".join(part for part in (self.port.last_error, others) if part)

    @property
    def lock(self) -> FairLock:
        """Held while packets move and while objects change."""
        return self._lock

    # Progress

    def progress(self) -> bool:
        """Move packets once; returns whether there was work."""
        with self._lock:
            return self._step()

    def _check_open(self) -> None:
        if self.is_closed:
            raise UsageError("device: found it closed, wanted it open")

    def _step(self) -> bool:
        is_busy = self._driver.progress()
        self._dispatch()
        if self._door is not None:
            self._door.look()
        return is_busy

    def _dispatch(self) -> None:
        """Keep the events of the NIC, and call the registered functions."""
        while (event := self.nic.next_event()) is not None:
            if event.event_type is not EventType.QP_FATAL or len(self._events) < self.nic.limits.max_qp:
                self._events.append(event)
        self._callbacks.call()

    def kick(self) -> None:
        """Send packets that can go now.

        It is called with the lock held, after something was posted.
        """
        self._check_open()
        if self._failure is not None:
            raise self._failure
        self._driver.send()
        is_called = self._callbacks.is_calling
        self._dispatch()
        if is_called:  # by a function, whose caller goes on
            return
        if self._loop is not None:
            self._on_loop()
        elif self._is_sleeping:
            wait_s = self._driver.wait_s()
            if wait_s is not None and (
                self._sleeps_until_s is None or time.monotonic() + wait_s < self._sleeps_until_s
            ):
                ring(self._bell)

    def wait(self, until: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Wait in this thread for a condition that packets bring about.

        Parameters
        ----------
        until : asked whenever packets have moved
        timeout_s : seconds, or None

        Returns
        -------
        False where the time was over before

        Raises
        ------
        UsageError : called inside the loop of asyncio that moves the packets; there ``await`` waits
        """
        end_s = None if timeout_s is None else time.monotonic() + timeout_s
        if self._loop is not None:
            raise UsageError("wait: found it called in a device of asyncio, wanted await")
        with self._lock:
            if self._lock.depth > 1:
                raise UsageError("wait: found it called by a function that the device calls, wanted another thread")
            self._check_open()
            self._waiters += 1
        try:
            if self._time is not None:
                return self._time.wait(self._looks(until), timeout_s)
            return self._attend(until, end_s)
        finally:
            with self._lock:
                self._waiters -= 1
                self._attended_until_s = time.monotonic() + _GRACE_S
                if self.is_closed and not self._waiters:
                    self._left.set()

    def _looks(self, until: Callable[[], bool]) -> Callable[[], bool]:
        """A condition that first calls the registered functions, for virtual time."""

        def holds() -> bool:
            with self._lock:
                if not self.is_closed:
                    self._step()
                if until():
                    return True
                self._check_open()
            return False

        return holds

    def _attend(self, until: Callable[[], bool], end_s: float | None) -> bool:
        """Move packets in this thread, while the device's thread rests."""
        busy_s = time.monotonic()
        poller = self._poller()
        while True:
            with self._lock:
                is_busy = not self.is_closed and self._step()
                if until():
                    return True
                self._check_open()
                if self._failure is not None:
                    raise self._failure
                wait_s = self._driver.wait_s()
            now_s = time.monotonic()
            if end_s is not None:
                left_s = end_s - now_s
                if left_s <= 0:
                    return False
                wait_s = left_s if wait_s is None else min(wait_s, left_s)
            if is_busy:
                busy_s = now_s
                continue
            if now_s < busy_s + _SPIN_S:
                os.sched_yield()  # a thread that sleeps wakes late; what waits for this core comes first
                continue
            poller.poll(milliseconds(wait_s))

    def _poller(self) -> select.poll:
        """Poller that wakes for packets, for the end of the device, and for those who ask for its status."""
        poller = select.poll()
        for waker in (self.port, self._end, self._door):
            if waker is not None:
                poller.register(waker, select.POLLIN)
        return poller

    def _run(self) -> None:
        """Run the device's thread: move packets until the device closes."""
        try:
            self._move_packets()
        except (OSError, WeftworkError) as error:
            self._failure = error  # told to whoever posts or waits

    def _move_packets(self) -> None:
        poller = self._poller()
        poller.register(self._bell, select.POLLIN)
        while not self._closing.is_set():
            if self._waiters or time.monotonic() < self._attended_until_s:
                self._closing.wait(_GRACE_S)  # another thread moves packets, and has just done so
                continue
            with self._lock:
                if self.is_closed:
                    return
                is_busy = self._step()
                if not is_busy:
                    wait_s = self._driver.wait_s()
                    self._sleeps_until_s = None if wait_s is None else time.monotonic() + wait_s
                    self._is_sleeping = True
            if is_busy:
                continue
            poller.poll(milliseconds(wait_s))
            self._is_sleeping = False
            with self._lock:
                silence(self._bell)

    # With a thread

    def __enter__(self) -> Self:
        self._check_idle()
        if self._time is not None:
            return self  # packets move while time passes
        self._thread = threading.Thread(target=self._run, name="weftwork-rdma", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_idle(self) -> None:
        if self.is_closed or self._thread is not None or self._loop is not None:
            raise UsageError("device: found it in use or closed, wanted a new one")

    # With asyncio

    async def __aenter__(self) -> Self:
        self._check_idle()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self.port.fileno(), self._on_loop)
        if self._door is not None:
            self._loop.add_reader(self._door.fileno(), self._on_loop)
        self._on_loop()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _on_loop(self) -> None:
        """Move packets, yield to the loop, and schedule the next run."""
        loop = self._loop
        if loop is None:
            return
        with self._lock:
            steps = 0
            while steps < _STEPS_OF_A_TURN and not self.is_closed and self._step():
                steps += 1
            if self._loop is None:
                return  # closed by a function that was called
            wait_s = self._driver.wait_s()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if steps == _STEPS_OF_A_TURN:
            loop.call_soon(self._on_loop)
        elif wait_s is not None:
            self._timer = loop.call_later(wait_s, self._on_loop)

    def close(self) -> None:
        """Stop, and close the sockets; regions are no longer pinned."""
        with self._lock:
            if self.is_closed:
                return
            for handler in list(self._at_close.values()):
                handler()
            self.is_closed = True
            self._closing.set()
            ring(self._end)
            if not self._waiters:
                self._left.set()
            is_inside = self._lock.depth > 1
        if self._loop is not None:
            self._loop.remove_reader(self.port.fileno())
            if self._door is not None:
                self._loop.remove_reader(self._door.fileno())
            if self._timer is not None:
                self._timer.cancel()
            self._loop = None
        if is_inside:  # the function that has called this one still uses what is to be given back
            threading.Thread(target=self._finish, name="weftwork-rdma-close").start()
        else:
            self._finish()

    def _finish(self) -> None:
        """Release everything when nobody uses it any more."""
        if self._thread is not None:
            self._thread.join()
        self._left.wait()
        with self._lock:
            self.nic.memory.unpin_all()
            self.port.close()
            if self._door is not None:
                self._door.close()
            self._give_back()
        self.closed.set()


_open: Final[weakref.WeakSet[RdmaDevice]] = weakref.WeakSet()


def _leave_to_parent() -> None:
    """Give up the devices that a process has inherited by a fork.

    The child closes its copies of the sockets without a word to any peer: else the system would go on to deliver
    packets to them, which nobody reads, after the parent has closed its own.
    """
    for device in list(_open):
        if not device.is_closed:
            device.is_closed = True
            device.port.close()
    _open.clear()


os.register_at_fork(after_in_child=_leave_to_parent)
