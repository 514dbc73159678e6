"""More oversubscription costs more, and the answer says how much there is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.record.road import Results, execute, results

if TYPE_CHECKING:
    from pathlib import Path


def answer(tmp_path: Path, oversubscription: object) -> Results:
    """An iteration whose experts are on 16 of 64 servers, which 32 ports a leaf put into pods of at most 21 at 2:1."""
    document = {
        "schema": 3,
        "fabric": {"topology": "rail-optimized", "gpus": 512, "node": "dgx-h100", "radix": 32,
                   "oversubscription": oversubscription},
        "transport": {"path_selection": "spray", "port_selection": "spray", "recovery": "selective-repeat"},
        "training": {"model": "qwen3-30b-a3b", "gpus": 512, "expert": 128, "global_batch": 512, "sequence": 4096},
        "engine": {"fidelity": "flow"},
    }  # fmt: skip
    file = tmp_path / "scenario.yaml"
    file.write_text(json.dumps(document), encoding="utf-8")
    prepared = prepare(read_scenario(file))
    return results(prepared, execute(prepared))


def test_a_model_at_two_to_one_lies_between_one_and_four_to_one(tmp_path: Path) -> None:
    found = [answer(tmp_path, ratio) for ratio in (1, "2:1", {"leaf": 4})]
    took = [one.summary["iteration_ps"].value for one in found]
    assert took == sorted(set(took))
    assert [one.summary["oversubscription"].value for one in found] == [1, 2, 4]
    for one, text in zip(found, ("1:1", "2:1", "4:1"), strict=True):
        assert one.about["fabric"].endswith(f"links, oversubscription {text}")
