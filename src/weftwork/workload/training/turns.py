"""The passes of a stage as its programs and milestones need them.

Leaves out: the order of passes (`weftwork.workload.training.schedule`); the operations of a pass
(`weftwork.workload.training.programs`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weftwork.spec.job import Operation
from weftwork.spec.training import Parallelism
from weftwork.workload.training.schedule import Blocks, as_loops, in_blocks, passes, written

__all__ = ["PASSES", "PASS_DTYPE", "PassStep", "Turns", "batches_each", "phase_row", "turns_of"]

PASSES: Final = ("forward", "backward", "weights", "gradients", "update", "checkpoint", "loading")
_PASS_OF_KIND: Final = {name: place for place, name in enumerate(PASSES)} | {"input": PASSES.index("backward")}
PASS_DTYPE: Final = np.dtype([("pass", np.int32), ("micro_batch", np.int32), ("virtual_stage", np.int32)])


@dataclass(frozen=True, slots=True)
class PassStep:
    """A pass with the features that its operations depend on.

    Its first and last micro batch may do more than others.
    """

    kind: str
    virtual_stage: int
    is_first: bool
    is_last: bool
    pair: str = ""

    @property
    def has_gradients(self) -> bool:
        """Whether the pass produces weight gradients."""
        return self.kind in {"backward", "weights"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Turns:
    """The passes of a stage, which follow from the plan alone.

    Attributes
    ----------
    rows : of PASS_DTYPE, a row for each pass
    steps : passes whose operations differ, each once
    order : for each pass its place in ``steps``
    blocks : ``order``, folded
    """

    rows: NDArray[np.void]
    steps: tuple[PassStep, ...]
    order: tuple[int, ...]
    blocks: Blocks

    def written(self, body: Callable[[PassStep], Sequence[Operation]]) -> tuple[Operation, ...]:
        """All passes as operations."""
        return written(self.blocks, self.steps, body)

    def written_where(
        self, is_meant: Callable[[PassStep], bool], body: Callable[[PassStep], Sequence[Operation]]
    ) -> tuple[Operation, ...]:
        """Some of the passes as operations."""
        meant = [is_meant(step) for step in self.steps]
        return as_loops([place for place in self.order if meant[place]], lambda place: body(self.steps[place]))


def batches_each(plan: Parallelism) -> int:
    """Micro batches of each virtual stage.

    For DualPipe's two directions it is one half each.
    """
    return plan.micro_batches // 2 if plan.has_mirror else plan.micro_batches


def phase_row(name: str) -> NDArray[np.void]:
    """The row of a phase that belongs to no micro batch."""
    return np.array([(PASSES.index(name), -1, -1)], PASS_DTYPE)


@lru_cache(maxsize=64)  # chosen: the stages of most plans; the worlds of an answer are prepared one after the other
def turns_of(plan: Parallelism, stage: int) -> Turns:
    """The passes of a stage, as far as programs and milestones need them."""
    each = batches_each(plan)
    firsts = {0, each} if plan.has_mirror else {0}
    lasts = {first + each - 1 for first in firsts}
    places: dict[tuple[str, int, bool, bool, str], int] = {}  # by the fields of a step: most steps come often
    order: list[int] = []
    rows: list[tuple[int, int, int]] = []
    for one in passes(plan, stage):
        kind, batch = one.kind, one.micro_batch
        is_first = kind == "forward" and batch in firsts
        is_last = batch in lasts and kind in {"backward", "weights"}
        order.append(places.setdefault((kind, one.virtual_stage, is_first, is_last, one.pair), len(places)))
        rows.append((_PASS_OF_KIND[kind], batch, one.virtual_stage))
    blocks, _ = in_blocks(order)  # places are numbered by their first occurrence, as the items of blocks are
    table = np.array(rows, PASS_DTYPE)
    table.flags.writeable = False
    return Turns(rows=table, steps=tuple(PassStep(*fields) for fields in places), order=tuple(order), blocks=blocks)
