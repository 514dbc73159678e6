"""A server in a process of its own, for both ends on one machine.

The process writes one line of JSON when it listens, serves one client, and ends. It ends with its parent too.
Usage: python -m weftwork.rdma.perf.own_server ADDRESS PORT WIRE
Source: prctl(2) (PR_SET_PDEATHSIG).
Leaves out: servers that people start, see ``weftwork rdma perf --server``.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import PeerError, UsageError, WeftworkError
from weftwork.rdma.perf.meeting import Door
from weftwork.rdma.perf.session import PerfServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["own_server"]

_PR_SET_PDEATHSIG: Final = 1  # Linux include/uapi/linux/prctl.h
_PATIENCE_S: Final = 60.0  # chosen: for a child that has been told to end


@contextmanager
def own_server(address: str, port: int, wire: str) -> Iterator[int]:
    """Run a server in a child process; gives the port on which it listens.

    Parameters
    ----------
    address : of this machine
    port : wanted; another one where it is taken
    wire : one of ``weftwork.rdma.wires.WIRES``

    Raises
    ------
    UsageError : the address or the port is not to be had
    PeerError : the process ended early
    """
    sources = str(Path(__file__).parents[3])
    path = os.pathsep.join(part for part in (sources, os.environ.get("PYTHONPATH", "")) if part)
    child = subprocess.Popen(  # noqa: S603 - Python itself, with arguments that are no shell words
        [sys.executable, "-m", "weftwork.rdma.perf.own_server", address, str(port), wire],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    try:
        line = child.stdout.readline() if child.stdout is not None else ""
        told = json.loads(line) if line.startswith("{") else {}
        if "error" in told:
            raise UsageError(str(told["error"]))
        if "port" not in told:
            raise PeerError("the server process ended before it listened; its message is above")
        yield int(told["port"])
        child.wait(_PATIENCE_S)
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
        if child.stdout is not None:
            child.stdout.close()


def main(words: Sequence[str]) -> int:
    """Serve one client; returns the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    address, port, wire = words
    try:
        door = Door(address, int(port), wire=wire, takes_other=True)
    except UsageError as error:
        _say({"error": str(error)})
        return 2
    with door:
        _say({"port": door.port})
        try:
            connection = door.next_request()
            PerfServer(connection, {}, door.next_request).serve()
            connection.closed.wait()
        except WeftworkError as error:  # the client is told, or has gone
            sys.stderr.write(f"server: {error}\n")
            return 1
    return 0


def _say(letter: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(letter) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
