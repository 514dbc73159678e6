"""The page of a search for plans: what it says, what its bars add up to, and where its dots are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.plans import plan_document

from weftwork.base.errors import ConfigError
from weftwork.report.plan_words import open_plan


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{", "is no JSON"),
        ("[]", "lacks about, best"),
        ('{"best": []}', "lacks about, closed_form_s, cloud"),
        (json.dumps(plan_document(best=0)), "lacks plans"),
    ],
)
def test_a_damaged_document_is_told_of(tmp_path: Path, written: str, said: str) -> None:
    (tmp_path / "plan.json").write_text(written, encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        open_plan(tmp_path)


def test_a_folder_without_a_scenario_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(plan_document()), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"scenario\.yaml  cannot be read: No such file"):
        open_plan(tmp_path)
    (tmp_path / "scenario.yaml").write_text("schema: 3", encoding="utf-8")
    assert open_plan(tmp_path) == (plan_document(), "schema: 3")
