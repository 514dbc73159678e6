"""Bandwidth: many messages in flight, from one end or from both.

Requests are posted in blocks, and a completion stands for a whole block, so that Python does little for a message.
Source: linux-rdma/perftest, src/perftest_resources.c (run_iter_bw, run_iter_bw_server, run_iter_bi).
Leaves out: rate limits; perftest's margins in front of and behind a timed measurement.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from weftwork.rdma.perf.operation import PerfVerb

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.rdma.perf.lanes import PerfLanes
    from weftwork.rdma.verbs import RecvWr, SendWr

__all__ = ["MessageStream"]

_NS_PER_S: Final = 1_000_000_000
_TELL_NS: Final = 100_000_000  # chosen: a line of progress ten times a second
_BATCH: Final = 64  # chosen: receives posted by one call


class MessageStream:
    """Messages of one size at one end.

    Parameters
    ----------
    lanes : of this end
    size_bytes : of each message
    receives : whether the peer sends, so that SEND needs receives

    Attributes
    ----------
    posts, completions : instant in ns and number of messages, in the order of time
    received : messages that have arrived in receives
    """

    def __init__(self, lanes: PerfLanes, size_bytes: int, *, receives: bool) -> None:
        self._lanes: Final = lanes
        self._size_bytes: Final = size_bytes
        self._due: Final[list[list[RecvWr]]] = [[] for _ in lanes.lanes]
        self._recv_wrs: Final[list[RecvWr]] = []
        self.posts: Final[list[tuple[int, int]]] = []
        self.completions: Final[list[tuple[int, int]]] = []
        self.received = 0
        if receives and lanes.plan.verb is PerfVerb.SEND:
            self._post_receives()

    def _post_receives(self) -> None:
        lanes = self._lanes
        for number, lane in enumerate(lanes.lanes):
            wr = lanes.receive(lane, number)
            self._recv_wrs.append(wr)
            free = lanes.plan.rx_depth - len(lane.qp.recv_queue)
            lanes.device.post_recv(lane.qp, *[wr] * free)

    def take_until(self, until: Callable[[], bool]) -> None:
        """Take messages of the peer until a condition holds."""
        lanes = self._lanes
        while not until():
            lanes.device.wait(lambda: len(lanes.recv_cq) > 0 or len(lanes.send_cq) > 0 or until())
            self._take()
            lanes.checked(lanes.device.poll_cq(lanes.send_cq, lanes.send_cq.cqe))
        while len(lanes.recv_cq):  # they came before the letter
            self._take()

    def send_all(self, tell: Callable[[int], None]) -> None:
        """Send all messages, while those of the peer are taken.

        Parameters
        ----------
        tell : is given the number of completed messages, at most ten times a second
        """
        lanes, plan, device = self._lanes, self._lanes.plan, self._lanes.device
        clock_ns, send_cq, recv_cq = time.monotonic_ns, self._lanes.send_cq, self._lanes.recv_cq
        block = plan.moderation(self._size_bytes)
        blocks = [self._block(number, block) for number in range(plan.qps)]
        goal = 0 if plan.duration_s else plan.iterations
        begin_ns = told_ns = clock_ns()
        end_ns = begin_ns + int(plan.duration_s * _NS_PER_S)
        done = sent = 0
        for lane in lanes.lanes:
            lane.posted = lane.completed = 0
        by_number = {lane.qp.qp_num: lane for lane in lanes.lanes}
        may_post = True
        while may_post or done < sent:
            for number, lane in enumerate(lanes.lanes) if may_post else ():
                free = plan.tx_depth - (lane.posted - lane.completed)
                left = goal - lane.posted if goal else free
                wrs = blocks[number] * (min(free, left) // block)
                if goal and left <= free and left % block:
                    wrs = wrs + self._block(number, left % block)
                if wrs:
                    self.posts.append((clock_ns(), len(wrs)))
                    device.post_send(lane.qp, *wrs)
                    lane.posted += len(wrs)
                    sent += len(wrs)
            if done < sent:
                device.wait(lambda: len(send_cq) > 0 or len(recv_cq) > 0)
                before = done
                for wc in lanes.checked(device.poll_cq(send_cq, len(send_cq))) if len(send_cq) else ():
                    by_number[wc.qp_num].completed += wc.wr_id
                    done += wc.wr_id
                now_ns = clock_ns()
                if done > before:
                    self.completions.append((now_ns, done - before))
                if len(recv_cq):
                    self._take()
                if now_ns - told_ns > _TELL_NS:
                    told_ns = now_ns
                    tell(done)
            may_post = clock_ns() < end_ns if not goal else any(lane.posted < goal for lane in lanes.lanes)
        tell(done)

    def _block(self, number: int, count: int) -> list[SendWr]:
        """Requests of which the last one completes."""
        lane = self._lanes.lanes[number]
        plain = self._lanes.request(lane, self._size_bytes, 0)
        return [plain] * (count - 1) + [self._lanes.request(lane, self._size_bytes, count)]

    def _take(self) -> None:
        """Take messages of the peer, and post their receives again."""
        lanes = self._lanes
        due = self._due
        taken = lanes.checked(lanes.device.poll_cq(lanes.recv_cq, _BATCH)) if len(lanes.recv_cq) else []
        for wc in taken:
            due[wc.wr_id].append(self._recv_wrs[wc.wr_id])
        self.received += len(taken)
        for number, wrs in enumerate(due):
            if wrs:
                lanes.device.post_recv(lanes.lanes[number].qp, *wrs)
                wrs.clear()
