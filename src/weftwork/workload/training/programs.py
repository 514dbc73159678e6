"""A training job as programs: one for each stage of the pipeline, run by all ranks of that stage alike.

Stream 0 of a stage computes; its time is the iteration's. Other streams carry what runs beside it: messages to and from
neighbours, exchanges of tokens, gathering of parameters and reduction of gradients. Messages and their latency keep
nobody busy; where a stage blocks in its sends, it waits for the share of them that does not overlap.
Without ZeRO 3, gradients are added behind the last backward pass or, as far as they overlap, behind each unit of it;
sharded parameters are gathered behind the update or, as far as they overlap, during the first forward passes of an
iteration. With ZeRO 3 each unit's parameters are gathered before each of its passes and its gradients added after
each backward pass.
Source: Narayanan et al., arXiv:2104.04473; Rajbhandari et al., arXiv:1910.02054 (ZeRO); Zhao et al., arXiv:2304.11277
(FSDP, prefetch).
Leaves out: parameters that stay gathered between the passes of one micro batch; buckets other than a unit of the model.
"""

from __future__ import annotations

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
    Peer,
    Placement,
    Program,
    Receive,
    Send,
    Size,
    Wait,
)  # fmt: skip
from weftwork.spec.training import Gpu, Model, Parallelism, Software
from weftwork.workload.parallelism.layout import Unit, virtual_stages_of
from weftwork.workload.training.communication import LABELS, Communication, GpuCluster, TimedCollective, label
from weftwork.workload.training.kernels import Kernels
from weftwork.workload.training.schedule import Pass, as_loops, passes
from weftwork.workload.training.stage import UnitOperations, duration_ps, in_turn

__all__ = ["PASSES", "PASS_DTYPE", "Extras", "Stage", "TrainingShape", "stages_of", "training_job"]

PASSES: Final = ("forward", "backward", "gradients", "update", "checkpoint", "loading")
PASS_DTYPE: Final = np.dtype([("pass", np.int32), ("micro_batch", np.int32), ("virtual_stage", np.int32)])
MILESTONES: Final = ("pass", "iteration")

FORWARD, BACKWARD, TIED = range(3)  # channels of messages
# Tokens; 0 and 1 are those of `weftwork.workload.training.stage`. Of messages in each direction: arrived, ready, sent
_ARRIVED, _READY, _SENT = (2, 5), (3, 6), (4, 7)
GRADIENTS_GO, GRADIENTS_DONE, PARAMETERS_GO, PARAMETERS_DONE, TIED_GO, TIED_DONE = range(8, 14)

OPTIMIZER_BYTES: Final = 28  # of a parameter that a rank updates: Adam in FP32 reads and writes three, reads a gradient
WORKING_BYTES: Final = 6  # of a parameter that it holds: gradient read and cleared, new value written
OPTIMIZER_KERNELS: Final = 10
OPTIMIZER_EXCHANGES: Final = 3  # small all-reduces: norm of the gradients, overflow, loss


@dataclass(frozen=True, kw_only=True, slots=True)
class Extras:
    """What a job does besides its iterations' own work. Durations hold up every stage.

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
        """Whether one follows this iteration, counted from 0."""
        return self.checkpoint_every > 0 and (iteration + 1) % self.checkpoint_every == 0


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingShape:
    """What the milestones of a job mean.

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
    kernels = Kernels(gpu=gpu, software=software, precision=plan.precision)
    units = UnitOperations(model=model, plan=plan, kernels=kernels, communication=calls)
    stages = stages_of(units, extras)
    job = Job(
        name=name,
        ranks=plan.ranks,
        programs=tuple(Program(streams=stage.streams()) for stage in stages),
        rank_program=calls.groups.stage_of(np.arange(plan.ranks)).astype(np.int32),
        placement=placement,
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


@dataclass(frozen=True, slots=True)
class _Step:
    """A pass, as far as its operations depend on it: its first and last micro batch may do more than others."""

    kind: str
    virtual_stage: int
    is_first: bool
    is_last: bool


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage: its streams."""

    units: UnitOperations
    extras: Extras
    stage: int
    virtual_stages: tuple[tuple[Unit, ...], ...]

    @property
    def plan(self) -> Parallelism:
        """Whose stage this is."""
        return self.units.plan

    @property
    def calls(self) -> Communication:
        """What its ranks send each other."""
        return self.units.communication

    @cached_property
    def passes(self) -> tuple[Pass, ...]:
        """In order."""
        return passes(self.plan, self.stage)

    @cached_property
    def steps(self) -> list[_Step]:
        """The same, as far as operations differ."""
        last = self.plan.micro_batches - 1
        return [
            _Step(
                kind=one.kind,
                virtual_stage=one.virtual_stage,
                is_first=one.kind == "forward" and one.micro_batch == 0,
                is_last=one.kind == "backward" and one.micro_batch == last,
            )
            for one in self.passes
        ]

    def streams(self) -> tuple[tuple[Operation, ...], ...]:
        """The stream that computes, and those that run beside it."""
        beside = [
            *self._messages(FORWARD),
            *self._messages(BACKWARD),
            self._exchange_stream(),
            self._parameter_stream(),
            self._gradient_stream(),
            self._tied_stream(),
        ]
        count = self.extras.iterations
        repeated = [stream if count == 1 else (Loop(count=count, body=stream),) for stream in beside if stream]
        return (self._main(), *repeated)

    def shape(self) -> NDArray[np.void]:
        """What the milestones of the main stream begin."""
        rows: list[tuple[int, int, int]] = []
        of_passes = [(PASSES.index(one.kind), one.micro_batch, one.virtual_stage) for one in self.passes]
        for iteration in range(self.extras.iterations):
            rows += [(PASSES.index("loading"), -1, -1)] if self._loading else []
            rows += [*of_passes, (PASSES.index("gradients"), -1, -1), (PASSES.index("update"), -1, -1)]
            rows += [(PASSES.index("checkpoint"), -1, -1)] if self.extras.has_checkpoint(iteration) else []
        return np.array(rows, PASS_DTYPE)

    def end(self) -> tuple[Operation, ...]:
        """What a stage does alone behind its last pass, as far as it does not wait for a stream beside it."""
        return (*self._gradients(), *self._update())

    def data_calls(self, unit: Unit) -> tuple[tuple[TimedCollective, ...], tuple[TimedCollective, ...]]:
        """Calls that gather a unit's parameters and add its gradients."""
        return self._parameter_calls(unit), self._gradient_calls(unit)

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
        found += as_loops(self.steps, self._step)
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

    def _step(self, step: _Step) -> list[Operation]:
        """One pass: what it waits for, the units of its virtual stage, what it passes on."""
        direction = FORWARD if step.kind == "forward" else BACKWARD
        found: list[Operation] = [Milestone(name=0)]
        if self._takes(direction, step.virtual_stage):
            found.append(Await(token=_ARRIVED[direction], label=label("pipeline")))
            found += in_turn(self.calls.arrival)
        order = self._order(step)
        found += as_loops(order, lambda unit: self._unit(unit, step))
        if self._gives(direction, step.virtual_stage):
            found.append(Notify(token=_READY[direction]))
            if self.plan.overlap.pipeline < 1:
                found.append(Await(token=_SENT[direction], label=label("pipeline")))
        return found

    def _order(self, step: _Step) -> tuple[Unit, ...]:
        units = self.virtual_stages[step.virtual_stage]
        return units if step.kind == "forward" else units[::-1]

    def _unit(self, unit: Unit, step: _Step) -> list[Operation]:
        found: list[Operation] = []
        if self._is_sharded and self._parameter_calls(unit):
            found += self._gather_now(unit)
        elif step.is_first and self._gathers_hidden and self._parameter_calls(unit):
            found.append(Await(token=PARAMETERS_DONE, label=label("data")))
        if step.kind == "forward":
            return found + self.units.forward(unit)
        found += self.units.backward(unit)
        reduces = self._gradient_calls(unit) and (self._is_sharded or (step.is_last and self._reduces_hidden))
        if reduces and self._hidden > 0:
            found.append(Notify(token=GRADIENTS_GO))
        if reduces and self._is_sharded:
            found += in_turn(self._gradient_calls(unit), 1 - self._hidden)
        return found

    # messages between stages

    def _takes(self, direction: int, virtual_stage: int) -> bool:
        """Whether a pass waits for another stage."""
        return self._gives(BACKWARD if direction == FORWARD else FORWARD, virtual_stage)

    def _gives(self, direction: int, virtual_stage: int) -> bool:
        """Whether a pass passes something on: all but the last part forward, all but the first one backward."""
        if self.plan.pipeline == 1:
            return False
        if direction == FORWARD:
            return (self.stage, virtual_stage) != (self.plan.pipeline - 1, self.plan.virtual_stages - 1)
        return (self.stage, virtual_stage) != (0, 0)

    def _messages(self, direction: int) -> list[tuple[Operation, ...]]:
        """The streams that send to one neighbour and receive from the other."""
        towards = 1 if direction == FORWARD else -1
        virtual_stages = range(self.plan.virtual_stages)
        sent = self.plan.micro_batches * sum(self._gives(direction, virtual_stage) for virtual_stage in virtual_stages)
        taken = self.plan.micro_batches * sum(self._takes(direction, virtual_stage) for virtual_stage in virtual_stages)
        blocking = 1 - self.plan.overlap.pipeline
        sizes = [size for size in _split(self.calls.message_bytes, blocking) if size]
        found: list[tuple[Operation, ...]] = []
        if sent:
            body: list[Operation] = [Await(token=_READY[direction])]
            sends = [
                Send(peer=self._peer(towards), size=Size(total_bytes=size), channel=direction, label=label("pipeline"))
                for size in sizes
            ]
            if blocking > 0:
                waits = round(blocking * self._latency_ps(towards))
                body += [sends[0], Wait(), Notify(token=_SENT[direction], after_ps=waits), *sends[1:]]
            else:
                body += sends
            found.append((Loop(count=sent, body=tuple(body)),))
        if taken:
            receive = Receive(peer=self._peer(-towards), channel=direction)
            arrived = Notify(token=_ARRIVED[direction], after_ps=self._latency_ps(-towards))
            found.append((Loop(count=taken, body=(*[receive] * len(sizes), Wait(), arrived)),))
        return found

    def _peer(self, towards: int) -> Peer:
        return Peer(rule="shift", group=self.calls.groups.pipeline, shift=towards)

    def _latency_ps(self, towards: int) -> int:
        """What a message takes beyond its bytes: longer to another server than over NVLink."""
        other = self.calls.groups.rank_at((self.stage + towards) % self.plan.pipeline)
        far = self.calls.is_far(self.calls.groups.rank_at(self.stage), other)
        return self.calls.message_latency_ps(far=far)

    # tokens of experts beside computing

    def _exchange_stream(self) -> tuple[Operation, ...]:
        body = tuple(self.units.hidden_exchange)
        units = sum(self.units.exchanges(unit) for virtual_stage in self.virtual_stages for unit in virtual_stage)
        passes_each = 3 if self.plan.recompute == "full" else 2
        count = units * passes_each * self.plan.micro_batches
        return (Loop(count=count, body=body),) if body and count else ()

    # parameters and gradients

    @property
    def _hidden(self) -> float:
        return self.plan.overlap.data

    @property
    def _is_sharded(self) -> bool:
        return self.plan.zero == 3 and not self.plan.has_lora

    @property
    def _prefetches(self) -> bool:
        return self._is_sharded and self.plan.has_prefetch and self._hidden > 0

    @property
    def _reduces_hidden(self) -> bool:
        return not self.plan.has_lora and not self._is_sharded and self._hidden > 0

    @property
    def _gathers_hidden(self) -> bool:
        return self._reduces_hidden and self.plan.zero > 0

    def _gradient_calls(self, unit: Unit) -> tuple[TimedCollective, ...]:
        work = self.units.work[unit]
        return () if self.plan.has_lora else self.calls.gradients(work.parameters, work.expert_parameters)

    def _parameter_calls(self, unit: Unit) -> tuple[TimedCollective, ...]:
        work = self.units.work[unit]
        if self.plan.has_lora or self.plan.zero == 0:
            return ()
        return self.calls.parameters(work.parameters, work.expert_parameters)

    def _gather_now(self, unit: Unit) -> list[Operation]:
        """ZeRO 3: parameters before a pass; with prefetch those of the next unit begin to come as this one begins."""
        calls = self._parameter_calls(unit)
        share = self._hidden if self._prefetches else 0.0
        found = in_turn(calls, 1 - share)
        if share > 0:
            found += [Await(token=PARAMETERS_DONE, label=label("data")), Notify(token=PARAMETERS_GO)]
        return found

    def _parameter_stream(self) -> tuple[Operation, ...]:
        """Gathers beside computing, in the order in which the main stream needs them."""
        share = self._hidden
        if self._prefetches:

            def prefetched(step: _Step) -> Sequence[Operation]:
                return as_loops(self._order(step), lambda unit: self._prefetch(unit, share))

            # the last unit of an iteration asks for one that is not there
            return (*as_loops(self.steps, prefetched), Await(token=PARAMETERS_GO))
        if not self._gathers_hidden:
            return ()
        first = [step for step in self.steps if step.is_first]
        found: list[Operation] = [Await(token=PARAMETERS_GO)]
        for step in first:
            for unit in self._order(step):
                if calls := self._parameter_calls(unit):
                    found += [*in_turn(calls, share, overhead_share=1), Notify(token=PARAMETERS_DONE)]
        return tuple(found)

    def _prefetch(self, unit: Unit, share: float) -> list[Operation]:
        calls = self._parameter_calls(unit)
        if not calls:
            return []
        return [Await(token=PARAMETERS_GO), *in_turn(calls, share), Notify(token=PARAMETERS_DONE)]

    def _gradient_stream(self) -> tuple[Operation, ...]:
        """Reductions beside computing, in the order in which backward passes end."""
        share = self._hidden
        if share <= 0 or self.plan.has_lora:
            return ()
        steps = [step for step in self.steps if step.kind == "backward" and (self._is_sharded or step.is_last)]

        def reduced(unit: Unit) -> list[Operation]:
            calls = self._gradient_calls(unit)
            if not calls:
                return []
            whole = None if self._is_sharded else 1.0
            return [
                Await(token=GRADIENTS_GO),
                *in_turn(calls, share, overhead_share=whole),
                Notify(token=GRADIENTS_DONE),
            ]

        return as_loops(steps, lambda step: as_loops(self._order(step), reduced))

    def _gradients(self) -> list[Operation]:
        """What is left of reducing gradients when the last backward pass is done."""
        found: list[Operation] = []
        if not self.plan.has_lora and not self._is_sharded:
            found += in_turn(self.calls.gradients(*self._held), 1 - self._hidden, overhead_share=1)
        if self._hidden > 0 and not self.plan.has_lora:
            each = sum(
                bool(self._gradient_calls(unit)) for virtual_stage in self.virtual_stages for unit in virtual_stage
            )
            times = self.plan.micro_batches if self._is_sharded else 1
            if each:
                found.append(Loop(count=each * times, body=(Await(token=GRADIENTS_DONE, label=label("data")),)))
        if self._tied_bytes:
            found += [Notify(token=TIED_GO), Await(token=TIED_DONE, label=label("data"))]
        return found

    def _update(self) -> list[Operation]:
        """The optimizer, and the parameters that other ranks have updated."""
        dense, experts = self._held
        groups = self.calls.groups
        is_sharded = self.plan.zero > 0
        shared = groups.gradients.size if is_sharded else 1
        expert_shared = groups.expert_gradients.size if is_sharded else 1
        moved = OPTIMIZER_BYTES * (dense / shared + experts / expert_shared) + WORKING_BYTES * (dense + experts)
        taken_s = self.units.kernels.memory_s(moved, OPTIMIZER_KERNELS)
        exchanged_ps = OPTIMIZER_EXCHANGES * self.calls.message_latency_ps(far=True)
        found: list[Operation] = [Compute(duration_ps=duration_ps(taken_s) + exchanged_ps, label=label("optimizer"))]
        if is_sharded and not self._is_sharded and not self.plan.has_lora:
            found += in_turn(self.calls.parameters(dense, experts), 1 - self._hidden, overhead_share=1)
        return found

    @cached_property
    def _held(self) -> tuple[float, float]:
        """Parameters that a rank trains, those of experts apart."""
        if self.plan.has_lora:
            return 0.0, 0.0
        works = [self.units.work[unit] for virtual_stage in self.virtual_stages for unit in virtual_stage]
        return sum(work.parameters for work in works), sum(work.expert_parameters for work in works)

    @property
    def _tied_bytes(self) -> int:
        """Gradients of a table that the first and the last stage both hold."""
        model, plan = self.units.model, self.plan
        is_end = self.stage in {0, plan.pipeline - 1}
        if not model.has_tied_embeddings or plan.has_lora or plan.pipeline == 1 or not is_end:
            return 0
        return model.vocabulary * model.hidden // plan.tensor * plan.gradient_bytes

    def _tied_stream(self) -> tuple[Operation, ...]:
        """Both ends send each other all of it, which is what an all-reduce of two does."""
        size = self._tied_bytes
        if not size:
            return ()
        towards = -1 if self.stage == 0 else 1
        peer = self._peer(towards)
        return (
            Await(token=TIED_GO),
            Send(peer=peer, size=Size(total_bytes=size), channel=TIED, label=label("data")),
            Receive(peer=peer, channel=TIED),
            Wait(),
            Notify(token=TIED_DONE, after_ps=self._latency_ps(towards)),
        )


def _split(size_bytes: int, blocking: float) -> tuple[int, int]:
    """Bytes of a message that a stage waits for, and the others."""
    waited = round(size_bytes * blocking)
    return waited, size_bytes - waited
