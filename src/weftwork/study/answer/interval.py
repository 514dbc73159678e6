"""The interval of a predicted time, from measurements of times like it.

The scorecard's rows that are nearest give it: the same GPU and the same kind of model or operation always, then as much
as possible of precision, software and scale. Half of their errors lie between the quartiles, and the interval is what
the time would be with these errors. With a calibration, its draws give the interval.
Source: `weftwork.data.scored`; docs/models/answer.md, section Interval.
Leaves out: errors of rows on which constants were fitted are smaller than those of other rows, and count alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.base.grammar import plural
from weftwork.data.scored import scored_errors
from weftwork.spec.answer import Interval
from weftwork.study.prepare.calibrated import calibration_of
from weftwork.study.prepare.likeness import family, likeness_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weftwork.data.scored import ScoredError
    from weftwork.spec.result import Quantity
    from weftwork.study.prepare.likeness import Likeness
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["OF_CLOSED_FORMS", "MeasuredSpread", "run_interval", "run_spread", "spread_of"]

LEAST_ROWS: Final = 4  # chosen: quartiles of fewer rows are its single rows
# chosen: times more or fewer GPUs, and bytes of a collective, that a group may have, from the same scale to any
_SCALES: Final = ((4.0, 16.0), (16.0, 256.0), (64.0, 4096.0), (inf, inf))
# What a group may differ in beside its scale, from nothing to all
_DIFFERENCES: Final = ((), ("software",), ("precision",), ("software", "precision"))
_NOTHING: Final = "no measurement like this"
# A time by closed forms alone: the errors of the scorecard are those of runs
OF_CLOSED_FORMS: Final = Interval(
    basis=f"{_NOTHING}: published times were compared with runs, and closed forms may be farther off", rows=0
)


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredSpread:
    """By how much a predicted time may be wrong.

    Attributes
    ----------
    low, high : measured over predicted time, at the quartiles; None without enough measurements
    basis : which measurements, in words
    rows : how many
    """

    low: float | None
    high: float | None
    basis: str
    rows: int

    def of(self, seconds: float) -> Interval:
        """The interval of a time.

        Parameters
        ----------
        seconds : that were predicted
        """
        if self.low is None or self.high is None:
            return Interval(basis=self.basis, rows=self.rows)
        return Interval(low=seconds * self.low, high=seconds * self.high, basis=self.basis, rows=self.rows)


def run_interval(prepared: Prepared, seconds: float | None, summary: Mapping[str, Quantity]) -> Interval | None:
    """The interval of the time of a run.

    Parameters
    ----------
    prepared : what was run
    seconds : that it took; None where it did not end, so that there is no interval
    summary : its numbers, in which a calibration has left the ends of its own interval
    """
    if seconds is None:
        return None
    calibration = calibration_of(prepared.scenario)
    if calibration is None:
        return run_spread(prepared).of(seconds)
    rows = int(calibration.fitted_on["rows"])
    for name in ("iteration", "collective_duration"):
        low, high = (summary.get(f"{name}_{end}_ps") for end in ("low", "high"))
        if low is not None and high is not None and low.value is not None and high.value is not None:
            return Interval(
                low=low.value / SECOND_PS,
                high=high.value / SECOND_PS,
                basis=f"5 to 95 % of the draws of the calibration by {calibration.words}",
                rows=rows,
            )
    return Interval(basis=f"{_NOTHING}: the calibration by {calibration.words} gives this time no interval", rows=0)


def run_spread(prepared: Prepared) -> MeasuredSpread:
    """By how much the time of a run may be wrong.

    Parameters
    ----------
    prepared : the run, without a calibration
    """
    like = likeness_of(prepared)
    if like is None:
        reason = prepared.scenario.workload_kind.unmeasured
        return MeasuredSpread(low=None, high=None, basis=f"{_NOTHING}: {reason}", rows=0)
    return spread_of(like)


@lru_cache(maxsize=256)
def spread_of(like: Likeness) -> MeasuredSpread:
    """The quartiles of the nearest group of measurements with at least `LEAST_ROWS` rows.

    Parameters
    ----------
    like : what the time is a time of
    """
    if like.rates != "best-shape":
        basis = f"{_NOTHING}: published times were compared with runs at the rates of the best shape"
        return MeasuredSpread(low=None, high=None, basis=basis, rows=0)
    kin = [row for row in scored_errors() if row.gpu == like.gpu and row.kind == like.kind]
    for differences, scale in product(_DIFFERENCES, _SCALES):
        rows = [row for row in kin if _is_within(like, row, scale) and not _differences(like, row) - set(differences)]
        if len(rows) >= LEAST_ROWS:
            low, high = np.quantile([row.error for row in rows], [0.25, 0.75])
            return MeasuredSpread(
                low=1 / (1 + float(high)), high=1 / (1 + float(low)), basis=_words(like, rows), rows=len(rows)
            )
    count = plural(len(kin), "published time") if kin else "no published time"
    wanted = f", and quartiles take {LEAST_ROWS}" if kin else ""
    basis = f"{_NOTHING}: the scorecard has {count} of {like.kind} on {like.gpu}{wanted}"
    return MeasuredSpread(low=None, high=None, basis=basis, rows=len(kin))


def _differences(like: Likeness, row: ScoredError) -> set[str]:
    """What a row differs in beside its scale."""
    pairs = {
        "software": (row.software, family(like.software)),
        "precision": (row.precision, like.precision),
    }
    return {name for name, (its, mine) in pairs.items() if its != mine}


def _is_within(like: Likeness, row: ScoredError, scale: tuple[float, float]) -> bool:
    """Whether a row has at most so many times more or fewer GPUs and bytes."""
    pairs = ((like.gpus, row.gpus, scale[0]), (like.size_bytes, row.size_bytes, scale[1]))
    return all(mine <= other * times and other <= mine * times for mine, other, times in pairs if mine != other)


def _words(like: Likeness, rows: Sequence[ScoredError]) -> str:
    """The group in words: what is alike, and what is not."""
    text = f"quartiles of the errors at {plural(len(rows), 'published time')} of {like.kind} on {like.gpu}"
    if like.precision:
        text += f" in {_listed(sorted({row.precision for row in rows}))}"
        text += f" by {_listed(sorted({row.software for row in rows}))}"
    text += f", {_scale([row.gpus for row in rows])}"
    differences = set.intersection(*(_differences(like, row) for row in rows))
    if not any(_is_within(like, row, _SCALES[0]) for row in rows):
        differences.add("scale")
    return f"{text}; none is of the same {_listed(sorted(differences))}" if differences else text


def _scale(gpus: Sequence[int]) -> str:
    low, high = min(gpus), max(gpus)
    return plural(high, "GPU") if low == high else f"{low:,} to {plural(high, 'GPU')}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else names[0]
