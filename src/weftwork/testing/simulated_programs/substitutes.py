"""Python's clocks, threads, locks and sockets, as the threads of simulated programs see them.

While programs run, these names of the standard library stand for functions that let virtual time pass. Other threads
of this process are not affected: for them the functions do what they always do.
Source: Python's library reference, modules time, threading, queue, selectors and socket.
Leaves out: processes that a program starts; `select.select`, `poll` and `epoll` themselves; asyncio is served by its
selector.
"""

from __future__ import annotations

import os
import queue
import select
import selectors
import socket
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.errors import UsageError
from weftwork.testing.simulated_programs.stage import Strand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from weftwork.testing.simulated_programs.stage import TurnStage

__all__ = ["substituted"]

_NS_PER_S: Final = 1_000_000_000
_PS_PER_NS: Final = 1000
_RECEIVING: Final = ("accept", "recv", "recv_into", "recvfrom", "recvfrom_into", "recvmsg", "recvmsg_into")


@contextmanager
def substituted(stage: TurnStage) -> Iterator[None]:
    """Put virtual time in place of the machine's for the threads of a stage.

    Parameters
    ----------
    stage : whose threads are served
    """
    with ExitStack() as stack:
        for of, name, value in (
            *_clocks(stage),
            *_threads(stage),
            *_locks(stage),
            *_sockets(stage),
            (queue, "SimpleQueue", queue._PySimpleQueue),  # type: ignore[attr-defined]  # noqa: SLF001 - the one whose lock is seen
        ):
            stack.enter_context(_replaced(of, name, value))
        yield


@contextmanager
def _replaced(of: Any, name: str, value: object) -> Iterator[None]:  # noqa: ANN401 - a module or a class
    before = vars(of).get(name, _MISSING)
    setattr(of, name, value)
    try:
        yield
    finally:
        if before is _MISSING:
            delattr(of, name)
        else:
            setattr(of, name, before)


_MISSING: Final = object()
_Replacement = tuple[Any, str, object]


# Clocks


def _clocks(stage: TurnStage) -> list[_Replacement]:
    epoch_ns = time.time_ns()
    offsets_ns = {"time": epoch_ns, "monotonic": 0, "perf_counter": 0}
    made: list[_Replacement] = []
    for name, offset_ns in offsets_ns.items():
        made += (
            (time, name, _seconds(stage, getattr(time, name), offset_ns)),
            (time, f"{name}_ns", _nanoseconds(stage, getattr(time, f"{name}_ns"), offset_ns)),
        )
    # modules of the library that keep the function itself
    made += (
        (threading, "_time", _seconds(stage, time.monotonic, 0)),
        (queue, "time", _seconds(stage, time.monotonic, 0)),
    )
    real_sleep = time.sleep

    def sleep(seconds: float) -> None:
        """`time.sleep` in virtual time."""
        if stage.strand() is None:
            real_sleep(seconds)
        elif seconds < 0:
            message = "sleep length must be non-negative"
            raise ValueError(message)
        else:
            stage.wait(None, seconds, waits_for="an instant")

    return [*made, (time, "sleep", sleep)]


def _seconds(stage: TurnStage, real: Callable[[], float], offset_ns: int) -> Callable[[], float]:
    def read() -> float:
        return (offset_ns + stage.read_clock() / _PS_PER_NS) / _NS_PER_S if stage.is_here() else real()

    return read


def _nanoseconds(stage: TurnStage, real: Callable[[], int], offset_ns: int) -> Callable[[], int]:
    def read() -> int:
        return offset_ns + stage.read_clock() // _PS_PER_NS if stage.is_here() else real()

    return read


# Threads


def _threads(stage: TurnStage) -> list[_Replacement]:
    real_start, real_join, real_fork = threading.Thread.start, threading.Thread.join, os.fork
    real_wait = threading.Condition.wait
    strands: dict[threading.Thread, Strand] = {}
    outside = threading.local()  # within the library's own calls

    def start(thread: threading.Thread) -> None:
        """`Thread.start`: the new thread takes turns with the others."""
        parent = stage.strand()
        if parent is None:
            real_start(thread)
            return
        strand = strands[thread] = Strand(thread.name, parent.program, is_daemon=thread.daemon)
        stage.add(strand)
        run = thread.run

        def run_in_turns() -> None:
            with suppress(SystemExit):  # as the library does
                try:
                    stage.begin(strand)
                    run()
                finally:
                    stage.finish()

        thread.run = run_in_turns  # type: ignore[method-assign]
        outside.is_real = True
        try:
            real_start(thread)
        finally:
            outside.is_real = False

    def join(thread: threading.Thread, timeout: float | None = None) -> None:
        """`Thread.join` in virtual time."""
        strand = strands.get(thread)
        if stage.strand() is not None and strand is not None:
            ended = stage.wait(lambda: strand.is_done, timeout, waits_for=f"the end of {thread.name}")
            if not ended:
                return
        real_join(thread, None if strand is not None else timeout)

    def wait(condition: threading.Condition, timeout: float | None = None) -> bool:
        """`Condition.wait` in virtual time; events, queues and barriers are made of it."""
        strand = stage.strand()
        if strand is None or getattr(outside, "is_real", False):
            return real_wait(condition, timeout)
        inner: Any = condition
        if not inner._is_owned():  # noqa: SLF001 - as the library's own `wait`
            message = "cannot wait on un-acquired lock"
            raise RuntimeError(message)
        waiter = _Waiter(stage, strand)
        inner._waiters.append(waiter)  # noqa: SLF001 - as above: `notify` takes it from there
        saved = inner._release_save()  # noqa: SLF001
        try:
            return stage.wait(lambda: waiter.is_told, timeout, waits_for="another thread")
        finally:
            if isinstance(inner._lock, _SeenLock):  # noqa: SLF001
                inner._lock.wait_until_free()  # noqa: SLF001
            if not strand.is_told_to_end:
                inner._acquire_restore(saved)  # noqa: SLF001
            if waiter in inner._waiters:  # noqa: SLF001
                inner._waiters.remove(waiter)  # noqa: SLF001

    def fork() -> int:
        """`os.fork`, which cannot take part."""
        if stage.strand() is not None:
            raise UsageError(
                "fork: found a simulated program that starts a process, wanted a thread or a second program"
            )
        return real_fork()

    return [
        (threading.Thread, "start", start),
        (threading.Thread, "join", join),
        (threading.Condition, "wait", wait),
        (os, "fork", fork),
    ]


class _Waiter:
    """A place in the list of waiters of a condition; `Condition.notify` releases it."""

    def __init__(self, stage: TurnStage, strand: Strand) -> None:
        self._stage: Final = stage
        self._strand: Final = strand
        self.is_told = False

    def release(self) -> None:
        """Take the notification."""
        self.is_told = True
        self._stage.wake(self._strand)


# Locks


def _locks(stage: TurnStage) -> list[_Replacement]:
    real_lock, real_rlock = threading.Lock, threading.RLock

    def lock() -> Any:  # noqa: ANN401 - a lock of one kind or the other
        """`threading.Lock`: of a simulated program, one whose waits are seen."""
        return _SeenLock(stage, real_lock()) if stage.strand() is not None else real_lock()

    def rlock() -> Any:  # noqa: ANN401
        """`threading.RLock`: of a simulated program, one whose waits are seen."""
        return _SeenLock(stage, real_rlock()) if stage.strand() is not None else real_rlock()

    return [(threading, "Lock", lock), (threading, "RLock", rlock)]


class _SeenLock:
    """A lock for which a thread waits on the stage.

    Parameters
    ----------
    stage : where threads wait
    lock : the real one
    """

    def __init__(self, stage: TurnStage, lock: Any) -> None:  # noqa: ANN401 - Lock or RLock
        self._stage: Final = stage
        self._lock: Final = lock
        # of an RLock, for `Condition`; and what library modules give to `os.register_at_fork`
        for name in ("_is_owned", "_release_save", "_acquire_restore", "_at_fork_reinit"):
            if hasattr(lock, name):
                setattr(self, name, getattr(lock, name))

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - as the library's
        """Take the lock; False where it is not to be had in time."""
        if self._lock.acquire(blocking=False):
            return True
        strand = self._stage.strand()
        if not blocking:
            return False
        if strand is None:
            return bool(self._lock.acquire(blocking=True, timeout=timeout))
        if strand.is_told_to_end:
            return True
        limit_s = None if timeout < 0 else timeout
        while self._stage.wait(lambda: not self.locked(), limit_s, waits_for="a lock"):
            if self._lock.acquire(blocking=False):
                return True
        return False

    def wait_until_free(self) -> None:
        """Wait until nobody has it, unless this thread is to end."""
        strand = self._stage.strand()
        if strand is not None and not strand.is_told_to_end:
            self._stage.wait(lambda: not self.locked(), waits_for="a lock")

    def locked(self) -> bool:
        """Whether somebody has it."""
        real = self._lock
        if hasattr(real, "locked"):
            return bool(real.locked())
        if real.acquire(blocking=False):
            real.release()
            return False
        return True

    def release(self) -> None:
        """Give the lock back."""
        strand = self._stage.strand()
        if strand is not None and strand.is_told_to_end:
            with suppress(RuntimeError):  # its wait was cut short, so it may not have the lock
                self._lock.release()
        else:
            self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


# Sockets and selectors


def _sockets(stage: TurnStage) -> list[_Replacement]:
    made: list[_Replacement] = [
        (socket.socket, name, _receiving(stage, getattr(socket.socket, name))) for name in _RECEIVING
    ]
    real_selector = selectors.DefaultSelector

    def selector() -> selectors.BaseSelector:
        """`selectors.DefaultSelector`: of a simulated program, one that waits in virtual time."""
        return _StageSelector(stage) if stage.strand() is not None else real_selector()

    return [*made, (selectors, "DefaultSelector", selector)]


def _receiving(stage: TurnStage, real: Callable[..., Any]) -> Callable[..., Any]:
    def receive(of: socket.socket, *arguments: Any, **more: Any) -> Any:  # noqa: ANN401 - as the socket's own
        if stage.strand() is not None and of.gettimeout() != 0:
            descriptor = of.fileno()
            poller = select.poll()
            poller.register(descriptor, select.POLLIN)
            if not stage.wait(
                lambda: bool(poller.poll(0)), of.gettimeout(), waits_for="a socket", descriptor=descriptor
            ):
                message = "timed out"
                raise TimeoutError(message)
        return real(of, *arguments, **more)

    return receive


class _StageSelector(selectors.EpollSelector):
    """A selector for asyncio, whose waits take virtual time."""

    def __init__(self, stage: TurnStage) -> None:
        super().__init__()
        self._stage: Final = stage

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Descriptors that are ready; it waits for the first one."""
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        look = super().select
        self._stage.wait(lambda: bool(look(0)), timeout, waits_for="a descriptor of asyncio", descriptor=self.fileno())
        return super().select(0)
