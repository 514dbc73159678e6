"""Why a flow was slow: on small runs whose reason is known, and the weights by hand."""

from __future__ import annotations

from dataclasses import replace

from weftwork.report.slow_flows import FlowHop, SlowFlow, why

HOP = FlowHop(
    name="leaf0->host0",
    peer="host0",
    share=1.0,
    wait_ps=0.0,
    queue_bytes=0.0,
    own_ps=100e6,
    others_ps=0.0,
    paused_ps=0.0,
    sharers=(),
    sharers_count=0,
)


SLOW = SlowFlow(
    flow=1,
    queue_pair=1,
    name="host1 \u2192 host0",
    took_ps=1_000_000_000,
    is_done=True,
    slowdown=10.0,
    carrier="packets",
    size_bytes=5_000_000,
    start_ps=0,
    behind_ps=0,
    behind=0,
    timeouts=0,
    returns=0,
    hops=(HOP,),
)


def test_an_idle_port_means_that_the_sender_held_back() -> None:
    (reason,) = why(SLOW)
    assert reason.text.startswith("leaf0->host0 was idle for 900 us (90 % of its time): the sender held back")


def test_the_weightiest_reason_comes_first() -> None:
    others, paused = (
        replace(HOP, others_ps=300e6, sharers=("a \u2192 b",), sharers_count=1),
        replace(HOP, name="leaf1->spine0", peer="spine0", paused_ps=500e6),
    )
    slow = replace(SLOW, hops=(others, paused))
    assert [(reason.kind, reason.where) for reason in why(slow)] == [
        ("paused", "leaf1->spine0"), ("idle", "leaf1->spine0"), ("collided", "leaf0->host0")
    ]  # fmt: skip


def test_what_a_run_has_not_recorded_is_not_guessed() -> None:
    assert [reason.text for reason in why(replace(SLOW, hops=None))] == ["The run has not recorded its path."]
    inside = why(replace(SLOW, hops=None, carrier="nvlink"))
    assert [reason.text for reason in inside] == [
        "It went inside a server, by message over nvlink: no packets, no queues."
    ]
    untimed = replace(HOP, own_ps=None, others_ps=None, paused_ps=None)
    (reason,) = why(replace(SLOW, hops=(untimed,)))
    assert reason.text.startswith("The traffic of its ports is not known")
