"""The rules of unit tests are enforced: a run, a folder, a process, and a slow test are each told."""

from __future__ import annotations

import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from helpers import unit_rules
from helpers.inner_pytest import inner_pytest
from planner.machine import loop_s

PRELUDE = "import subprocess, sys, time\nfrom pathlib import Path\nfrom unit_here import Clock\nwork = Clock.work\n"
RULES = ("-p", "helpers.unit_rules", "-p", "unit_here", "-n", "0", "--unit-facts=facts.jsonl")
# An inner session has a clock of its own, so that no machine makes a slow test fast: a body says what time it takes.
HERE = """
from pathlib import Path
from helpers import unit_rules

unit_rules.UNIT = Path.cwd() / "unit"
unit_rules.loop_s = lambda: unit_rules.LOOP_S


class Clock:
    cpu_s = 0.0

    @classmethod
    def process_time(cls):
        return cls.cpu_s

    @classmethod
    def work(cls, loops):
        cls.cpu_s += loops * unit_rules.LOOP_S


unit_rules.time = Clock
"""
LONG = f"work({1.01 * unit_rules.TIMES_OVER * unit_rules.LIMIT_LOOPS})"
SLOW = f"work({1.01 * unit_rules.LIMIT_LOOPS})"

WRONG = {
    "Path('x.txt').write_text('x')": "a unit test writes a file: x.txt",
    "Path('x').mkdir()": "a unit test makes a folder or a link: x",
    "tmp_path_factory.mktemp('x')": "a unit test makes a folder or a link: ",
    "subprocess.run([sys.executable, '-c', ''])": "a unit test starts a process: ",
    "sys.audit('weftwork.execute', 'incast')": "a unit test makes a run: incast",
    "sys.audit('weftwork.simulate', 'packet', 7)": "a unit test drives the packet engine",
    LONG: " loops of work, and ",
    f"{SLOW}; [abs(n) for n in range({unit_rules.LIMIT_CALLS})]": f"{unit_rules.LIMIT_CALLS // 10**4}",
}
RIGHT = ("assert Path(__file__).read_text()", "time.sleep(0)", "import json; json.dumps([1])", SLOW)
ELSEWHERE = ("Path('y').mkdir()", LONG)  # what no unit test may, in another folder


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    """What a session says of each test by its folder and body; empty where it passed."""
    folder = tmp_path_factory.mktemp("inner")
    conftest = (
        "import unit_here\n"
        "def pytest_addoption(parser):\n    parser.addoption('--unit-facts')\n"
        "def pytest_configure(config):\n    config.pluginmanager.register(unit_here.unit_rules)\n"
    )
    bodies = [*(("unit", body) for body in (*WRONG, *RIGHT)), *(("runs", body) for body in ELSEWHERE)]
    files = {
        f"{place}/test_{number}.py": PRELUDE + f"def test_x(tmp_path_factory):\n    {body}\n"
        for number, (place, body) in enumerate(bodies)
    }
    options = ("-n", "0", "-p", "no:cacheprovider", "--junitxml=report.xml")
    done = inner_pytest(folder, {"unit_here.py": HERE, "conftest.py": conftest, **files}, *options)
    # the tests that are slow pass first, and are then told to take too long
    slow = sum(body.startswith("work") for body in WRONG)
    assert f"{len(WRONG)} failed, {len(bodies) - len(WRONG) + slow} passed" in done.stdout, done.stdout + done.stderr
    found = {}
    for case in ET.parse(folder / "report.xml").getroot().iter("testcase"):  # noqa: S314 - of our own pytest
        number = int(case.attrib["classname"].rpartition("_")[2])
        found[bodies[number]] = "".join(failure.text or "" for failure in case.iter("failure"))
    return found


@pytest.mark.parametrize("body", WRONG)
def test_a_unit_test_that_does_more_fails_with_the_reason(body: str, printed: dict[tuple[str, str], str]) -> None:
    assert WRONG[body] in printed["unit", body]


@pytest.mark.parametrize("body", RIGHT)
def test_a_unit_test_that_keeps_to_its_file_passes(body: str, printed: dict[tuple[str, str], str]) -> None:
    assert printed["unit", body] == ""


@pytest.mark.parametrize("body", ELSEWHERE)
def test_the_rules_are_those_of_one_folder(body: str, printed: dict[tuple[str, str], str]) -> None:
    assert printed["runs", body] == ""


def test_a_real_run_is_heard(tmp_path: Path) -> None:
    """The events that the rules listen to are told by the engines and by the study, and not by hand as above."""
    code = (
        "import sys\nheard = []\n"
        "sys.addaudithook(lambda event, _: heard.append(event) if event.startswith('weftwork') else None)\n"
        "import weftwork\n"
        "fabric = {'topology': 'leaf-spine', 'leaves': 2, 'spines': 2, 'hosts_per_leaf': 2}\n"
        "traffic = {'pattern': 'incast', 'senders': 3, 'size': '20KB'}\n"
        "for fidelity in ('packet', 'flow', 'reference'):\n"
        "    heard.clear()\n"
        "    asked = {'fabric': fabric, 'traffic': traffic, 'engine': {'fidelity': fidelity}}\n"
        "    weftwork.run(asked, out=f'{sys.argv[1]}/{fidelity}', what_if='none')\n"
        "    print(fidelity, heard)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    heard = "['weftwork.execute', 'weftwork.simulate']"
    wanted = [f"{fidelity} {heard}" for fidelity in ("packet", "flow", "reference")]
    assert done.stdout.splitlines() == wanted, done.stderr


def test_the_limit_is_the_promised_one_of_the_clock_of_the_process() -> None:
    assert unit_rules.time.process_time is time.process_time
    assert unit_rules.LIMIT_S == 0.05
    assert unit_rules.loops_of(unit_rules.LIMIT_S) <= unit_rules.LIMIT_LOOPS
    assert 0 < loop_s() < 1
