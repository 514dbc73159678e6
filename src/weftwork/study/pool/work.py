"""The points of a pool, how each ended, and what a worker does before its first.

Leaves out: what is done with a point (`weftwork.study.record.point_run`).
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol

from weftwork.base.errors import ConfigError
from weftwork.base.sharing import share
from weftwork.store.runs import open_run

__all__ = ["PoolItem", "PoolOutcome", "begin_worker", "is_whole"]

_SET_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG of prctl(2), Linux: a worker whose parent was killed ends at once


class PoolItem(Protocol):
    """Something to be done once, whose result is a folder."""

    @property
    def place(self) -> int:
        """Number in the pool, which orders the folders."""

    @property
    def folder(self) -> str:
        """Name of its folder."""

    @property
    def command(self) -> str:
        """The command that does it alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolOutcome:
    """The outcome of a point.

    Attributes
    ----------
    point : its place
    end : ``run``: its folder is whole, however the run itself ended; ``refused``: it cannot be run; ``failed``: an
        error of Weftwork itself; ``lost``: its worker died each time; ``full``: the disk had no room for it
    reason : in words; empty where there is a folder
    is_kept : whether the folder was there before
    tries : workers that have begun it, of which all but the last one died
    """

    point: int
    end: Literal["run", "refused", "failed", "lost", "full"]
    reason: str = ""
    is_kept: bool = False
    tries: int = 1

    @property
    def has_folder(self) -> bool:
        """Whether the folder of the point is whole."""
        return self.end == "run"

    @property
    def is_disk_full(self) -> bool:
        """Whether the disk had no room, so that the pool has to end."""
        return self.end == "full"

    @property
    def has_failed(self) -> bool:
        """Whether the point may succeed in another attempt: it is not the scenario that is wrong."""
        return self.end in {"failed", "lost"}


def begin_worker(parent: int) -> None:
    """Ignore Ctrl-C in a worker, and end it with its parent process.

    A terminal sends Ctrl-C to all processes. A worker also stays however much its memory grows: points differ in size.
    Loky would end it beyond 300 MB, and a point handed to it at that moment would wait for ever.

    Parameters
    ----------
    parent : number of that process
    """
    from joblib.externals.loky import process_executor

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None, use_errno=True).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    share()
    process_executor._MAX_MEMORY_LEAK_SIZE = sys.maxsize  # noqa: SLF001 - loky offers no other switch
    if os.getppid() != parent:  # it ended before the kernel was told
        os._exit(1)


def is_whole(folder: Path) -> bool:
    """Whether a point's run is complete.

    A folder gets its name when it is whole; an interrupted run does not count.
    """
    if not folder.is_dir():
        return False
    try:
        return not open_run(folder).ending.is_by_hand
    except ConfigError:  # damaged after it was written
        return False
