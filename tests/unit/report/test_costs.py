"""What a suspect cost, as people read it: who made a run faster cost nothing."""

from __future__ import annotations

import pytest

from weftwork.report.three_lines import cost_texts, culprit_text
from weftwork.spec.answer import Culprit, How


def suspect(cost_s: float | None, share: float | None, how: How = "simulated") -> Culprit:
    return Culprit(
        kind="link", name="a-b", key=None, text="is slow", cost_s=cost_s, cost_share=share, how=how, of="the run"
    )


@pytest.mark.parametrize(
    ("one", "texts"),
    [
        (suspect(2e-3, 0.25), ("2 ms", "25 %")),
        (suspect(2e-3, 0.25, "bound"), ("at most 2 ms", "25 %")),
        (suspect(0.0, 0.0), ("nothing", "0 %")),
        (suspect(0.0, 0.0, "bound"), ("nothing", "0 %")),
        (suspect(-2e-3, -0.002), ("nothing", "0 %")),
        (suspect(None, None), ("\u2013", "\u2013")),
    ],
)
def test_a_cost_is_a_time_and_a_share_or_nothing(one: Culprit, texts: tuple[str, str]) -> None:
    assert tuple(text.replace("\u202f", " ") for text in cost_texts(one)) == texts


def test_the_line_has_the_same_words() -> None:
    assert culprit_text(suspect(2e-3, 0.25)) == "a-b is slow: 2 ms, 25 % (simulated again without it)"
    assert culprit_text(suspect(2e-3, 0.25, "bound")) == "a-b is slow: at most 2 ms, 25 % (a bound)"
