"""Whole collectives and folded jobs in the flow engine: what is folded gives what every rank by itself does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.helpers.tiny import flow_input_of, job_of, wired

from weftwork.base.errors import ConfigError
from weftwork.engine.flow import run as flow
from weftwork.engine.flow.outcome import FlowOutcome
from weftwork.engine.instants import Fault
from weftwork.hardware.catalogue import nodes
from weftwork.spec.device import HashFunction, Switch
from weftwork.spec.fabric import SWITCH, Fabric
from weftwork.spec.job import (
    Await,
    Collect,
    Compute,
    Grid,
    Group,
    Job,
    Loop,
    Milestone,
    Notify,
    Operation,
    Peer,
    Program,
    Receive,
    Send,
    Size,
    Wait,
)  # fmt: skip
from weftwork.spec.scenario.scenario import loads
from weftwork.study.prepare.prepare import check_parameters, known_names
from weftwork.topology.build import fabric_of_section
from weftwork.workload.placement import PLACEMENTS

pytestmark = pytest.mark.sanitize

MIB = 1 << 20
LABELS = ("compute", "data", "pipeline", "expert")


def fabric_of(text: str) -> Fabric:
    """A fabric as a scenario names it."""
    whole = f"schema: 3\nname: x\nfabric: {text}\ntraffic: {{pattern: permutation, size: 1MiB}}\n"
    scenario = loads(whole, known=known_names(), check_parameters=check_parameters, nodes=nodes())
    return fabric_of_section(scenario.fabric, directory=Path())


RAILS = "{topology: rail-optimized, gpus: 128, node: dgx-h100, switch: tomahawk-5, cable_length: 20m}"
TREE = "{topology: fat-tree, tiers: 3, radix: 8, link_rate: 400Gbps, cable_length: 20m}"


def job_on(fabric: Fabric, ranks: int, programs: tuple[Program, ...], rank_program: np.ndarray | None = None) -> Job:
    return Job(
        name="job",
        ranks=ranks,
        programs=programs,
        rank_program=np.zeros(ranks, np.int32) if rank_program is None else rank_program,
        placement=PLACEMENTS["packed"](fabric, ranks, seed=1),
        milestone_names=("begin", "end"),
        labels=LABELS,
    )


def collect(
    pattern: str, axes: tuple[tuple[int, int], ...], amount_bytes: int, label: int, channel: int = 0
) -> Collect:
    return Collect(
        operation="all-reduce" if pattern == "ring" else "all-to-all", size_bytes=amount_bytes, group=Grid(axes=axes),
        channel=channel, pattern=pattern, amount_bytes=amount_bytes, overhead_ps=3_000_000, label=label,
    )  # fmt: skip


def training(fabric: Fabric, ranks: int, stages: int) -> Job:
    """Stages of a pipeline, replicas of data parallelism, an all-to-all among neighbours, gradients on a stream."""
    replicas = ranks // stages
    programs = []
    for stage in range(stages):
        body: list[Operation] = []
        if stage > 0:
            body += [
                Receive(peer=Peer(rule="shift", group=Group(stride=replicas, size=stages), shift=-1)),
                Wait(label=2),
            ]
        body += [
            Compute(duration_ps=40_000_000, label=0),
            collect("all-to-all", ((1, 8),), 8 * MIB, 3, channel=2),
            Wait(label=3),
        ]
        if stage + 1 < stages:
            peer = Peer(rule="shift", group=Group(stride=replicas, size=stages), shift=1)
            body.append(Send(peer=peer, size=Size(total_bytes=2 * MIB), label=2, channel=0))
        main = (
            Milestone(name=0),
            Loop(count=3, body=tuple(body)),
            Notify(token=0),
            Await(token=1, label=1),
            Milestone(name=1),
        )
        gradients = (Await(token=0), collect("ring", ((1, replicas),), 64 * MIB, 1, channel=1), Wait(), Notify(token=1))
        programs.append(Program(streams=(main, gradients)))
    return job_on(fabric, ranks, tuple(programs), np.arange(ranks, dtype=np.int32) // replicas)


def by_rank(outcome: FlowOutcome, plan_ranks: int, stages: int) -> np.ndarray:
    """Instants of the last mark of each stage, the latest."""
    ends = np.zeros(stages, np.int64)
    last = outcome.milestones[outcome.milestones["name"] == 1]
    rank = outcome.actors["rank"][last["actor"]]
    np.maximum.at(ends, rank // (plan_ranks // stages), last["at_ps"])
    return ends


@pytest.mark.parametrize("routing", ["spray", "ecmp"])
@pytest.mark.parametrize("where", [RAILS, TREE])
def test_folded_equals_unfolded(where: str, routing: str) -> None:
    """To a few picoseconds of some milliseconds: instants are whole numbers."""
    fabric = fabric_of(where)
    job = training(fabric, 128, 4)
    plans = [
        flow_input_of(fabric, job, fold=fold, port_selection=routing, tolerance=1e-9) for fold in ("never", "exact")
    ]
    never, exact = (flow.run(plan) for plan in plans)
    assert len(never.actors) == 128
    assert exact.actors["ranks"].sum() == 128
    if routing == "spray":
        assert len(exact.actors) < 128
    assert by_rank(exact, 128, 4) == pytest.approx(by_rank(never, 128, 4), rel=1e-9)
    assert exact.link_bytes == pytest.approx(never.link_bytes, rel=1e-6, abs=1)
    bytes_by_tier = [np.bincount(one.tiers["tier"], one.tiers["bytes"]) for one in (exact, never)]
    assert bytes_by_tier[0] == pytest.approx(bytes_by_tier[1], rel=1e-6)
    for plan, one in zip(plans, (never, exact), strict=True):
        ideal = flow.run(replace(plan, has_infinite_network=True))
        assert ideal.milestones["at_ps"].max() < one.milestones["at_ps"].max()

        assert (one.activities["end_ps"] >= one.activities["start_ps"]).all()


def test_traffic_by_tier_is_what_links_carry() -> None:
    fabric = fabric_of(TREE)
    plan = flow_input_of(fabric, training(fabric, 128, 4), port_selection="ecmp")
    outcome = flow.run(plan)
    of_tier = np.bincount(plan.tier_of_port, outcome.link_bytes, minlength=len(plan.tier_names))
    told = np.bincount(outcome.tiers["tier"], outcome.tiers["bytes"], minlength=len(plan.tier_names))
    assert told[: len(plan.tier_names) - 1] == pytest.approx(of_tier[: len(plan.tier_names) - 1], rel=1e-6)


def test_a_ring_takes_its_bytes_over_the_slowest_edge() -> None:
    """One rank a host, one ring: overhead, the bytes with headers, and the longest path."""
    fabric = fabric_of(TREE)
    call = collect("ring", ((1, 128),), 64 * MIB, 1)
    job = job_on(fabric, 128, (Program(streams=((Milestone(name=0), call, Wait(), Milestone(name=1)),)),))
    outcome = flow.run(flow_input_of(fabric, job, port_selection="spray", fold="auto"))
    end_ps = int(outcome.milestones["at_ps"].max())
    alone_ps = 64 * MIB * (4096 + 82) / 4096 * 20 + 3_000_000
    assert alone_ps < end_ps < alone_ps + 10_000_000
    (activity,) = outcome.activities
    assert activity["ranks"] == activity["flows"] == 128
    assert activity["instances"] == 1
    assert (activity["posted_ps"], activity["start_ps"], activity["end_ps"]) == (0, 0, end_ps)


def test_calls_wait_for_the_last_member_and_for_each_other() -> None:
    """A straggler makes the others wait; the second call of a communicator follows the first."""
    fabric = fabric_of(TREE)
    call = collect("ring", ((1, 16),), MIB, 1)
    program = Program(
        streams=((Compute(duration_ps=10_000_000, label=0), call, call, Wait(label=1), Milestone(name=1)),)
    )
    job = job_on(fabric, 16, (program,))
    factor = np.ones(16)
    factor[3] = 2.0
    outcome = flow.run(flow_input_of(fabric, job, port_selection="spray", fold="auto", compute_factor=factor))
    first, second = sorted(outcome.activities.tolist(), key=lambda row: row[-1])
    assert first[-3:-1] == (10_000_000, 20_000_000)
    assert second[-2] == first[-1]
    waiting = outcome.segments[(outcome.segments["code"] == 1) & (outcome.segments["label"] == 1)]
    assert (waiting["end_ps"] - waiting["start_ps"]).max() == 10_000_000
    slow = outcome.segments[outcome.actors["rank"][outcome.segments["actor"]] == 3]
    assert slow["code"].tolist() == [0, 2]


def test_a_link_that_degrades_in_the_middle_folds_with_what_it_is() -> None:
    """And gives what every rank by itself gives."""
    fabric = fabric_of(TREE)
    job = training(fabric, 128, 4)
    faults = [Fault(at_ps=100_000_000, event="degrade", link=5, rate_bps=100_000_000_000)]
    ends = [
        flow.run(flow_input_of(fabric, job, port_selection="spray", fold=fold, faults=faults, tolerance=1e-9))
        .milestones["at_ps"]
        .max()
        for fold in ("never", "exact")
    ]
    assert ends[0] == pytest.approx(ends[1], rel=1e-9)
    whole = flow.run(flow_input_of(fabric, job, port_selection="spray", fold="exact")).milestones["at_ps"].max()
    assert ends[0] > whole


def test_a_link_that_dies_reroutes_collectives() -> None:
    """They stand still until routes know, then go on over what is left."""
    fabric = fabric_of(TREE)
    alike = Switch(hash=HashFunction(seed=0, offset=0))  # so that what is left of the busiest link's paths is crowded
    fabric = replace(fabric, switches=(alike,))
    job = training(fabric, 128, 4)
    whole = flow.run(flow_input_of(fabric, job, port_selection="ecmp", fold="never"))
    between = (fabric.node_kind[fabric.ports.node] == SWITCH) & (
        fabric.node_kind[fabric.ports.node[fabric.ports.peer]] == SWITCH
    )
    busiest = int(np.argmax(np.where(between, whole.link_bytes, 0)))
    faults = [Fault(at_ps=500_000_000, event="down", link=int(fabric.ports.link[busiest]))]
    outcome = flow.run(flow_input_of(fabric, job, port_selection="ecmp", fold="auto", faults=faults))
    assert outcome.packets.complete
    assert len(outcome.actors) == 128
    assert outcome.milestones["at_ps"].max() > whole.milestones["at_ps"].max()


def test_a_core_lies_in_its_bracket() -> None:
    fabric = fabric_of(TREE)
    job = training(fabric, 128, 4)
    exact = flow.run(flow_input_of(fabric, job, port_selection="ecmp", fold="exact"))
    core = flow.run(flow_input_of(fabric, job, port_selection="ecmp", fold="core"))
    assert core.bracket_milestones is not None
    fastest, slowest = (marks["at_ps"].max() for marks in core.bracket_milestones)
    assert fastest <= core.milestones["at_ps"].max() * (1 + 1e-9)
    assert exact.milestones["at_ps"].max() <= slowest * (1 + 1e-9)
    assert core.caveats["engine.folding"].kind == "approximate"


def test_two_jobs_count_from_their_own_first_rank() -> None:
    """Two rings of half the ranks: together as long as one, since they share nothing."""
    fabric = fabric_of(TREE)
    call = collect("ring", ((1, 64),), MIB, 1)
    program = Program(streams=((call, Wait(), Milestone(name=1)),))
    both = replace(
        job_on(fabric, 128, (program, program), np.repeat(np.arange(2, dtype=np.int32), 64)), first_rank=(0, 64)
    )
    outcome = flow.run(flow_input_of(fabric, both, port_selection="spray", fold="auto"))
    assert outcome.activities["instances"].sum() == 2
    assert len(np.unique(outcome.milestones["at_ps"])) == 1


def test_what_has_no_way_left_stands_still() -> None:
    """The only spine loses a link; the run comes to rest and says that the job is not done."""
    fabric = wired([(0, 2), (1, 3), (2, 4), (3, 4)], hosts=2)
    program = Program(streams=((collect("ring", ((1, 2),), 64 * MIB, 1), Wait(), Milestone(name=1)),))
    job = replace(job_of([[[]], [[]]]), programs=(program,), rank_program=np.zeros(2, np.int32), labels=LABELS)
    outcome = flow.run(flow_input_of(fabric, job, faults=[Fault(at_ps=50_000_000, event="down", link=2)]))
    assert len(outcome.milestones) == 0
    assert outcome.link_bytes.max() == pytest.approx(50_000_000 / 20, rel=0.1)
    with pytest.raises(ConfigError, match="wanted one of"):
        flow_input_of(fabric, job, fold="perhaps")
