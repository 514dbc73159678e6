"""TCP and the software NIC side by side: figures of rounds, and both processes at work."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from weftwork.base.errors import EngineError, PeerError, UsageError
from weftwork.rdma.tcp_comparison.measure import FULL, MeasuringPlan, measure_tcp_and_rdma, transfer_of
from weftwork.rdma.tcp_comparison.pair import BothFigures, MeasuredPair, MeasuringProcess
from weftwork.rdma.tcp_comparison.spans import EndSpan, percentile
from weftwork.rdma.tcp_comparison.tasks import KEYS, TABLE_BYTES, Task, check_value, fill_table, key_at
from weftwork.spec.tcp_comparison import WORKLOADS

COUNT = 20


TINY = MeasuringPlan(
    sizes_bytes={"ping-pong": (64,), "stream": (4096,), "read of a value": (64,)},
    rounds=2,
    span_s=0.001,
    operations=COUNT,
    registered_bytes=(4096, 65536),
)


@pytest.fixture(scope="module")
def pair() -> Iterator[MeasuredPair]:
    with MeasuredPair() as made:
        yield made


@pytest.mark.parametrize(("name", "way"), [("ping", "tcp"), ("get", "tcp"), ("ping", "send"), ("get", "send")])
def test_a_two_sided_message_runs_the_remote_program(pair: MeasuredPair, name: str, way: str) -> None:
    both = pair.run(Task(name=name, way=way, size_bytes=64, count=COUNT))
    assert both.server["requests"] == COUNT
    sent = "send" if way == "tcp" else "sendmsg"
    for end in both:
        assert end["calls"][sent] >= COUNT
    assert 0 < both.client["p50_ns"] <= both.client["p99_ns"]


def test_a_whole_measurement_has_every_workload_way_and_size() -> None:
    steps: list[tuple[int, int]] = []
    result = measure_tcp_and_rdma(TINY, lambda done, of: steps.append((done, of)))
    assert steps == [(done, TINY.steps) for done in range(1, TINY.steps + 1)]
    for workload, ways in WORKLOADS.items():
        assert result.sizes(workload) == list(TINY.sizes_bytes[workload])
        for way in ways:
            found = result.transfer(workload, way, result.sizes(workload)[0])
            assert found is not None
            assert found.lowest <= found.highest
            assert found.client.cpu_ns > 0
    assert [one.way for one in result.remote] == ["tcp", "send", "read", "write", None]
    assert [one.requests for one in result.remote] == [COUNT, COUNT, 0, 0, 0]
    assert [one.size_bytes for one in result.registration] == [4096, 65536]
    assert not result.is_quick
    assert result.machine.cores == len(os.sched_getaffinity(0))


def test_an_address_of_another_machine_is_refused() -> None:
    process = MeasuringProcess("client", "192.0.2.1")
    try:
        with pytest.raises(UsageError, match=r"found 192.0.2.1, wanted one of this machine"):
            process.hear()
    finally:
        process.stop()


def test_an_end_that_breaks_off_is_reported() -> None:
    process = MeasuringProcess("client", "127.77.1.1")
    try:
        process.hear()
        process.say({"queues": {}})  # without the place of the server: its traceback goes to standard error
        with pytest.raises(EngineError, match="the client of the measurement broke off"):
            process.hear()
    finally:
        process.stop()


@pytest.mark.parametrize("size_bytes", [8, 4096, 65536])
def test_a_read_and_a_write_run_the_remote_nic_and_not_its_program(pair: MeasuredPair, size_bytes: int) -> None:
    for way in ("read", "write"):
        both = pair.run(Task(name="get", way=way, size_bytes=size_bytes, count=COUNT, is_counted=True))
        assert (both.server["requests"], both.server["completions"]) == (0, 0)
        assert both.server["thread_sleeps"] < COUNT // 2  # it waits once, for the end of the load
        assert both.server["packets"] >= 2 * COUNT  # the NIC took each request and answered it
        assert both.server["thread_ns"] < both.server["user_ns"] + both.server["system_ns"]


def figures(wall_ns: int, p50_ns: int, *, user_ns: int = 400, calls: int = 10) -> dict[str, Any]:
    return {
        "wall_ns": wall_ns,
        "user_ns": user_ns,
        "system_ns": 200,
        "sleeps": 5,
        "calls": {"send": calls},
        "p50_ns": p50_ns,
        "p99_ns": 3 * p50_ns,
    }


def test_a_percentile_is_the_smallest_value_that_covers_its_share() -> None:
    ordered = list(range(1, 101))
    assert [percentile(ordered, share) for share in (0.5, 0.99, 1.0)] == [50, 99, 100]
    assert percentile([7], 0.99) == 7
    assert percentile([1, 2, 3], 0.5) == 2


def test_a_transfer_has_the_medians_of_its_rounds_and_half_of_a_round_trip() -> None:
    rounds = [BothFigures(figures(wall, p50), figures(wall, 0)) for wall, p50 in ((1000, 80), (2000, 60), (9000, 100))]
    found = transfer_of("ping-pong", "tcp", 64, 10, rounds)
    assert (found.latency_p50_ns, found.latency_p99_ns) == (40, 120)
    assert (found.lowest, found.highest) == (30, 50)
    assert found.goodput_bps == 10 * 64 * 8 / 2000e-9
    assert found.client.cpu_ns == 60
    assert found.client.all_calls == 1
    assert found.server.cores == 600 / 2000
    whole = transfer_of("read of a value", "tcp", 64, 10, rounds)
    assert whole.latency_p50_ns == 80


def test_the_spread_of_a_stream_is_that_of_its_goodput() -> None:
    rounds = []
    for wall in (1000, 2000):
        one = figures(wall, 0)
        del one["p50_ns"], one["p99_ns"]
        rounds.append(BothFigures(one, one))
    found = transfer_of("stream", "write", 1000, 10, rounds)
    assert found.latency_p50_ns is None
    assert (found.lowest, found.highest) == (80_000 / 2000e-9, 80_000 / 1000e-9)


def test_every_key_has_its_turn_and_a_wrong_value_is_refused() -> None:
    assert {key_at(number) for number in range(KEYS)} == set(range(KEYS))
    table = memoryview(bytearray(TABLE_BYTES))
    fill_table(table, 64)
    check_value(table[64 * key_at(3) :], 3)
    with pytest.raises(PeerError, match=rf"read 4 .* value of key {key_at(3)}, wanted {key_at(4)}"):
        check_value(table[64 * key_at(3) :], 4)


def test_a_span_counts_the_calls_within_it_alone() -> None:
    calls = Counter({"send": 5})
    span = EndSpan(calls)
    calls["send"] += 2
    calls["recv"] += 1
    found = span.figures()
    assert found["calls"] == {"send": 2, "recv": 1}
    assert found["wall_ns"] > 0
    assert found["thread_ns"] > 0


def test_a_program_that_sleeps_is_woken_for_each_send(pair: MeasuredPair) -> None:
    both = pair.run(Task(name="get", way="send", size_bytes=4096, count=COUNT, is_counted=True))
    assert both.server["requests"] == COUNT
    assert both.server["completions"] == 2 * COUNT  # a receive and an answer
    assert both.server["thread_sleeps"] >= COUNT


@pytest.mark.parametrize("way", ["tcp", "write"])
def test_a_stream_moves_messages_of_every_size(pair: MeasuredPair, way: str) -> None:
    for size_bytes in (1, 4096, 1 << 20):
        both = pair.run(Task(name="stream", way=way, size_bytes=size_bytes, count=COUNT))
        assert both.client["wall_ns"] > 0
        assert both.server["requests"] == (COUNT if way == "tcp" else 0)


def test_without_operations_the_remote_end_does_nothing(pair: MeasuredPair) -> None:
    idle = pair.idle(0.0).server
    assert (idle["requests"], idle["completions"], idle["packets"]) == (0, 0, 0)


def test_registration_takes_time_and_pins(pair: MeasuredPair) -> None:
    found = pair.register(4096)
    assert min(found["register_ns"], found["deregister_ns"], found["copy_ns"]) > 0
    assert isinstance(found["is_pinned"], bool)


def test_the_full_measurement_has_the_sizes_of_the_cited_table_and_fits_the_buffers() -> None:
    assert max(FULL.sizes_bytes["read of a value"]) * KEYS <= TABLE_BYTES
    assert replace(FULL, rounds=FULL.rounds + 1).steps - FULL.steps == 2 * 8 + 2 * 7 + 3 * 6
