"""Memory of many plans at a time, equal to `weftwork.workload.parallelism.memory.fullest_stage` of each.

Leaves out: the items of the memory; of a plan that matters they are asked for by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weftwork.spec.training import Model
from weftwork.workload.parallelism.memory import batch_bytes, states_bytes
from weftwork.workload.parallelism.plan_columns import CUT, PlanColumns, shared_answers

__all__ = ["ManyMemories"]

Known = dict[tuple[int, ...], NDArray[np.int64]]
_STATES: Final = ("tensor", "context", "data", "expert", "expert_tensor", "zero")
_BATCH: Final = ("tensor", "context", "micro_batch")


@dataclass(frozen=True, kw_only=True)
class ManyMemories:
    """Memory of plans of one model.

    Attributes
    ----------
    model : that trains
    has_flash_attention : whether scores of attention are never kept
    """

    model: Model
    has_flash_attention: bool
    _states: Known = field(default_factory=dict, init=False)
    _batches: Known = field(default_factory=dict, init=False)

    def fullest_bytes(self, plans: PlanColumns) -> NDArray[np.int64]:
        """Bytes of the fullest stage of each plan. Shape (plans,)."""

        def of_states(place: int) -> NDArray[np.int64]:
            return np.array(states_bytes(self.model, plans.plan(place)), np.int64)

        def of_batch(place: int) -> NDArray[np.int64]:
            plan = plans.plan(place)
            return np.array(batch_bytes(self.model, plan, has_flash_attention=self.has_flash_attention), np.int64)

        states, with_states = shared_answers(np.hstack([plans.by(_STATES), plans.by_cut()]), self._states, of_states)
        rows = np.hstack([plans.by(_BATCH), plans.by(CUT), self._micro_batches(plans)[:, None]])
        batches, with_batch = shared_answers(rows, self._batches, of_batch)
        found = np.zeros(len(plans), np.int64)
        pairs, which = np.unique(with_states * max(1, len(batches)) + with_batch, return_inverse=True)
        most = [int((states[pair // len(batches)] + batches[pair % len(batches)]).max()) for pair in pairs.tolist()]
        if most:
            found = np.array(most, np.int64)[which]
        return found

    def _micro_batches(self, plans: PlanColumns) -> NDArray[np.int64]:
        """Micro batches, as far as they decide how many are in flight: no more than fill the pipeline."""
        wanted = plans.base.global_batch // (plans.column("data") * plans.column("micro_batch"))
        most = np.where(plans.is_word("schedule", "gpipe"), wanted, 3 * plans.column("pipeline"))
        found: NDArray[np.int64] = np.minimum(wanted, most)
        return found
