"""The two processes of a measurement, and the talk with them.

Both run on addresses of the loopback that no other measurement of this machine has at the time.
Leaves out: what they measure, see `end`.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, Self, cast

from weftwork.base.errors import EngineError, PeerError, UsageError
from weftwork.rdma.tcp_comparison.tasks import PATIENCE_S, Task

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["BothFigures", "MeasuredPair", "MeasuringProcess"]

_SOURCE: Final = str(Path(__file__).parents[3])  # that holds the package of this process
_MODULE: Final = "weftwork.rdma.tcp_comparison.end"
_LATE_S: Final = 2 * PATIENCE_S  # chosen: an end gives up by itself before
_ERRORS: Final = {"UsageError": UsageError}


class BothFigures(NamedTuple):
    """Figures of client and server for one load."""

    client: dict[str, Any]
    server: dict[str, Any]


class MeasuredPair:
    """Client and server; they end with the ``with`` block.

    Attributes
    ----------
    about : what the server says of itself

    Raises
    ------
    UsageError : an end has no port, such as where another program has UDP port 4791 of all addresses
    PeerError : an end waited for the other one in vain
    EngineError : an end broke off
    """

    def __init__(self) -> None:
        subnet = f"127.{64 + secrets.randbelow(128)}.{secrets.randbelow(256)}"
        self._server: Final = MeasuringProcess("server", f"{subnet}.2", f"{subnet}.3")
        self._client: Final = MeasuringProcess("client", f"{subnet}.1")
        self.about: dict[str, Any] = {}

    def __enter__(self) -> Self:
        try:
            self.about = self._server.hear()
            told = self._client.hear()
            self._server.say(told)
            self._client.say(self.about)
            for end in (self._server, self._client):
                end.hear()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        for end in (self._client, self._server):
            end.stop()

    def run(self, task: Task) -> BothFigures:
        """Do one load."""
        self._server.say(asdict(task))
        self._server.hear()
        self._client.say(asdict(task))
        client = self._client.hear()
        if task.way in {"read", "write"}:
            self._server.say({})  # wakes it
        return BothFigures(client, self._server.hear())

    def idle(self, span_s: float) -> BothFigures:
        """Let the server do nothing for a span of time."""
        self._server.say(asdict(Task(name="idle", way="read", size_bytes=0, count=0)))
        self._server.hear()
        time.sleep(span_s)
        self._server.say({})
        return BothFigures({}, self._server.hear())

    def register(self, size_bytes: int) -> dict[str, Any]:
        """Let the client time the registration of a buffer."""
        self._client.say(asdict(Task(name="register", way="read", size_bytes=size_bytes, count=1)))
        return self._client.hear()


class MeasuringProcess:
    """A process that answers a line of JSON with another one.

    Parameters
    ----------
    role, addresses : as `end` takes them
    """

    def __init__(self, role: str, *addresses: str) -> None:
        known = os.environ.get("PYTHONPATH")
        self._role: Final = role
        self._heard = b""
        self._process: Final = subprocess.Popen(  # noqa: S603 - this Python, with arguments of ours
            [sys.executable, "-m", _MODULE, role, *addresses],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": _SOURCE if known is None else f"{_SOURCE}{os.pathsep}{known}"},
            start_new_session=True,  # Ctrl-C ends the measurement, which then ends this process
        )
        self._to: Final = cast("IO[bytes]", self._process.stdin)
        self._from: Final = cast("IO[bytes]", self._process.stdout)

    def say(self, told: dict[str, Any]) -> None:
        """Write a line."""
        try:
            self._to.write(json.dumps(told).encode() + b"\n")
            self._to.flush()
        except BrokenPipeError:
            self.hear()  # says why
            raise

    def hear(self) -> dict[str, Any]:
        """Read a line; raises what the process says is wrong."""
        descriptor = self._from.fileno()
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        until_s = time.monotonic() + _LATE_S
        while b"\n" not in self._heard:
            if not poller.poll(max(0.0, until_s - time.monotonic()) * 1000):
                raise PeerError(f"the {self._role} of the measurement has not answered for {_LATE_S:.0f} s")
            piece = os.read(descriptor, 1 << 16)
            if not piece:
                raise EngineError(f"the {self._role} of the measurement broke off; standard error has its traceback")
            self._heard += piece
        line, _, self._heard = self._heard.partition(b"\n")
        told = dict(json.loads(line))
        if "error" in told:
            raise _ERRORS.get(told["kind"], PeerError)(told["error"])
        return told

    def stop(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for stream in (self._to, self._from):
            try:
                stream.close()
            except BrokenPipeError:
                continue  # nobody reads what was still to be written
