"""What every test has: the hypothesis profiles, and golden files that `--update-golden` writes anew."""

import difflib
import os
import signal
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

GOLDEN_DIR = Path(__file__).parent / "golden"

# No deadline anywhere: a policy compiles inside the first example, and a shared machine stalls.
# `dev` looks elsewhere each time; `ci` repeats itself, so that a red check is the change's doing; `long` is for nights.
settings.register_profile("dev", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.register_profile("long", settings.get_profile("dev"), max_examples=5_000)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew; review the diff")
    parser.addoption(
        "--no-skips", action="store_true", help="a skipped test is a failure; where all extras are installed"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and item.config.getoption("--no-skips"):
        report.outcome = "failed"
    return report


@pytest.fixture
def python_hears_sigint() -> Generator[None]:
    """Ctrl-C raises KeyboardInterrupt, also where a shell started the tests in the background and has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def check_golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`check_golden("incast_8_to_1/summary.txt", text)` holds text to a file below tests/golden, or writes the file."""
    is_update = bool(request.config.getoption("--update-golden"))

    def check(name: str, text: str) -> None:
        path = GOLDEN_DIR / name
        if is_update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not path.is_file():
            pytest.fail(f"there is no golden file {name}; write it with `pytest --update-golden` and review it")
        wanted = path.read_text(encoding="utf-8")
        if text != wanted:
            diff = difflib.unified_diff(wanted.splitlines(), text.splitlines(), f"golden/{name}", "found", lineterm="")
            pytest.fail("\n".join(["differs from its golden file (--update-golden writes it anew)", *diff]))

    return check
