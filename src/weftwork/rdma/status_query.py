"""Ask the running processes of this user for the status of their devices.

Source: unix(7), proc(5) (/proc/net/unix, /proc/PID/cmdline).
Leaves out: processes of other users, and of other network namespaces, whose sockets cannot be seen.
"""

from __future__ import annotations

import json
import os
import select
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from weftwork.rdma.status import CREDENTIALS, STATUS_NAME, STATUS_VERSION

__all__ = ["StatusAnswer", "ask_all"]

_SOCKETS: Final = Path("/proc/net/unix")


@dataclass(frozen=True, kw_only=True, slots=True)
class StatusAnswer:
    """One device and its answer.

    Parameters
    ----------
    pid : process of the device
    program : its command line; empty where it has ended
    status : see `weftwork.rdma.status.device_status`; None where none came
    why_not : reason why none came, or an empty text
    """

    pid: int
    program: str
    status: dict[str, Any] | None
    why_not: str


def ask_all(patience_s: float, pid: int | None = None) -> tuple[list[StatusAnswer], int]:
    """Ask all devices at once.

    Parameters
    ----------
    patience_s : seconds for all answers together
    pid : of one process, or None for all

    Returns
    -------
    answers by process, and the number of devices of other users
    """
    waiting: dict[socket.socket, int] = {}
    strangers = 0
    answers: list[StatusAnswer] = []
    try:
        for name in _names():
            asker = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
            try:
                asker.connect(f"\0{name}")
            except OSError as error:  # it has just ended, or many ask it
                asker.close()
                if isinstance(error, BlockingIOError) and pid in {None, _pid_of(name)}:
                    answers.append(_without(_pid_of(name), "too many readers wait for its answer"))
                continue
            owner, uid, _ = CREDENTIALS.unpack(
                asker.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
            )
            strangers += uid != os.getuid()
            if uid != os.getuid() or owner != (pid or owner):
                asker.close()
            else:
                waiting[asker] = owner
        answers += _collect(waiting, patience_s)
    finally:
        for asker in waiting:
            asker.close()
    return sorted(answers, key=lambda answer: (answer.pid, (answer.status or {}).get("address", ""))), strangers


def _names() -> list[str]:
    """Names of the status sockets that listen."""
    found: dict[str, None] = {}
    with _SOCKETS.open(encoding="utf-8", errors="replace") as table:
        for line in table:
            name = line.split()[-1]
            if name.startswith(f"@{STATUS_NAME}"):
                found[name[1:]] = None
    return list(found)


def _pid_of(name: str) -> int:
    number = name.removeprefix(STATUS_NAME).partition("/")[0]
    return int(number) if number.isdigit() else 0


def _collect(waiting: dict[socket.socket, int], patience_s: float) -> list[StatusAnswer]:
    """Take the answers that come in time."""
    end_s = time.monotonic() + patience_s
    answers = []
    left = dict(waiting)
    while left:
        ready, _, _ = select.select(list(left), [], [], max(0.0, end_s - time.monotonic()))
        if not ready:
            break
        answers += [_read(asker, left.pop(asker)) for asker in ready]
    text = (
        f"no answer within {patience_s:g} s: it is busy with its own code, or stopped; "
        "it answers while it waits for RDMA or moves packets"
    )
    return answers + [_without(owner, text) for owner in left.values()]


def _read(asker: socket.socket, owner: int) -> StatusAnswer:
    try:
        _, files, _, _ = socket.recv_fds(asker, 1, 1)
    except OSError as error:
        return _without(owner, f"its answer broke off: {error.strerror}")
    if not files:
        return _without(owner, "it has closed its device")
    with os.fdopen(files[0], "rb") as file:
        file.seek(0)
        status = json.load(file)
    if status.get("version") != STATUS_VERSION:
        return _without(owner, "it runs another version of Weftwork")
    return StatusAnswer(pid=owner, program=_program(owner), status=status, why_not="")


def _without(owner: int, why_not: str) -> StatusAnswer:
    return StatusAnswer(pid=owner, program=_program(owner), status=None, why_not=why_not)


def _program(pid: int) -> str:
    """Command line of a process, or an empty text if it has ended."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return " ".join(word.decode(errors="replace") for word in words if word)
