"""What a test in tests/unit may do, and that it does no more: a plugin that conftest.py registers.

A unit test makes no run of a scenario, no folder and no file, starts no process, and takes less than 50 ms. Runs,
files and processes are heard from Python's audit events (PEP 578; `weftwork.base.work_done` tells of runs). A test of
an engine may drive that engine, for few packet-hops. Time is counted as work: the CPU time of the process over that of
a fixed loop of Python. A test that takes longer is measured again when all is imported and compiled, and the least
counts. Since neighbours on the machine slow a test by more than that loop, time alone is no verdict up to
`TIMES_OVER` times the limit: the test then runs once more and its calls are counted, which are the same everywhere.
What a file of tests imports is judged from its text by tests/unit/test_floors_of_tests.py.
Leaves out: what a fixture of a module does before the first test of it, except for runs, files and processes.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.runner import runtestprotocol
from helpers.cases import TIMES_DEEP
from hypothesis import settings
from planner.machine import LOOP_S, loop_s

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType

LIMIT_S = 0.05  # what a unit test may take of an idle core that needs LOOP_S for the loop
LIMIT_LOOPS = LIMIT_S / LOOP_S
TIMES_MEASURED = 2  # chosen: the second time all is imported and compiled
TIMES_OVER = 10.0  # chosen: 5.2 was seen of a test that moves 180 MB, on a machine with busy neighbours
LIMIT_CALLS = 600_000  # chosen: calls of Python's and of C's functions; the shortest take 80 ns, so 50 ms
ENGINE_HOPS = 20_000  # chosen: some milliseconds of the packet engine, some tens of the reference
UNIT = Path(__file__).parents[1] / "unit"
_STARTS = ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.system", "os.fork", "os.forkpty")
_MAKES = ("os.mkdir", "os.rename", "os.link", "os.symlink")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Watch:
    """Hears audit events of this process while a unit test runs.

    Invariant: ``broken`` holds sentences about the test that runs alone.
    """

    def __init__(self) -> None:
        self.is_on = False
        self.may_simulate = False
        self.broken: list[str] = []
        self.hops = 0

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit hook; it stays until the process ends, and costs next to nothing while it is off."""
        if not self.is_on:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITES and not _is_cache(path):
                self.broken.append(f"writes a file: {path}")
        elif event in _MAKES:
            if not _is_cache(arguments[0]):
                self.broken.append(f"makes a folder or a link: {arguments[0]}")
        elif event in _STARTS:
            self.broken.append(f"starts a process: {arguments[0] if arguments else event}")
        elif event == "weftwork.execute":
            self.broken.append(f"makes a run: {arguments[0]}")
        elif event == "weftwork.simulate":
            self.hops += arguments[1]
            if not self.may_simulate:
                self.broken.append(f"drives the {arguments[0]} engine, which is no part of the file under test")


WATCH = Watch()


def pytest_configure() -> None:
    if not hasattr(sys, "_weftwork_unit_rules"):  # a hook cannot be taken back, and one process may hold two sessions
        sys._weftwork_unit_rules = WATCH  # type: ignore[attr-defined]
        sys.addaudithook(WATCH)


def loops_of(cpu_s: float) -> float:
    """Work in loops: a busy machine slows both down by its caches, a slow one by its clock."""
    return cpu_s / max(loop_s(), LOOP_S)


def is_work_counted(config: pytest.Config) -> bool:
    """Not where a step chooses tests by a marker: with many cases, or under sanitizers, each test takes longer."""
    return settings.get_current_profile_name() not in TIMES_DEEP and config.option.markexpr in {"", "not deep"}


def is_unit(item: pytest.Item) -> bool:
    """Whether a test lies in tests/unit; a turn of the queue is no test."""
    return isinstance(item, pytest.Function) and item.path.is_relative_to(UNIT)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    WATCH.is_on = is_unit(item)
    if WATCH.is_on:
        WATCH.may_simulate = item.path.is_relative_to(UNIT / "engine")
        WATCH.broken, WATCH.hops = [], 0
    try:
        return (yield)
    finally:
        WATCH.is_on = False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    if not is_unit(item):
        return (yield)
    WATCH.is_on = True
    started_s = time.process_time()
    try:
        outcome = yield
    finally:
        WATCH.is_on = False
        item.stash[CPU_S] = time.process_time() - started_s
    if WATCH.hops > ENGINE_HOPS and is_work_counted(item.config):
        WATCH.broken.append(f"simulates {WATCH.hops:,} packet-hops or events; {ENGINE_HOPS:,} at most")
    if WATCH.broken and not item.config.getoption("--unit-facts"):
        pytest.fail(
            f"a unit test {'; '.join(dict.fromkeys(WATCH.broken))}. Such a test belongs into tests/runs,"
            " where runs are shared, or into tests/others (CONTRIBUTING.md)",
            pytrace=False,
        )
    return outcome


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
    """Measure a test again that took too long, and fail it where it takes too long each time."""
    outcome = yield
    least_s = item.stash.get(CPU_S, 0.0)
    if not is_unit(item):
        return outcome
    broken = list(dict.fromkeys(WATCH.broken))
    if not is_work_counted(item.config):
        return outcome
    least_loops = loops_of(least_s) if least_s > LIMIT_S else 0.0
    for _ in range(TIMES_MEASURED - 1):
        if least_loops > LIMIT_LOOPS:
            _repeat(item, nextitem)
            least_s = min(least_s, item.stash[CPU_S])
            least_loops = min(least_loops, loops_of(item.stash[CPU_S]))
    calls = _calls(item, nextitem) if least_loops > LIMIT_LOOPS else 0
    item.stash[CPU_S] = least_s
    if facts := item.config.getoption("--unit-facts"):
        row = {"test": item.nodeid, "cpu_s": round(least_s, 4), "calls": calls, "hops": WATCH.hops, "breaks": broken}
        with Path(facts).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    elif calls > LIMIT_CALLS or least_loops > TIMES_OVER * LIMIT_LOOPS:
        _fail(
            item,
            f"takes {least_s * 1e3:.0f} ms of CPU time, {least_loops:.1f} loops of work, and {calls:,} calls; a unit"
            f" test {LIMIT_S * 1e3:.0f} ms, {LIMIT_LOOPS:.1f} loops; refused above {LIMIT_CALLS:,} calls or"
            f" {TIMES_OVER * LIMIT_LOOPS:.1f} loops (tests/helpers/unit_rules.py)",
        )
    return outcome


def _repeat(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    item._initrequest()  # type: ignore[attr-defined]
    runtestprotocol(item, log=False, nextitem=nextitem)


def _calls(item: pytest.Item, nextitem: pytest.Item | None) -> int:
    """Calls of functions in a repetition of a test with its fixtures: the same on each machine."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        _repeat(item, nextitem)
    finally:
        sys.setprofile(before)
    return calls


def _fail(item: pytest.Item, sentence: str) -> None:
    """Report a failure of a test beside the reports that it has."""
    report = pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords={},
        outcome="failed",
        longrepr=sentence,
        when="call",
    )
    item.ihook.pytest_runtest_logreport(report=report)


CPU_S = pytest.StashKey[float]()


def _is_cache(path: object) -> bool:
    """Whether a file is what Python, Numba or the cache of policies keep for later."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        return True  # a file descriptor: nothing is made
    name = os.fsdecode(path)
    cache = os.environ.get("WEFTWORK_CACHE_DIR", str(Path.home() / ".cache"))
    return "__pycache__" in name or name.startswith((cache, "/dev/", "/proc/")) or ".hypothesis" in name
