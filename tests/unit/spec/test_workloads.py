"""Each kind of workload is a row of spec with all that others ask of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from weftwork.base.errors import ConfigError
from weftwork.spec import workloads
from weftwork.spec.numbers import HEADLINES
from weftwork.spec.scenario.scenario import Scenario, loads
from weftwork.spec.workloads import WORKLOADS

PACKAGE = Path(workloads.__file__).parents[1]
HOMES = ("spec/scenario/", "study/prepare/workloads/")  # the sections themselves, and how each goes to a job
# A section of a scenario, which only the accessors read, and the question whether there are training jobs.
QUESTION = re.compile(
    rf"(?<!spec\.)\bscenario\.(?:{'|'.join(WORKLOADS)})\b"
    r"|\b(?:if|not|and|or|bool\() ?\(?(?:\w+\.)*prepared\.jobs\b(?!\[)"
)

FABRIC = "schema: 3\nfabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2}\n"
TRAFFIC = "traffic: {pattern: permutation, size: 4KiB}\n"
COLLECTIVE = "collective: {operation: all-reduce, size: 4KiB, repeat: 3}\n"


def test_a_question_for_a_section_is_seen() -> None:
    asked = "if run.scenario.collective is not None or not prepared.jobs: return scenario.training"
    assert [match[0] for match in QUESTION.finditer(asked)] == [
        "scenario.collective", "not prepared.jobs", "scenario.training",
    ]  # fmt: skip
    assert QUESTION.search("scenario.collective_section, records.prepared.jobs[0], spec.scenario.training") is None


def test_nothing_outside_the_records_asks_which_section_a_scenario_has() -> None:
    there = {
        module: asked
        for file in PACKAGE.rglob("*.py")
        if not (module := file.relative_to(PACKAGE).as_posix()).startswith(HOMES)
        and (asked := [match[0] for match in QUESTION.finditer(file.read_text(encoding="utf-8"))])
    }
    assert there == {}


def test_a_section_of_another_kind_is_refused() -> None:
    scenario = loads(FABRIC + TRAFFIC)
    assert scenario.traffic_section is scenario.traffic
    with pytest.raises(TypeError, match="the workload of the scenario is traffic, wanted collective"):
        _ = scenario.collective_section
    assert scenario.placed_sections == ()
    assert [path for path, _ in loads(FABRIC + COLLECTIVE).placed_sections] == ["collective"]


def test_each_row_is_a_section_with_a_headline() -> None:
    assert [name for name in WORKLOADS if name not in Scenario.model_fields] == []
    assert [name for name, row in WORKLOADS.items() if row.headline not in HEADLINES] == []
    assert [name for name, row in WORKLOADS.items() if row.blamed_key.partition(".")[0] != name] == []


@pytest.mark.parametrize(("section", "name", "repeats"), [(TRAFFIC, "traffic", 1), (COLLECTIVE, "collective", 3)])
def test_a_scenario_knows_its_kind(section: str, name: str, repeats: int) -> None:
    scenario = loads(FABRIC + section)
    assert (scenario.workload_kind.name, scenario.repeats) == (name, repeats)


def test_a_scenario_without_a_workload_says_so() -> None:
    scenario = loads(FABRIC + TRAFFIC).model_copy(update={"traffic": None})
    with pytest.raises(ConfigError, match="workload"):
        _ = scenario.workload_kind
