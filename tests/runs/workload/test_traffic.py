"""Traffic: who sends to whom, how much and when; and the distributions of sizes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.findings import mistakes_of

from weftwork.base.errors import ConfigError
from weftwork.engine.lower import lower
from weftwork.engine.outcome import Outcome
from weftwork.engine.programs import check_job, flatten
from weftwork.engine.reference import simulation as reference
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import load
from weftwork.spec.device import Nic, Switch
from weftwork.spec.job import Arrivals, At, Job, Loop, Operation, Peer, Program, Send, Size
from weftwork.spec.transport import Transport
from weftwork.study.prepare.job_volume import Volume, volume
from weftwork.study.prepare.recording import queue_pairs
from weftwork.topology.shapes.leaf_spine import leaf_spine
from weftwork.workload.collectives.call import Call
from weftwork.workload.collectives.catalogue import schedule
from weftwork.workload.placement import one_per_host
from weftwork.workload.traffic.patterns.all_to_all import all_to_all
from weftwork.workload.traffic.patterns.incast import incast, incast_senders
from weftwork.workload.traffic.patterns.permutation import permutation
from weftwork.workload.traffic.patterns.poisson import poisson
from weftwork.workload.traffic.sizes import SizeDistribution, load_sizes

GBPS = 10**9


def run(job: Job) -> Outcome:
    """Run a job on as many hosts as it has ranks, without congestion control and with plenty of everything."""
    fabric = leaf_spine(
        leaves=2, spines=1, hosts_per_leaf=-(-job.ranks // 2), hosts=job.ranks, host_rate_bps=100 * GBPS,
        fabric_rate_bps=400 * GBPS, host_delay_ps=10_000, fabric_delay_ps=10_000, switch=Switch(), nic=Nic(),
    )  # fmt: skip
    engine_input = lower(
        fabric=fabric,
        job=job,
        transport=Transport(),
        congestion_control=load("congestion_control", "none"),
        settings=EngineSettings(port_selection=load("port_selection", "ecmp")),
    )
    outcome = reference.run(engine_input)
    assert outcome.complete
    payload_bytes = int(outcome.messages["size_bytes"].sum())
    assert volume(job) == Volume(messages=len(outcome.messages), payload_bytes=payload_bytes)
    return outcome


def pairs_of(outcome: Outcome) -> Counter[tuple[int, int]]:
    return Counter((int(m["source"]), int(m["destination"])) for m in outcome.messages)


def test_a_start_jitter_spreads_starts_and_nothing_else() -> None:
    job = permutation(hosts=40, size_bytes=1_000, seed=3, start_jitter_ps=1_000_000)
    starts = [program.streams[0][0] for program in job.programs]
    at_ps = [start.at_ps for start in starts if isinstance(start, At)]
    assert len(at_ps) == len(set(at_ps)) == 40
    assert 0 <= min(at_ps) < 200_000
    assert 800_000 < max(at_ps) <= 1_000_000
    outcome = run(job)
    assert sorted(outcome.messages["posted_at_ps"].tolist()) == sorted(at_ps)
    assert pairs_of(outcome) == pairs_of(run(permutation(hosts=40, size_bytes=1_000, seed=3)))


def test_an_incast_spreads_its_senders_over_the_fabric() -> None:
    assert incast_senders(128, 4, 5) == (6, 37, 68, 99)
    assert incast_senders(4, 3, 2) == (0, 1, 3)
    outcome = run(incast(hosts=12, size_bytes=5_000, seed=1, senders=3, receiver=4))
    assert pairs_of(outcome) == {(sender, 4): 1 for sender in incast_senders(12, 3, 4)}


def test_messages_follow_each_other_over_the_queue_pairs_in_turn() -> None:
    outcome = run(incast(hosts=3, size_bytes=9_000, seed=1, senders=1, repeat=7, queue_pairs=3))
    messages = np.sort(outcome.messages, order="posted_at_ps")
    assert messages["channel"].tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert (messages["posted_at_ps"][1:] == messages["acked_at_ps"][:-1]).all()


@pytest.mark.parametrize("jitter_ps", [0, 500_000])
@pytest.mark.parametrize(("repeat", "queue_pairs_"), [(1, 1), (3, 1), (5, 2)])
def test_all_to_all_is_every_pair_every_round(jitter_ps: int, repeat: int, queue_pairs_: int) -> None:
    job = all_to_all(
        hosts=5, size_bytes=4_000, seed=2, repeat=repeat, start_jitter_ps=jitter_ps, queue_pairs=queue_pairs_
    )
    outcome = run(job)
    assert pairs_of(outcome) == {(a, b): repeat for a in range(5) for b in range(5) if a != b}
    turns = Counter(index % queue_pairs_ for index in range(repeat))
    assert Counter(outcome.messages["channel"].tolist()) == {channel: 20 * count for channel, count in turns.items()}
    found = {(int(m["source"]), int(m["destination"]), int(m["channel"])) for m in outcome.messages}
    assert queue_pairs(job) == sorted(found)


def test_arrivals_are_instants_and_sends_in_turn() -> None:
    sizes = SizeDistribution(name="flat", size_bytes=(500.0, 1_500.0), share=(0.0, 1.0))
    drawn = poisson(hosts=4, flows=50, load=0.3, host_rate_bps=400 * GBPS, sizes=sizes, seed=5, priority=2)
    looped = [Program(streams=((Loop(count=3, body=(*stream, At(at_ps=9))),),)) for stream in drawn.programs[1].streams]
    job = replace(drawn, programs=(*drawn.programs, *looped))
    written = replace(job, programs=tuple(_one_by_one(program) for program in job.programs))
    flat, again = (flatten(one, {2: 0, 3: 1}, 3) for one in (job, written))
    assert np.array_equal(flat.ops, again.ops)
    assert np.array_equal(flat.streams, again.streams)
    assert volume(drawn) == volume(replace(drawn, programs=tuple(_one_by_one(one) for one in drawn.programs)))
    assert queue_pairs(job) == queue_pairs(written)


def _one_by_one(program: Program) -> Program:
    def alone(operation: Operation) -> list[Operation]:
        if isinstance(operation, Loop):
            return [replace(operation, body=tuple(one for inner in operation.body for one in alone(inner)))]
        if not isinstance(operation, Arrivals):
            return [operation]
        found: list[Operation] = []
        columns = (operation.at_ps, operation.peer, operation.size_bytes, operation.channel)
        for at_ps, peer, size_bytes, channel in zip(*(column.tolist() for column in columns), strict=True):
            send = Send(
                peer=Peer(rule="rank", shift=peer),
                size=Size(total_bytes=size_bytes),
                channel=channel,
                priority=operation.priority,
            )
            found += [At(at_ps=at_ps), send]
        return found

    return Program(streams=tuple(tuple(one for op in stream for one in alone(op)) for stream in program.streams))


def test_arrivals_that_no_engine_can_run_are_refused() -> None:
    sizes = SizeDistribution(name="flat", size_bytes=(500.0, 1_500.0), share=(0.0, 1.0))
    job = poisson(hosts=3, flows=9, load=0.3, host_rate_bps=300 * GBPS, sizes=sizes, seed=5)
    good = job.programs[1].streams[0][0]
    assert isinstance(good, Arrivals)
    rank = int(np.flatnonzero(job.rank_program == 1)[0])
    wrong = {
        "found -1 ps, wanted 0 or more": {"at_ps": good.at_ps - good.at_ps.min() - 1},
        "found -1 bytes, wanted 0 or more": {"size_bytes": np.full(len(good), -1)},
        "found channel 65536, wanted 0 to 65535": {"channel": np.full(len(good), 65_536)},
        "would be rank 3, wanted 0 to 2": {"peer": np.full(len(good), 3)},
        f"rank {rank} would send to itself": {"peer": np.full(len(good), rank)},
        "wanted one of each for every message": {"peer": good.peer[:-1]},
        "found priority 8, wanted 0 to 7": {"priority": 8},
    }
    for text, changed in wrong.items():
        streams = ((replace(good, **changed),),)
        broken = replace(job, programs=(job.programs[0], Program(streams=streams), *job.programs[2:]))
        (mistake,) = mistakes_of(check_job, broken, np.arange(3))
        assert text in mistake.text


def test_poisson_gives_every_flow_a_queue_pair_of_its_own() -> None:
    sizes = SizeDistribution(name="flat", size_bytes=(500.0, 1_500.0), share=(0.0, 1.0))
    outcome = run(poisson(hosts=3, flows=60, load=0.3, host_rate_bps=300 * GBPS, sizes=sizes, seed=5))
    assert len(outcome.messages) == 60
    assert set(outcome.messages["ordinal"].tolist()) == {0}
    assert not any(source == destination for source, destination in pairs_of(outcome))


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("bytes,percent\n0,0\n1,100", 1, "wanted 'size_bytes,cumulative_percent'"),
        ("size_bytes,cumulative_percent\n0,0\nten,100", 3, "wanted a size in bytes and a percentage"),
        ("size_bytes,cumulative_percent\n0,0\n9,50\n8,100", 4, "both columns must not fall"),
        ("size_bytes,cumulative_percent\n0,0\n9,101", 3, "found 101, wanted 0 to 100"),
        ("size_bytes,cumulative_percent\n0,0\n9,99", 3, "the last at 100 %"),
        ("size_bytes,cumulative_percent\n0,0\n0,100", 3, "every size is 0"),
        ("size_bytes,cumulative_percent\n0,0\n1e99,100", 3, "wanted 0 to 2**40"),
        ("", 1, "wanted 'size_bytes,cumulative_percent'"),
    ],
)
def test_a_wrong_file_of_sizes_is_told_by_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        load_sizes(file)
    assert str(file) in str(error.value)
    assert (line, True) in [(m.line, message in m.text) for m in error.value.mistakes]


@pytest.mark.parametrize(
    ("make", "arguments", "keys"),
    [
        (permutation, {"hosts": 1, "size_bytes": 0, "seed": 1}, ["traffic", "traffic.size"]),
        (
            incast,
            {"hosts": 4, "size_bytes": 1, "seed": 1, "senders": 4, "receiver": 4},
            ["traffic.receiver", "traffic.senders"],
        ),
        (
            all_to_all,
            {"hosts": 4, "size_bytes": 1, "seed": 1, "repeat": 0, "queue_pairs": 0},
            ["traffic.repeat", "traffic.queue_pairs"],
        ),
    ],
)
def test_arguments_out_of_range_are_refused_together(make: Any, arguments: dict[str, int], keys: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        make(**arguments)
    assert [mistake.path for mistake in error.value.mistakes] == keys


def ring_all_reduce(ranks: int, size_bytes: int, **more: int) -> Job:
    call = Call(operation="all-reduce", ranks=ranks, size_bytes=size_bytes, **more)
    return schedule("ring", call).job(one_per_host(ranks))


@pytest.mark.parametrize(("ranks", "channels", "repeat"), [(2, 1, 1), (4, 1, 2), (5, 3, 2), (7, 2, 1)])
def test_a_ring_all_reduce_sends_what_the_algorithm_says(ranks: int, channels: int, repeat: int) -> None:
    size_bytes = 100_003  # not divisible by anything here
    outcome = run(ring_all_reduce(ranks=ranks, size_bytes=size_bytes, channels=channels, repeat=repeat))
    messages = outcome.messages
    assert len(messages) == 2 * (ranks - 1) * ranks * channels * repeat
    assert pairs_of(outcome).keys() == {(rank, (rank + 1) % ranks) for rank in range(ranks)}
    # over all ranks every part is sent n - 1 times to reduce it and n - 1 times to gather it
    assert messages["size_bytes"].sum() == 2 * (ranks - 1) * size_bytes * repeat
    assert len(outcome.milestones) == 2 * ranks * repeat


def test_a_ring_step_needs_what_the_step_before_brought() -> None:
    outcome = run(ring_all_reduce(ranks=4, size_bytes=400_000))
    by_rank = {
        rank: np.sort(outcome.messages[outcome.messages["source"] == rank], order="ordinal") for rank in range(4)
    }
    for rank in range(4):
        received = by_rank[(rank - 1) % 4]["delivered_at_ps"]
        assert (by_rank[rank]["posted_at_ps"][1:] == received[:-1]).all()
        end = outcome.milestones[(outcome.milestones["rank"] == rank) & (outcome.milestones["name"] == 1)]["at_ps"]
        assert end.tolist() == [received[-1]]


def test_a_victim_runs_beside_an_incast() -> None:
    outcome = run(incast(hosts=12, size_bytes=5_000, seed=1, senders=3, receiver=4, victim=(0, 7)))
    assert pairs_of(outcome) == {**{(sender, 4): 1 for sender in incast_senders(12, 3, 4)}, (0, 7): 1}
