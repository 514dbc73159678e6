"""The task of a worker: run one point as ``weftwork run`` does.

It sends back how the run ended.

What is the user's mistake, or a full disk, comes home as an outcome, so that one point never ends the others.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import CodeError, ConfigError, EngineError
from weftwork.study.pool.work import PoolOutcome
from weftwork.study.record.point import scenario_of
from weftwork.study.record.run import run_beside

if TYPE_CHECKING:
    from pathlib import Path

    from weftwork.study.record.point import PoolPoint

__all__ = ["run_point"]

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


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
        run_beside(scenario, folder, what_if=point.what_if, suspects=point.suspects)
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
