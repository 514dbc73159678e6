"""Sets that came later: rules that make cases of rows, comparisons by sign, and that nothing of them is calibrated."""

from __future__ import annotations

from weftwork.data.measured import measured
from weftwork.study.validation.evidence import EVIDENCE
from weftwork.study.validation.llm_foundry import llm_foundry
from weftwork.study.validation.mlperf import mlperf
from weftwork.study.validation.published_cases import Case
from weftwork.study.validation.scorecard import Point, Score
from weftwork.study.validation.scorecard_page import document, page, sign_line
from weftwork.study.validation.training_runs import deepseek_v3, lumi
from weftwork.study.validation.validate import SETS


def every_case() -> list[Case]:
    foundry = [*llm_foundry("H100", "BF16"), *llm_foundry("H100", "FP8"), *llm_foundry("A100", "BF16")]
    return [*mlperf("gpt3-175b"), *mlperf("llama3.1"), *mlperf("llama2-70b-lora"), *foundry, *lumi(), *deepseek_v3()]


def test_every_row_is_a_case_of_one_set() -> None:
    rows = sum(measured(name).num_rows for name in ("mlperf-training", "llm-foundry", "training-runs"))
    assert len(every_case()) == rows
    cases = [case for made in EVIDENCE if made.cases is not None for case in made.cases(True)[0]]  # noqa: FBT003
    assert sorted(case.name for case in cases) == sorted(case.name for case in every_case())
    assert len({case.name for case in cases}) == rows


def test_nothing_is_calibrated_on_them_and_all_are_sets() -> None:
    for made in EVIDENCE:
        assert made.role in {"blind", "declared"}, made.key
        assert SETS[made.key] is made
        assert made.source
        assert made.notes


def test_signs_are_counted_with_ties() -> None:
    ratios = [(1.1, 1.05), (1.1, 1.01), (1.0, 1.019), (0.9, 0.97), (0.9, 1.1)]
    points = [Point(name=f"row {i}", measured_s=a, predicted_s=b, naive_s=1.0) for i, (a, b) in enumerate(ratios)]
    score = Score(
        key="k", title="t", role="blind", calibrated_on="nothing", source="s", naive="n", tolerance=None,
        points=tuple(points), is_ratio=True,
    )  # fmt: skip
    assert [point.has_same_sign for point in points] == [True, False, True, True, False]
    assert sign_line(score).startswith("3 of 5 comparisons")
    assert "| row 1 | 1.100 | 1.010 |" in page([score])
    assert document([score])[0]["same_signs"] == 3


def test_a_comparison_without_a_number_has_a_sign_and_no_error() -> None:
    over = [
        Point(name=f"row {i}", measured_s=1.0, predicted_s=found, naive_s=1.0, is_over=True)
        for i, found in enumerate((1.1, 1.01, 0.9))
    ]
    assert [point.has_same_sign for point in over] == [True, False, False]
    assert [round(point.error, 3) for point in over] == [0, 0, -0.1]
    score = Score(
        key="k", title="t", role="blind", calibrated_on="nothing", source="s", naive="n", tolerance=None,
        points=tuple(over), is_ratio=True,
    )  # fmt: skip
    assert "| row 0 | > 1.000 | 1.100 | +0.0 % | +0 % | yes |" in page([score])
