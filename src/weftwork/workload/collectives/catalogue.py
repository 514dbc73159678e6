"""The catalogue of collective algorithms.

A file of the folder ``algorithms`` is a choice, imported on demand.
"""

from __future__ import annotations

from typing import Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.folder import Folder, is_path
from weftwork.base.nearest import nearest
from weftwork.spec.scenario import choices
from weftwork.workload.collectives.algorithm import Algorithm, Schedule
from weftwork.workload.collectives.call import Call

__all__ = ["ALGORITHMS", "schedule"]

ALGORITHMS: Final[Folder[Algorithm]] = choices.ALGORITHMS


def schedule(algorithm: str, call: Call) -> Schedule:
    """Make the programs of a call with an algorithm.

    Parameters
    ----------
    algorithm : its name, or the path of a file of the user's own
    call : what is asked

    Raises
    ------
    ConfigError : there is no such algorithm, or it cannot do this; with all mistakes
    CodeError : the user's file is wrong; with file and line
    """
    if algorithm not in ALGORITHMS and not is_path(algorithm):
        text = f"found '{algorithm}', wanted {', '.join(ALGORITHMS)}, or a file such as ./mine.py"
        mistake = Mistake(path="collective.algorithm", text=text, fix=nearest(algorithm, ALGORITHMS))
        raise ConfigError("collective", [mistake])
    with ALGORITHMS.blaming(algorithm):
        return ALGORITHMS.load(algorithm).schedule(call)
