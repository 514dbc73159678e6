"""The winner of a search packet by packet.

It runs the whole job, or as many replicas as fit, also on the flow engine.

A replica is all ranks of one data-parallel index. A job with fewer of them has the same micro batches on each rank.
The largest call of each kind of traffic is timed alone as well (`weftwork.study.plan.alone`), since the packet engine
does not divide an iteration into kinds of time.
Leaves out: what a confirmation says in words (`weftwork.study.plan.confirm_words`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from weftwork.base.errors import ConfigError
from weftwork.base.findings import Findings
from weftwork.spec.job import Placement
from weftwork.study.plan.alone import KINDS, times_alone
from weftwork.study.plan.packet_cost import PacketLimit, packet_cost
from weftwork.study.prepare.prepare import prepare
from weftwork.study.prepare.training import training_jobs
from weftwork.study.record.road import execute, results
from weftwork.topology.build import fabric_of_section
from weftwork.workload.parallelism.groups import groups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.study.plan.alone import CollectiveTimes
    from weftwork.study.plan.packet_cost import PacketCost
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.run.execute import Progress

__all__ = ["Confirmation", "Fit", "confirm", "largest_fit", "with_replicas"]

ANY_MEMORY: Final = 2**62  # of a GPU: fewer replicas keep larger shards, and the question is one of time


@dataclass(frozen=True, kw_only=True, slots=True)
class Fit:
    """The replicas that a packet run can hold.

    Attributes
    ----------
    replicas : the most that fit; 0: none
    cost : of so many; None where none fit
    too_large : replicas and cost of the first run that did not fit; None where all replicas fit
    """

    replicas: int
    cost: PacketCost | None
    too_large: tuple[int, PacketCost] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Confirmation:
    """The packet-level confirmation of a plan.

    Attributes
    ----------
    how : ``whole``, ``replicas``, ``collectives`` where no replica fits, ``none`` where nothing fits or runs
    replicas, gpus : that were run packet by packet; 0 where only collectives were
    of_replicas, of_gpus : of the whole job
    flow_ps, packet_ps : an iteration of what was run; None where only collectives were, or a run did not end
    status : of the packet run, see `weftwork.store.runs.Run.status`; empty where there was none
    exposed_ps : by kind of traffic, of the flow run of the whole job
    collectives : the largest call of each kind of traffic, alone
    fit, limit : what was estimated before, and against what
    refused : why packets cannot run the job; empty where they can
    has_shards : whether replicas share weights, gradients or optimizer (ZeRO)
    """

    how: Literal["whole", "replicas", "collectives", "none"]
    replicas: int
    gpus: int
    of_replicas: int
    of_gpus: int
    flow_ps: int | None
    packet_ps: int | None
    status: str
    exposed_ps: dict[str, int]
    collectives: tuple[CollectiveTimes, ...]
    fit: Fit
    limit: PacketLimit
    refused: str
    has_shards: bool

    @property
    def longer(self) -> float | None:
        """Share by which packets take longer than flows."""
        if self.flow_ps is None or self.packet_ps is None:
            return None
        return self.packet_ps / self.flow_ps - 1


def confirm(
    scenario: Scenario, *, limit: PacketLimit | None = None, on_progress: Callable[[Progress], None] | None = None
) -> Confirmation:
    """Run a training job packet by packet, as much of it as fits.

    The same part also runs on the flow engine.

    Parameters
    ----------
    scenario : with one section ``training``, all keys of the plan given
    limit : of each packet run; None: memory of this machine and ten minutes
    on_progress : as for `weftwork.study.run.execute.execute`

    Raises
    ------
    ConfigError : the flow engine cannot run the job
    """
    limit = limit or PacketLimit.of_machine()
    fabric = fabric_of_section(scenario.fabric, directory=Path(scenario.source).parent)
    whole = replace(prepare(_at(scenario, "flow"), fabric=fabric), series=None)
    plan = whole.jobs[0].plan
    numbers = results(whole, execute(whole, what_if="none")).summary
    refused, fit = "", Fit(replicas=0, cost=None, too_large=None)
    flow_ps, packet_ps, status = None, None, ""
    try:
        fit = largest_fit(_costs(whole), limit)
        if fit.replicas:
            part, placement = with_replicas(whole, fit.replicas)
            packets = prepare(_at(part, "packet"), fabric=fabric, placement=placement)
            flow_ps = _iteration(prepare(_at(part, "flow"), fabric=fabric, placement=placement), None)[0]
            packet_ps, status = _iteration(packets, on_progress)
    except ConfigError as error:
        refused, fit = "; ".join(mistake.text for mistake in error.mistakes), replace(fit, replicas=0)
    collectives = tuple(times_alone(whole, limit, on_progress))
    ran_alone = any(one.packet_ps is not None for one in collectives)
    how: Literal["whole", "replicas", "collectives", "none"] = "collectives" if ran_alone else "none"
    if fit.replicas:
        how = "whole" if fit.replicas == plan.data else "replicas"
    return Confirmation(
        how=how,
        replicas=fit.replicas,
        gpus=plan.ranks // plan.data * fit.replicas,
        of_replicas=plan.data,
        of_gpus=plan.ranks,
        flow_ps=flow_ps,
        packet_ps=packet_ps,
        status=status,
        exposed_ps={kind: round(numbers[f"exposed_{kind}_ps"].value or 0) for kind in KINDS},
        collectives=collectives,
        fit=fit,
        limit=limit,
        refused=refused,
        has_shards=plan.zero > 0,
    )


def largest_fit(costs: Iterable[tuple[int, PacketCost]], limit: PacketLimit) -> Fit:
    """Choose the most replicas that fit.

    The search ends at the first number that does not fit.

    Parameters
    ----------
    costs : replicas and what a packet run of them takes, the fewest first
    limit : of a run
    """
    found = Fit(replicas=0, cost=None, too_large=None)
    for replicas, cost in costs:
        if not limit.holds(cost):
            return replace(found, too_large=(replicas, cost))
        found = Fit(replicas=replicas, cost=cost, too_large=None)
    return found


def with_replicas(whole: Prepared, replicas: int) -> tuple[Scenario, Placement]:
    """The job with its first replicas, on their GPUs of the whole job.

    Each rank has the same micro batches.

    Parameters
    ----------
    whole : a training job
    replicas : that stay; a divisor of those of the job

    Returns
    -------
    the scenario, and where its ranks are
    """
    scenario, placement, plan = whole.scenario, whole.job.placement, whole.jobs[0].plan
    if replicas == plan.data:
        return scenario, placement
    changed: dict[str, Any] = {
        "data": replicas,
        "gpus": plan.ranks // plan.data * replicas,
        "global_batch": plan.global_batch // plan.data * replicas,
        "memory_bytes": ANY_MEMORY,
    }
    section = whole.jobs[0].section.model_copy(update=changed)
    ((stride, size),) = groups(plan).data.axes
    stays = np.arange(plan.ranks) // stride % size < replicas  # ranks keep their order, and so their coordinates
    gpu = None if placement.gpu is None else placement.gpu[stays]
    part = Placement(host=placement.host[stays], nics=placement.nics[stays], gpu=gpu)
    return scenario.model_copy(update={"training": section}), part


def _costs(whole: Prepared) -> Iterator[tuple[int, PacketCost]]:
    """Costs of packet runs with more and more replicas.

    Numbers of replicas over which experts do not spread are skipped.

    Raises
    ------
    ConfigError : packets cannot run all replicas
    """
    data = whole.jobs[0].plan.data
    for replicas in (one for one in range(1, data + 1) if data % one == 0):
        part, placement = with_replicas(whole, replicas)
        part = _at(part, "packet")
        findings = Findings(source=part.source)
        jobs = training_jobs(part, whole.fabric, findings, placement)
        if not findings.has_mistakes:
            yield replicas, packet_cost(part, whole.fabric, jobs)
        elif replicas == data:
            findings.refuse()


def _at(scenario: Scenario, fidelity: str) -> Scenario:
    return scenario.model_copy(update={"engine": scenario.engine.model_copy(update={"fidelity": fidelity})})


def _iteration(prepared: Prepared, on_progress: Callable[[Progress], None] | None) -> tuple[int | None, str]:
    """Time of an iteration and how the run ended.

    The time is None if the run did not end.
    """
    prepared = replace(prepared, series=None)
    execution = execute(prepared, on_progress, what_if="none")
    if execution.interrupted:
        raise KeyboardInterrupt
    found = results(prepared, execution)
    iteration_ps = found.summary["iteration_ps"].value
    return (None if iteration_ps is None else int(iteration_ps)), found.status
