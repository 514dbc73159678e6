"""A crossing from its options to its folder: two rounds, the base, what is kept, what is refused, and its page."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from weftwork.base.errors import ConfigError
from weftwork.cli.cross import cross
from weftwork.report.page_crossing import crossing_page, crossing_pictures
from weftwork.spec.crossing import Setting
from weftwork.store.crossings import read_crossing
from weftwork.study.crossing import crossing
from weftwork.study.crossing.crossing import CrossingStart, run_crossing

TINY = """
schema: 3
name: tiny
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 4, link_rate: 100Gbps, link_delay: 500ns,
         reconvergence_delay: 20us}
transport: {recovery: selective-repeat, timeout: 100us}
traffic: {pattern: mixed, all_reduce: 256KiB, incast: 64KiB, flows: 5}
engine: {until: 1s}
"""
OWN = '''"""An own control that never slows down.

Source: none. Leaves out: everything.
"""

from weftwork.policies.interface import CongestionControl, Kind, SenderState, Signal


class Params:
    """None."""


class State(SenderState):
    """None."""


def step(params: Params, state: State, signal: Signal) -> None:
    """Do nothing."""


PLUGIN = CongestionControl(params=Params, state=State, step=step, source="chosen: none", signals=frozenset({Kind.ACK}))
'''


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every workload is a tiny one, so that a crossing takes seconds."""
    file = tmp_path / "tiny.yaml"
    file.write_text(TINY)

    def scenario_file(setting: Setting) -> Path:
        assert setting.workload == "mixed"
        return file

    monkeypatch.setattr(crossing, "scenario_file", scenario_file)
    return tmp_path


@pytest.mark.deep
def test_two_rounds_a_folder_a_page_and_the_same_again(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tiny / "own_cc.py"
    own.write_text(OWN)
    starts: list[CrossingStart] = []
    asked = {
        "out": tiny / "out", "controls": (str(own),), "path_selections": ("ecmp", "spray"),
        "workloads": ("mixed",), "seeds": 2,
    }  # fmt: skip
    found = run_crossing(**asked, on_start=starts.append)  # type: ignore[arg-type]
    result = found.result
    assert result is not None
    named = {one.name for one in result.contenders}
    assert {"dcqcn with ecmp", "own_cc with spray", "swift with spray"} <= named
    assert result.contenders[result.base].name == "dcqcn with ecmp"
    assert found.whole == found.wanted == sum(start.runs for start in starts) == 2 * len(result.cells)
    assert all(cell.values for cell in result.cells)
    base = [cell for cell in result.cells if cell.contender == result.base]
    assert {cell.ratio for cell in base} == {1.0}

    rows = list(csv.DictReader((tiny / "out" / "table.csv").read_text().splitlines()))
    assert [float(row["seed_1"]) for row in rows] == [cell.values[0] for cell in result.cells]
    run = tiny / "out" / result.cells[0].runs[0]
    told = json.loads((run / "summary.json").read_text())["numbers"]["slowdown_p99"]["value"]
    assert told == result.cells[0].values[0]
    assert read_crossing(tiny / "out") == result

    page = crossing_page(result, str(found.folder), "weftwork cross")
    for one in named:
        assert one in page
    pictures = crossing_pictures(result)
    assert {"crossing.svg", "crossing-controls.svg"} <= pictures.keys()
    assert all(one.startswith("<svg") for one in pictures.values())

    again = run_crossing(**asked)  # type: ignore[arg-type]
    assert (again.kept, again.whole) == (found.whole, found.whole)
    assert again.result is not None
    assert again.result.cells == result.cells
    with pytest.raises(ConfigError, match="holds another crossing"):
        run_crossing(**{**asked, "seeds": 3})  # type: ignore[arg-type]

    code = cross(
        out=tiny / "out", controls=(str(own),), path_selections=("ecmp", "spray"), port_selections=(),
        workloads=("mixed",), seeds=2, is_all=False, jobs=1, user_code=True, as_json=True,
    )  # fmt: skip
    assert code == 0
    document = json.loads(capsys.readouterr().out)
    assert document["kept"] == found.whole
    assert "dcqcn with ecmp" in document["said"][0] or "Nothing beats" in document["said"][0]
    assert (tiny / "out" / "page.html").is_file()
    assert (tiny / "out" / "crossing.svg").is_file()


def test_a_file_of_the_users_own_is_refused_where_that_is_asked(tmp_path: Path) -> None:
    own = tmp_path / "own_cc.py"
    own.write_text(OWN)
    with pytest.raises(ConfigError):
        run_crossing(out=tmp_path / "out", controls=(str(own),), user_code=False)
    assert not (tmp_path / "out").exists()


def test_no_seed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="wanted at least one"):
        run_crossing(out=tmp_path / "out", seeds=0)


@pytest.mark.deep
def test_a_loss_based_control_of_a_users_own_takes_part_on_switches_that_drop(tiny: Path) -> None:
    own = tiny / "halving.py"
    own.write_text(OWN.replace("signals=", "is_loss_based=True, signals="))
    asked = {"out": tiny / "out", "controls": (str(own),), "path_selections": ("ecmp",), "workloads": ("mixed",)}
    result = run_crossing(**asked, seeds=1, workers=1).result  # type: ignore[arg-type]
    assert result is not None
    place = next(at for at, one in enumerate(result.contenders) if one.name == "halving with ecmp")
    assert result.contenders[place].carried == "drops"
    assert all(result.cell(place, setting).values for setting in range(len(result.settings)))
