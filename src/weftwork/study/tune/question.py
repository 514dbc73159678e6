"""The question of a tuning: scenarios, parameters, objective, and runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["TuneQuestion"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TuneQuestion:
    """The question of a tuning.

    Attributes
    ----------
    files : scenarios that are tuned together
    parameters : texts of ``--parameter``
    objective : number of the summary or expression; None for the time of an iteration, a collective or all messages
    maximises : more of the objective is better
    trials : choices of values, that of the files included
    seeds : runs of each choice and scenario in the search, and again of the finalists
    fresh : runs of each choice and scenario that measure the gain
    settings : key to text, as ``--set`` gives them, for every file
    user_code : as `read_scenario` takes it
    """

    files: tuple[Path, ...]
    parameters: tuple[str, ...]
    objective: str | None = None
    maximises: bool = False
    trials: int = 60
    seeds: int = 3
    fresh: int = 5
    settings: Mapping[str, str] | None = None
    user_code: bool = True
