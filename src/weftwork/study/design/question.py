"""The question of a design, and its job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftwork.study.design.prune import Limits
from weftwork.study.design.worth import WORK

if TYPE_CHECKING:
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.study.design.runs import Ran

__all__ = ["DesignJob", "DesignQuestion"]


@dataclass(frozen=True, kw_only=True, slots=True)
class DesignQuestion:
    """The question of a design.

    Attributes
    ----------
    file : scenario with the job; of its fabric the node and keys of links and routes count
    gpus : of all servers; None: as the file says
    limits : of money and power
    only : what may be chosen, by a name of `weftwork.study.design.candidates.DIMENSIONS`
    prices : a price book by name or file; None: the default
    settings : ``key: text`` of ``--set``
    closed_only : no run; the front rests on closed forms alone
    user_code : whether Python files of the user's own may run
    criterion : of `weftwork.study.design.worth.CRITERIA`
    gpu_hour_usd : price of a GPU-hour in place of that of the price book
    on_first : called with the candidate that is the best of those that ran packed
    """

    file: Path
    gpus: int | None = None
    limits: Limits = field(default_factory=Limits)
    only: Mapping[str, Sequence[str]] | None = None
    prices: str | None = None
    settings: Mapping[str, str] | None = None
    closed_only: bool = False
    user_code: bool = True
    criterion: str = WORK
    gpu_hour_usd: float | None = None
    on_first: Callable[[Ran], None] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DesignJob:
    """The job, its servers, and keys that all candidates share."""

    node: str
    gpus: int
    common: Mapping[str, Any]
    settings: Mapping[str, str]
    scenario: Scenario
    plan: Mapping[str, Any]
    chosen_anew: tuple[str, ...]
