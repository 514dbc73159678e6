"""The objective of a tuning: a number of the summary or arithmetic over them, and nothing else."""

from __future__ import annotations

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.study.tune.objective import NoValueError, objective_from

NUMBERS = {
    "completion_ps": {"unit": "ps"}, "fct_p99_ps": {"unit": "ps"}, "fct_p99.9_ps": {"unit": "ps"},
    "pauses": {"unit": "count"}, "goodput_bps": {"unit": "b/s"},
}  # fmt: skip
RUN = {"completion_ps": 8e6, "fct_p99_ps": 4e6, "fct_p99.9_ps": 5e6, "pauses": 3.0, "goodput_bps": 2e9}
BEFORE = {"completion_ps": 1e7, "fct_p99_ps": 2e6, "fct_p99.9_ps": 1e6, "pauses": 6.0, "goodput_bps": 1e9}


def test_a_number_brings_its_unit_and_its_direction() -> None:
    headline, rate, tail = (objective_from(text, NUMBERS) for text in (None, "goodput_bps", "fct_p99.9_ps"))
    assert (headline.text, headline.unit, headline.is_larger_better) == ("completion_ps", "ps", False)
    assert headline.is_of_whole_runs
    assert (rate.is_larger_better, rate.is_of_whole_runs) == (True, False)
    assert tail.value(RUN, BEFORE) == 5e6
    assert objective_from("pauses", NUMBERS, maximises=True).is_larger_better


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("fct_p99_ps + 1e6*pauses", 7e6),
        ("0.5*completion_ps/default(completion_ps) + pauses/default(pauses)", 0.9),
        ("max(fct_p99_ps, completion_ps) - min(1, 2, pauses)", 8e6 - 1),
        ("abs(-(pauses - 5))", 2),
        ("log(completion_ps)", math.log(8e6)),
        ("'fct_p99.9_ps' / 2", 2.5e6),
        ("+pauses", 3),
    ],
)
def test_an_expression_is_its_arithmetic(text: str, value: float) -> None:
    objective = objective_from(text, NUMBERS)
    assert (objective.unit, objective.is_larger_better) == ("", False)
    assert objective.value(RUN, BEFORE) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("pause", "did you mean 'pauses'?"),
        ("pauses +", "is not an expression"),
        ("pauses ** 2", "found 'pauses ** 2', wanted numbers of the summary"),
        ("pauses if pauses else 1", "wanted numbers of the summary"),
        ("__import__('os').system('true')", "wanted numbers of the summary"),
        ("open(pauses)", "found 'open(...)', wanted abs, default, log, max, min"),
        ("pauses.real", "wanted numbers of the summary"),
        ("pauses > 3", "wanted numbers of the summary"),
        ("True * pauses", "found 'True', wanted a number"),
        ("min(pauses)", "found min of 1, wanted two or more"),
        ("log(pauses, 2)", "found log of 2, wanted one argument"),
        ("default(3*pauses)", "wanted the name of a number"),
        ("default(pause)", "did you mean 'pauses'?"),
        ("max(*pauses)", "found max of 1"),
        ("3", "wanted at least one number of the summary"),
        ("", "is not an expression"),
        ("1+" * 200 + "pauses", "wanted at most 300"),
    ],
)
def test_anything_else_is_refused(text: str, part: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        objective_from(text, NUMBERS)
    assert part in str(wrong.value)


def test_two_mistakes_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as wrong:
        objective_from("pause + goodput", NUMBERS)
    assert [one.fix for one in wrong.value.mistakes] == ["pauses", "goodput_bps"]


@pytest.mark.parametrize(
    ("text", "part"),
    [("1/(pauses - 3)", "divides by 0"), ("log(3 - pauses)", "logarithm"), ("1e308*completion_ps", "not finite")],
)
def test_a_run_without_a_value_says_why(text: str, part: str) -> None:
    with pytest.raises(NoValueError, match=part):
        objective_from(text, NUMBERS).value(RUN, BEFORE)


def test_a_number_that_a_run_lacks_says_so() -> None:
    with pytest.raises(NoValueError, match="the run has no pauses"):
        objective_from("pauses", NUMBERS).value({"pauses": None}, BEFORE)


@given(st.text(alphabet="pauses+-*/()., 12'[]{}:=log", max_size=60))
def test_no_text_ends_in_anything_but_an_objective_or_a_mistake(text: str) -> None:
    with suppress(ConfigError):
        assert objective_from(text, NUMBERS).names
