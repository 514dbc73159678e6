"""Latency: one message in flight.

WRITE and SEND are answered by a message of the peer's program; READ and atomics by the peer's NIC. Both ends notice a
WRITE by its last byte.
Source: linux-rdma/perftest, src/perftest_resources.c (run_iter_lat_write, run_iter_lat_send, run_iter_lat).
Leaves out: waiting for completion events.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import PeerError
from weftwork.rdma.perf.operation import PerfVerb
from weftwork.rdma.verbs import QpType

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.rdma.perf.lanes import PerfLanes

__all__ = ["PingPong"]

_NS_PER_S: Final = 1_000_000_000
_TELL_NS: Final = 100_000_000  # chosen: a line of progress ten times a second
_PATIENCE_S: Final = 10.0  # chosen: far beyond what a reliable connection takes to repeat a packet
_RECEIVES: Final = 16  # chosen: more than the one message in flight


class PingPong:
    """Messages of one size to and fro.

    Parameters
    ----------
    lanes : of this end, with one queue pair
    size_bytes : of each message
    """

    def __init__(self, lanes: PerfLanes, size_bytes: int) -> None:
        self._lanes: Final = lanes
        self._lane: Final = lanes.lanes[0]
        self._size_bytes: Final = size_bytes
        self._verb: Final = lanes.plan.verb
        self._wr: Final = lanes.request(self._lane, size_bytes, 0 if lanes.plan.halves else 1)
        self._recv_wr: Final = lanes.receive(self._lane, 0)
        self._last: Final = self._lane.at_bytes + size_bytes - 1
        lanes.incoming[:] = 0
        if self._verb is PerfVerb.SEND:
            free = min(_RECEIVES, lanes.plan.rx_depth) - len(self._lane.qp.recv_queue)
            lanes.device.post_recv(self._lane.qp, *[self._recv_wr] * free)

    def ask(self, tell: Callable[[int], None]) -> list[int]:
        """Measure every round trip, in ns.

        Parameters
        ----------
        tell : is given the number of messages, at most ten times a second

        Raises
        ------
        PeerError : an answer does not come
        """
        plan, clock_ns = self._lanes.plan, time.monotonic_ns
        begin_ns = told_ns = clock_ns()
        end_ns = begin_ns + int(plan.duration_s * _NS_PER_S)
        samples: list[int] = []
        most = plan.iterations if not plan.duration_s else None
        while len(samples) != most and (most is not None or begin_ns < end_ns):
            number = len(samples) + 1
            self._post(number)
            if not self._wait(number, lambda: False, _PATIENCE_S):
                raise PeerError(self._late(number))
            now_ns = clock_ns()
            samples.append(now_ns - begin_ns)
            if now_ns - told_ns > _TELL_NS:
                told_ns = now_ns
                tell(number)
                now_ns = clock_ns()
            begin_ns = now_ns
        tell(len(samples))
        return samples

    def answer(self, until: Callable[[], bool]) -> None:
        """Answer every message until a condition holds."""
        number = 1
        while self._lanes.plan.halves and self._wait(number, until, None):
            self._post(number)
            number += 1
        self._lanes.device.wait(until)

    def _post(self, number: int) -> None:
        lanes = self._lanes
        if self._verb is PerfVerb.WRITE:
            lanes.outgoing[self._last] = number & 0xFF
        lanes.device.post_send(self._lane.qp, self._wr)

    def _wait(self, number: int, until: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait for the message or completion of this number; False after the other condition or the timeout."""
        lanes, device = self._lanes, self._lanes.device
        send_cq, recv_cq = lanes.send_cq, lanes.recv_cq
        if not lanes.plan.halves:
            device.wait_cq(send_cq, timeout_s)
            return bool(lanes.checked(device.poll_cq(send_cq, 1)))
        memory, last, wanted = lanes.incoming.data, self._last, number & 0xFF
        is_write = self._verb is PerfVerb.WRITE

        def came() -> bool:
            return memory[last] == wanted if is_write else len(recv_cq) > 0

        while True:
            is_in_time = device.wait(lambda: came() or len(send_cq) > 0 or until(), timeout_s)
            if len(send_cq):  # a failure, or a success that nobody has asked for
                lanes.checked(device.poll_cq(send_cq, len(send_cq)))
            if came():
                break
            if until() or not is_in_time:
                return False
        if not is_write:
            lanes.checked(device.poll_cq(recv_cq, 1))
            device.post_recv(self._lane.qp, self._recv_wr)
        return True

    def _late(self, number: int) -> str:
        text = f"no answer to message {number} within {_PATIENCE_S:.0f} s"
        if self._lanes.plan.qp_type is not QpType.RC:
            return f"{text}: a packet was lost, and {self._lanes.plan.connection} repeats none; run it again, or use RC"
        return f"{text}: the peer is stopped or its machine is overloaded"
