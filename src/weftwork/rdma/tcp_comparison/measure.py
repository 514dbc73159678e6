"""The whole measurement: every workload by size and way, in rounds, and one record of all.

The ways take turns in each round, so that they share whatever else the machine does. A figure is the median of the
rounds.
Leaves out: the ends, see `end`; published figures, which `published` reads.
"""

from __future__ import annotations

import datetime as dt
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.commit import commit
from weftwork.rdma.tcp_comparison.pair import MeasuredPair
from weftwork.rdma.tcp_comparison.tasks import Task
from weftwork.spec.tcp_comparison import (
    WORKLOADS,
    EndCost,
    MeasuringMachine,
    RegistrationCost,
    RemoteWork,
    TcpComparison,
    TransferMeasurement,
    Way,
    Workload,
)

if TYPE_CHECKING:
    from weftwork.rdma.tcp_comparison.pair import BothFigures

__all__ = ["FULL", "QUICK", "MeasuringPlan", "measure_tcp_and_rdma", "transfer_of"]

_TASKS: Final[dict[Workload, str]] = {"ping-pong": "ping", "stream": "stream", "read of a value": "get"}
_NS_PER_S: Final = 1_000_000_000
_FEWEST: Final = 10  # chosen: messages of a round, so that the median is one of several
_MOST: Final = 5_000
_WARM_UP: Final = 12
_REMOTE_BYTES: Final = 4096  # one packet of the largest path MTU
_REMOTE_WAYS: Final[tuple[tuple[str, Way], ...]] = (("get", "tcp"), ("get", "send"), ("get", "read"), ("get", "write"))


@dataclass(frozen=True, kw_only=True)
class MeasuringPlan:
    """Sizes and times of a measurement.

    Attributes
    ----------
    sizes_bytes : of messages, for each workload
    rounds : of each transfer
    span_s : about the time of a round
    operations : whose work at the remote end is counted
    registered_bytes : sizes of buffers
    """

    sizes_bytes: dict[Workload, tuple[int, ...]]
    rounds: int
    span_s: float
    operations: int
    registered_bytes: tuple[int, ...]

    @property
    def steps(self) -> int:
        """Loads of the whole measurement."""
        transfers = sum(len(self.sizes_bytes[workload]) * len(ways) for workload, ways in WORKLOADS.items())
        return transfers * (self.rounds + 1) + len(_REMOTE_WAYS) + 1 + len(self.registered_bytes)


_KIB: Final = 1024
FULL: Final = MeasuringPlan(
    sizes_bytes={
        "ping-pong": (1, 64, _KIB, 4 * _KIB, 16 * _KIB, 64 * _KIB, 256 * _KIB, 1024 * _KIB),
        "stream": (64, _KIB, 4 * _KIB, 16 * _KIB, 64 * _KIB, 256 * _KIB, 1024 * _KIB),
        "read of a value": (64, 256, _KIB, 4 * _KIB, 16 * _KIB, 64 * _KIB),
    },
    rounds=5,
    span_s=0.25,
    operations=1000,
    registered_bytes=tuple(4 * _KIB << shift for shift in range(0, 16, 2)),
)
QUICK: Final = MeasuringPlan(
    sizes_bytes={
        "ping-pong": (64, 4 * _KIB, 64 * _KIB),
        "stream": (_KIB, 64 * _KIB, 1024 * _KIB),
        "read of a value": (64, 4 * _KIB, 64 * _KIB),
    },
    rounds=3,
    span_s=0.05,
    operations=100,
    registered_bytes=(4 * _KIB, 64 * _KIB, 1024 * _KIB),
)


def measure_tcp_and_rdma(
    plan: MeasuringPlan = FULL, on_progress: Callable[[int, int], None] | None = None
) -> TcpComparison:
    """Measure TCP sockets and the software NIC between two processes.

    Parameters
    ----------
    plan : what is measured
    on_progress : called with the loads that are done, and their number

    Raises
    ------
    UsageError : UDP port 4791 is not to be had
    PeerError : an end lost the other one
    EngineError : an end broke off
    """
    began_s, done = time.monotonic(), 0

    def step() -> None:
        nonlocal done
        done += 1
        if on_progress is not None:
            on_progress(done, plan.steps)

    with MeasuredPair() as pair:
        transfers = [
            one
            for workload, ways in WORKLOADS.items()
            for size_bytes in plan.sizes_bytes[workload]
            for one in _transfers(pair, plan, workload, ways, size_bytes, step)
        ]
        remote = _remote(pair, plan, step)
        registration = []
        for size_bytes in plan.registered_bytes:
            registration.append(RegistrationCost(**pair.register(size_bytes)))
            step()
        about = pair.about
    return TcpComparison(
        machine=_machine(about),
        is_quick=plan is QUICK,
        rounds=plan.rounds,
        elapsed_s=time.monotonic() - began_s,
        transfers=tuple(transfers),
        remote=tuple(remote),
        registration=tuple(registration),
    )


def _transfers(
    pair: MeasuredPair,
    plan: MeasuringPlan,
    workload: Workload,
    ways: Sequence[Way],
    size_bytes: int,
    step: Callable[[], None],
) -> list[TransferMeasurement]:
    """One size of a workload in all ways."""
    counts = {}
    for way in ways:
        warm = pair.run(Task(name=_TASKS[workload], way=way, size_bytes=size_bytes, count=_WARM_UP))
        each_ns = warm.client["wall_ns"] / _WARM_UP
        counts[way] = max(_FEWEST, min(_MOST, int(plan.span_s * _NS_PER_S / each_ns)))
        step()
    rounds: dict[Way, list[BothFigures]] = {way: [] for way in ways}
    for _ in range(plan.rounds):
        for way in ways:
            task = Task(name=_TASKS[workload], way=way, size_bytes=size_bytes, count=counts[way])
            rounds[way].append(pair.run(task))
            step()
    return [transfer_of(workload, way, size_bytes, counts[way], rounds[way]) for way in ways]


def transfer_of(
    workload: Workload, way: Way, size_bytes: int, count: int, rounds: Sequence[BothFigures]
) -> TransferMeasurement:
    """Medians of the rounds of a transfer.

    Parameters
    ----------
    workload, way, size_bytes : what was measured
    count : messages of each round
    rounds : figures of both ends
    """
    trips = 2 if workload == "ping-pong" else 1
    goodputs = [count * size_bytes * 8 * _NS_PER_S / one.client["wall_ns"] for one in rounds]
    p50_ns = [one.client["p50_ns"] / trips for one in rounds if "p50_ns" in one.client]
    p99_ns = [one.client["p99_ns"] / trips for one in rounds if "p99_ns" in one.client]
    main = p50_ns or goodputs
    return TransferMeasurement(
        workload=workload,
        way=way,
        size_bytes=size_bytes,
        messages=count,
        latency_p50_ns=statistics.median(p50_ns) if p50_ns else None,
        latency_p99_ns=statistics.median(p99_ns) if p99_ns else None,
        goodput_bps=statistics.median(goodputs),
        lowest=min(main),
        highest=max(main),
        client=_cost(count, [one.client for one in rounds], [one.client["wall_ns"] for one in rounds]),
        server=_cost(count, [one.server for one in rounds], [one.client["wall_ns"] for one in rounds]),
    )


def _cost(count: int, figures: Sequence[dict[str, Any]], walls_ns: Sequence[int]) -> EndCost:
    """Cost of a message at one end; the time on the clock is the client's."""

    def middle(name: str) -> float:
        return float(statistics.median(one[name] / count for one in figures))

    names = sorted({name for one in figures for name in one["calls"]})
    return EndCost(
        user_ns=middle("user_ns"),
        system_ns=middle("system_ns"),
        calls={name: statistics.median(one["calls"].get(name, 0) / count for one in figures) for name in names},
        sleeps=middle("sleeps"),
        cores=statistics.median(
            (one["user_ns"] + one["system_ns"]) / wall_ns for one, wall_ns in zip(figures, walls_ns, strict=True)
        ),
    )


def _remote(pair: MeasuredPair, plan: MeasuringPlan, step: Callable[[], None]) -> list[RemoteWork]:
    """Work of the remote end, and of the same end without any operation."""
    found, longest_s = [], 0.0
    for name, way in _REMOTE_WAYS:
        task = Task(name=name, way=way, size_bytes=_REMOTE_BYTES, count=plan.operations, is_counted=True)
        both = pair.run(task)
        longest_s = max(longest_s, both.client["wall_ns"] / _NS_PER_S)
        found.append(_remote_work(way, plan.operations, both.server))
        step()
    found.append(_remote_work(None, 0, pair.idle(longest_s).server))
    step()
    return found


def _remote_work(way: Way | None, operations: int, figures: dict[str, Any]) -> RemoteWork:
    cpu_ns = figures["user_ns"] + figures["system_ns"]
    is_tcp = way == "tcp"
    return RemoteWork(
        way=way,
        operations=operations,
        size_bytes=_REMOTE_BYTES,
        requests=figures["requests"],
        completions=None if is_tcp else figures["completions"],
        wakeups=figures["thread_sleeps"],
        program_ns=figures["thread_ns"],
        nic_ns=None if is_tcp else max(0, round(cpu_ns) - figures["thread_ns"]),
        packets=None if is_tcp else figures["packets"],
    )


def _machine(about: dict[str, Any]) -> MeasuringMachine:
    known = commit()
    return MeasuringMachine(
        cpu=_cpu(),
        cores=len(os.sched_getaffinity(0)),
        kernel=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        checksum=about["checksum"],
        receive_buffer_bytes=about["receive_buffer_bytes"],
        date=dt.datetime.now(dt.UTC).date().isoformat(),
        commit="unknown" if known is None else known.described,
    )


def _cpu() -> str:
    """Model of the CPU as the system names it, or the kind of machine."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
