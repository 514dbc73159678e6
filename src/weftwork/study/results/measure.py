"""The time of a run for each job, and a lower bound.

The bound is the time that the run's NICs need for its messages.

Leaves out: why (`weftwork.study.answer.suspects`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.study.prepare.job_volume import computing_ps
from weftwork.study.results.collective_times import collective_times
from weftwork.study.results.fabric_tables import wire_bytes
from weftwork.study.results.intra_server import PACKETS, carriers
from weftwork.study.run.ending import are_iterations_done, is_done, job_of_rank

if TYPE_CHECKING:
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.run.execute import Execution

__all__ = ["computed_ps", "demand_ps", "mean_computed_ps", "taken_ps"]


def taken_ps(prepared: Prepared, execution: Execution) -> list[int] | None:
    """The time of an iteration of each job, a collective, or all messages.

    Parameters
    ----------
    prepared : what was run
    execution : of it

    Returns
    -------
    picoseconds, one for each training job, or one alone; None where it did not end
    """
    if not is_done(prepared, execution):
        return None
    kind = prepared.scenario.workload_kind
    if kind.is_training:
        if not are_iterations_done(prepared, execution).all():
            return None
        milestones = execution.outcome.milestones
        of_job = job_of_rank(prepared)[milestones["rank"]]
        ends = [int(milestones["at_ps"][of_job == job].max(initial=0)) for job in range(len(prepared.jobs))]
        return [round(end / job.section.iterations) for end, job in zip(ends, prepared.jobs, strict=True)]
    if kind.is_collective:
        each = [end - start for start, end in _repetitions(prepared, execution)]
        return [round(sum(each) / len(each))] if each else None
    messages = execution.outcome.messages
    if not len(messages):
        return None
    return [int(messages["delivered_at_ps"].max() - messages["posted_at_ps"].min())]


def _repetitions(prepared: Prepared, execution: Execution) -> list[tuple[int, int]]:
    rows = collective_times(prepared, execution.outcome)
    return [(start, end) for start, end in zip(rows["start_ps"], rows["end_ps"], strict=True) if end is not None]


def demand_ps(prepared: Prepared, execution: Execution) -> int:
    """Lower bound of the time for the messages, from the busiest NIC port.

    No fabric carries the messages faster.

    Every port counts as fast as the fastest, since a slow port may be the suspect.

    Parameters
    ----------
    prepared : a run that keeps its messages
    execution : of it
    """
    messages, engine_input = execution.outcome.messages, prepared.engine_input
    source, destination = messages["source"], messages["destination"]
    by_packet = carriers(engine_input, source, destination) == PACKETS
    size = wire_bytes(prepared.transport, messages["size_bytes"][by_packet]).astype(np.float64)
    ports, on_fabric = engine_input.rank_ports, prepared.fabric.ports
    fastest_bps = prepared.fabric.links["rate_bps"][on_fabric.link[np.unique(ports)]].max()
    links = np.full(len(on_fabric.link), fastest_bps, np.float64)
    if ports.shape[1] == 1:  # ranks may share a port
        end_of_rank, rate_bps = ports[:, 0].astype(np.int64), links
    else:
        end_of_rank = np.arange(len(ports), dtype=np.int64)
        rate_bps = np.array([links[sorted(set(row))].sum() for row in ports.tolist()])
    least = 0.0
    for end in (source[by_packet], destination[by_packet]):
        load = np.bincount(end_of_rank[end], size, minlength=len(rate_bps))
        least = max(least, float(np.max(load * 8.0 * SECOND_PS / rate_bps, initial=0.0)))
    return round(least)


def computed_ps(prepared: Prepared) -> dict[int, int]:
    """Computing time of each program's main stream in all iterations; that of a slow GPU as if it were not slow."""
    programs = prepared.job.programs
    return {
        index: computing_ps(programs[origin].streams[0])
        for index, origin in enumerate(prepared.origin_of_program.tolist())
    }


def mean_computed_ps(prepared: Prepared, job: int) -> float:
    """Computing time of an average rank of a job in one iteration.

    Parameters
    ----------
    prepared : training
    job : its index
    """
    computed = computed_ps(prepared)
    mine = prepared.job.rank_program[job_of_rank(prepared) == job].tolist()
    return sum(computed[program] for program in mine) / len(mine) / prepared.jobs[job].section.iterations
