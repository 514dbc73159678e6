"""A kind of fault is one file: no other file knows one by its name, and a new file is known everywhere."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import weftwork
from weftwork.spec import fault_changes, faults
from weftwork.spec.scenario.faults import FAULT_KINDS, end_of

PACKAGE = Path(weftwork.__path__[0])
HOME = Path(faults.__file__).parent
OTHER_WORDS = ("rdma", "compat")  # parts that use such words for states of queue pairs and devices

BROWNOUT = '''"""Lowers the rate of a link in two steps, as a supply that sags does, until it ends."""

from __future__ import annotations

from typing import Final

from weftwork.base.units import DURATION
from weftwork.spec.fault_keys import RemainingRate, check_remaining_rate
from weftwork.spec.fault_kind import Change, FaultKind
from weftwork.spec.scenario.kinds import Measure
from weftwork.spec.scenario.rows import row


class Keys(RemainingRate):
    """The rate that is left, and how fast it is reached."""

    ramp_ps: int | None = row(
        "ramp", Measure(quantity=DURATION), absent="missing if the event is brownout",
        text="Time from half of the rate to the remaining rate.", source="chosen: none",
    )


def _check(keys, place, findings):
    check_remaining_rate(keys, place, findings)
    if keys.ramp_ps is None and findings.is_sound("ramp"):
        findings.wrong("ramp", "missing, wanted the time until the remaining rate is reached, such as 10us")


def _begins(keys):
    low = Change(name="degrade", after_ps=keys.ramp_ps, fraction=keys.fraction, rate_bps=keys.rate_bps)
    return (Change(name="degrade", fraction=0.5), low)


def _words(keys):
    return f"sags to {keys.text} of its rate"


FAULT: Final = FaultKind(
    source="a test", keys=Keys, places=("link",), words=_words, words_repeated="sags", begins=_begins, check=_check
)
'''

HEAD = """schema: 3
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, link_rate: 400Gbps}
traffic: {pattern: permutation, size: 4MiB}
"""
SOUND = "faults: [{at: 10us, link: host0-leaf0, event: brownout, fraction: 0.1, ramp: 20us, for: 100us}]\n"
WRONG = """faults:
  - {at: 1us, link: host0-leaf0, event: brownout, fraction: 0.1}
  - {at: 1us, link: host0-leaf0, event: brownout, ramp: 1us}
  - {at: 1us, switch: leaf0, event: brownout, fraction: 0.1, ramp: 1us}
  - {at: 1us, link: host0-leaf0, event: down, ramp: 1us}
  - {at: 1us, link: host0-leaf0, event: brownot, fraction: 0.1, ramp: 1us}
"""

PROGRAM = """
import contextlib, io, json
import weftwork
from weftwork.base.errors import ConfigError
from weftwork.cli import main
from weftwork.engine.rows.fabric import Instant
from weftwork.spec.scenario.reference import page
from weftwork.spec.scenario.scenario import loads
from weftwork.spec.scenario.schema import json_schema
from weftwork.study.prepare.prepare import known_names, prepare

def said(*words):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            main(list(words))
        except SystemExit as leaving:
            assert not leaving.code, words
    return out.getvalue()

def mistakes(text):
    try:
        loads(text, known=known_names())
    except ConfigError as wrong:
        return [[mistake.path, mistake.text, str(mistake.fix)] for mistake in wrong.mistakes]

prepared = prepare(loads(open("sound.yaml").read(), known=known_names()))
instants = prepared.engine_input.instants
rates = instants[instants["code"] == Instant.RATE]
runs = {}
for fidelity in ("packet", "flow"):
    said_of = said("run", "sound.yaml", "--set", f"engine.fidelity={fidelity}", "-o", fidelity)
    events = weftwork.open_run(fidelity).table("events").to_pylist()
    runs[fidelity] = {
        "said": said_of,
        "events": [[row["detail"], row["place"], row["at_ps"]] for row in events if row["event"] == "fault"],
    }
print(json.dumps({
    "list": said("list", "fault"),
    "explain": said("explain", "faults.event") + said("explain", "faults.ramp") + said("explain", "faults.fraction"),
    "schema": json_schema(),
    "page": page(),
    "mistakes": mistakes(open("wrong.yaml").read()),
    "rates": [[int(row["at_ps"]), int(row["value"])] for row in rates],
    "runs": runs,
}))
"""


def words_of(node: ast.AST) -> set[str]:
    return {one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def compared(tree: ast.Module) -> set[str]:
    """Words with which a module compares something, or by which it chooses from a table."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=comparators):
                found |= set().union(*(words_of(one) for one in (left, *comparators)))
            case ast.MatchValue(value=value):
                found |= words_of(value)
            case ast.Dict(keys=keys):
                found |= set().union(*(words_of(key) for key in keys if key is not None))
            case ast.Call(func=ast.Attribute(attr="startswith" | "endswith" | "get"), args=args):
                found |= set().union(*(words_of(one) for one in args))
    return found


def test_no_other_file_compares_with_the_name_of_a_kind() -> None:
    """Else a new kind of fault would have to be made known to a second file."""
    names = {word for name in FAULT_KINDS for word in (name, end_of(name))}
    knowing = {}
    for file in PACKAGE.rglob("*.py"):
        place = file.relative_to(PACKAGE)
        if file.parent == HOME or file == Path(fault_changes.__file__) or place.parts[0] in OTHER_WORDS:
            continue
        text = file.read_text(encoding="utf-8")
        if any(f'"{name}"' in text for name in names) and (found := compared(ast.parse(text)) & names):
            knowing[place.as_posix()] = sorted(found)
    assert knowing == {}


@pytest.mark.parametrize(
    "text",
    ['x == "down"', 'x in {"up", "down"}', '{"down": 1}[x]', 'x.get("down")', 'match x:\n    case "down":\n        y'],
)
def test_a_comparison_is_found_however_it_is_written(text: str) -> None:
    assert "down" in compared(ast.parse(text))
    assert compared(ast.parse('Fault(event="down")')) == set()


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a package with one more file in the folder says of it."""
    folder = tmp_path_factory.mktemp("brownout")
    copy = folder / "src" / "weftwork"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "spec" / "faults" / "brownout.py").write_text(BROWNOUT, encoding="utf-8")
    (folder / "sound.yaml").write_text(HEAD + SOUND, encoding="utf-8")
    (folder / "wrong.yaml").write_text(HEAD + WRONG, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src"), "COLUMNS": "200"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_new_file_is_listed_explained_and_in_the_schema(told: dict[str, Any]) -> None:
    assert "Lowers the rate of a link in two steps" in told["list"]
    assert "down, up, degrade, lossy, slow, rewire or brownout" in told["explain"]
    assert "degrade, lossy and brownout are for links" in told["explain"]
    assert "only with event degrade, slow or brownout" in told["explain"]
    assert "only with event brownout" in told["explain"]
    assert "Time from half of the rate to the remaining rate." in told["page"]
    assert "brownout" in json.dumps(told["schema"])


def test_mistakes_of_a_new_kind_are_told_beside_those_of_others(told: dict[str, Any]) -> None:
    assert told["mistakes"] == [
        ["faults.0.ramp", "missing, wanted the time until the remaining rate is reached, such as 10us", "None"],
        ["faults.1", "found neither of fraction and rate, wanted exactly one: the remaining rate of the link", "None"],
        ["faults.2.event", "found 'brownout' for a switch, wanted down or up", "None"],
        ["faults.3.ramp", "means nothing with event down, only with brownout", "None"],
        [
            "faults.4.event",
            "found 'brownot', wanted down, up, degrade, lossy, slow, rewire or brownout",
            "brownout",
        ],
    ]


def test_a_new_kind_is_what_the_engines_do_and_what_the_answer_says(told: dict[str, Any]) -> None:
    whole_bps = 400_000_000_000
    us_ps = 1_000_000
    assert told["rates"] == [
        [10 * us_ps, whole_bps // 2], [30 * us_ps, whole_bps // 10], [110 * us_ps, whole_bps]
    ]  # fmt: skip
    for run in told["runs"].values():
        assert run["events"] == [
            ["brownout", "host0-leaf0", 10 * us_ps], ["brownout ends", "host0-leaf0", 110 * us_ps]
        ]  # fmt: skip
        assert "host0-leaf0 (faults.0) sags to 10 % of its rate from 10us on for 100us" in run["said"]
