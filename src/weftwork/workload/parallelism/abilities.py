"""What a trainer can run: values of single keys, and keys that exclude each other.

Leaves out: which trainers there are (`weftwork.study.plan.trainers`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weftwork.workload.parallelism.plan_columns import PlanColumns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from weftwork.spec.training import Model, Parallelism

__all__ = ["Ability", "Exclusion"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ability:
    """Values of a key of ``training`` that a trainer can run.

    Attributes
    ----------
    values : of the key, in the order in which they are tried
    source : of this list
    note : how the trainer calls them, or why it has no others
    instead : of a word that the trainer lacks; None: the first of ``values``
    """

    values: tuple[Any, ...]
    source: str
    note: str
    instead: Any = None

    def has(self, value: object) -> bool:
        """Whether the trainer can run a value; None stands for the default."""
        return value is None or value in self.values

    def nearest(self, value: object) -> Any:  # noqa: ANN401 - whatever the key has
        """The value that is nearest to one that the trainer lacks: the next number, or a word."""
        if isinstance(value, int) and all(isinstance(each, int) for each in self.values):
            return min(self.values, key=lambda each: abs(each - value))
        return self.values[0] if self.instead is None else self.instead


@dataclass(frozen=True, kw_only=True, slots=True)
class Exclusion:
    """Values of several keys that a trainer cannot have together.

    Attributes
    ----------
    keys : of ``training`` that decide; the first is reported
    text : what is excluded and why, a clause
    source : of this rule
    holds : which of many plans for a model are excluded. Shape (plans,)
    remedy : values of keys that mend an excluded plan, the nearest change
    """

    keys: tuple[str, ...]
    text: str
    source: str
    holds: Callable[[Model, PlanColumns], NDArray[np.bool_]]
    remedy: Callable[[Model, Parallelism], Mapping[str, Any]]

    def excludes(self, model: Model, plan: Parallelism) -> bool:
        """Whether one plan is excluded."""
        alone = PlanColumns.of([{}], base=plan, overlaps=(plan.overlap,) * 2, prefetches=plan.has_prefetch)
        return bool(self.holds(model, alone)[0])
