"""Several queue pairs for each connection: every byte is sent once, by paths of their own, in every fidelity."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.tiny import flow_input_of, packet_input_of

from weftwork.base.errors import ConfigError
from weftwork.engine import packet
from weftwork.engine.flow import run as flow
from weftwork.engine.outcome import Outcome
from weftwork.engine.reference import simulation as reference
from weftwork.spec.device import Nic, Switch
from weftwork.spec.job import Collect, Grid, Job, Program, Send, Size, Wait
from weftwork.topology.shapes.leaf_spine import leaf_spine
from weftwork.workload.collectives.call import Call
from weftwork.workload.collectives.catalogue import ALGORITHMS, schedule
from weftwork.workload.placement import first_gpus
from weftwork.workload.queue_pairs import split_over_queue_pairs, take_queue_pairs_in_turn

pytestmark = (
    pytest.mark.deep
)  # each case runs collectives among several servers; the step `truth` of .ci/run takes them

FABRIC = leaf_spine(
    leaves=2, spines=4, hosts_per_leaf=4, host_rate_bps=400 * 10**9, fabric_rate_bps=400 * 10**9,
    host_delay_ps=100_000, fabric_delay_ps=100_000, switch=Switch(), nic=Nic(),
)  # fmt: skip
SIZE_BYTES = 200_003  # no part is equal to another


def job(algorithm: str, operation: str, **changes: Any) -> Job:
    values: dict[str, Any] = {"ranks": 8, "size_bytes": SIZE_BYTES, "channels": 2, "chunks": 3} | changes
    options = ALGORITHMS.load(algorithm).keys()
    return schedule(algorithm, Call(operation=operation, options=options, **values)).job(first_gpus(FABRIC))


def between(outcome: Outcome) -> Counter[tuple[int, int]]:
    """Payload from rank to rank."""
    found: Counter[tuple[int, int]] = Counter()
    for source, destination, size in outcome.messages[["source", "destination", "size_bytes"]].tolist():
        found[source, destination] += size
    return found


CASES = [
    ("ring", "all-reduce"), ("ring", "broadcast"), ("tree", "all-reduce"), ("halving-doubling", "all-reduce"),
    ("direct", "all-to-all"), ("direct", "send-receive"),
]  # fmt: skip


@pytest.mark.parametrize(("algorithm", "operation"), CASES)
@pytest.mark.parametrize("queue_pairs", [2, pytest.param(5, marks=pytest.mark.deep)])
def test_every_byte_is_sent_once_and_both_engines_agree(algorithm: str, operation: str, queue_pairs: int) -> None:
    whole = job(algorithm, operation)
    split = split_over_queue_pairs(whole, queue_pairs)
    one, several = (packet.run(packet_input_of(FABRIC, each)) for each in (whole, split))
    before, after = between(one), between(several)
    assert sum(after.values()) == sum(before.values())
    assert after.keys() == before.keys()
    largest = max(abs(after[pair] - before[pair]) for pair in before)
    assert largest <= len(one.messages)  # near-equal parts differ by a byte each
    assert len(several.messages) == queue_pairs * len(one.messages)
    assert several.digest() == reference.run(packet_input_of(FABRIC, split)).digest()


@pytest.mark.parametrize("parts", [0, 6])
def test_the_parts_of_a_message_are_together_the_message(parts: int) -> None:
    size = Size(total_bytes=1_001, parts=parts, offset=4 if parts else 0, span=2 if parts else 1, copies=3)
    send = replace(_first_send(job("direct", "send-receive")), size=size)
    alone = replace(
        job("direct", "send-receive"), programs=(Program(streams=((send,),)),), rank_program=np.zeros(8, np.int32)
    )
    (program,) = split_over_queue_pairs(alone, 4).programs
    (stream,) = program.streams
    found = [operation for operation in stream if isinstance(operation, Send)]
    assert [one.channel for one in found] == [4 * send.channel + pair for pair in range(4)]
    numbers = [
        (one.size.offset + at * one.size.span_stride) % one.size.parts for one in found for at in range(one.size.span)
    ]
    assert sorted(numbers) == (list(range(4)) if parts == 0 else list(range(16, 24)))
    assert {(one.size.total_bytes, one.size.copies) for one in found} == {(1_001, 3)}


def _first_send(found: Job) -> Send:
    for program in found.programs:
        for stream in program.streams:
            for operation in stream:
                for each in getattr(operation, "body", (operation,)):
                    if isinstance(each, Send):
                        return each
    raise AssertionError("the job sends nothing")


def test_more_queue_pairs_use_more_uplinks() -> None:
    """One connection crosses the fabric each way: with one queue pair it has one path, with 16 it has all four."""

    def uplinks(queue_pairs: int) -> int:
        call = job("direct", "send-receive", channels=1, chunks=1, shift=4)
        outcome = packet.run(packet_input_of(FABRIC, split_over_queue_pairs(call, queue_pairs)))
        node = FABRIC.ports.node
        leaf = [FABRIC.node_names[at] == "leaf0" for at in node]
        up = [FABRIC.node_names[at].startswith("spine") for at in node[FABRIC.ports.peer]]
        return int((outcome.ports["bytes"][np.array(leaf) & np.array(up)] > 0).sum())

    assert uplinks(16) == 4
    assert uplinks(1) < 4


def test_a_collective_that_runs_whole_is_split_as_well() -> None:
    """An all-to-all of eight hosts by hashed paths: the busiest uplink carries less with more queue pairs."""

    def most_bytes(queue_pairs: int) -> float:
        collect = Collect(
            operation="all-to-all", size_bytes=10**8, group=Grid(axes=((1, 8),)), channel=0, pattern="all-to-all",
            amount_bytes=10**8, queue_pairs=queue_pairs,
        )  # fmt: skip
        whole = replace(
            job("direct", "all-to-all"),
            programs=(Program(streams=((collect, Wait()),)),),
            rank_program=np.zeros(8, np.int32),
        )
        return float(flow.run(flow_input_of(FABRIC, whole)).link_bytes.max())

    hosts_bytes = 10**8 * 7 / 8
    assert most_bytes(64) < 1.25 * hosts_bytes
    assert most_bytes(1) > 1.25 * hosts_bytes


def test_more_queue_pairs_than_a_channel_has_numbers_for_are_refused() -> None:
    call = job("ring", "all-reduce", channels=1_024, size_bytes=10**8)
    with pytest.raises(ConfigError, match=r"found 256: .* wanted at most 64"):
        split_over_queue_pairs(call, 256)
    assert split_over_queue_pairs(call, 1) is call


def offered() -> list[tuple[str, str]]:
    """Every algorithm for servers of one GPU with every operation that it has; the conformance kit sees the others."""
    plain = ("ring", "tree", "halving-doubling", "direct")
    return [(name, one) for name in plain for one in ALGORITHMS.load(name).operations]


@pytest.mark.parametrize(("algorithm", "operation"), offered())
@pytest.mark.parametrize("queue_pairs", [pytest.param(2, marks=pytest.mark.deep), 3])
def test_the_messages_of_a_connection_take_its_queue_pairs_in_turn(
    algorithm: str, operation: str, queue_pairs: int
) -> None:
    """Same messages between the same ranks; those of a connection are dealt to its queue pairs one by one."""
    whole = job(algorithm, operation, repeat=3)
    turned = take_queue_pairs_in_turn(whole, queue_pairs)
    one, several = (packet.run(packet_input_of(FABRIC, each)) for each in (whole, turned))
    assert several.complete
    assert between(several) == between(one)
    assert len(several.messages) == len(one.messages)
    assert several.digest() == reference.run(packet_input_of(FABRIC, turned)).digest()
    dealt: dict[tuple[int, int, int], Counter[int]] = {}
    for source, destination, channel in several.messages[["source", "destination", "channel"]].tolist():
        turns = dealt.setdefault((source, destination, channel // queue_pairs), Counter())
        turns[channel % queue_pairs] += 1
    assert all(len(turns) == min(queue_pairs, turns.total()) for turns in dealt.values())
