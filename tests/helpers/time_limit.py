"""A test that hangs fails and says where, also in native code that keeps the GIL: a plugin that conftest.py registers.

pytest-timeout brings the limit: `timeout` in pyproject.toml, `--timeout`, the marker. This file ends the test, because
each method of pytest-timeout misses some hangs: `signal` waits until native code returns to Python, `thread` waits for
the GIL and shows no stacks from a process of pytest-xdist. Python's faulthandler waits in a thread of C.
The price: the process ends. With processes (-n) pytest starts another process, reports the test that hung as failed,
and runs all others. Without processes (-n 0) the run ends there, with the stacks and exit code 1.
"""

from __future__ import annotations

import faulthandler
import os
from typing import Protocol

import pytest

STDERR = pytest.StashKey[int]()


class Limit(Protocol):
    """What pytest-timeout tells of a test."""

    timeout: float


def pytest_configure(config: pytest.Config) -> None:
    config.stash[STDERR] = os.dup(2)  # as it is before a test has it captured


def pytest_unconfigure(config: pytest.Config) -> None:
    os.close(config.stash[STDERR])


def pytest_timeout_set_timer(item: pytest.Item, settings: Limit) -> bool:
    faulthandler.dump_traceback_later(settings.timeout, exit=True, file=item.config.stash[STDERR])
    return True  # instead of the timer of pytest-timeout


def pytest_timeout_cancel_timer(item: pytest.Item) -> bool:  # noqa: ARG001 - pytest asks for the name
    faulthandler.cancel_dump_traceback_later()
    return True
