"""The rules of unit tests are enforced: a run, a folder, a process, and a slow test are each told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from helpers import unit_rules
from helpers.inner_pytest import inner_pytest

PRELUDE = "import subprocess, sys, time\nfrom pathlib import Path\n"
RULES = ("-p", "helpers.unit_rules", "-p", "unit_here", "-n", "0", "--unit-facts=facts.jsonl")
HERE = "from pathlib import Path\nfrom helpers import unit_rules\nunit_rules.UNIT = Path.cwd() / 'unit'\n"


def told(tmp_path: Path, body: str, *, folder: str = "unit") -> str:
    """What pytest prints of one test in a folder."""
    conftest = (
        "import unit_here\n"
        "def pytest_addoption(parser):\n    parser.addoption('--unit-facts')\n"
        "def pytest_configure(config):\n    config.pluginmanager.register(unit_here.unit_rules)\n"
    )
    test = PRELUDE + f"def test_x(tmp_path_factory):\n    {body}\n"
    done = inner_pytest(
        tmp_path,
        {"unit_here.py": HERE, "conftest.py": conftest, f"{folder}/test_x.py": test},
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
    )
    return done.stdout


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("Path('x.txt').write_text('x')", "a unit test writes a file: x.txt"),
        ("Path('x').mkdir()", "a unit test makes a folder or a link: x"),
        ("tmp_path_factory.mktemp('x')", "a unit test makes a folder or a link: "),
        ("subprocess.run([sys.executable, '-c', ''])", "a unit test starts a process: "),
        ("sys.audit('weftwork.execute', 'incast')", "a unit test makes a run: incast"),
        ("sys.audit('weftwork.simulate', 'packet', 7)", "a unit test drives the packet engine"),
        ("[n * n for n in range(10_000_000)]", " ms of CPU time, a unit test "),
    ],
)
def test_a_unit_test_that_does_more_fails_with_the_reason(body: str, sentence: str, tmp_path: Path) -> None:
    printed = told(tmp_path, body)
    assert sentence in printed
    assert "1 failed" in printed


@pytest.mark.parametrize("body", ["assert Path(__file__).read_text()", "time.sleep(0)", "import json; json.dumps([1])"])
def test_a_unit_test_that_keeps_to_its_file_passes(body: str, tmp_path: Path) -> None:
    assert "1 passed" in told(tmp_path, body)


@pytest.mark.parametrize("body", ["Path('x').mkdir()", "[n * n for n in range(10_000_000)]"])
def test_the_rules_are_those_of_one_folder(body: str, tmp_path: Path) -> None:
    assert "1 passed" in told(tmp_path, body, folder="runs")


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


def test_the_limit_is_the_promised_one() -> None:
    assert unit_rules.LIMIT_S == 0.05
    assert unit_rules.limit_s() >= unit_rules.LIMIT_S
    assert 0 < unit_rules.loop_s() < 1
