"""Slow ranks have programs of their own, in which only computing takes longer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weftwork.spec.job import Compute, Job, Loop, Peer, Placement, Program, Receive, Send, Size, Wait
from weftwork.workload.slow_ranks import slowed

BODY = (Compute(duration_ps=11), Send(peer=Peer(rule="rank", shift=1), size=Size(total_bytes=5)), Wait())
PROGRAM = ((Loop(count=3, body=BODY), Compute(duration_ps=100, label=2)),)
JOB = Job(
    name="two ranks that are alike",
    ranks=2,
    programs=(Program(streams=PROGRAM), Program(streams=((Receive(peer=Peer(rule="rank", shift=0)),),))),
    rank_program=np.zeros(2, np.int32),
    placement=Placement(host=np.arange(2, dtype=np.int32), nics=np.zeros((2, 1), np.int32)),
)


def test_ranks_that_are_alike_stay_as_they_are() -> None:
    assert slowed(JOB, np.ones(2)) is JOB


def test_computing_takes_longer_inside_loops_too_and_nothing_else_changes() -> None:
    job = slowed(JOB, np.array([1.0, 1.5]))
    assert job.rank_program.tolist() == [0, 2]
    assert job.origins == (0, 1, 0)
    loop, last = job.programs[2].streams[0]
    assert isinstance(loop, Loop)
    assert loop.body == (replace(BODY[0], duration_ps=16), *BODY[1:])
    assert last == Compute(duration_ps=150, label=2)
    assert job.programs[:2] == JOB.programs


def test_ranks_of_one_program_and_one_factor_share_their_program() -> None:
    both = slowed(JOB, np.array([2.0, 2.0]))
    apart = slowed(JOB, np.array([2.0, 3.0]))
    assert (len(both.programs), both.rank_program.tolist()) == (3, [2, 2])
    assert (len(apart.programs), apart.rank_program.tolist()) == (4, [2, 3])
    assert JOB.rank_program.tolist() == [0, 0]  # the job that was given is as it was


def test_where_jobs_share_a_fabric_a_slow_program_counts_from_the_same_rank() -> None:
    shared = replace(JOB, first_rank=(0, 7))
    assert slowed(shared, np.array([2.0, 1.0])).first_rank == (0, 7, 0)
