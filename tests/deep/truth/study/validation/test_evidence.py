"""Sets that came later: rules that make cases of rows, comparisons by sign, and that nothing of them is calibrated."""

from __future__ import annotations

import pytest

from weftwork.study.validation.evidence import EVIDENCE
from weftwork.study.validation.signs import comparisons
from weftwork.study.validation.validate import validate


@pytest.mark.parametrize("authors", ["Rail-only: all-to-all", "Meta", "MegaScale", "DeepSeek"])
def test_published_comparisons_have_the_published_sign(authors: str) -> None:
    rows = [row for row in comparisons()[0] if row.name.startswith(authors)]
    assert rows
    assert all(row.point().has_same_sign for row in rows)


def test_all_sets_of_iterations_are_predicted_and_beat_the_naive_line() -> None:
    keys = [made.key for made in EVIDENCE if made.cases is not None]
    found = {score.key: score for score in validate(keys, is_full=True)}
    assert all(score.beats_naive for score in found.values())
    assert {key for key, score in found.items() if score.is_reached} == {"mlperf-gpt3", "mlperf-llama3", "foundry-a100"}
