"""A set of the scorecard, before its prediction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from weftwork.study.validation.curves import CurveRow
from weftwork.study.validation.published_cases import Case
from weftwork.study.validation.scorecard import Excluded, Score
from weftwork.study.validation.signs import SignRow
from weftwork.study.validation.ultra_ethernet import UetRow

__all__ = ["Row", "ValidationSet"]

Row = Case | CurveRow | SignRow | UetRow


@dataclass(frozen=True, kw_only=True, slots=True)
class ValidationSet:
    """One set, before its prediction.

    Attributes
    ----------
    key, title : what it is called
    curves : scores of curves of collectives, whose rows run too; None for a set of iterations
    cases : iterations with rows left out; the argument says whether all rows are wanted
    packets : the same of runs of the packet engine
    signs : comparisons of two fabrics
    rows, excluded : rows of a user's own, of any kind, and those left out
    role, calibrated_on, source, tolerance, notes, splits, without : see `Score`
    refit : a key of the scenario and its values among which it is fitted, each configuration left out once
    """

    key: str
    title: str
    curves: Callable[[], tuple[Score, ...]] | None = None
    cases: Callable[[bool], tuple[Sequence[Case], Sequence[Excluded]]] | None = None
    packets: Callable[[bool], tuple[Sequence[UetRow], Sequence[Excluded]]] | None = None
    signs: Callable[[], tuple[Sequence[SignRow], Sequence[Excluded]]] | None = None
    rows: Sequence[Row] = ()
    excluded: Sequence[Excluded] = ()
    role: Literal["calibration", "declared", "blind"] = "blind"
    calibrated_on: str = ""
    source: str = ""
    tolerance: float | None = None
    notes: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    without: tuple[str, str] | None = None
    refit: tuple[str, tuple[str, ...]] | None = None
