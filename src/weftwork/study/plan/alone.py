"""The largest call of each kind of training traffic, alone.

It has the times of closed form, flow engine and packet engine.

One group of ranks takes part, placed as in the job, with the bytes, the algorithm and the latencies of the job's call.
Leaves out: overlap, other groups of the same kind, traffic of other kinds, faults and stragglers; the software latency
of stage messages, which programs wait for elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.errors import ConfigError
from weftwork.base.findings import Findings
from weftwork.engine.programs import walk
from weftwork.spec.job import Collect, Grid, Job, Milestone, Peer, Placement, Program, Receive, Send, Wait
from weftwork.spec.peers import peers_of
from weftwork.study.plan.packet_cost import packet_cost
from weftwork.study.prepare.engineering import planned_paths
from weftwork.study.prepare.job_volume import volume
from weftwork.study.prepare.lowered import folds, lowered
from weftwork.study.prepare.queue_pairs import with_queue_pairs
from weftwork.study.prepare.training import training_programs, training_setting
from weftwork.study.run.execute import execute
from weftwork.workload.collectives.crossed import crossed
from weftwork.workload.collectives.figures import path_latency_ps
from weftwork.workload.parallelism.groups import members_of
from weftwork.workload.training.communication import Communication

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.study.plan.packet_cost import PacketLimit
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.prepare.training import TrainingJob
    from weftwork.study.run.execute import Progress

__all__ = ["KINDS", "CollectiveTimes", "LargestCall", "alone_job", "largest_calls", "times_alone"]

KINDS: Final = ("tensor", "context", "expert", "pipeline", "data")  # labels of traffic of a training job
MESSAGE: Final = "send"  # the operation of a message between stages


@dataclass(frozen=True, kw_only=True, slots=True)
class LargestCall:
    """The largest call of one kind of traffic.

    Attributes
    ----------
    kind : of `KINDS`
    call : of the job's programs
    ranks : shape (members,), of the first group that makes it, in the order of their coordinates
    """

    kind: str
    call: Collect | Send
    ranks: NDArray[np.int64]

    @property
    def operation(self) -> str:
        """Name of the operation in nccl-tests."""
        return self.call.operation if isinstance(self.call, Collect) else MESSAGE

    @property
    def size_bytes(self) -> int:
        """Size of the buffer as nccl-tests counts it, or of the message."""
        return self.call.size_bytes if isinstance(self.call, Collect) else self.call.size.total_bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectiveTimes:
    """The times of a call alone.

    Attributes
    ----------
    kind, operation, size_bytes, ranks : which call, of how many ranks
    closed_form_ps, flow_ps : by closed form and by the flow engine
    packet_ps : by the packet engine; None where it did not run
    reason : why the packet engine did not run, or did not end; empty where it did
    """

    kind: str
    operation: str
    size_bytes: int
    ranks: int
    closed_form_ps: int
    flow_ps: int
    packet_ps: int | None
    reason: str = ""


def largest_calls(training: TrainingJob) -> list[LargestCall]:
    """Find the largest call of each kind of traffic.

    Kinds are in the order of `KINDS`.

    Parameters
    ----------
    training : a job with whole collectives
    """
    job = training.job
    found: dict[str, tuple[int, int, Collect | Send]] = {}
    for program, operation, _ in walk(job):
        if not isinstance(operation, Collect | Send):
            continue
        kind = job.labels[operation.label]
        if isinstance(operation, Collect) == (
            kind == "pipeline"
        ):  # such as gradients of an embedding that stages share
            continue
        sent_bytes = operation.amount_bytes if isinstance(operation, Collect) else operation.size.total_bytes
        if sent_bytes > found.get(kind, (0, 0, operation))[0]:
            found[kind] = sent_bytes, program, operation
    calls = []
    for kind in KINDS:
        if kind not in found:
            continue
        _, program, call = found[kind]
        rank = int(np.flatnonzero(job.rank_program == program)[0])
        if isinstance(call, Collect):
            ranks = members_of(call.group, rank)
        else:
            ranks = np.array([rank, int(peers_of(call.peer, np.array([rank]), 0)[0])], np.int64)
        calls.append(LargestCall(kind=kind, call=call, ranks=ranks))
    return calls


def alone_job(training: TrainingJob, largest: LargestCall) -> Job:
    """Make the job of one call, on its ranks alone.

    Parameters
    ----------
    training : the job
    largest : one of `largest_calls`
    """
    call, members = largest.call, len(largest.ranks)
    end = (Wait(label=call.label), Milestone(name=0))
    if isinstance(call, Collect):
        own = replace(call, group=Grid(axes=((1, members),)), channel=0)
        programs: tuple[Program, ...] = (Program(streams=((own, *end),)),)
        of_rank = np.zeros(members, np.int32)
    else:
        sent = replace(call, peer=Peer(rule="rank", shift=1), channel=0)
        received = Receive(peer=Peer(rule="rank", shift=0), channel=0)
        programs = Program(streams=((sent, *end),)), Program(streams=((received, *end),))
        of_rank = np.arange(2, dtype=np.int32)
    place = training.job.placement
    gpu = None if place.gpu is None else place.gpu[largest.ranks]
    return Job(
        name=largest.kind,
        ranks=members,
        programs=programs,
        rank_program=of_rank,
        placement=Placement(host=place.host[largest.ranks], nics=place.nics[largest.ranks], gpu=gpu),
        milestone_names=("done",),
        labels=training.job.labels,
    )


def times_alone(
    whole: Prepared, limit: PacketLimit, on_progress: Callable[[Progress], None] | None = None
) -> list[CollectiveTimes]:
    """Time the largest call of each kind of traffic alone.

    Each is on the fabric of the whole job.

    Parameters
    ----------
    whole : a training job, prepared for the flow engine
    limit : of each packet run
    on_progress : as for `weftwork.study.run.execute.execute`
    """
    training = whole.jobs[0]
    setting = training_setting(whole.scenario, whole.fabric, training.section)
    forms = Communication(
        model=training.model,
        plan=training.plan,
        software=training.software,
        cluster=setting.cluster,
        placement=setting.placement,
    )
    found = []
    for largest in largest_calls(training):
        own = replace(training, job=alone_job(training, largest))
        packet_ps, reason = _packets_ps(whole, own, limit, on_progress)
        times = CollectiveTimes(
            kind=largest.kind,
            operation=largest.operation,
            size_bytes=largest.size_bytes,
            ranks=len(largest.ranks),
            closed_form_ps=_closed_form_ps(forms, largest, _path_ps(whole, training, largest)),
            flow_ps=_taken_ps(_prepared(whole, own, "flow"), on_progress)[0],
            packet_ps=packet_ps,
            reason=reason,
        )
        found.append(times)
    return found


def _packets_ps(
    whole: Prepared, own: TrainingJob, limit: PacketLimit, on_progress: Callable[[Progress], None] | None
) -> tuple[int | None, str]:
    """Time of the packet engine, or None with the reason."""
    scenario = _scenario(whole, "packet")
    try:
        cost = packet_cost(scenario, whole.fabric, [own])
        if not limit.holds(cost):
            return None, f"would take {cost}"
        taken_ps, is_done = _taken_ps(_prepared(whole, own, "packet"), on_progress)
    except ConfigError as error:
        return None, "; ".join(mistake.text for mistake in error.mistakes)
    return (taken_ps, "") if is_done else (None, "the packet run did not end")


def _path_ps(whole: Prepared, training: TrainingJob, largest: LargestCall) -> int:
    """Latency of a message between the ranks of a call."""
    placement, ranks = training.job.placement, largest.ranks
    gpu = None if placement.gpu is None else placement.gpu[ranks]
    own = replace(placement, host=placement.host[ranks], nics=placement.nics[ranks], gpu=gpu)
    return path_latency_ps(crossed(whole.fabric, own))


def _closed_form_ps(forms: Communication, largest: LargestCall, path_ps: int) -> int:
    call, first = largest.call, int(largest.ranks[0])
    if isinstance(call, Send):
        other = int(largest.ranks[1])
        far = forms.is_far(first, other)
        return forms.message_ps(first, other) - forms.message_latency_ps(far=far) + path_ps * far
    forms.call(call.operation, call.group, call.channel, call.size_bytes, largest.kind)  # notes the path of the group
    return forms.part_ps(call)


def _scenario(whole: Prepared, fidelity: str) -> Scenario:
    engine = whole.scenario.engine.model_copy(update={"fidelity": fidelity})
    return whole.scenario.model_copy(update={"engine": engine, "faults": (), "stragglers": ()})


def _prepared(whole: Prepared, own: TrainingJob, fidelity: str) -> Prepared:
    """The prepared run with the job of one call."""
    scenario = _scenario(whole, fidelity)
    findings = Findings(source=scenario.source)
    steps = training_programs(scenario, whole.fabric, [own], findings)
    job = with_queue_pairs(scenario, steps, whole.policies, findings)
    paths = planned_paths(scenario, whole.fabric, job, whole.transport, ())
    engine_input = lowered(
        scenario,
        fabric=whole.fabric,
        job=job,
        transport=whole.transport,
        policies=whole.policies,
        faults=(),
        planned=paths,
        findings=findings,
    )
    return replace(
        whole,
        scenario=scenario,
        jobs=(),
        job=job,
        transport=engine_input.transport,
        faults=(),
        volume=None if folds(scenario) else volume(job),
        series=None,
        engine_input=engine_input,
        planned=paths,
    )


def _taken_ps(prepared: Prepared, on_progress: Callable[[Progress], None] | None) -> tuple[int, bool]:
    """The time of the last rank, and whether all ranks finished."""
    execution = execute(prepared, on_progress, has_loss_bounds=False)
    if execution.interrupted:
        raise KeyboardInterrupt
    ended = execution.outcome.milestones
    wanted = prepared.job.ranks if execution.flows is None else len(execution.flows.actors)
    return int(ended["at_ps"].max(initial=0)), len(ended) == wanted
