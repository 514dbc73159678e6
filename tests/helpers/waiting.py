"""Programs of ranks that are given as Python, such as those that wait for ever, and the run of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import weftwork
from weftwork.store.runs import Run

__all__ = ["PROGRAMS", "run_of", "run_programs"]

PROGRAMS = '''"""Programs that wait for ever. Source: chosen: for tests. Leaves out: any sense."""

import numpy as np

from weftwork.spec.job import Await, Collect, Grid, Job, Peer, Program, Receive, Send, Size, Wait
from weftwork.spec.plug_in import Findings, Pattern, PatternInput, Record
from weftwork.workload.placement import one_per_host


class Keys(Record):
    """None."""


def job(keys: Keys, given: PatternInput) -> Job:
    to, of = Peer(rule="rank", shift=1), Peer(rule="rank", shift=0)
    send, receive = Send(peer=to, size=Size(total_bytes=10_000)), Receive(peer=of)
    sum_ = Collect(operation="all-reduce", size_bytes=1_000, group=Grid(axes=((1, 2),)), channel=0, pattern="ring",
                   amount_bytes=1_000)
    streams = {streams}
    programs = tuple(Program(streams=each) for each in streams) + (Program(streams=()),)
    number = np.minimum(np.arange(given.hosts), len(streams)).astype(np.int32)
    return Job(name="waits", ranks=given.hosts, programs=programs, rank_program=number,
               placement=one_per_host(given.hosts))


PATTERN = Pattern(keys=Keys, job=job, source="chosen: for tests")
'''


def run_of(folder: Path, text: str, **options: Any) -> Run:
    """Run a scenario in a folder of its own."""
    folder.mkdir(exist_ok=True)
    file = folder / "scenario.yaml"
    file.write_text(text, encoding="utf-8")
    return weftwork.run(file, out=folder / "run", **options)


def run_programs(folder: Path, streams: str, more: str = "") -> Run:
    """Two hosts whose programs are given as Python."""
    folder.mkdir(exist_ok=True)
    (folder / "waits.py").write_text(PROGRAMS.replace("{streams}", streams), encoding="utf-8")
    text = "schema: 3\nfabric: {topology: leaf-spine, hosts: 4, radix: 8}\ntraffic: {pattern: ./waits.py}\n"
    return run_of(folder, text + more)
