"""Small sweeps: a scenario of a few messages, and a pattern that kills its worker or presses Ctrl-C when asked."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet
from joblib.externals.loky import process_executor

from weftwork.study.pool.work import PoolOutcome
from weftwork.study.prepare.prepare import read_scenario
from weftwork.study.record.point import PoolPoint, points_of
from weftwork.study.record.point_run import run_point

__all__ = ["SCENARIO", "fills_the_disk", "most_growth", "pool_points", "tells_its_process", "with_pattern"]

SCENARIO = """schema: 3
name: tiny
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 4, link_rate: 100Gbps}
transport: {congestion_control: fixed-window}
traffic: {pattern: incast, senders: 7, size: 50KB, start_jitter: 5us}
"""

_PATTERN = '''"""One message; before it, the worker dies so often, or its parent hears Ctrl-C or is killed."""

import os
import signal
from pathlib import Path

import numpy as np

from weftwork.spec.job import Job, Peer, Program, Send, Size, Wait
from weftwork.spec.plug_in import Pattern, PatternInput, Record, Whole, row
from weftwork.workload.placement import one_per_host

HERE = Path("{folder}")


class Keys(Record):
    """How often."""

    deaths: int = row(
        "deaths", Whole(low=0, high=9, unit="deaths"), default=0, text="Of a worker.", source="chosen: a test"
    )
    presses: int = row(
        "presses", Whole(low=0, high=9, unit="presses"), default=0, text="Of Ctrl-C.", source="chosen: a test"
    )
    orphans: int = row(
        "orphans", Whole(low=0, high=9, unit="orphans"), default=0, text="Workers.", source="chosen: a test"
    )
    kilobytes: int = row(
        "kilobytes", Whole(low=1, high=99, unit="kB"), default=1, text="Of the message.", source="chosen: a test"
    )


def happens(name: str, times: int) -> bool:
    """Count in files, since the process that counts may end."""
    before = len(list(HERE.glob(f"{{name}}-*")))
    if before >= times:
        return False
    (HERE / f"{{name}}-{{before}}").touch()
    return True


def job(keys: Keys, given: PatternInput) -> Job:
    if happens(f"deaths-{{keys.kilobytes}}", keys.deaths):
        os.kill(os.getpid(), signal.SIGKILL)
    if happens("orphans", keys.orphans):
        (HERE / "worker").write_text(str(os.getpid()))
        os.kill(os.getppid(), signal.SIGKILL)
        signal.pause()
    if happens("presses", keys.presses):
        os.kill(os.getppid(), signal.SIGINT)
        signal.pause()
    peer = Peer(rule="table", table=(1, *[-1] * (given.hosts - 1)))
    send = Send(peer=peer, size=Size(total_bytes=1000 * keys.kilobytes))
    programs = (Program(streams=((send, Wait()),)),)
    return Job(
        name="one message",
        ranks=given.hosts,
        programs=programs,
        rank_program=np.zeros(given.hosts, np.int32),
        placement=one_per_host(given.hosts),
    )


PATTERN = Pattern(keys=Keys, job=job, source="a test")
'''


def with_pattern(folder: Path) -> Path:
    """Write the pattern and a scenario with it; returns the scenario's file."""
    (folder / "acts.py").write_text(_PATTERN.format(folder=folder), encoding="utf-8")
    text = SCENARIO.replace("{pattern: incast, senders: 7, size: 50KB, start_jitter: 5us}", "{pattern: ./acts.py}")
    file = folder / "acts.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def pool_points(file: Path, *settings: dict[str, str]) -> list[PoolPoint]:
    """A point for each choice of overrides."""
    found: list[PoolPoint] = []
    for place, overrides in enumerate(settings):
        found += points_of(place, read_scenario(file, overrides), file, overrides, seeds=range(1, 2))
    return found


def fills_the_disk(point: PoolPoint, folder: Path) -> PoolOutcome:
    """A worker's task under which the disk is full from the third point on."""
    if point.place < 2:
        return run_point(point, folder)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with mock.patch.object(pyarrow.parquet, "write_table", full):
        return run_point(point, folder)


def tells_its_process(point: PoolPoint, folder: Path) -> PoolOutcome:
    """A worker's task that says in which process it ran."""
    return replace(run_point(point, folder), reason=str(os.getpid()))


def most_growth() -> tuple[bool, int]:
    """Whether loky still reads the bytes that a worker may grow by, and these bytes in this process."""
    name = "_MAX_MEMORY_LEAK_SIZE"
    return name in process_executor._process_worker.__code__.co_names, getattr(process_executor, name)
