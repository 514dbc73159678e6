"""A process of the measurement: client or server, over TCP and over the software NIC.

It reads a line of JSON for each load and prints its figures as a line of JSON; `pair` starts it and talks to it.
Usage: python -m weftwork.rdma.tcp_comparison.end (client | server) ADDRESS [ADDRESS]
"""

from __future__ import annotations

import json
import os
import socket
import sys
from contextlib import ExitStack
from typing import Any

from weftwork.base.errors import PeerError, WeftworkError
from weftwork.rdma.tcp_comparison.rdma_end import QUEUES, CountedDevice, QueueEnd
from weftwork.rdma.tcp_comparison.registering import time_registration
from weftwork.rdma.tcp_comparison.spans import EndSpan
from weftwork.rdma.tcp_comparison.tasks import PATIENCE_S, Task
from weftwork.rdma.tcp_comparison.tcp_end import TcpEnd
from weftwork.wire.checksum import CHECKSUM_LIBRARY

__all__ = ["main"]


def main(words: list[str]) -> int:
    """Be one end until standard input ends.

    Parameters
    ----------
    words : the role, then one address of a client, or two of a server

    Returns
    -------
    exit code: 0, or 1 after an error, which was printed if somebody still reads
    """
    role, *addresses = words
    _take_core(is_first=role == "server")
    try:
        with ExitStack() as stack:
            _Server(addresses, stack).work() if role == "server" else _Client(addresses, stack).work()
    except BrokenPipeError:
        return 1  # who measures has gone, and nobody reads an error
    except (WeftworkError, OSError) as error:
        _say({"error": str(error), "kind": type(error).__name__})
        return 1
    return 0


def _take_core(*, is_first: bool) -> None:
    """Keep this process on one core, apart from the other end.

    Both ends on one core, or on two, differ by more than twice, and the system would choose again and again.
    """
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        os.sched_setaffinity(0, {cores[0] if is_first else cores[-1]})


def _say(figures: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()


def _hear() -> dict[str, Any] | None:
    line = sys.stdin.readline()
    return dict(json.loads(line)) if line else None


def _hear_peer() -> dict[str, Any]:
    told = _hear()
    if told is None:
        raise PeerError("the measurement ended before both ends were connected")
    return told


class _Server:
    """The end whose work is counted."""

    def __init__(self, addresses: list[str], stack: ExitStack) -> None:
        program, alone = addresses
        waiting = CountedDevice(program, QUEUES[:1])
        stack.callback(waiting.device.close)
        self._alone = CountedDevice(alone, QUEUES[1:])
        stack.enter_context(self._alone.device)  # its thread moves packets
        self._queues: dict[str, QueueEnd] = waiting.ends | self._alone.ends
        with socket.create_server((program, 0)) as door:
            door.settimeout(PATIENCE_S)
            _say(
                {
                    "tcp": door.getsockname()[:2],
                    "queues": {name: end.describe() for name, end in self._queues.items()},
                    "checksum": CHECKSUM_LIBRARY,
                    "receive_buffer_bytes": self._alone.port.receive_buffer_bytes,
                }
            )
            peer = _hear_peer()
            line, _ = door.accept()
        line.settimeout(None)
        self._tcp = TcpEnd(line)
        stack.callback(self._tcp.close)
        for name, end in self._queues.items():
            end.connect(peer["queues"][name])
        _say({"ready": True})

    def work(self) -> None:
        """Serve load after load."""
        while (told := _hear()) is not None:
            _say(self._do(Task(**told)))

    def _do(self, task: Task) -> dict[str, Any]:
        queue = self._queues[_partner(task)]
        end: TcpEnd | QueueEnd = self._tcp if task.way == "tcp" else queue
        end.prepare(task)
        packets, completions = self._alone.packets(), queue.completions
        _say({"ready": True})
        span = EndSpan(self._tcp.calls if task.way == "tcp" else queue.owner.port.calls)
        if task.name == "idle" or task.way in {"read", "write"}:
            served = 0
            sys.stdin.readline()  # the program sleeps until the client is done
        else:
            served = end.server(task)
        figures = span.figures()
        return {
            **figures,
            "requests": served,
            "completions": queue.completions - completions,
            "packets": self._alone.packets() - packets,
        }


class _Client:
    """The end whose messages are timed."""

    def __init__(self, addresses: list[str], stack: ExitStack) -> None:
        self._own = CountedDevice(addresses[0], QUEUES)
        stack.callback(self._own.device.close)
        _say({"queues": {name: end.describe() for name, end in self._own.ends.items()}})
        peer = _hear_peer()
        line = socket.create_connection(tuple(peer["tcp"]), timeout=PATIENCE_S)
        line.settimeout(None)
        self._tcp = TcpEnd(line)
        stack.callback(self._tcp.close)
        for name, end in self._own.ends.items():
            end.connect(peer["queues"][name])
        _say({"ready": True})

    def work(self) -> None:
        """Do load after load."""
        while (told := _hear()) is not None:
            task = Task(**told)
            if task.name == "register":
                _say(time_registration(self._own.device, self._own.pd, task.size_bytes))
                continue
            end: TcpEnd | QueueEnd = self._tcp if task.way == "tcp" else self._own.ends[_partner(task)]
            span = EndSpan(self._tcp.calls if task.way == "tcp" else self._own.port.calls)
            times = end.client(task)
            _say(span.figures() | ({} if times is None else times.figures()))


def _partner(task: Task) -> str:
    """What answers the client at the other end."""
    if task.way == "send":
        return "sleeper" if task.is_counted else "program"
    return "nic"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
