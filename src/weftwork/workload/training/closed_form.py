"""Closed-form iteration time of a plan, without contention.

It is a sum over the passes of a plan, without an engine. A unit's pass is what its operations take one after the other,
each collective alone on its links; a stage's pass is the sum over its units. The pipeline is filled and drained once
and paced by its slowest stage between: m micro batches take sum (F_s + B_s) / v + (m - 1 / v) max (F_s + B_s) with v
virtual stages. Where the schedule splits backward passes, they are followed one by one
(`weftwork.workload.training.followed_pipeline`). Gradients and parameters that hide do so behind the last backward and
the first forward pass; what is left of them follows, and stages that end early wait.
A transfer of offloaded activations adds the time by which it outlasts the units beside it.
Source: Narayanan et al., arXiv:2104.04473, sections 2.2 and 3 (bubble, interleaving).
Leaves out: links that several groups share, queues of packets, jitter; the flow engine has the first of these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from weftwork.spec.job import Await, Collect, Compute, Loop, Notify, Operation, Placement, Wait
from weftwork.spec.training import Gpu, Model, Parallelism, Software
from weftwork.workload.parallelism.layout import Unit
from weftwork.workload.training.communication import Answers, Communication, GpuCluster, TimedCollective
from weftwork.workload.training.followed_pipeline import FollowedPipeline, PassTimes
from weftwork.workload.training.gradients import data_calls, trained_parameters
from weftwork.workload.training.kernels import Kernels, Size
from weftwork.workload.training.optimizer import optimizer_exchange_ps
from weftwork.workload.training.programs import Stage, stages_of
from weftwork.workload.training.schedule import Kind
from weftwork.workload.training.stage import EXPERT_DONE, EXPERT_GO, UnitOperations

__all__ = ["ClosedForms", "IterationTime", "PlanParts", "behind_passes"]

Memo = dict[tuple[object, ...], int]


@dataclass(frozen=True, kw_only=True, slots=True)
class IterationTime:
    """Times of one iteration, in ps.

    Attributes
    ----------
    total_ps : of the iteration
    passes_ps : of the stage that paces the pipeline, all its micro batches
    bubble_ps : until the pipeline is full, and while it drains
    end_ps : gradients, optimizer and parameters behind the last pass, as far as they are not hidden
    """

    total_ps: int
    passes_ps: int
    bubble_ps: int
    end_ps: int


@dataclass(frozen=True, kw_only=True)
class ClosedForms:
    """Times of many plans of one model on one machine.

    Work that plans have in common is done once.

    Attributes
    ----------
    model, gpu, software, cluster, placement : as in `weftwork.workload.training.programs.training_job`
    """

    model: Model
    gpu: Gpu
    software: Software
    cluster: GpuCluster
    placement: Placement
    _passes_ps: Memo = field(default_factory=dict, init=False)
    _ends_ps: dict[FollowedPipeline, tuple[int, ...]] = field(default_factory=dict, init=False)
    _answers: Answers = field(default_factory=Answers, init=False)

    def iteration(self, plan: Parallelism, *, follows: bool = False) -> IterationTime:
        """Return the iteration time of a plan.

        Parameters
        ----------
        plan : that `weftwork.workload.parallelism.refuse.reasons` has nothing against; of the placement's ranks
        follows : whether virtual stages are followed pass by pass too, which tells how much longer unequal ones take

        Raises
        ------
        ConfigError : fewer layers than parts, experts that do not fit the groups
        """
        parts_of_plan = self.parts(plan)
        calls, units = parts_of_plan.calls, parts_of_plan.units
        key = _alike(plan, calls)
        kinds: dict[tuple[object, ...], _StageTimes] = {}
        is_followed = plan.has_split_backward or (follows and plan.virtual_stages > 1)
        stages = []
        for stage in stages_of(units):  # those with the same units take as long
            parts = stage.counted if is_followed else (stage.held,)
            alike: tuple[object, ...] = tuple(frozenset(units.items()) for units in parts)
            if plan.offloaded_layers:  # their order says which units compute beside a transfer
                alike = stage.virtual_stages
            kind = (alike, stage.stage == 0, stage.stage == plan.pipeline - 1)
            if kind not in kinds:
                kinds[kind] = _StageTimes(stage=stage, calls=calls, key=key, known_ps=self._passes_ps)
            stages.append(kinds[kind])
        messages_ps = _messages_ps(plan, calls)
        if is_followed:
            return _of_followed_stages(plan, stages, messages_ps, self._ends_ps)
        return _of_stages(plan, stages, messages_ps)

    def parts(self, plan: Parallelism) -> PlanParts:
        """Return what the times of a plan are made of."""
        calls = Communication(
            model=self.model,
            plan=plan,
            software=self.software,
            cluster=self.cluster,
            placement=self.placement,
            answers=self._answers,
        )
        kernels = Kernels(gpu=self.gpu, software=self.software, precision=plan.precision)
        return PlanParts(
            calls=calls,
            units=UnitOperations(model=self.model, plan=plan, kernels=kernels, communication=calls),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanParts:
    """Times of units of one plan, of which its iteration is made.

    Attributes
    ----------
    calls : its communication
    units : its units
    """

    calls: Communication
    units: UnitOperations

    def pass_ps(self, unit: Unit, kind: Kind) -> int:
        """Time of a pass of a unit, without what ZeRO 3 gathers and adds."""
        return _elapsed_ps(_operations(self.units, unit, kind), self.calls, exchange=self.units.hidden_exchange)

    def offload_ps(self, unit: Unit) -> int:
        """Time in which the activations of a unit go to the memory of the host, or come back."""
        return self.units.offload_ps(unit)

    def data_ps(self, unit: Unit) -> tuple[int, int]:
        """Time of gathering a unit's parameters, and of adding its gradients, alone."""
        gathers, adds = data_calls(self.units, unit)
        return _alone_ps(gathers), _alone_ps(adds)

    def trained(self, unit: Unit) -> tuple[float, float]:
        """Trained parameters of a unit on a rank, experts apart."""
        return trained_parameters(self.units, unit)

    @property
    def optimizer_exchange_ps(self) -> int:
        """Time of the small all-reduces of the optimizer."""
        return optimizer_exchange_ps(self.calls)


def behind_passes(plan: Parallelism, units: Size, micro_batches: Size) -> Size:
    """Passes of one micro batch that hide data communication.

    Gradients of the last micro batch hide behind them, or parameters of the first one. The first unit has to end
    before its gradients can go. Between the last passes of two virtual stages there are those of as many micro
    batches as there are stages.

    Parameters
    ----------
    plan : whose stages and virtual stages count
    units : of a stage, one at least
    micro_batches : of an iteration
    """
    if plan.virtual_stages == 1:
        return (units - 1) / units
    others = (plan.virtual_stages - 1) / plan.virtual_stages
    found: Size = others * np.minimum(plan.pipeline, micro_batches) + np.maximum(0.0, 1 - others - 1 / units)
    return found


def _messages_ps(plan: Parallelism, calls: Communication) -> list[int]:
    """Message time from each stage to the next, and from last to first."""
    at = [calls.groups.rank_at(stage) for stage in range(plan.pipeline)]
    return [calls.message_ps(rank, other) for rank, other in pairwise([*at, at[0]])]


def _alike(plan: Parallelism, calls: Communication) -> tuple[object, ...]:
    """Inputs of the pass of a unit.

    Plans with equal inputs share its time.
    """
    groups = calls.groups
    return (
        plan.micro_batch,
        plan.sequence,
        plan.context_exchange,
        plan.is_sequence_parallel,
        plan.recompute,
        plan.recompute_modules,
        plan.recompute_every,
        plan.precision,
        plan.module_precision,
        plan.gradient_bytes,  # which gradients of weights are added to
        plan.has_lora,
        plan.lora_rank,
        plan.lora_targets,
        plan.overlap,
        groups.tensor.axes,
        groups.context.axes,
        groups.expert.axes,
        groups.expert_tensor.axes,
    )


def _of_stages(plan: Parallelism, stages: Sequence[_StageTimes], messages_ps: Sequence[int]) -> IterationTime:
    blocking = (1 - plan.overlap.pipeline) * plan.virtual_stages
    *between_ps, _ = messages_ps
    sent_ps = [round(2 * blocking * one) for one in (*between_ps, *between_ps[-1:])] or [0]  # in both directions
    both = [one.forward_ps + one.backward_ps + sent for one, sent in zip(stages, sent_ps, strict=True)]
    passes_ps = plan.micro_batches * max(both)
    bubble_ps = round((sum(both) - max(both)) / plan.virtual_stages) + 2 * sum(between_ps)
    pipeline_ps = passes_ps + bubble_ps
    total_ps = ahead_ps = 0
    for one, message_ps in zip(stages, (*between_ps, 0), strict=True):
        total_ps = max(total_ps, pipeline_ps - ahead_ps + one.end_ps)
        ahead_ps += round(one.backward_ps / plan.virtual_stages) + message_ps  # a stage ends before those in front
    end_ps = max(0, total_ps - pipeline_ps)
    return IterationTime(total_ps=total_ps, passes_ps=passes_ps, bubble_ps=bubble_ps, end_ps=end_ps)


def _of_followed_stages(
    plan: Parallelism,
    stages: Sequence[_StageTimes],
    messages_ps: Sequence[int],
    known_ps: dict[FollowedPipeline, tuple[int, ...]],
) -> IterationTime:
    pipeline = FollowedPipeline(
        schedule=plan.schedule,
        micro_batches=plan.micro_batches,
        times=tuple(one.pass_times for one in stages),
        messages_ps=tuple(messages_ps),
        blocking=1 - plan.overlap.pipeline,
    )
    ends_ps = known_ps.get(pipeline)
    if ends_ps is None:
        ends_ps = known_ps[pipeline] = pipeline.ends_ps()
    if plan.has_mirror:  # a rank waits for its mirror
        mirrored = zip(ends_ps, reversed(ends_ps), stages, strict=True)
        total_ps = max(max(own, other) + one.end_ps for own, other, one in mirrored)
    else:
        total_ps = max(end + one.end_ps for end, one in zip(ends_ps, stages, strict=True))
    each = plan.micro_batches // 2 if plan.has_mirror else plan.micro_batches
    passes_ps = max(each * sum(part.forward_ps + part.backward_ps for part in one.pass_times) for one in stages)
    return IterationTime(
        total_ps=total_ps,
        passes_ps=passes_ps,
        bubble_ps=max(0, max(ends_ps) - passes_ps),
        end_ps=total_ps - max(ends_ps),
    )


@dataclass(frozen=True, kw_only=True)
class _StageTimes:
    """Times of one stage, in ps."""

    stage: Stage
    calls: Communication
    key: tuple[object, ...]
    known_ps: Memo

    @property
    def units(self) -> Counter[Unit]:
        """Number of each unit in the stage."""
        return self.stage.held

    @cached_property
    def forward_ps(self) -> int:
        """Time of one micro batch forward through all virtual stages."""
        return self._sum_ps("forward", self.units) + sum(self._exposed_ps(part, "forward") for part in self._parts)

    @cached_property
    def backward_ps(self) -> int:
        """Time of one micro batch backward through all virtual stages."""
        return self._sum_ps("backward", self.units) + sum(self._exposed_ps(part, "backward") for part in self._parts)

    @cached_property
    def pass_times(self) -> tuple[PassTimes, ...]:
        """Times of one micro batch in each virtual stage, by kind of pass.

        The kinds are those of a schedule that splits backward passes.
        """
        return tuple(
            PassTimes(
                forward_ps=self._sum_ps("forward", units) + self._exposed_ps(part, "forward"),
                backward_ps=self._sum_ps("backward", units) + self._exposed_ps(part, "backward"),
                input_ps=self._sum_ps("input", units) + self._exposed_ps(part, "input"),
                weights_ps=self._sum_ps("weights", units),
            )
            for part, units in enumerate(self.stage.counted)
        )

    @property
    def _parts(self) -> range:
        return range(len(self.stage.virtual_stages))

    def _exposed_ps(self, part: int, kind: Kind) -> int:
        """Time by which transfers of offloaded activations outlast the units beside them, in a virtual stage."""
        units = self.stage.virtual_stages[part]
        return sum(
            max(
                0,
                self.stage.units.offload_ps(one.unit) - sum(self._pass_ps(unit, kind) for unit in units[one.beside]),
            )
            for one in self.stage.transfers[part]
        )

    def _sum_ps(self, kind: Kind, units: Mapping[Unit, int]) -> int:
        return sum(many * self._pass_ps(unit, kind) for unit, many in units.items())

    @cached_property
    def end_ps(self) -> int:
        """Time behind the last pass.

        It is the rest of adding gradients, the optimizer, and the rest of gathering.
        """
        hidden = self.stage.plan.overlap.data
        end_ps = _elapsed_ps(self.stage.end(), self.calls) + self.stage.exchange_ps
        if hidden <= 0 or self._is_sharded:
            return end_ps
        left = max(0.0, hidden * self._data_ps(1) - self._behind * self.backward_ps)
        left += max(0.0, hidden * self._data_ps(0) - self._behind * self.forward_ps)
        return end_ps + round(left)

    @property
    def _behind(self) -> float:
        """Passes of one micro batch that hide data communication."""
        plan = self.stage.plan
        return float(behind_passes(plan, float(max(1, self.units.total())), float(plan.micro_batches)))

    def _data_ps(self, which: int) -> int:
        """Time of gathering all parameters (0), or adding all gradients (1), once."""
        return sum(many * _alone_ps(data_calls(self.stage.units, unit)[which]) for unit, many in self.units.items())

    @property
    def _is_sharded(self) -> bool:
        return self.stage.plan.zero == 3

    def _pass_ps(self, unit: Unit, kind: Kind) -> int:
        key = (*self.key, unit, kind)
        taken_ps = self.known_ps.get(key)
        if taken_ps is None:
            taken_ps = self.known_ps[key] = PlanParts(calls=self.calls, units=self.stage.units).pass_ps(unit, kind)
        if not self._is_sharded:
            return taken_ps
        gathers, reduces = data_calls(self.stage.units, unit)
        data_ps = 0 if kind == "weights" else _alone_ps(gathers)
        data_ps += _alone_ps(reduces) if kind in {"backward", "weights"} else 0
        hidden = self.stage.plan.overlap.data if self.stage.plan.has_prefetch else 0.0
        return round((1 - hidden) * data_ps + max(taken_ps, hidden * data_ps))


def _operations(units: UnitOperations, unit: Unit, kind: Kind) -> Sequence[Operation]:
    """Operations of a pass of this kind."""
    if kind == "forward":
        return units.forward(unit)
    return units.weights(unit) if kind == "weights" else units.backward(unit, has_weights=kind == "backward")


def _alone_ps(calls: Iterable[TimedCollective]) -> int:
    return sum(call.alone_ps for call in calls)


def _elapsed_ps(operations: Iterable[Operation], calls: Communication, *, exchange: Sequence[Operation] = ()) -> int:
    """Time of one stream, from its first to its last operation.

    ``exchange`` runs beside it from the operation that starts it.
    """
    now_ps = exchanged_at_ps = 0
    free_at_ps: dict[int, int] = {}  # by channel: one collective after the other on each
    for operation in operations:
        if isinstance(operation, Compute):
            now_ps += operation.duration_ps
        elif isinstance(operation, Collect):
            begin_ps = max(now_ps, free_at_ps.get(operation.channel, 0))
            free_at_ps[operation.channel] = begin_ps + calls.part_ps(operation)
        elif isinstance(operation, Wait):
            now_ps = max([now_ps, *free_at_ps.values()])
        elif isinstance(operation, Notify) and operation.token == EXPERT_GO:
            exchanged_at_ps = now_ps + _elapsed_ps(exchange, calls)
        elif isinstance(operation, Await) and operation.token == EXPERT_DONE:
            now_ps = max(now_ps, exchanged_at_ps)
        elif isinstance(operation, Loop):
            inside = [one for one in operation.body if not _is_of_beside(one)] * operation.count
            now_ps += _elapsed_ps(inside, calls, exchange=exchange) if inside else 0
    return now_ps


def _is_of_beside(operation: Operation) -> bool:
    """Whether an operation waits for a parallel stream.

    `_StageTimes.end_ps` counts the rest of that stream.
    """
    return isinstance(operation, Await) and operation.token != EXPERT_DONE
