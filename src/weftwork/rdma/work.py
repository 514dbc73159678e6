"""A future result, for asyncio, for threads, or for polling."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from weftwork.base.errors import PeerError, UsageError
from weftwork.rdma.verbs import WcStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any, Protocol

    from weftwork.base.errors import WeftworkError
    from weftwork.rdma.verbs import Wc

    class Waiter(Protocol):
        """Makes progress while a thread waits."""

        def wait(self, until: Callable[[], bool], timeout_s: float | None) -> bool:
            """Wait for a condition; False after the timeout."""


__all__ = ["Work", "WorkError"]

_Result = TypeVar("_Result")

# What a user can do about a status; the words of the status itself are those of verbs.
_HINTS: Final = {
    WcStatus.LOC_LEN_ERR: "the message is longer than its receive, or than 2^31 bytes",
    WcStatus.LOC_PROT_ERR: "the local memory is not registered in the domain of the queue pair, or not for this use",
    WcStatus.WR_FLUSH_ERR: "the connection ended before this request; an earlier request or the peer tells why",
    WcStatus.MW_BIND_ERR: "the key is not one of a bound window of type 2, or the region forbids binding",
    WcStatus.REM_INV_REQ_ERR: "the peer takes no such request: its queue pair lacks the right, the message is longer "
    "than its receive, or an atomic is not aligned to 8 bytes",
    WcStatus.REM_ACCESS_ERR: "the peer gives no such access: check rkey, address, length and the rights of its region",
    WcStatus.REM_OP_ERR: "the peer could not do it: the memory of its receive is not registered",
    WcStatus.RETRY_EXC_ERR: "the peer did not answer; check that it runs, that packets pass both ways (RoCEv2: UDP "
    "port 4791), and that packets of this path MTU pass",
    WcStatus.RNR_RETRY_EXC_ERR: "the peer posted no receive in time",
}


class WorkError(PeerError):
    """A work request ended with an error.

    Parameters
    ----------
    wc : its completion
    more : what else is known, or an empty text
    """

    def __init__(self, wc: Wc, more: str = "") -> None:
        self.wc = wc
        self.more = more
        super().__init__(wc, more)

    def __str__(self) -> str:
        hint = _HINTS.get(self.wc.status, "")
        text = f"{self.wc.opcode.name} ended with {self.wc.status.name}"
        return ": ".join(part for part in (text, hint, self.more) if part)


class Work(Generic[_Result]):
    """A future result.

    ``await work`` and ``work.wait()`` give the result, or raise the error that came instead.

    Parameters
    ----------
    waiter : the device

    Attributes
    ----------
    is_left : somebody has waited for it and given up
    """

    def __init__(self, waiter: Waiter) -> None:
        self._waiter: Final = waiter
        self._guard: Final = threading.Lock()
        self._is_done = False
        self._result: _Result | None = None
        self._error: WeftworkError | None = None
        self._callbacks: list[Callable[[], object]] = []
        self.is_left = False

    @property
    def is_done(self) -> bool:
        """Whether there is a result or an error."""
        return self._is_done

    def result(self) -> _Result:
        """Result of finished work, or its raised error; UsageError before."""
        if not self._is_done:
            raise UsageError("work: found it on its way, wanted it done; await it, or call wait()")
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]

    def wait(self, timeout_s: float | None = None) -> _Result:
        """Wait in this thread.

        Parameters
        ----------
        timeout_s : seconds, or None for as long as it takes

        Raises
        ------
        TimeoutError : the time was over before; the work goes on
        WeftworkError : the work failed
        """
        self.is_left = False
        if not self._waiter.wait(lambda: self._is_done, timeout_s):
            message = f"the work was not done after {timeout_s} s"
            self.is_left = True
            raise TimeoutError(message)
        return self.result()

    def __await__(self) -> Generator[Any, None, _Result]:
        if not self._is_done:
            loop = asyncio.get_running_loop()
            future = loop.create_future()

            def wake() -> None:
                if not future.done():
                    future.set_result(None)

            def tell() -> None:
                with suppress(RuntimeError):  # the loop was closed meanwhile
                    loop.call_soon_threadsafe(wake)

            self.is_left = False
            self.when_done(tell)
            try:
                yield from future
            finally:
                with self._guard:
                    if tell in self._callbacks:
                        self._callbacks.remove(tell)
                        self.is_left = True
        return self.result()

    def when_done(self, callback: Callable[[], object]) -> None:
        """Register a function to be called when the work is done.

        The thread that ends the work calls it; for finished work it is called at once.
        """
        with self._guard:
            if not self._is_done:
                self._callbacks.append(callback)
                return
        callback()

    def succeed(self, result: _Result) -> None:
        """Set the result, once."""
        self._end(result, None)

    def fail(self, error: WeftworkError) -> None:
        """Set the error; finished work does not change."""
        self._end(None, error)

    def _end(self, result: _Result | None, error: WeftworkError | None) -> None:
        with self._guard:
            if self._is_done:
                return
            self._result, self._error, self._is_done = result, error, True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()
