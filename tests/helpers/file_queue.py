"""Processes of the suite take files from a queue and import a file when its turn comes: a plugin of conftest.py.

pytest-xdist lets every process import all files before the first test runs. Here a process collects the names of files
alone; the turn of a file imports it, chooses its tests by -k, -m and the hooks of conftest.py, and runs them. So the
first test runs at once, and each file is imported by the process that runs it and by no other.
Files with much work come first, after a few quick ones, and a file with more than `PART_S` of work has several turns,
each for a part of its tests, so that no process waits at the end for a long file.
A marker that `-m` names alone is looked for in the text of a file, so that a file without it is not imported at all.
Leaves out: runs without processes (-n 0), of tests by name, and those that ask for more than names (--collect-only,
--lf): pytest collects these by itself. A file whose process ends is not run further, and the report says so.
"""

from __future__ import annotations

import functools
import os
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from planner.prices import read_prices

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

PART_S = 30.0  # chosen: CPU seconds of a turn; a fixture of a module is made in each
MOST_PARTS = 16  # chosen
QUICK_FILES = 8  # chosen: files in front of the long ones, so that the first dots come at once
DEEP = Path(__file__).parents[1] / "deep"
# Words that a file with a test of a marker has; by default the marker itself.
WORDS = {"property": ("hypothesis", "saw")}  # helpers/cases.py sets it
_ONE_MARKER = re.compile(r"\s*([a-z_]+)\s*$")
_ASKS_FOR_TESTS = ("collectonly", "lf", "failedfirst", "newfirst", "stepwise", "usepdb")


def is_queue_used(config: pytest.Config) -> bool:
    """Whether processes run this session and whole files are asked for."""
    is_worker = hasattr(config, "workerinput")
    processes = is_worker or bool(getattr(config.option, "tx", None))
    is_plain = not any(getattr(config.option, name, None) for name in _ASKS_FOR_TESTS)
    return processes and is_plain and not any("::" in argument for argument in config.args)


class TurnOfFile(pytest.Item):
    """A place in the queue: it stands for tests of one file until a process takes it.

    Attributes
    ----------
    part, parts : which part of the file's tests, of how many
    """

    part = 0
    parts = 1

    def runtest(self) -> None:
        raise AssertionError("a turn is taken by pytest_runtest_protocol")

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.nodeid


class QueuedFile(pytest.File):
    """A file of tests that is not imported yet."""

    def collect(self) -> Iterator[TurnOfFile]:
        parts = max(1, min(MOST_PARTS, round(work_of(self.nodeid) / PART_S)))
        for part in range(parts):
            turn = TurnOfFile.from_parent(self, name=f"turn {part + 1} of {parts}")
            turn.part, turn.parts = part, parts
            yield turn


def pytest_configure(config: pytest.Config) -> None:
    if is_queue_used(config):
        config.pluginmanager.register(Worker(config) if hasattr(config, "workerinput") else Controller(config))


class Worker:
    """The part in a process that runs tests."""

    def __init__(self, config: pytest.Config) -> None:
        alone = _ONE_MARKER.match(config.option.markexpr or "")
        self.marker = alone[1] if alone else ""
        self.words = WORDS.get(self.marker, (f"mark.{self.marker}",))
        self.makes_module = False

    def pytest_pycollect_makemodule(self, module_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        if self.makes_module:
            return None
        return QueuedFile.from_parent(parent, path=module_path)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        if not self.marker or collection_path.suffix != ".py" or collection_path.name == "conftest.py":
            return None
        if self.marker == "deep" and collection_path.is_relative_to(DEEP):
            return None  # marked by its folder: tests/conftest.py
        text = collection_path.read_text(encoding="utf-8")
        return None if any(word in text for word in self.words) else True

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, Any, Any]:
        """Keep turns from -m and -k, which judge the tests of a file when its turn comes."""
        turns = [item for item in items if isinstance(item, TurnOfFile)]
        items[:] = [item for item in items if not isinstance(item, TurnOfFile)]
        outcome = yield
        items[:0] = in_order_of_work(turns)
        return outcome

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if not isinstance(item, TurnOfFile):
            return None
        session = item.session
        place = session.items.index(item)
        tests = self.tests_of(item)
        try:
            for number, test in enumerate(tests, 1):
                following = tests[number] if number < len(tests) else nextitem
                session.items[place] = test  # pytest-xdist compares reports with it
                item.ihook.pytest_runtest_protocol(item=test, nextitem=following)
                if session.shouldfail or session.shouldstop:
                    break
        finally:
            session.items[place] = item
        if not tests:  # what was kept for this file is not what the next one needs
            session._setupstate.teardown_exact(nextitem)
        return True

    def tests_of(self, turn: TurnOfFile) -> list[pytest.Item]:
        """Import the file of a turn and choose its tests, as pytest would have done for the whole session."""
        assert turn.parent is not None
        assert turn.parent.parent is not None
        self.makes_module = True
        try:
            module = turn.ihook.pytest_pycollect_makemodule(module_path=turn.path, parent=turn.parent.parent)
            tests = list(turn.session.genitems(module))
        finally:
            self.makes_module = False
        turn.ihook.pytest_collection_modifyitems(session=turn.session, config=turn.config, items=tests)
        return tests[turn.part :: turn.parts]


class Controller:
    """The part in the process that shows results: how far the session is, and where a process ended."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.turns_with_reports: set[int] = set()
        self.last_started: dict[str, str] = {}  # test by file
        self.reports = 0
        self.turns = 0
        self.first_report_s: float | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.last_started[nodeid.partition("::")[0]] = nodeid

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self.first_report_s is None:
            self.first_report_s = age_of_process_s()
        if report.when == "teardown":
            self.reports += 1
        self.turns_with_reports.add(getattr(report, "item_index", -1))  # of pytest-xdist; a process that ended has none
        session = _terminal_session(self.config)
        self.turns = self.turns or session.testscollected
        rest = max(self.turns - len(self.turns_with_reports), 0)
        session.testscollected = self.reports + round(rest * self.reports / len(self.turns_with_reports)) or 1

    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        file = crashitem.partition("::")[0]
        test = self.last_started.get(file, file)
        report.nodeid = test
        report.longrepr = f"the process ended in {test}; the tests of {file} that follow it were not run"

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.OK and not self.reports:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.first_report_s is not None:
            terminalreporter.write_line(
                f"the first dot came {self.first_report_s:.1f} s after pytest was started, the last"
                f" {age_of_process_s():.0f} s"
            )


def age_of_process_s() -> float:
    """Seconds since this process was started, Python's own start included (proc(5), field 22 of stat)."""
    fields = Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    uptime_s = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    return uptime_s - int(fields[19]) / os.sysconf("SC_CLK_TCK")


@functools.cache
def _work() -> dict[str, float]:
    work_s = dict(read_prices().files)
    for cases in read_prices().cases.values():
        of_step: dict[str, float] = defaultdict(float)
        for case in cases:
            of_step[case.file] += case.price_s
        work_s = {file: max(work_s.get(file, 0.0), of_step.get(file, 0.0)) for file in work_s.keys() | of_step.keys()}
    return work_s


def work_of(file: str) -> float:
    """CPU seconds of a file in the test command or in a deep step, whichever is more; 0 where it was never measured."""
    return _work().get(file, 0.0)


def in_order_of_work(turns: list[TurnOfFile]) -> list[TurnOfFile]:
    """A few quick files in their order, then all others, those with the most work first."""
    front, rest = turns[:QUICK_FILES], turns[QUICK_FILES:]
    return [*front, *sorted(rest, key=lambda turn: -work_of(turn.nodeid.partition("::")[0]) / turn.parts)]


def _terminal_session(config: pytest.Config) -> pytest.Session:
    """The session whose count of tests the percentages are of."""
    session: pytest.Session = config.pluginmanager.get_plugin("terminalreporter")._session
    return session
