"""Closed-form iteration times of many plans at a time, equal to `ClosedForms.iteration` of each.

The time of a pass, of a collective or of a message follows from few keys of a plan, and it is asked of the same code
that a single plan asks (`weftwork.workload.training.closed_form`), once for each combination of these keys. The sums
over units, stages and micro batches are done for all plans of one cut of the model at a time.
Leaves out: plans whose virtual stages are taken as equal; all are followed pass by pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weftwork.spec.job import Grid
from weftwork.spec.training import Parallelism
from weftwork.workload.parallelism.groups import Groups
from weftwork.workload.parallelism.layout import Unit, counted_units, virtual_stages_of
from weftwork.workload.parallelism.offloading import stage_transfers
from weftwork.workload.parallelism.plan_columns import PlanColumns, distinct_rows, shared_answers
from weftwork.workload.training.closed_form import ClosedForms, PlanParts, behind_passes
from weftwork.workload.training.communication import VALUE_BYTES, Communication
from weftwork.workload.training.followed_pipeline import KINDS
from weftwork.workload.training.gradients import tied_bytes
from weftwork.workload.training.many_pipelines import many_ends_ps
from weftwork.workload.training.optimizer import optimizer_s
from weftwork.workload.training.schedule import Kind

__all__ = ["IterationTimes", "ManyForms"]

Whole = NDArray[np.int64]
Number = NDArray[np.float64]
Known = dict[tuple[int, ...], tuple[float, ...]]

_GROUPS: Final = ("tensor", "context", "expert", "expert_tensor", "gradients", "expert_gradients")
_SPREAD: Final = ("tensor", "context", "pipeline", "data", "expert", "expert_tensor", "order")
_KINDS: Final[tuple[Kind, ...]] = ("forward", "backward", "input", "weights")  # in the order of `KINDS`
FORWARD, BACKWARD, INPUT, WEIGHTS = range(len(KINDS))


@dataclass(frozen=True, kw_only=True, slots=True)
class IterationTimes:
    """The fields of `weftwork.workload.training.closed_form.IterationTime` for many plans. Shape (plans,) each."""

    total_ps: Whole
    passes_ps: Whole
    bubble_ps: Whole
    end_ps: Whole


@dataclass(frozen=True, kw_only=True)
class ManyForms:
    """Times of many plans of one model on one machine.

    Attributes
    ----------
    closed : of single plans, with the model and the machine
    """

    closed: ClosedForms
    _axes: dict[tuple[tuple[int, int], ...], int] = field(default_factory=dict, init=False)
    _grids: list[Grid] = field(default_factory=list, init=False)
    _groups: Known = field(default_factory=dict, init=False)
    _units: dict[Unit, int] = field(default_factory=dict, init=False)
    _passes: dict[tuple[int, bool], Known] = field(default_factory=dict, init=False)
    _sizes: dict[int, Known] = field(default_factory=dict, init=False)
    _transfers: dict[int, Known] = field(default_factory=dict, init=False)
    _data: dict[tuple[int, bool], Known] = field(default_factory=dict, init=False)
    _parts: dict[tuple[str, int, float, float], int] = field(default_factory=dict, init=False)

    def iterations(self, plans: PlanColumns) -> IterationTimes:
        """Return the iteration times of plans.

        Parameters
        ----------
        plans : that `weftwork.workload.parallelism.refuse.first_misfits` has nothing against
        """
        found = {name: np.zeros(len(plans), np.int64) for name in IterationTimes.__dataclass_fields__}
        if not len(plans):
            return IterationTimes(**found)
        groups = self._group_numbers(plans)
        first, which = distinct_rows(plans.by_cut())
        for number, place in enumerate(first.tolist()):
            places = np.flatnonzero(which == number)
            part = _OneCut(
                forms=self, plans=plans.chosen(places), groups=groups[places], representative=plans.plan(place)
            )
            for name, column in part.times().items():
                found[name][places] = column
        return IterationTimes(**found)

    def parts(self, plan: Parallelism) -> PlanParts:
        """What a plan is made of."""
        return self.closed.parts(plan)

    def unit_numbers(self, units: Sequence[Unit]) -> list[int]:
        """Numbers of units, the same for all plans."""
        return [self._units.setdefault(unit, len(self._units)) for unit in units]

    def grid(self, number: int) -> Grid:
        """The group with a number."""
        return self._grids[number]

    def _group_numbers(self, plans: PlanColumns) -> Whole:
        """Numbers of the axes of each of `_GROUPS`, and the stride of stages. Shape (plans, groups + 1)."""

        def numbers(place: int) -> tuple[float, ...]:
            found = self.closed.parts(plans.plan(place)).calls.groups
            return (*(self._number(found, name) for name in _GROUPS), found.pipeline.stride)

        answers, which = shared_answers(plans.by(_SPREAD), self._groups, numbers)
        return np.array(answers, np.int64)[which]

    def _number(self, groups: Groups, name: str) -> int:
        grid: Grid = getattr(groups, name)
        if grid.axes not in self._axes:
            self._axes[grid.axes] = len(self._grids)
            self._grids.append(grid)
        return self._axes[grid.axes]

    def known_passes(self, unit: int, *, is_half: bool) -> Known:
        """Answers from before about whole passes of a unit, or about the halves of its backward pass."""
        return self._passes.setdefault((unit, is_half), {})

    def known_transfers(self, unit: int) -> Known:
        """Answers from before about transfers of the activations of a unit."""
        return self._transfers.setdefault(unit, {})

    def known_sizes(self, unit: int) -> Known:
        """Answers from before about parameters of a unit."""
        return self._sizes.setdefault(unit, {})

    def known_data(self, unit: int, *, is_sharded: bool) -> Known:
        """Answers from before about gradients and parameters of a unit."""
        return self._data.setdefault((unit, is_sharded), {})

    def share_ps(self, calls: Communication, operation: str, groups: Whole, sizes_bytes: Number, share: float) -> Whole:
        """Time of a share of calls, with all of their latencies.

        Parameters
        ----------
        calls : of any plan
        operation : of all of them
        groups : numbers of their groups. Shape (calls,)
        sizes_bytes : nothing is called where it is 0. Shape (calls,)
        share : of the bytes
        """
        pairs = np.stack([groups.astype(np.float64), sizes_bytes], axis=1)
        distinct, which = np.unique(pairs, axis=0, return_inverse=True)
        found = []
        for group, size in distinct.tolist():
            key = (operation, int(group), size, share)
            if key not in self._parts:
                self._parts[key] = self._part_ps(calls, *key)
            found.append(self._parts[key])
        return np.array(found, np.int64)[which.reshape(-1)]

    def _part_ps(self, calls: Communication, operation: str, group: int, size_bytes: float, share: float) -> int:
        grid = self._grids[group]
        if grid.size <= 1 or size_bytes <= 0:
            return 0
        call = calls.call(operation, grid, 0, size_bytes, "data")
        return calls.part_ps(call.share(share, overhead_share=1))


@dataclass(frozen=True, kw_only=True)
class _OneCut:
    """Plans that cut the model alike, and have one schedule."""

    forms: ManyForms
    plans: PlanColumns
    groups: Whole
    representative: Parallelism

    def times(self) -> dict[str, Whole]:
        """Fields of `IterationTimes`."""
        model, plan = self.forms.closed.model, self.representative
        counted = counted_units(model, plan)
        units = list(dict.fromkeys(unit for stage in counted for part in stage for unit in part))
        kinds: dict[tuple[object, ...], int] = {}
        kind_of = []
        ordered = virtual_stages_of(model, plan)
        for stage, parts in enumerate(counted):
            cut: tuple[object, ...] = tuple(frozenset(part.items()) for part in parts)
            if plan.offloaded_layers:  # their order says which units compute beside a transfer
                cut = ordered[stage]
            alike = (cut, stage == 0, stage == plan.pipeline - 1)
            kind_of.append(kinds.setdefault(alike, len(kinds)))
        first = [kind_of.index(kind) for kind in range(len(kinds))]
        many = np.array([[[part[unit] for unit in units] for part in counted[stage]] for stage in first], np.int64)
        passes = np.stack([self._passes(unit) for unit in units], axis=1)  # plans, units, kinds of passes
        of_parts = np.einsum("cvu,puk->pcvk", many, passes)  # plans, stages, virtual stages, kinds of passes
        for kind, stage in enumerate(first):
            of_parts[:, kind] += self._exposed_ps(units, ordered[stage], passes)
        ends = self._ends_ps(units, many, of_parts.sum(axis=2))[:, kind_of]
        ends += self._exchanges_ps(units, many, kind_of)
        messages = self._messages_ps()
        of_stages = of_parts[:, kind_of]
        if plan.has_split_backward or plan.virtual_stages > 1:
            return self._followed(of_stages, messages, ends)
        return self._summed(of_stages[:, :, 0], messages, ends)

    # how a pipeline runs

    @property
    def _micro_batches(self) -> Whole:
        plans = self.plans
        found: Whole = plans.base.global_batch // (plans.column("data") * plans.column("micro_batch"))
        return found

    def _summed(self, passes: Whole, messages: Whole, ends: Whole) -> dict[str, Whole]:
        """Times of plans without virtual stages, as `closed_form` sums them."""
        blocking = 1 - self.representative.overlap.pipeline
        between = messages[:, :-1]
        stages = passes.shape[1]
        sent = np.zeros_like(passes[:, :, 0])
        if stages > 1:
            sent = np.rint(2 * blocking * np.hstack([between, between[:, -1:]])).astype(np.int64)
        both = passes[:, :, FORWARD] + passes[:, :, BACKWARD] + sent
        most = both.max(axis=1)
        passes_ps = self._micro_batches * most
        bubble_ps = both.sum(axis=1) - most + 2 * between.sum(axis=1)
        pipeline_ps = passes_ps + bubble_ps
        total_ps, ahead_ps = np.zeros_like(pipeline_ps), np.zeros_like(pipeline_ps)
        for stage in range(stages):
            total_ps = np.maximum(total_ps, pipeline_ps - ahead_ps + ends[:, stage])
            ahead_ps = ahead_ps + passes[:, stage, BACKWARD]  # a stage ends before those in front
            if stage < stages - 1:
                ahead_ps = ahead_ps + between[:, stage]
        end_ps = np.maximum(0, total_ps - pipeline_ps)
        return {"total_ps": total_ps, "passes_ps": passes_ps, "bubble_ps": bubble_ps, "end_ps": end_ps}

    def _followed(self, times: Whole, messages: Whole, ends: Whole) -> dict[str, Whole]:
        """Times of plans whose passes are followed one by one."""
        plan, micro_batches = self.representative, self._micro_batches
        last = many_ends_ps(plan.schedule, micro_batches, times, messages, blocking=1 - plan.overlap.pipeline)
        waited = np.maximum(last, last[:, ::-1]) if plan.has_mirror else last  # a rank waits for its mirror
        total_ps = (waited + ends).max(axis=1)
        each = micro_batches // 2 if plan.has_mirror else micro_batches
        both = times[:, :, :, FORWARD] + times[:, :, :, BACKWARD]
        passes_ps = each * both.sum(axis=2).max(axis=1)
        most = last.max(axis=1)
        bubble_ps = np.maximum(0, most - passes_ps)
        return {"total_ps": total_ps, "passes_ps": passes_ps, "bubble_ps": bubble_ps, "end_ps": total_ps - most}

    def _messages_ps(self) -> Whole:
        """Message time from each stage to the next, and from the last to the first. Shape (plans, stages)."""
        plans, stages = self.plans, self.representative.pipeline
        tokens = plans.column("micro_batch") * plans.base.sequence // plans.column("context")
        sizes = VALUE_BYTES * tokens * self.forms.closed.model.hidden // plans.column("tensor")
        return self._message_ps([(stage, (stage + 1) % stages) for stage in range(stages)], sizes[:, None])

    def _message_ps(self, pairs: Sequence[tuple[int, int]], sizes_bytes: Whole) -> Whole:
        """Time of messages between stages. Shape of the result: (plans, pairs)."""
        calls, stride = self._calls, self.groups[:, len(_GROUPS)]
        far_by = {
            int(one): [calls.is_far(first * int(one), other * int(one)) for first, other in pairs]
            for one in np.unique(stride)
        }
        far = np.array([far_by[one] for one in stride.tolist()], bool).reshape(len(stride), len(pairs))
        times = [
            calls.message_latency_ps(far=is_far) + np.rint(sizes_bytes * 8 / calls.message_rate_bps(far=is_far) * 1e12)
            for is_far in (False, True)
        ]
        return np.where(far, times[True], times[False]).astype(np.int64)

    @property
    def _calls(self) -> Communication:
        return self.forms.parts(self.representative).calls

    # what passes take

    def _passes(self, unit: Unit) -> Whole:
        """Times of passes of a unit, with what ZeRO 3 gathers and adds. Shape (plans, kinds of passes)."""
        (number,) = self.forms.unit_numbers([unit])
        has_experts = unit.layer is not None and unit.layer.mlp == "experts"
        groups = self.groups[:, : 4 if has_experts else 2]
        overlaps = np.full((len(self.plans), 1), int(self.representative.virtual_stages > 1))
        rows = np.hstack([groups, self.plans.by(("micro_batch", "recompute")), overlaps])
        times = np.zeros((len(self.plans), len(_KINDS)), np.int64)
        for is_half in (False, True) if self.representative.has_split_backward else (False,):
            first = INPUT if is_half else FORWARD
            kinds = _KINDS[first : first + 2]

            def taken(place: int, kinds: tuple[Kind, ...] = kinds) -> tuple[float, ...]:
                parts = self.forms.parts(self.plans.plan(place))
                return tuple(parts.pass_ps(unit, kind) for kind in kinds)

            answers, which = shared_answers(rows, self.forms.known_passes(number, is_half=is_half), taken)
            times[:, first : first + 2] = np.array(answers, np.int64)[which]
        places = np.flatnonzero(self.plans.column("zero") == 3)
        if len(places):
            times[places] = self._sharded(unit, places, times[places])
        return times

    def _exposed_ps(self, units: Sequence[Unit], parts: Sequence[Sequence[Unit]], passes: Whole) -> Whole:
        """Time by which transfers of offloaded activations outlast the units beside them.

        Parameters
        ----------
        units : of all stages
        parts : units of each virtual stage of a stage, in order
        passes : shape (plans, units, kinds of passes), their times

        Returns
        -------
        shape (plans, virtual stages, kinds of passes)
        """
        found = np.zeros((len(self.plans), len(parts), len(_KINDS)), np.int64)
        for part, moved in enumerate(stage_transfers(parts, self.representative.offloaded_layers)):
            for one in moved:
                beside = passes[:, [units.index(unit) for unit in parts[part][one.beside]]].sum(axis=1)
                found[:, part] += np.maximum(0, self._offload_ps(one.unit)[:, None] - beside)
        found[:, :, WEIGHTS] = 0
        return found

    def _offload_ps(self, unit: Unit) -> Whole:
        """Time in which activations of a unit go to the host, or come back. Shape (plans,)."""
        (number,) = self.forms.unit_numbers([unit])
        rows = self.plans.by(("tensor", "context", "micro_batch", "recompute"))

        def taken(place: int) -> tuple[float, ...]:
            return (self.forms.parts(self.plans.plan(place)).offload_ps(unit),)

        answers, which = shared_answers(rows, self.forms.known_transfers(number), taken)
        found: Whole = np.array(answers, np.int64)[which, 0]
        return found

    def _sharded(self, unit: Unit, places: Whole, taken: Whole) -> Whole:
        """Passes of plans of ZeRO 3: each gathers parameters and adds gradients."""
        gathers, adds = self._data_ps(unit, places).T
        hidden = self.representative.overlap.data if self.plans.prefetches else 0.0
        found = np.empty_like(taken)
        for kind in range(len(_KINDS)):
            data = np.zeros(len(places))
            if kind != WEIGHTS:
                data = data + gathers
            if kind in {BACKWARD, WEIGHTS}:
                data = data + adds
            found[:, kind] = np.rint((1 - hidden) * data + np.maximum(taken[:, kind], hidden * data)).astype(np.int64)
        return found

    def _data_ps(self, unit: Unit, places: Whole) -> Whole:
        """Times of gathering a unit's parameters and of adding its gradients, alone. Shape (places, 2)."""
        plans = self.plans.chosen(places)
        (number,) = self.forms.unit_numbers([unit])
        has_ends = np.full((len(places), 1), int(self.representative.has_both_ends))
        degrees = plans.by(("tensor", "expert", "expert_tensor"))
        classes = np.minimum(plans.column("zero"), 1)[:, None]  # gradients whole, or a shard of each rank
        if plans.base.has_lora:  # ZeRO 3 gathers frozen weights, other degrees adapters alone
            classes = classes + (plans.column("zero") == 3)[:, None]
        rows = np.hstack([degrees, self.groups[places][:, 4:6], has_ends, classes])

        def taken(place: int) -> tuple[float, ...]:
            return self.forms.parts(plans.plan(place)).data_ps(unit)

        answers, which = shared_answers(rows, self.forms.known_data(number, is_sharded=True), taken)
        return np.array(answers, np.int64)[which]

    # what comes behind passes

    def _ends_ps(self, units: Sequence[Unit], many: Whole, passes: Whole) -> Whole:
        """Gradients, optimizer and parameters behind the last pass. Shape (plans, kinds of stages)."""
        plans, plan = self.plans, self.representative
        dense, experts = self._held(units, many)  # plans, kinds of stages, virtual stages
        is_sharded = plans.column("zero") > 0
        updated = self._shard(dense, experts)
        own = updated[:, :, 0] if plan.has_mirror else updated.sum(axis=2)
        updated = np.where(is_sharded[:, None], own, updated.sum(axis=2))
        held = dense.sum(axis=2), experts.sum(axis=2)
        seconds = optimizer_s(self.forms.parts(plan).units.kernels, updated, held[0] + held[1])
        ends: Whole = np.rint(seconds * 1e12).astype(np.int64) + self.forms.parts(plan).optimizer_exchange_ps
        hidden = plan.overlap.data
        of_zero = plans.column("zero")
        whole, parts = np.flatnonzero(of_zero == 0), np.flatnonzero((of_zero == 1) | (of_zero == 2))
        if hidden < 1:
            for places, operation, size in (
                (whole, "all-reduce", plans.base.gradient_bytes),
                (parts, "reduce-scatter", plans.base.gradient_bytes),
                (parts, "all-gather", VALUE_BYTES),
            ):
                for group, parameters in zip((4, 5), held, strict=True):
                    sizes = parameters[places] * size
                    numbers = np.repeat(self.groups[places, group], sizes.shape[1])
                    taken = self.forms.share_ps(self._calls, operation, numbers, sizes.reshape(-1), 1 - hidden)
                    ends[places] += taken.reshape(sizes.shape)
        unsharded = np.flatnonzero(of_zero < 3)
        if hidden > 0 and len(unsharded):
            ends[unsharded] += self._left_ps(units, many, unsharded, passes[unsharded])
        return ends

    def _left_ps(self, units: Sequence[Unit], many: Whole, places: Whole, passes: Whole) -> Whole:
        """What of hidden gradients and parameters lasts longer than the passes beside it."""
        hidden = self.representative.overlap.data
        data = np.stack([self._data_ps(unit, places) for unit in units], axis=1)  # places, units, 2
        of_stages = np.einsum("cu,puk->pck", many.sum(axis=1), data)
        counts = np.maximum(1.0, many.sum(axis=(1, 2)))
        micro_batches = self._micro_batches[places].astype(np.float64)
        behind = behind_passes(self.representative, counts[None, :], micro_batches[:, None])
        left = np.maximum(0.0, hidden * of_stages[:, :, 1] - behind * passes[:, :, BACKWARD])
        left += np.maximum(0.0, hidden * of_stages[:, :, 0] - behind * passes[:, :, FORWARD])
        found: Whole = np.rint(left).astype(np.int64)
        return found

    def _held(self, units: Sequence[Unit], many: Whole) -> tuple[Number, Number]:
        """Trained parameters of a rank, experts apart. Shape (plans, kinds of stages, virtual stages) each."""
        sizes = np.stack([self._sizes(unit) for unit in units], axis=1)  # plans, units, 2
        held = np.einsum("cvu,puk->pcvk", many.astype(np.float64), sizes)
        return held[:, :, :, 0], held[:, :, :, 1]

    def _sizes(self, unit: Unit) -> Number:
        """Trained parameters of a unit on a rank, experts apart. Shape (plans, 2)."""
        (number,) = self.forms.unit_numbers([unit])
        has_ends = np.full((len(self.plans), 1), int(self.representative.has_both_ends))
        rows = np.hstack([self.plans.by(("tensor", "expert", "expert_tensor")), has_ends])

        def sizes(place: int) -> tuple[float, ...]:
            return self.forms.parts(self.plans.plan(place)).trained(unit)

        answers, which = shared_answers(rows, self.forms.known_sizes(number), sizes)
        return np.array(answers, np.float64)[which]

    def _shard(self, dense: Number, experts: Number) -> Number:
        """Parameters that a rank updates."""
        sizes = np.array([grid.size for grid in map(self.forms.grid, range(int(self.groups[:, 4:6].max()) + 1))])
        is_sharded = (self.plans.column("zero") > 0)[:, None]
        shared = np.where(is_sharded, sizes[self.groups[:, 4:6]], 1)[:, :, None, None]
        found: Number = dense / shared[:, 0] + experts / shared[:, 1]
        return found

    def _exchanges_ps(self, units: Sequence[Unit], many: Whole, kind_of: Sequence[int]) -> Whole:
        """Exchanges of each stage with the opposite stage. Shape (plans, stages)."""
        plans, plan = self.plans, self.representative
        stages = range(plan.pipeline)
        pairs = [(stage, plan.pipeline - 1 - stage) for stage in stages]
        found = np.zeros((len(plans), plan.pipeline), np.int64)
        model = self.forms.closed.model
        if tied_bytes(model, plan):
            sizes = model.vocabulary * model.hidden // plans.column("tensor") * plans.base.gradient_bytes
            found[:, [0, -1]] += self._message_ps([pairs[0], pairs[-1]], sizes[:, None])
        if plan.has_mirror:
            each = self._shard(*self._held(units, many))[:, kind_of]
            gradient_bytes = plans.base.gradient_bytes
            whole = np.rint(gradient_bytes * each.sum(axis=2)).astype(np.int64)
            mirrored = np.rint(gradient_bytes * each[:, :, 1]).astype(np.int64)
            own = np.rint(VALUE_BYTES * each[:, :, 0]).astype(np.int64)
            sharded = self._message_ps(pairs, mirrored) + self._message_ps(pairs, own)
            is_sharded = (plans.column("zero") > 0)[:, None]
            found += np.where(is_sharded, sharded, self._message_ps(pairs, whole))
        return found
