"""No key of a section `sweep` is dead: two values of it make other points, or another way to judge them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.keys import printed_keys
from helpers.sweeps import SCENARIO

from weftwork.spec.scenario.schema import json_schema
from weftwork.study.sweep.definition import read_definition
from weftwork.study.sweep.points import combinations

DRAWN: dict[str, Any] = {"samples": 3, "seed": 1, "keys": {"traffic.size": [1, 2, 3, 4, 5, 6, 7, 8]}}
GRID: dict[str, Any] = {"grid": {"engine.seed": [1, 2], "traffic.size": ["1MiB", "2MiB"]}}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "grid": ({"grid": {"engine.seed": [1, 2]}}, {"grid": {"engine.seed": [1, 3]}}),
    "zip": ({"zip": {"engine.seed": [1, 2]}}, {"zip": {"engine.seed": [2, 1]}}),
    "list": ({"list": [{"engine.seed": 1}]}, {"list": [{"engine.seed": 2}]}),
    "random": ({**GRID}, {**GRID, "random": {**DRAWN, "keys": {"traffic.repeat": [1, 2]}}}),
    "random.samples": ({"random": DRAWN}, {"random": {**DRAWN, "samples": 4}}),
    "random.seed": ({"random": DRAWN}, {"random": {**DRAWN, "seed": 2}}),
    "random.keys": ({"random": DRAWN}, {"random": {**DRAWN, "keys": {"traffic.size": [9]}}}),
    "seeds": ({**GRID, "seeds": 2}, {**GRID, "seeds": 3}),
    "by": ({**GRID, "by": "fct_mean_ps"}, {**GRID, "by": "fct_p99_ps"}),
    "within": ({**GRID, "within": "engine.seed"}, {**GRID, "within": "traffic.size"}),
}


def test_every_key_of_the_section_has_a_case() -> None:
    printed = {key.removeprefix("sweep.") for key in printed_keys(json_schema()) if key.startswith("sweep.")}
    assert printed == CASES.keys()


@pytest.mark.parametrize("key", CASES)
def test_two_values_of_a_key_make_another_sweep(key: str, tmp_path: Path) -> None:
    made = []
    for place, section in enumerate(CASES[key]):
        file = tmp_path / f"{place}.yaml"
        file.write_text(f"{SCENARIO}\nsweep: {json.dumps(section)}\n", encoding="utf-8")
        definition = read_definition(file, {})
        made.append((combinations(definition), definition.seeds, definition.by, definition.within))
    assert made[0] != made[1]
