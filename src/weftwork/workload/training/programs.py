"""A training job as programs, one per pipeline stage.

All ranks of a stage run its program alike. Stream 0 of a stage computes; its time is the iteration's. Other streams
carry what runs beside it: messages to and from neighbours, exchanges of tokens, gathering of parameters and reduction
of gradients. Messages and their latency keep nobody busy; where a stage blocks in its sends, it waits for the share of
them that does not overlap.
Without ZeRO 3, gradients are added behind the last backward pass or, as far as they overlap, behind each unit of it;
sharded parameters are gathered behind the update or, as far as they overlap, during the first forward passes of an
iteration. With ZeRO 3 each unit's parameters are gathered before each of its passes and its gradients added after
each backward pass. With DualPipe a rank and its mirror add their gradients last of all; under ZeRO each updates its
own stage and sends it to the other.
Activations that are offloaded leave and return by a link of their own, while the units of their window compute
(`weftwork.workload.parallelism.offloading`); the computing stream waits for the rest of a transfer.
Source: Narayanan et al., arXiv:2104.04473; Rajbhandari et al., arXiv:1910.02054 (ZeRO); Zhao et al., arXiv:2304.11277
(FSDP, prefetch).
Leaves out: parameters that stay gathered between the passes of one micro batch; buckets other than a unit of the model;
what NICs, or GPUs without NVLink, move at the same time over the PCIe of an offloading GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weftwork.spec.job import (
    Await,
    Compute,
    Job,
    Loop,
    Milestone,
    Notify,
    Operation,
    Placement,
    Program,
)  # fmt: skip
from weftwork.spec.training import Gpu, Model, Parallelism, Software
from weftwork.workload.parallelism.layout import Unit, counted_units, held_units, recomputation, virtual_stages_of
from weftwork.workload.parallelism.offloading import Transfer, stage_transfers
from weftwork.workload.training.communication import (
    LABELS,
    VALUE_BYTES,
    Communication,
    GpuCluster,
    TimedCollective,
    label,
)
from weftwork.workload.training.gradients import data_calls, tied_bytes, trained_parameters
from weftwork.workload.training.kernels import Kernels
from weftwork.workload.training.messages import (
    MIRROR_DONE,
    MIRROR_GO,
    TIED_DONE,
    TIED_GO,
    PipelineLane,
    StageMessages,
    lane_of,
)
from weftwork.workload.training.optimizer import optimizer_exchange_ps, optimizer_s
from weftwork.workload.training.pass_units import PassUnit, pass_units
from weftwork.workload.training.schedule import as_loops
from weftwork.workload.training.stage import UnitOperations, duration_ps, in_turn
from weftwork.workload.training.turns import PASS_DTYPE, PASSES, PassStep, Turns, batches_each, phase_row, turns_of

__all__ = [
    "PASSES", "PASS_DTYPE", "Extras", "Stage", "TrainingShape", "job_of_calls", "stages_of", "training_job",
]  # fmt: skip

MILESTONES: Final = ("pass", "iteration")

# Tokens; the others are those of `weftwork.workload.training.stage` and `weftwork.workload.training.messages`
GRADIENTS_GO, GRADIENTS_DONE, PARAMETERS_GO, PARAMETERS_DONE = range(8, 12)
TRANSFERRED: Final = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Extras:
    """Extra work of a job besides its iterations.

    Durations hold up every stage.

    Attributes
    ----------
    iterations : how many
    loading_ps : waiting for data at the begin of each iteration, on the stages that read it: the first and the last
    checkpoint_ps : of writing a checkpoint, as far as it is not in the background
    checkpoint_every : iterations; 0: none
    """

    iterations: int = 1
    loading_ps: int = 0
    checkpoint_ps: int = 0
    checkpoint_every: int = 0

    def has_checkpoint(self, iteration: int) -> bool:
        """Whether a checkpoint follows this iteration, counted from 0."""
        return self.checkpoint_every > 0 and (iteration + 1) % self.checkpoint_every == 0


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingShape:
    """Meaning of a job's milestones.

    Attributes
    ----------
    passes : for each program, of PASS_DTYPE: what the k-th milestone ``pass`` begins; ``pass`` indexes `PASSES`, and
        micro_batch and virtual_stage are -1 where the time belongs to none
    iterations : milestones ``iteration`` end one each
    """

    passes: tuple[NDArray[np.void], ...]
    iterations: int


def training_job(
    model: Model,
    plan: Parallelism,
    *,
    gpu: Gpu,
    software: Software,
    cluster: GpuCluster,
    placement: Placement,
    extras: Extras | None = None,
    name: str = "training",
) -> tuple[Job, TrainingShape]:
    """Write the programs of a training job.

    Parameters
    ----------
    model, plan, gpu, software : what trains how on what
    cluster : what collectives must know of the machine
    placement : of ``plan.ranks`` ranks
    extras : more than one iteration, checkpoints, loading
    name : for people

    Raises
    ------
    ConfigError : experts that do not fit the groups, fewer layers than parts, micro batches that do not fit
        virtual stages

    Returns
    -------
    the job, whose program s is that of stage s and whose labels are `LABELS`; and what its milestones mean
    """
    calls = Communication(model=model, plan=plan, software=software, cluster=cluster, placement=placement)
    return job_of_calls(calls, gpu=gpu, extras=extras, name=name)


def job_of_calls(
    calls: Communication, *, gpu: Gpu, extras: Extras | None = None, name: str = "training"
) -> tuple[Job, TrainingShape]:
    """Write the programs of a training job from its communication.

    Parameters
    ----------
    calls : communication of the job, with its model, plan, software and placement
    gpu, extras, name : as of `training_job`

    Raises
    ------
    ConfigError : as `training_job`
    """
    model, plan = calls.model, calls.plan
    kernels = Kernels(gpu=gpu, software=calls.software, precision=plan.precision)
    units = UnitOperations(model=model, plan=plan, kernels=kernels, communication=calls)
    stages = stages_of(units, extras)
    job = Job(
        name=name,
        ranks=plan.ranks,
        programs=tuple(Program(streams=stage.streams()) for stage in stages),
        rank_program=calls.groups.stage_of(np.arange(plan.ranks)).astype(np.int32),
        placement=calls.placement,
        milestone_names=MILESTONES,
        labels=LABELS,
    )
    iterations = (extras or Extras()).iterations
    return job, TrainingShape(passes=tuple(stage.shape() for stage in stages), iterations=iterations)


def stages_of(units: UnitOperations, extras: Extras | None = None) -> list[Stage]:
    """The stages of a plan, first to last.

    Parameters
    ----------
    units : of the model, each with its operations
    extras : see `training_job`

    Raises
    ------
    ConfigError : fewer layers than parts
    """
    every = virtual_stages_of(units.model, units.plan)
    return [
        Stage(units=units, extras=extras or Extras(), stage=stage, virtual_stages=parts)
        for stage, parts in enumerate(every)
    ]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage: its streams."""

    units: UnitOperations
    extras: Extras
    stage: int
    virtual_stages: tuple[tuple[Unit, ...], ...]

    @property
    def plan(self) -> Parallelism:
        """The stage's plan."""
        return self.units.plan

    @property
    def calls(self) -> Communication:
        """Communication of the stage's ranks."""
        return self.units.communication

    @property
    def counted(self) -> tuple[Counter[Unit], ...]:
        """Number of each unit in its virtual stages."""
        return counted_units(self.units.model, self.plan)[self.stage]

    @property
    def held(self) -> Counter[Unit]:
        """Number of each unit in the stage."""
        return held_units(self.units.model, self.plan)[self.stage]

    @cached_property
    def transfers(self) -> tuple[tuple[Transfer, ...], ...]:
        """Transfers of offloaded activations of its virtual stages."""
        return stage_transfers(self.virtual_stages, self.plan.offloaded_layers)

    @property
    def turns(self) -> Turns:
        """Passes of the stage in order."""
        return turns_of(self.plan, self.stage)

    @cached_property
    def messages(self) -> StageMessages:
        """Messages to and from other stages."""
        return StageMessages(calls=self.calls, stage=self.stage)

    def streams(self) -> tuple[tuple[Operation, ...], ...]:
        """The computing stream, and the streams beside it."""
        beside = [
            *(stream for lane in self.messages.lanes for stream in self.messages.streams(lane)),
            self._exchange_stream(),
            self._parameter_stream(),
            self._gradient_stream(),
            self.messages.tied(self._tied_bytes) if self._tied_bytes else (),
            self.messages.mirrored(self._mirrored_bytes),
        ]
        count = self.extras.iterations
        repeated = [stream if count == 1 else (Loop(count=count, body=stream),) for stream in beside if stream]
        return (self._main(), *repeated)

    def shape(self) -> NDArray[np.void]:
        """Phases that the milestones of the main stream begin."""
        parts: list[NDArray[np.void]] = []
        for iteration in range(self.extras.iterations):
            parts += [phase_row("loading")] if self._loading else []
            parts += [self.turns.rows, phase_row("gradients"), phase_row("update")]
            parts += [phase_row("checkpoint")] if self.extras.has_checkpoint(iteration) else []
        return np.concatenate(parts)

    def end(self) -> tuple[Operation, ...]:
        """Operations of a stage behind its last pass.

        Operations that wait for a parallel stream are left out.
        """
        return (*self._gradients(), *self._update())

    @property
    def exchange_ps(self) -> int:
        """Time of exchanges with the opposite stage, alone.

        They are those of a table that both hold, or with the mirror.
        """
        sizes = [*([self._tied_bytes] if self._tied_bytes else []), *self._mirrored_bytes]
        own, other = (self.calls.groups.rank_at(one) for one in (self.stage, self.plan.pipeline - 1 - self.stage))
        return sum(self.calls.message_ps(own, other, size_bytes=size) for size in sizes)

    # the stream that computes

    def _main(self) -> tuple[Operation, ...]:
        iteration = tuple(self._iteration())
        checkpoint = (Milestone(name=0), Compute(duration_ps=self.extras.checkpoint_ps, label=label("checkpoint")))
        end = Milestone(name=1)
        kinds = [self.extras.has_checkpoint(one) for one in range(self.extras.iterations)]
        return as_loops(kinds, lambda saves: (*iteration, *checkpoint, end) if saves else (*iteration, end))

    def _iteration(self) -> list[Operation]:
        found: list[Operation] = [*self._loading]
        if self._gathers_hidden or self._prefetches:
            found.append(Notify(token=PARAMETERS_GO))
        found += self.turns.written(self._step)
        found.append(Milestone(name=0))
        found += self._gradients()
        found.append(Milestone(name=0))
        return found + self._update()

    @property
    def _loading(self) -> tuple[Operation, ...]:
        reads = self.stage in {0, self.plan.pipeline - 1}
        if not self.extras.loading_ps or not reads:
            return ()
        return (Milestone(name=0), Compute(duration_ps=self.extras.loading_ps, label=label("loading")))

    def _step(self, step: PassStep) -> list[Operation]:
        """One pass: waiting, the units of its virtual stage, sending."""
        found: list[Operation] = [Milestone(name=0)]
        for lane, virtual_stage in self._arriving(step):
            if self.messages.takes(lane, virtual_stage):
                found.append(Await(token=lane.arrived, label=label("pipeline")))
                found += in_turn(self.calls.arrival)
        found += as_loops(self._places(step), lambda place: self._place(place, step))
        given = [lane for lane, virtual_stage in self._leaving(step) if self.messages.gives(lane, virtual_stage)]
        found += [Notify(token=lane.ready) for lane in given]
        if self.plan.overlap.pipeline < 1:
            found += [Await(token=lane.sent, label=label("pipeline")) for lane in given]
        return found

    def _arriving(self, step: PassStep) -> list[tuple[PipelineLane, int]]:
        """Lanes from which a pass receives, with the virtual stages.

        The first pass of a pair receives for both.
        """
        if step.kind == "weights" or step.pair == "second":
            return []
        own = self._lane(step.virtual_stage, is_forward=step.kind == "forward")
        return [own, self._lane(1 - step.virtual_stage, is_forward=False)] if step.pair == "first" else [own]

    def _leaving(self, step: PassStep) -> list[tuple[PipelineLane, int]]:
        """Lanes to which a pass sends, with the virtual stages.

        The second pass of a pair sends for both.
        """
        if step.kind == "weights" or step.pair == "first":
            return []
        own = self._lane(step.virtual_stage, is_forward=step.kind == "forward")
        return [self._lane(1 - step.virtual_stage, is_forward=True), own] if step.pair == "second" else [own]

    def _lane(self, virtual_stage: int, *, is_forward: bool) -> tuple[PipelineLane, int]:
        return lane_of(self.plan, virtual_stage, is_forward=is_forward), virtual_stage

    def _places(self, step: PassStep) -> list[PassUnit]:
        """Units of a pass in order, with the transfers of offloaded activations."""
        moved = () if step.kind == "weights" else self.transfers[step.virtual_stage]
        return pass_units(self.virtual_stages[step.virtual_stage], moved, is_forward=step.kind == "forward")

    def _place(self, place: PassUnit, step: PassStep) -> list[Operation]:
        moves: list[Operation] = [Await(token=TRANSFERRED, label=label("offload"))] if place.ends else []
        if place.begins is not None:
            moves.append(Notify(token=TRANSFERRED, after_ps=self.units.offload_ps(place.begins)))
        unit = self._unit(place.unit, step)
        return [*unit, *moves] if step.kind == "forward" else [*moves, *unit]

    def _order(self, step: PassStep) -> tuple[Unit, ...]:
        units = self.virtual_stages[step.virtual_stage]
        return units if step.kind == "forward" else units[::-1]

    def _unit(self, unit: Unit, step: PassStep) -> list[Operation]:
        found: list[Operation] = []
        if self._is_sharded and step.kind != "weights" and self._parameter_calls(unit):
            found += self._gather_now(unit)
        elif step.is_first and self._gathers_hidden and self._parameter_calls(unit):
            found.append(Await(token=PARAMETERS_DONE, label=label("data")))
        if step.kind == "forward":
            return found + self.units.forward(unit)
        if step.kind == "weights":
            found += self.units.weights(unit)
        else:
            found += self.units.backward(unit, has_weights=step.kind == "backward")
        if not step.has_gradients:
            return found
        reduces = self._gradient_calls(unit) and (self._is_sharded or (step.is_last and self._reduces_hidden))
        if reduces and self._hidden > 0:
            found.append(Notify(token=GRADIENTS_GO))
        if reduces and self._is_sharded:
            found += in_turn(self._gradient_calls(unit), 1 - self._hidden)
        return found

    # tokens of experts beside computing

    def _exchange_stream(self) -> tuple[Operation, ...]:
        body = tuple(self.units.hidden_exchange)
        passes = sum(
            many * (3 if recomputation(unit, self.plan) == "full" else 2)
            for unit, many in self.held.items()
            if self.units.exchanges(unit)
        )
        count = passes * batches_each(self.plan)
        return (Loop(count=count, body=body),) if body and count else ()

    # parameters and gradients

    @property
    def _hidden(self) -> float:
        return self.plan.overlap.data

    @property
    def _is_sharded(self) -> bool:
        return self.plan.zero == 3

    @property
    def _prefetches(self) -> bool:
        return self._is_sharded and self.plan.has_prefetch and self._hidden > 0

    @property
    def _reduces_hidden(self) -> bool:
        return not self._is_sharded and self._hidden > 0

    @property
    def _gathers_hidden(self) -> bool:
        return self._reduces_hidden and self.plan.zero > 0

    def _gradient_calls(self, unit: Unit) -> tuple[TimedCollective, ...]:
        return data_calls(self.units, unit)[1]

    def _parameter_calls(self, unit: Unit) -> tuple[TimedCollective, ...]:
        return data_calls(self.units, unit)[0]

    def _gather_now(self, unit: Unit) -> list[Operation]:
        """ZeRO 3: gather parameters before a pass.

        With prefetch those of the next unit begin to arrive as this unit begins.
        """
        calls = self._parameter_calls(unit)
        share = self._hidden if self._prefetches else 0.0
        found = in_turn(calls, 1 - share)
        if share > 0:
            found += [Await(token=PARAMETERS_DONE, label=label("data")), Notify(token=PARAMETERS_GO)]
        return found

    def _parameter_stream(self) -> tuple[Operation, ...]:
        """Gathers beside computing, in the order of the main stream's needs."""
        share = self._hidden
        if self._prefetches:

            def prefetched(step: PassStep) -> Sequence[Operation]:
                return as_loops(self._order(step), lambda unit: self._prefetch(unit, share))

            # the last unit of an iteration asks for one that is not there
            gathered = self.turns.written_where(lambda step: step.kind != "weights", prefetched)
            return (*gathered, Await(token=PARAMETERS_GO))
        if not self._gathers_hidden:
            return ()
        steps = self.turns.steps
        first = [steps[place] for place in self.turns.order if steps[place].is_first]
        found: list[Operation] = [Await(token=PARAMETERS_GO)]
        for step in first:
            for unit in self._order(step):
                if calls := self._parameter_calls(unit):
                    found += [*in_turn(calls, share, overhead_share=1, is_beside=True), Notify(token=PARAMETERS_DONE)]
        return tuple(found)

    def _prefetch(self, unit: Unit, share: float) -> list[Operation]:
        calls = self._parameter_calls(unit)
        if not calls:
            return []
        return [Await(token=PARAMETERS_GO), *in_turn(calls, share, is_beside=True), Notify(token=PARAMETERS_DONE)]

    def _gradient_stream(self) -> tuple[Operation, ...]:
        """Reductions beside computing, in the order of ending backward passes."""
        share = self._hidden
        if share <= 0:
            return ()

        def reduces(step: PassStep) -> bool:
            return step.has_gradients and (self._is_sharded or step.is_last)

        def reduced(unit: Unit) -> list[Operation]:
            calls = self._gradient_calls(unit)
            if not calls:
                return []
            whole = None if self._is_sharded else 1.0
            return [
                Await(token=GRADIENTS_GO),
                *in_turn(calls, share, overhead_share=whole, is_beside=True),
                Notify(token=GRADIENTS_DONE),
            ]

        return self.turns.written_where(reduces, lambda step: as_loops(self._order(step), reduced))

    def _gradients(self) -> list[Operation]:
        """The rest of gradient reduction after the last backward pass, behind what was hidden."""
        found: list[Operation] = []
        if self._hidden > 0:
            each = sum(many for unit, many in self.held.items() if self._gradient_calls(unit))
            times = self.plan.micro_batches if self._is_sharded else 1
            if each:
                found.append(Loop(count=each * times, body=(Await(token=GRADIENTS_DONE, label=label("data")),)))
        if not self._is_sharded:
            found += in_turn(self.calls.gradients(*self._held), 1 - self._hidden, overhead_share=1)
        if self._tied_bytes:
            found += [Notify(token=TIED_GO), Await(token=TIED_DONE, label=label("data"))]
        return found + self._with_mirror(0)

    def _with_mirror(self, exchange: int) -> list[Operation]:
        """Wait for an exchange with the mirror: gradients, then weights."""
        if exchange >= len(self._mirrored_bytes):
            return []
        return [Notify(token=MIRROR_GO), Await(token=MIRROR_DONE, label=label("data"))]

    def _update(self) -> list[Operation]:
        """The optimizer, and the parameters updated by other ranks."""
        dense, experts = self._held
        is_sharded = self.plan.zero > 0
        updated = self._shard(self.counted[:1] if is_sharded and self.plan.has_mirror else self.counted)
        taken_ps = duration_ps(optimizer_s(self.units.kernels, updated, dense + experts))
        taken_ps += optimizer_exchange_ps(self.calls)
        found: list[Operation] = [Compute(duration_ps=taken_ps, label=label("optimizer"))]
        found += self._with_mirror(1)
        if is_sharded and not self._is_sharded:
            found += in_turn(self.calls.parameters(dense, experts), 1 - self._hidden, overhead_share=1)
        return found

    @cached_property
    def _held(self) -> tuple[float, float]:
        """Trained parameters of a rank, experts apart."""
        return self._trained(self.counted)

    def _trained(self, virtual_stages: Sequence[Counter[Unit]]) -> tuple[float, float]:
        works = [
            (trained_parameters(self.units, unit), many) for counted in virtual_stages for unit, many in counted.items()
        ]
        return sum(many * dense for (dense, _), many in works), sum(many * experts for (_, experts), many in works)

    def _shard(self, virtual_stages: Sequence[Counter[Unit]]) -> float:
        """Parameters of virtual stages updated by a rank."""
        dense, experts = self._trained(virtual_stages)
        groups = self.calls.groups
        is_sharded = self.plan.zero > 0
        shared = groups.gradients.size if is_sharded else 1
        expert_shared = groups.expert_gradients.size if is_sharded else 1
        return dense / shared + experts / expert_shared

    @cached_property
    def _mirrored_bytes(self) -> tuple[int, ...]:
        """Bytes that a rank sends to its mirror.

        It sends all gradients, or under ZeRO those that the mirror updates, then weights.
        """
        if not self.plan.has_mirror:
            return ()
        if self.plan.zero == 0:
            return (round(self.plan.gradient_bytes * self._shard(self.counted)),)
        own, mirrored = self._shard(self.counted[:1]), self._shard(self.counted[1:])
        return round(self.plan.gradient_bytes * mirrored), round(VALUE_BYTES * own)

    @property
    def _tied_bytes(self) -> int:
        """Gradient bytes of a table that first and last stage both hold."""
        return tied_bytes(self.units.model, self.plan) if self.stage in {0, self.plan.pipeline - 1} else 0
