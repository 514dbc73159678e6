"""Why a flow was slow: on small runs whose reason is known, and the weights by hand."""

from __future__ import annotations

import pytest
from helpers.gallery import Gallery
from helpers.pages import simulated

from weftwork.report.over_time import read_over_time
from weftwork.report.slow_flows import slow_flows, why
from weftwork.store.runs import Run


def told(run: Run) -> list[list[str]]:
    return [[reason.text for reason in why(slow)] for slow in slow_flows(run, read_over_time(run))]


def test_a_flow_of_an_incast_collides_at_the_port_of_the_receiver(gallery: Gallery) -> None:
    run = simulated(gallery, "traffic: {pattern: incast, senders: 7, size: 1MB}")
    slowest = slow_flows(run, read_over_time(run))[0]
    held = slowest.held
    assert held is not None
    assert held.name == "leaf0->host0"
    assert held.sharers_count == 6
    assert held.own_ps is not None
    assert held.own_ps == pytest.approx(1.02e6 * 80, rel=0.02)  # a byte takes 80 ps at 100 Gb/s
    assert (held.others_ps or 0) > 5 * held.own_ps
    reasons = why(slowest)
    assert {(reason.kind, reason.where) for reason in reasons} >= {
        ("collided", "leaf0->host0"),
        ("queued", "leaf0->host0"),
    }
    assert "the flow collided there with 6 other flows (host" in next(r.text for r in reasons if r.kind == "collided")


def test_a_flow_that_is_alone_is_hardly_slower(gallery: Gallery) -> None:
    run = simulated(gallery, "traffic: {pattern: incast, senders: 1, size: 1MB}\nengine: {seed: 3}")
    assert told(run) == [["Nearly as fast as alone on an empty fabric."]]


def test_a_port_that_was_paused_is_named_with_who_paused_it(gallery: Gallery) -> None:
    rest = "traffic: {pattern: incast, senders: 7, size: 4MB}\n"
    roomy = simulated(gallery, rest)
    assert (roomy.value("pauses") or 0) == 0
    run = simulated(gallery, rest, fabric__switch="{buffer: 2MB}", transport__congestion_control="none")
    assert (run.value("pauses") or 0) > 0
    paused = [text for flow in told(run) for text in flow if " paused " in text]
    assert paused
    assert any(text.startswith("leaf0 paused ") for text in paused)
    assert all("of its time)" in text for text in paused)


def test_a_flow_that_lost_packets_says_how_often_it_went_back(gallery: Gallery) -> None:
    run = gallery("link-down")
    assert (run.value("timeouts") or 0) > 0
    slow = slow_flows(run, read_over_time(run))[0]
    assert slow.timeouts > 0
    first = why(slow)[0]
    assert first.kind == "again"
    assert first.text.startswith("Ran into ")
    assert "meanwhile was idle for" in first.text


def test_a_message_that_was_posted_behind_others_says_how_long_it_waited(gallery: Gallery) -> None:
    run = simulated(gallery, "collective: {operation: all-reduce, algorithm: ring, gpus: 8, size: 8MB, channels: 1}")
    flows = {row["flow"]: row for row in run.flows.to_pylist()}
    waiting = [slow for slow in slow_flows(run, read_over_time(run), most=40) if slow.behind]
    assert waiting
    for slow in waiting:
        before = [flows[slow.flow - 1 - place] for place in range(slow.behind)]
        assert {row["queue_pair"] for row in before} == {slow.queue_pair}
        assert slow.behind_ps == before[0]["delivered_ps"] - slow.start_ps > 0
        assert before[-1]["delivered_ps"] > slow.start_ps


def test_flows_that_did_not_complete_come_first(gallery: Gallery) -> None:
    run = simulated(gallery, "traffic: {pattern: incast, senders: 7, size: 1MB}\nengine: {until: 300us}")
    found = slow_flows(run, read_over_time(run), most=4)
    assert len(found) <= 4
    assert not found[0].is_done


def test_a_flow_that_is_short_beside_the_bins_is_not_said_to_have_stood_idle(gallery: Gallery) -> None:
    # The faulty host keeps the run going for hundreds of milliseconds, so that a bin is far longer than any other flow.
    rest = "traffic: {pattern: permutation, size: 16KB}\nfaults: [{at: 1ns, link: host0-leaf0, event: down}]"
    run = simulated(gallery, rest)
    over_time = read_over_time(run)
    assert over_time is not None
    done = [slow for slow in slow_flows(run, over_time) if slow.is_done]
    assert done
    for slow in done:
        assert slow.took_ps < over_time.bin_ps
        assert all(hop.own_ps is None for hop in slow.hops or ())
        assert "idle" not in {reason.kind for reason in why(slow)}
