"""How many generated cases a property sees, and a table of how many it saw: a plugin that conftest.py registers.

The test command gives each property a smaller number; the step `properties` of .ci/run chooses the profile `deep`. The
count is of cases that reached the end of the test: what hypothesis drew and a test refused with `assume` is not one.
Leaves out: what hypothesis tells about its draws, which `--hypothesis-show-statistics` shows.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# No deadline anywhere: a policy compiles inside the first example, and a shared machine stalls.
# `dev` looks elsewhere each time; `ci` and `deep` repeat themselves, so that a red check is the change's doing.
settings.register_profile("dev", deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.register_profile("deep", settings.get_profile("ci"), max_examples=100)
settings.register_profile("long", settings.get_profile("dev"), max_examples=5_000)
TIMES_DEEP = {"deep": 1, "long": 10}  # profiles other than those of the test command

Saw = Callable[..., None]


def case_count(*, plain: int, deep: int) -> int:
    """Cases of a property that says its number itself: in the test command, and in the profile `deep`."""
    times = TIMES_DEEP.get(settings.get_current_profile_name(), 0)
    return times * deep or plain


@pytest.fixture
def saw(request: pytest.FixtureRequest) -> Saw:
    """`saw(400, "a pause: 120")`: a property with its own generator tells how many cases it saw, and their kinds."""

    def note(count: int, kinds: str = "") -> None:
        request.node.user_properties += [("cases", count), ("kinds", kinds)]

    return note


def pytest_itemcollected(item: pytest.Item) -> None:
    if _is_drawn(item) or "saw" in getattr(item, "fixturenames", ()):
        item.add_marker("property")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    if not _is_drawn(item):
        return (yield)
    handle = item.obj.hypothesis  # type: ignore[attr-defined]
    inner, count = handle.inner_test, 0

    @functools.wraps(inner)
    def counted(*arguments: Any, **named: Any) -> None:
        nonlocal count
        inner(*arguments, **named)
        count += 1

    handle.inner_test = counted  # the place that hypothesis keeps for plugins
    try:
        return (yield)
    finally:
        handle.inner_test = inner
        item.user_properties.append(("cases", count))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    counts: Counter[str] = Counter()
    kinds: dict[str, str] = {}
    for report in [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]:
        name = report.nodeid.partition("[")[0]
        for key, value in report.user_properties if report.when == "call" else ():
            if key == "cases":
                counts[name] += value
            elif key == "kinds":
                kinds[name] = value
    if not counts:
        return
    profile = settings.get_current_profile_name()
    noun = "property" if len(counts) == 1 else "properties"
    terminalreporter.section("generated cases")
    if config.get_verbosity() > 0 or profile in TIMES_DEEP:
        for name, count in sorted(counts.items()):
            terminalreporter.write_line(f"{count:>9,}  {name}" + (f": {kinds[name]}" if kinds.get(name) else ""))
    terminalreporter.write_line(f"{counts.total():>9,}  in {len(counts)} {noun}, profile {profile}")


def _is_drawn(item: pytest.Item) -> bool:
    """Whether hypothesis draws the cases."""
    return getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
