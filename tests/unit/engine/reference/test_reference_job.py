"""Streams: loops and their counters, rules of peers, waits, tokens and marks."""

import numpy as np
from helpers.both import both
from helpers.tiny import DELAY_PS, job_of, packet_input_of, pair, star

from weftwork.base.clock import US_PS
from weftwork.engine.outcome import Outcome
from weftwork.engine.reference.simulation import run
from weftwork.spec.job import (
    At,
    Await,
    Compute,
    Digit,
    Group,
    Job,
    Loop,
    Milestone,
    Notify,
    Operation,
    Peer,
    Receive,
    Send,
    Size,
    Wait,
)  # fmt: skip


def everybody(ranks: int, *streams: list[Operation]) -> Job:
    return job_of([list(streams)] * ranks)


def alone(*streams: list[Operation]) -> Outcome:
    """A rank that sends nothing, on a host beside another."""
    return run(packet_input_of(pair(), job_of([list(streams), []])))


def test_a_ring_all_reduce_sends_the_part_of_each_step() -> None:
    ranks, total = 4, 4 * 1000 + 2  # the first two parts are a byte longer
    group = Group(size=ranks)
    body = (
        Send(
            peer=Peer(rule="shift", group=group, shift=1),
            size=Size(total_bytes=total, parts=ranks, digits=(Digit(group=group, step=-1),)),
        ),
        Receive(peer=Peer(rule="shift", group=group, shift=-1)),
        Wait(),
    )
    outcome = run(packet_input_of(star(ranks), everybody(ranks, [Loop(count=6, body=body), Milestone(name=0)])))
    parts = [1001, 1001, 1000, 1000]
    of_rank_1 = outcome.messages[outcome.messages["source"] == 1]
    assert of_rank_1["size_bytes"].tolist() == [parts[(1 - step) % 4] for step in range(6)]
    assert of_rank_1["destination"].tolist() == [2] * 6
    assert outcome.complete
    # Every step waits for the one before it.
    assert (np.diff(of_rank_1["posted_at_ps"]) > DELAY_PS).all()
    assert outcome.milestones["rank"].tolist() == [0, 1, 2, 3]


def test_shift_with_a_step_reaches_every_other_rank_once() -> None:
    ranks = 5
    peer = Peer(rule="shift", group=Group(size=ranks), shift=1, step=1)
    outcome = run(
        packet_input_of(
            star(ranks), everybody(ranks, [Loop(count=4, body=(Send(peer=peer, size=Size(total_bytes=9)),))])
        )
    )
    pairs = {(int(m["source"]), int(m["destination"])) for m in outcome.messages}
    assert pairs == {(a, b) for a in range(ranks) for b in range(ranks) if a != b}


def test_xor_pairs_ranks_and_strides_group_them() -> None:
    xor = Peer(rule="xor", group=Group(size=4), shift=1, step=1)
    outcome = run(
        packet_input_of(star(4), everybody(4, [Loop(count=2, body=(Send(peer=xor, size=Size(total_bytes=9)),))]))
    )
    assert [(m["source"], m["destination"]) for m in outcome.messages if m["source"] == 2] == [(2, 0), (2, 3)]
    stride = Peer(rule="shift", group=Group(stride=2, size=2), shift=1)
    outcome = run(packet_input_of(star(4), everybody(4, [Send(peer=stride, size=Size(total_bytes=9))])))
    assert outcome.messages["destination"].tolist() == [2, 3, 0, 1]


def test_a_negative_entry_of_a_table_skips_the_operation() -> None:
    table = Peer(rule="table", table=(2, -1, -1))
    outcome = run(
        packet_input_of(star(3), everybody(3, [Send(peer=table, size=Size(total_bytes=9)), Wait(), Milestone(name=1)]))
    )
    assert outcome.messages["source"].tolist() == [0]
    assert outcome.milestones["at_ps"].tolist()[1:] == [0, 0]


def test_time_passes_in_computations_and_not_before_an_instant_that_has_passed() -> None:
    outcome = alone(
        [
            Compute(duration_ps=US_PS),
            Milestone(name=0),
            At(at_ps=5 * US_PS),
            Milestone(name=1),
            At(at_ps=US_PS),
            Milestone(name=0),
        ]
    )
    assert outcome.milestones["at_ps"].tolist() == [US_PS, 5 * US_PS, 5 * US_PS]


def test_a_token_lets_one_stream_go_on_for_each_signal() -> None:
    waits: list[Operation] = [Await(token=0), Milestone(name=1)]
    outcome = alone([Compute(duration_ps=7), Notify(token=0), Compute(duration_ps=5), Notify(token=0)], waits, waits)
    assert outcome.milestones["at_ps"].tolist() == [7, 12]
    starved = alone([Notify(token=0)], waits, waits)
    assert starved.milestones["at_ps"].tolist() == [0]


def test_a_loop_of_no_turns_is_passed_over_and_inner_counters_start_anew() -> None:
    inner = Loop(count=2, body=(Milestone(name=1),))
    outcome = alone([Loop(count=0, body=(Milestone(name=0),)), Loop(count=3, body=(inner, Milestone(name=0)))])
    assert outcome.milestones["name"].tolist() == [1, 1, 0] * 3


def test_marks_of_one_instant_keep_the_order_of_the_program() -> None:
    outcome = alone([Milestone(name=1), Milestone(name=0), Milestone(name=1)], [Milestone(name=0)])
    assert outcome.milestones["name"].tolist() == [1, 0, 1, 0]


def test_a_wait_is_for_the_streams_own_messages_only() -> None:
    send = Send(peer=Peer(rule="rank", shift=1), size=Size(total_bytes=400_000), channel=1)
    outcome = run(
        packet_input_of(pair(), job_of([[[send, Wait(), Milestone(name=0)], [Wait(), Milestone(name=1)]], []]))
    )
    assert outcome.milestones[outcome.milestones["name"] == 1]["at_ps"].tolist() == [0]
    assert (
        outcome.milestones[outcome.milestones["name"] == 0]["at_ps"].tolist()
        == outcome.messages["acked_at_ps"].tolist()
    )


def test_a_delayed_signal_counts_later_and_holds_nobody_up() -> None:
    first = [Notify(token=0, after_ps=500), Notify(token=0, after_ps=500), Milestone(name=0)]
    second = [Await(token=0), Milestone(name=1), Await(token=0), Milestone(name=1)]
    outcome = both(packet_input_of(pair(), job_of([[first, second], []])))
    assert outcome.milestones.tolist() == [(0, 0, 0), (0, 1, 500), (0, 1, 500)]
