"""The task of a worker: run one point as ``weftwork run`` does.

It sends back how the run ended.

What is the user's mistake, or a full disk, comes home as an outcome, so that one point never ends the others.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from weftwork.base.errors import CodeError, ConfigError, EngineError
from weftwork.store.runs import open_run
from weftwork.study.pool.point import scenario_of
from weftwork.study.prepare.shared_parts import share
from weftwork.study.run.run import run_beside

if TYPE_CHECKING:
    from weftwork.study.pool.point import PoolPoint

__all__ = ["PoolOutcome", "begin_worker", "is_whole", "run_point"]

_SET_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG of prctl(2), Linux: a worker whose parent was killed ends at once
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


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
        return open_run(folder).status != "interrupted"
    except ConfigError:  # damaged after it was written
        return False


def run_point(point: PoolPoint, folder: Path) -> PoolOutcome:
    """Run a point and write its folder.

    Parameters
    ----------
    point : that has no whole folder yet
    folder : its own, which does not exist
    """
    try:
        scenario = scenario_of(point)
        if scenario is None:
            text = f"{point.file}, or a file that it names, has changed since the sweep began; start a new one"
            return PoolOutcome(point=point.place, end="refused", reason=text)
        run_beside(scenario, folder, what_if=point.what_if)
    except ConfigError as error:
        if _is_full(error.__cause__):
            return PoolOutcome(point=point.place, end="full", reason=str(folder.parent))
        reason = "; ".join(f"{mistake.path}: {mistake.text}" for mistake in error.mistakes)
        return PoolOutcome(point=point.place, end="refused", reason=reason)
    except CodeError as error:
        return PoolOutcome(point=point.place, end="refused", reason=str(error))
    except EngineError as error:
        return PoolOutcome(point=point.place, end="failed", reason=f"an error of Weftwork itself: {error}")
    except MemoryError:
        return PoolOutcome(point=point.place, end="failed", reason="it took more memory than there is")
    except OSError as error:
        if not _is_full(error):
            raise
        return PoolOutcome(point=point.place, end="full", reason=str(folder.parent))
    return PoolOutcome(point=point.place, end="run")


def _is_full(error: BaseException | None) -> bool:
    return isinstance(error, OSError) and error.errno in _FULL
