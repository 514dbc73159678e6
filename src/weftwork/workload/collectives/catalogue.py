"""The catalogue of algorithms: a file of the folder ``algorithms`` is a choice, imported when it is asked for.

Leaves out: files of a user's own; `Algorithm` is public, and `weftwork.testing.collectives` runs any.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.nearest import nearest
from weftwork.workload.collectives.algorithm import Algorithm, Schedule
from weftwork.workload.collectives.call import Call

__all__ = ["ALGORITHMS", "schedule"]


class _Folder(Mapping[str, Algorithm]):
    """Algorithms by name; listing the names imports none of them."""

    def __init__(self, package: str, folder: Path) -> None:
        self._package = package
        self._modules = {
            file.stem.replace("_", "-"): file.stem for file in sorted(folder.glob("*.py")) if file.stem != "__init__"
        }

    def __getitem__(self, name: str) -> Algorithm:
        module = importlib.import_module(f"{self._package}.{self._modules[name]}")
        algorithm = module.ALGORITHM
        if not isinstance(algorithm, Algorithm):
            raise TypeError(f"{module.__name__}.ALGORITHM is a {type(algorithm).__name__}, wanted an Algorithm")
        return algorithm

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


ALGORITHMS: Final[Mapping[str, Algorithm]] = _Folder(f"{__package__}.algorithms", Path(__file__).parent / "algorithms")


def schedule(algorithm: str, call: Call) -> Schedule:
    """Make the programs of a call by the algorithm of a name.

    Raises
    ------
    ConfigError : there is no such algorithm, or it cannot do this; with all mistakes
    """
    if algorithm not in ALGORITHMS:
        text = f"found '{algorithm}', wanted {', '.join(ALGORITHMS)}"
        mistake = Mistake(path="collective.algorithm", text=text, fix=nearest(algorithm, ALGORITHMS))
        raise ConfigError("collective", [mistake])
    return ALGORITHMS[algorithm].schedule(call)
