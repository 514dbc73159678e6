"""TCP and the software NIC side by side: figures of rounds, and both processes at work."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from weftwork.base.errors import EngineError, UsageError
from weftwork.rdma.tcp_comparison.measure import MeasuringPlan, measure_tcp_and_rdma
from weftwork.rdma.tcp_comparison.pair import MeasuredPair, MeasuringProcess
from weftwork.rdma.tcp_comparison.tasks import Task
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
