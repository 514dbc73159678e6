"""The best plans of a search as the scenario of a sweep.

With it, ``weftwork sweep`` varies any key for each of them.

Leaves out of the list: keys that the user has given, which all plans share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.spec.scenario.written import dump
from weftwork.spec.scenario.yaml_tree import write_tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.study.plan.search import Search

__all__ = ["MOST", "sweep_of_best"]

MOST: Final = 5  # chosen: plans that a table beside other keys still shows on one screen
_ALWAYS: Final = frozenset({"schema", "name", "engine.fidelity"})


def sweep_of_best(found: Search, *, name_file: Callable[[str, str], str] | None = None) -> str:
    """Write the best plans as one scenario with a section ``sweep``.

    The fastest comes first.

    Outside ``training`` only keys that the user has given are written, so that those derived from them follow when
    a sweep changes one.

    Parameters
    ----------
    found : with one plan at least
    name_file : as of `weftwork.spec.scenario.written.dump`

    Returns
    -------
    YAML: the scenario of the best plan, and a list with the searched keys of each plan
    """
    searched = [key for key in found.best[0].candidate.keys if key not in found.fixed]

    def is_kept(path: str) -> bool:
        return path in _ALWAYS or path.startswith("training.") or found.scenario.is_set(path)

    text = dump(found.winner, is_kept=is_kept, name_file=name_file)
    plans = [{f"training.{key}": one.candidate.keys[key] for key in searched} for one in found.best[:MOST]]
    return text + write_tree({"sweep": {"list": plans}}) if searched else text
