"""CPU time, sleeps and system calls of a process between two moments.

Source: getrusage(2) for CPU time and voluntary context switches. Calls are counted where the program makes them.
Leaves out: calls by which a thread waits (poll, sched_yield, futex); a wait that lasts is a sleep.
"""

from __future__ import annotations

import resource
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from weftwork.rdma.drivers.udp import UdpPort

if TYPE_CHECKING:
    from weftwork.rdma.datagram import Datagram

__all__ = ["CountingPort", "EndSpan", "TimedMessages", "percentile"]

_NS_PER_S: Final = 1_000_000_000


class _Moment(NamedTuple):
    wall_ns: int
    user_s: float
    system_s: float
    sleeps: int
    thread_ns: int
    thread_sleeps: int


def _now() -> _Moment:
    process = resource.getrusage(resource.RUSAGE_SELF)
    return _Moment(
        time.perf_counter_ns(),
        process.ru_utime,
        process.ru_stime,
        process.ru_nvcsw,
        time.thread_time_ns(),
        resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw,
    )


class EndSpan:
    """Costs of this process since the span began.

    Parameters
    ----------
    calls : system calls that the program counts while the span lasts
    """

    def __init__(self, calls: Counter[str]) -> None:
        self._calls: Final = calls
        self._calls_before: Final = Counter(calls)
        self._before: Final = _now()

    def figures(self) -> dict[str, Any]:
        """Figures of the whole process and of the calling thread."""
        before, after = self._before, _now()
        return {
            "wall_ns": after.wall_ns - before.wall_ns,
            "user_ns": (after.user_s - before.user_s) * _NS_PER_S,
            "system_ns": (after.system_s - before.system_s) * _NS_PER_S,
            "sleeps": after.sleeps - before.sleeps,
            "thread_ns": after.thread_ns - before.thread_ns,
            "thread_sleeps": after.thread_sleeps - before.thread_sleeps,
            "calls": dict(self._calls - self._calls_before),
        }


class TimedMessages:
    """Times of single messages; its figures are two percentiles."""

    def __init__(self) -> None:
        self.each_ns: Final[list[int]] = []

    def figures(self) -> dict[str, Any]:
        """Median and 99th percentile."""
        each_ns = sorted(self.each_ns)
        return {"p50_ns": percentile(each_ns, 0.50), "p99_ns": percentile(each_ns, 0.99)}


def percentile(ordered: list[int], share: float) -> int:
    """The smallest value that is at least as large as a share of all values.

    Parameters
    ----------
    ordered : ascending, one value at least
    share : above 0, at most 1

    Examples
    --------
    >>> percentile([1, 2, 3, 4], 0.5), percentile([1, 2, 3, 4], 0.99)
    (2, 4)
    """
    rank = -(-len(ordered) * round(share * 1000) // 1000)
    return ordered[rank - 1]


class CountingPort(UdpPort):
    """A port that counts its system calls.

    Attributes
    ----------
    calls : by name; ``empty recvmsg`` is a call that found nothing
    """

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.calls: Final[Counter[str]] = Counter()

    def send(self, datagram: Datagram) -> None:
        """Send and count."""
        self.calls["sendmsg"] += 1
        super().send(datagram)

    def receive(self) -> Datagram | None:
        """Receive and count."""
        found = super().receive()
        self.calls["recvmsg" if found is not None else "empty recvmsg"] += 1
        return found
