"""Leave out the cases that the plan of `.ci/run` leaves out: a plugin of conftest.py for `--plan FILE --step NAME`.

A case without a price is run where its file is touched, and at the turn that its name gives it.
What was left out stands at the end, with the command that runs it.
Leaves out: the choice itself (tests/planner/plan.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from planner.plan import TURNS, turn_of_stranger

STRANGERS = "strangers_left_out"  # in the output of a process


class PlannedCases:
    """The plan of one step.

    Parameters
    ----------
    document : what tests/steps/plan.py wrote
    step : its name
    """

    def __init__(self, document: dict[str, Any], step: str) -> None:
        self.step = step
        self.turn = document["place"] % TURNS
        self.touched_files = frozenset(document["touched_files"])
        self.chosen = frozenset(document["steps"][step]["chosen"])
        self.left_out = frozenset(document["steps"][step]["left_out"])
        self.strangers_left_out: set[str] = set()

    def is_run(self, name: str) -> bool:
        """Whether a case is run at this commit."""
        if name in self.chosen or name in self.left_out:
            return name in self.chosen
        return name.partition("::")[0] in self.touched_files or turn_of_stranger(name) == self.turn

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        left_out = [item for item in items if not self.is_run(item.nodeid)]
        self.strangers_left_out |= {item.nodeid for item in left_out} - self.left_out
        items[:] = [item for item in items if self.is_run(item.nodeid)]
        config.hook.pytest_deselected(items=left_out)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A process of pytest-xdist hands on what it left out."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[STRANGERS] = sorted(self.strangers_left_out)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.strangers_left_out |= set(getattr(node, "workeroutput", {}).get(STRANGERS, ()))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.write_line(
            f"left out at this commit: {len(self.left_out):,} of {len(self.left_out) + len(self.chosen):,} cases, and"
            f" {len(self.strangers_left_out):,} without a price;"
            f" `.ci/run full {self.step}` runs all, `python tests/steps/plan.py --list {self.step}` names them"
        )


def pytest_configure(config: pytest.Config) -> None:
    file, step = config.getoption("--plan"), config.getoption("--step")
    if (file is None) != (step is None):
        raise pytest.UsageError("--plan and --step go together: a file of tests/steps/plan.py, and a step in it")
    if file is None:
        return
    document = json.loads(Path(file).read_text(encoding="utf-8"))
    if step not in document["steps"]:
        raise pytest.UsageError(f"--step {step}: the plan has {', '.join(document['steps'])}")
    config.pluginmanager.register(PlannedCases(document, step))
