"""What a sweep asks for: grids, zipped keys, lists, random samples; and every mistake at once, with its line."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from helpers.sweeps import SCENARIO

from weftwork.base.errors import ConfigError
from weftwork.study.sweep.definition import read_definition
from weftwork.study.sweep.points import combinations, plan_of

HEAD = "schema: 3\nname: tiny\n"


def points(folder: Path, section: str, **settings: str) -> list[dict[str, str]]:
    file = folder / "scenario.yaml"
    file.write_text(HEAD + section, encoding="utf-8")
    definition = read_definition(file, {key.replace("_", "."): text for key, text in settings.items()})
    found = combinations(definition)
    assert len(found) == definition.points
    return found


def test_a_grid_is_every_combination_and_the_last_key_varies_fastest(tmp_path: Path) -> None:
    found = points(tmp_path, "sweep: {grid: {a.b: [1, 2], c: [x, [2, 1], {name: n, g: 0.1}]}}")
    texts = [(point["a.b"], point["c"]) for point in found]
    assert texts == [(one, other) for one in ("1", "2") for other in ("x", "[2, 1]", "{name: n, g: 0.1}")]


def test_zipped_keys_go_together_and_lists_are_points_written_out(tmp_path: Path) -> None:
    section = "sweep:\n  zip: {t: [1, 2], d: [8, 4]}\n  list: [{x: 1, y: 5}, {x: 2, y: 6}]\n  grid: {g: [0]}\n"
    found = points(tmp_path, section)
    assert [(one["x"], one["y"], one["t"], one["d"], one["g"]) for one in found] == [
        ("1", "5", "1", "8", "0"), ("1", "5", "2", "4", "0"), ("2", "6", "1", "8", "0"), ("2", "6", "2", "4", "0"),
    ]  # fmt: skip


def test_random_samples_lie_in_their_range_and_follow_from_their_seed(tmp_path: Path) -> None:
    keys = "keys: {a: {low: 1, high: 3}, b: {low: 0.001, high: 0.1, scale: log}, c: [p, q], d: {low: 0.5, high: 2}}"
    section = f"sweep: {{random: {{samples: 400, seed: 7, {keys}}}}}"
    found = points(tmp_path, section)
    assert {point["a"] for point in found} == {"1", "2", "3"}
    assert {point["c"] for point in found} == {"p", "q"}
    logs = [math.log10(float(point["b"])) for point in found]
    assert -3 <= min(logs) < -2.9
    assert -1.1 < max(logs) <= -1
    assert sum(logs) / len(logs) == pytest.approx(-2, abs=0.1)  # 400 even draws of width 2: 3.5 standard errors
    values = [float(point["d"]) for point in found]
    assert 0.5 <= min(values) < max(values) <= 2
    assert found == points(tmp_path, section)
    assert found[:5] == points(tmp_path, section.replace("400", "5"))  # more samples change no earlier one
    assert found != points(tmp_path, section.replace("seed: 7", "seed: 8"))


def test_a_setting_takes_the_place_of_the_grid_alone(tmp_path: Path) -> None:
    section = "sweep: {grid: {a.b: [1, 2]}, zip: {a.c: [1, 2], a.d: [1, 2]}}"
    assert {point["a.b"] for point in points(tmp_path, section, a_b="5,6,7")} == {"5", "6", "7"}
    with pytest.raises(ConfigError) as wrong:
        points(tmp_path, section, a_c="3")
    assert "--set a.c  is varied by the section sweep" in str(wrong.value)


def test_all_mistakes_of_a_section_are_told_with_their_lines(tmp_path: Path) -> None:
    section = """sweep:
  gird: {a: [1]}
  grid:
    a: 1
    b: [1, 1]
  zip: {c: [1, 2], b: [1]}
  list: [{d: 1}, {e: 1}]
  random:
    samples: none
    keys: {f: {low: 2, high: 1}}
  seeds: 0
"""
    with pytest.raises(ConfigError) as wrong:
        points(tmp_path, section)
    told = {(mistake.line, mistake.path): mistake for mistake in wrong.value.mistakes}
    assert {key: told[key].text.partition(",")[0] for key in told} == {
        (4, "sweep.gird"): "unknown key; wanted grid",
        (6, "sweep.grid.a"): "found '1'",
        (7, "sweep.grid.b"): "found a value twice",
        (8, "sweep.zip"): "found 2 of c",
        (4, "sweep.zip.b"): "is varied by sweep.grid already",
        (9, "sweep.list.1"): "has other keys than the first point (d)",
        (11, "sweep.random.samples"): "found 'none'",
        (12, "sweep.random.keys.f"): "found a mapping",
        (13, "sweep.seeds"): "found '0'",
    }
    assert told[4, "sweep.gird"].fix == "grid"


def test_a_value_that_no_combination_makes_right_stops_and_a_combination_or_a_draw_does_not(tmp_path: Path) -> None:
    file = tmp_path / "tiny.yaml"
    section = (
        "sweep: {list: [{fabric.hosts_per_leaf: 4}, {fabric.hosts_per_leaf: 8}],"
        " random: {samples: 20, keys: {traffic.senders: {low: 2, high: 9}}}}"
    )
    file.write_text(SCENARIO + section, encoding="utf-8")
    plan = plan_of(file, read_definition(file, {}), seeds=1)
    values = [(texts["fabric.hosts_per_leaf"], int(texts["traffic.senders"])) for texts in plan.values]
    wrong = [place for place, (hosts, senders) in enumerate(values) if hosts == "4" and senders > 7]
    assert sorted(plan.refused) == wrong != []
    assert all("wanted at most 7" in reason for reason in plan.refused.values())
    file.write_text(SCENARIO + section.replace("hosts_per_leaf: 8", "hosts_per_leaf: none"), encoding="utf-8")
    with pytest.raises(ConfigError) as found:
        plan_of(file, read_definition(file, {}), seeds=1)
    assert [mistake.path for mistake in found.value.mistakes] == ["--set fabric.hosts_per_leaf"]


@pytest.mark.parametrize(
    ("workload", "is_least"),
    [
        ("traffic: {pattern: incast, senders: 3, size: 50KB}", False),
        ("collective: {operation: all-reduce, size: 1MiB}", True),
    ],
)
def test_the_memory_of_a_sweep_is_that_of_its_largest_point(tmp_path: Path, workload: str, *, is_least: bool) -> None:
    """Programs, which come on top, are told of."""
    file = tmp_path / "tiny.yaml"
    head, _, _ = SCENARIO.partition("traffic:")
    file.write_text(head + workload + "\n", encoding="utf-8")
    plans = [
        plan_of(file, read_definition(file, {"fabric.hosts_per_leaf": text}), seeds=1) for text in ("4", "8", "8,4")
    ]
    assert plans[0].memory_bytes < plans[1].memory_bytes == plans[2].memory_bytes
    assert [plan.is_least for plan in plans] == [is_least] * 3


def test_too_many_points_are_refused_before_they_are_made(tmp_path: Path) -> None:
    many = ",".join(map(str, range(1000)))
    with pytest.raises(ConfigError) as wrong:
        points(tmp_path, "", a=many, b=many)
    assert "found 1,000,000 points, wanted at most 100,000" in str(wrong.value)
