"""Any number of runs beside each other: names, groups of one workload, fabrics as built, and their prices."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.gallery import Gallery

import weftwork
from weftwork.base.errors import ConfigError, UsageError
from weftwork.hardware.prices import price_book
from weftwork.spec.comparison import RunComparison
from weftwork.store.runs import Run
from weftwork.study.prepare.prepare import fabric_of_scenario
from weftwork.study.results.compare_runs import compare_runs
from weftwork.study.results.compared_fabric import asked_ratio
from weftwork.study.results.run_labels import distinct, labels_of_group
from weftwork.topology.bill import bill

SCENARIO = """schema: 3
name: small
fabric: {topology: leaf-spine, hosts: 12, radix: 12, link_rate: 100Gbps, oversubscription: 1}
transport: {congestion_control: fixed-window}
traffic: {pattern: permutation, size: 64KB}
engine: {fidelity: flow}
"""


Opened = Callable[..., list[Run]]


@pytest.fixture(scope="module")
def opened(gallery: Gallery) -> Opened:
    """Runs by pattern and ratio of oversubscription, such as ``incast-2``."""

    def runs(*names: str) -> list[Run]:
        found = []
        for name in names:
            pattern, _, ratio = name.partition("-")
            keys = {"fabric.oversubscription": ratio, "traffic.pattern": pattern}
            found.append(gallery.run(SCENARIO, name=name, overrides=keys, what_if="none"))
        return found

    return runs


@pytest.fixture(scope="module")
def found(opened: Opened) -> RunComparison:
    return compare_runs(opened(*(f"{kind}-{ratio}" for ratio in (2, 1, 3) for kind in ("permutation", "incast"))))


def test_runs_are_grouped_by_workload_and_measured_against_the_first_of_theirs(found: RunComparison) -> None:
    assert [(group.name, group.runs, group.first) for group in found.groups] == [
        ("permutation traffic", (0, 2, 4), 0), ("incast traffic", (1, 3, 5), 1)
    ]  # fmt: skip
    for group in found.groups:
        first = found.runs[group.runs[0]]
        assert first.change is None
        for place in group.runs[1:]:
            row = found.runs[place]
            assert row.value_ps is not None
            assert first.value_ps is not None
            assert row.change == pytest.approx(row.value_ps / first.value_ps - 1)
        assert group.keys == ("fabric.oversubscription",)
        assert group.work_keys == ()
    assert found.runs[4].change != 0


def test_labels_have_the_realised_ratio_and_the_workload_where_groups_share_them(found: RunComparison) -> None:
    assert [run.short for run in found.runs[::2]] == [f"oversubscription {ratio}:1" for ratio in (2, 1, 3)]
    assert found.runs[1].label == "incast traffic, oversubscription 2:1"
    assert len({run.label for run in found.runs}) == 6


def test_fabrics_are_counted_and_priced_as_weftwork_cost_does(found: RunComparison, opened: Opened) -> None:
    for row, name in ((found.runs[0], "permutation-2"), (found.runs[2], "permutation-1")):
        fabric = fabric_of_scenario(opened(name)[0].path / "scenario.yaml")
        wanted = bill(fabric, price_book())
        assert row.fabric is not None
        assert row.fabric.price_usd is not None
        assert row.fabric.power_w is not None
        assert row.fabric.price_usd.typical == wanted.price_usd.typical
        assert row.fabric.power_w.low == wanted.power_w.low
        assert (row.fabric.links, row.fabric.gpus) == (len(fabric.links), 12)
        assert row.fabric.switches == wanted.count("switch")
    assert [run.fabric.place for run in found.runs if run.fabric is not None] == [0, 0, 1, 1, 2, 2]
    assert found.prices == "street-2025"


def test_numbers_and_keys_have_a_value_for_each_run(found: RunComparison, opened: Opened) -> None:
    (key,) = (one for one in found.differences if one.key == "fabric.oversubscription")
    assert key.values == ("2", "2", "1", "1", "3", "3")
    (number,) = (one for one in found.numbers if one.name == "completion_ps")
    values = [run.value("completion_ps") or 0.0 for run in opened("permutation-2", "permutation-1")]
    assert [number.values[0], number.values[2]] == values
    assert number.changes[:2] == (None, None)
    assert number.changes[2] == pytest.approx(values[1] / values[0] - 1)


@pytest.mark.parametrize(
    ("wanted", "text"),
    [(2, ""), (3, "3:1"), (1.5, "1.5:1"), (None, ""), ({"leaf": 2, "spine": 1}, ""), ({"spine": 2}, "spine 2:1")],
)
def test_a_ratio_that_the_fabric_does_not_have_is_told_as_the_one_that_was_asked_for(wanted: Any, text: str) -> None:
    tiers = {1: ("leaf", "leaves"), 2: ("spine", "spines")}
    assert asked_ratio(wanted, {1: 2.0, 2: 1.0}, tiers) == text


def test_no_python_file_of_a_run_is_run(opened: Opened, tmp_path: Path) -> None:
    shutil.copytree(opened("permutation-2")[0].path, tmp_path / "own")
    trap = tmp_path / "trap.py"
    trap.write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\n")
    file = tmp_path / "own" / "scenario.yaml"
    file.write_text(file.read_text().replace("topology: leaf-spine", f"topology: {trap}"))
    own, _ = compare_runs([weftwork.open_run(tmp_path / "own"), *opened("permutation-1")]).runs
    assert own.fabric is None
    assert own.no_fabric
    assert not (tmp_path / "sprung").exists()


def test_a_name_has_no_path(opened: Opened, tmp_path: Path) -> None:
    shutil.copytree(opened("permutation-2")[0].path, tmp_path / "own")
    file = tmp_path / "own" / "scenario.yaml"
    file.write_text(
        file.read_text().replace("congestion_control: fixed-window", "congestion_control: /home/me/my_cc.py")
    )
    rows = compare_runs([weftwork.open_run(tmp_path / "own"), *opened("permutation-2")]).runs
    assert [row.label for row in rows] == ["congestion control my_cc", "congestion control fixed-window"]


def test_a_fabric_file_outside_the_run_is_not_read(opened: Opened, tmp_path: Path) -> None:
    shutil.copytree(opened("permutation-2")[0].path, tmp_path / "given")
    file = tmp_path / "given" / "scenario.yaml"
    file.write_text(file.read_text().replace("topology: leaf-spine", f"file: {tmp_path / 'fabric.json'}"))
    given, _ = compare_runs([weftwork.open_run(tmp_path / "given"), *opened("permutation-1")]).runs
    assert given.no_fabric == "fabric.file: a comparison reads nothing outside the folders of the runs"


def test_a_partial_run_has_no_time(gallery: Gallery, opened: Opened) -> None:
    cut = gallery.run(SCENARIO, name="cut", overrides={"engine.until": "1us"}, what_if="none")
    rows = compare_runs([cut, *opened("permutation-1", "permutation-3")])
    assert [row.value_ps is None for row in rows.runs] == [True, False, False]
    assert rows.groups[0].first == 1
    assert rows.runs[2].change is not None


def test_one_run_and_an_unknown_price_book_are_refused(opened: Opened) -> None:
    with pytest.raises(UsageError, match="found 1"):
        compare_runs(opened("permutation-1"))
    with pytest.raises(ConfigError):
        compare_runs(opened("permutation-1", "permutation-2"), prices="street-2052")


def test_a_folder_that_is_given_twice_is_named(opened: Opened) -> None:
    found = compare_runs(opened("incast-1", "incast-1", "incast-2"))
    assert found.given_twice == ("incast-1",)
    assert len({run.label for run in found.runs}) == 3


def test_a_name_says_what_differs() -> None:
    one = [{"a.b_c": "1"}, {"a.b_c": "2"}]
    two = [{"a.b": "1", "c.d": "x"}, {"a.b": "2", "c.d": "x"}]
    assert labels_of_group(["x", "y"], ["r", "s"], one) == ("x", "y")
    assert labels_of_group(["x", "x"], ["r", "s"], one) == ("b c 1", "b c 2")
    assert labels_of_group(["x", "x"], ["r", "s"], two) == ("r", "s")
    stamped = ["x-20260101-101010", "x-20260101-101011"]
    assert labels_of_group(["x", "x"], stamped, two) == ("b 1, d x", "b 2, d x")
    assert labels_of_group(["x", "x"], stamped, [{}, {}]) == tuple(stamped)


def test_long_names_are_cut_and_stay_distinct() -> None:
    found = distinct(["a long name that nobody would put into a table"] * 3)
    assert len(set(found)) == 3
    assert all(len(name) <= 45 for name in found)
    assert found[1] == f"{found[0]} (2)"


def test_a_name_has_the_tiers_with_an_oversubscription_alone(gallery: Gallery) -> None:
    """With all tiers the names of a page would be cut, and equal."""
    text = SCENARIO.replace("topology: leaf-spine, hosts: 12, radix: 12", "topology: three-tier, hosts: 48, radix: 12")
    keys = [{"fabric.oversubscription": ratio} for ratio in ("1", "2")]
    found = compare_runs([gallery.run(text, overrides=each, what_if="none") for each in keys])
    assert found.runs[1].fabric is not None
    assert found.runs[1].fabric.oversubscription == "access 2:1, aggregation 1:1"
    assert [run.label for run in found.runs] == ["oversubscription 1:1", "oversubscription access 2:1"]
