"""What every test has: processes, hypothesis profiles, and golden files that `--update-golden` writes anew."""

import difflib
import gc
import math
import os
import signal
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from helpers import cases, cpu_time, file_queue, planned_cases, time_limit, unit_rules
from helpers.gallery import Gallery, gallery_folder
from hypothesis import settings

from weftwork.cli import progress

GOLDEN_DIR = Path(__file__).parent / "golden"
DEEP = Path(__file__).parent / "deep"

progress.FIRST_LINE_S = progress.FIRST_ANSWER_S = (
    math.inf
)  # a loaded machine adds no line of progress to what a test compares
os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")  # a test that wants several processes asks for them
gc.set_threshold(100_000, 20, 100)  # chosen: with 700 a parse of the package spends four fifths of its time here
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--plan", metavar="FILE", help="run the cases that a plan of tests/steps/plan.py chooses")
    parser.addoption("--step", metavar="NAME", help="the step of the plan")
    parser.addoption(
        "--unit-facts", metavar="FILE", help="append what each unit test costs and breaks to FILE, and fail none for it"
    )
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew; review the diff")
    parser.addoption(
        "--ignore-golden", action="store_true", help="compare nothing with golden files; for tests/mutants/run.py"
    )
    parser.addoption(
        "--no-skips", action="store_true", help="a skipped test is a failure; where all extras are installed"
    )


def pytest_configure(config: pytest.Config) -> None:
    paths = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    if config.option.markexpr == "not deep" and all(path.is_relative_to(DEEP) for path in paths):
        config.option.markexpr = ""  # who names files of tests/deep wants them run
    config.pluginmanager.register(cases)
    config.pluginmanager.register(time_limit)
    config.pluginmanager.register(unit_rules)
    planned_cases.pytest_configure(config)
    cpu_time.pytest_configure(config)
    file_queue.pytest_configure(config)
    if (
        signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ):  # a shell does that in the background, and children inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.path.is_relative_to(DEEP):
        item.add_marker("deep")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--ignore-golden"):
        golden = [item for item in items if item.get_closest_marker("golden")]
        items[:] = [item for item in items if not item.get_closest_marker("golden")]
        config.hook.pytest_deselected(items=golden)


def pytest_collection_finish() -> None:
    """Spare the garbage collector what is there for the whole session: modules, and 10,000 collected tests."""
    gc.collect()
    gc.freeze()


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """A process for each core; none beside pytest itself for one file, for tests by name, and where -s shows output."""
    are_named = all("::" in one for one in config.args)
    is_one_file = len(config.args) == 1 and config.args[0].endswith(".py")
    return 0 if are_named or is_one_file or config.getoption("capture") == "no" else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and item.config.getoption("--no-skips"):
        report.outcome = "failed"
    return report


@pytest.fixture(scope="session")
def gallery(request: pytest.FixtureRequest) -> Gallery:
    """Runs that many tests read, each made once for the session (helpers/gallery.py)."""
    return Gallery(gallery_folder(request))


@pytest.fixture
def python_hears_sigint() -> Generator[None]:
    """Ctrl-C raises KeyboardInterrupt, also where a shell started the tests in the background and has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def is_golden_compared(request: pytest.FixtureRequest) -> bool:
    """Whether text is held to files that an author writes anew: golden files, a README, a figure."""
    return not request.config.getoption("--ignore-golden")


@pytest.fixture
def check_golden(request: pytest.FixtureRequest, *, is_golden_compared: bool) -> Callable[[str, str], None]:
    """`check_golden("incast_8_to_1/summary.txt", text)` holds text to a file below tests/golden, or writes the file."""
    is_update = bool(request.config.getoption("--update-golden"))

    def check(name: str, text: str) -> None:
        path = GOLDEN_DIR / name
        if is_update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not is_golden_compared:
            return
        if not path.is_file():
            pytest.fail(f"there is no golden file {name}; write it with `pytest --update-golden` and review it")
        wanted = path.read_text(encoding="utf-8")
        if text != wanted:
            diff = difflib.unified_diff(wanted.splitlines(), text.splitlines(), f"golden/{name}", "found", lineterm="")
            pytest.fail("\n".join(["differs from its golden file (--update-golden writes it anew)", *diff]))

    return check
