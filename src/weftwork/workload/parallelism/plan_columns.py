"""Many plans as columns of numbers, for functions that take one plan.

Most of what is asked of a plan follows from few of its keys: the states of its memory know nothing of micro batches,
the pass of a layer nothing of the optimizer. So a function of one plan is called once for each distinct combination of
the keys that decide its answer (`PlanColumns.by`), and all plans with these keys share the answer. What is left to be
done for each plan is arithmetic on whole columns.
Leaves out: which plans there are (`weftwork.study.plan.space`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from weftwork.spec.training import Overlap, Parallelism, PipelineSchedule, Recompute

__all__ = ["CUT", "KEYS", "PlanColumns", "distinct_rows", "shared_answers"]

Answer = TypeVar("Answer")
Whole = NDArray[np.int64]

# Keys of `Parallelism` that differ from plan to plan; words are numbered by their place among the options.
KEYS: Final = (
    "tensor", "context", "pipeline", "data", "expert", "expert_tensor", "virtual_stages", "micro_batch", "zero",
    "schedule", "recompute", "has_balanced_ends", "order",
)  # fmt: skip
CUT: Final = ("pipeline", "virtual_stages", "schedule", "has_balanced_ends", "recompute")  # decide where a model is cut
_WORDS: Final[Mapping[str, tuple[Any, ...]]] = {
    "schedule": get_args(PipelineSchedule),
    "recompute": get_args(Recompute),
    "has_balanced_ends": (False, True),
    "order": get_args(Parallelism.model_fields["order"].annotation),
}
_MOST_CODES: Final = 2**40  # chosen: codes of rows stay whole numbers of 64 bits when one more column comes in


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanColumns:
    """Plans that differ in `KEYS` alone.

    Attributes
    ----------
    base : has all other keys
    overlaps : of plans with one virtual stage, and with several
    prefetches : whether plans of ZeRO 3 gather the next layer ahead
    values : shape (plans, keys), in the order of `KEYS`
    """

    base: Parallelism
    overlaps: tuple[Overlap, Overlap]
    prefetches: bool
    values: Whole

    def __len__(self) -> int:
        return len(self.values)

    def column(self, key: str) -> Whole:
        """One key of all plans, as a number. Shape (plans,)."""
        found: Whole = self.values[:, KEYS.index(key)]
        return found

    def is_word(self, key: str, word: object) -> NDArray[np.bool_]:
        """Whether a key of a plan is this word. Shape (plans,)."""
        found: NDArray[np.bool_] = self.column(key) == _WORDS[key].index(word)
        return found

    def keys(self, place: int) -> dict[str, Any]:
        """`KEYS` of one plan, as `Parallelism` has them."""
        found = zip(KEYS, self.values[place].tolist(), strict=True)
        return {key: _WORDS[key][value] if key in _WORDS else value for key, value in found}

    def plan(self, place: int) -> Parallelism:
        """One of the plans."""
        keys = self.keys(place)
        keys["overlap"] = self.overlaps[keys["virtual_stages"] > 1]
        keys["has_prefetch"] = self.prefetches and keys["zero"] == 3
        return self.base.model_copy(update=keys)

    def chosen(self, places: NDArray[np.int64] | NDArray[np.bool_]) -> PlanColumns:
        """Some of the plans."""
        return self.with_values(self.values[places])

    def with_values(self, values: Whole) -> PlanColumns:
        """Other plans with the same other keys."""
        return PlanColumns(base=self.base, overlaps=self.overlaps, prefetches=self.prefetches, values=values)

    def each_with(self, key: str, words: Sequence[Any]) -> PlanColumns:
        """Every plan with each of these values of a key, one after the other."""
        numbers = [_WORDS[key].index(word) if key in _WORDS else word for word in words]
        values = np.repeat(self.values, len(numbers), axis=0)
        values[:, KEYS.index(key)] = np.tile(np.array(numbers, np.int64), len(self.values))
        return self.with_values(values)

    def by(self, keys: Sequence[str]) -> Whole:
        """Columns of some keys. Shape (plans, keys)."""
        found: Whole = self.values[:, [KEYS.index(key) for key in keys]]
        return found

    def by_cut(self) -> Whole:
        """Columns of `CUT`, without what does not move a cut. Shape (plans, keys)."""
        cut = self.by(CUT)
        if self.base.recompute_every == 1:  # a model is cut alike whether its layers are computed again or not
            cut = cut * np.array([key != "recompute" for key in CUT], np.int64)
        return cut

    @classmethod
    def of(
        cls,
        rows: Sequence[Mapping[str, Any]],
        *,
        base: Parallelism,
        overlaps: tuple[Overlap, Overlap],
        prefetches: bool,
    ) -> PlanColumns:
        """Plans from mappings of `KEYS`; a key that a mapping lacks is that of ``base``."""
        usual = {key: getattr(base, key) for key in KEYS}
        values = np.array([[_number(key, row.get(key, usual[key])) for key in KEYS] for row in rows], np.int64)
        return cls(base=base, overlaps=overlaps, prefetches=prefetches, values=values.reshape(-1, len(KEYS)))


def _number(key: str, value: str | int) -> int:
    return _WORDS[key].index(value) if key in _WORDS else int(value)


def shared_answers(
    rows: Whole, known: dict[tuple[int, ...], Answer], answer: Callable[[int], Answer]
) -> tuple[list[Answer], Whole]:
    """Ask a function once for each distinct row.

    Parameters
    ----------
    rows : shape (plans, columns): all that the answer depends on
    known : answers from before, by row; new answers are added
    answer : called with the place of the first plan that has the row

    Returns
    -------
    the answers of distinct rows; and which of them each plan has, of shape (plans,)
    """
    first, which = distinct_rows(rows)
    answers = []
    for place, row in zip(first.tolist(), map(tuple, rows[first].tolist()), strict=True):
        if row not in known:
            known[row] = answer(place)
        answers.append(known[row])
    return answers, which


def distinct_rows(rows: Whole) -> tuple[Whole, Whole]:
    """Distinct rows of a table of whole numbers from 0.

    Returns
    -------
    the place of the first of each, and for every row which of them it is

    Examples
    --------
    >>> first, which = distinct_rows(np.array([[2, 1], [0, 1], [2, 1]]))
    >>> first.tolist(), which.tolist()
    ([1, 0], [1, 0, 1])
    """
    codes = np.zeros(len(rows), np.int64)
    for column in rows.T:
        numbers, size = column, int(column.max(initial=0)) + 1
        if (int(codes.max(initial=0)) + 1) * size > _MOST_CODES:
            codes = np.unique(codes, return_inverse=True)[1]
            numbers = np.unique(column, return_inverse=True)[1]
            size = int(numbers.max(initial=0)) + 1
        codes = codes * size + numbers
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    return first, which
