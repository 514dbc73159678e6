"""CPU seconds of each test and its processes, as the property ``cpu_s`` of a JUnit report: a plugin of conftest.py.

tests/steps/prices.py makes tests/prices.json of such reports. Leaves out: what a fixture does when it ends.
"""

from __future__ import annotations

import os

import pytest

STARTED_S = pytest.StashKey[float]()


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("xmlpath", None):
        config.pluginmanager.register(CpuTime())


class CpuTime:
    """Registered where a report is asked for."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        item.stash[STARTED_S] = cpu_time_s()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        if STARTED_S in item.stash:
            item.user_properties.append(("cpu_s", f"{cpu_time_s() - item.stash[STARTED_S]:.4f}"))


def cpu_time_s() -> float:
    """CPU seconds of this process and of those that it has started and that ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
