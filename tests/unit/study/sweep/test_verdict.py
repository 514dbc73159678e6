"""Who won, by how much, whether that is noise, and which key matters most."""

from __future__ import annotations

import html
from typing import Any

import pytest

from weftwork.base.errors import ConfigError
from weftwork.report.page_sweep import sweep_page
from weftwork.report.sweep_words import sweep_verdict
from weftwork.spec.sweep import SweepResult, SweepRow
from weftwork.study.results.seeds import mean_numbers
from weftwork.study.sweep.verdict import judged


def result(
    *points: tuple[dict[str, str], list[float | None]],
    number: str = "iteration_ps",
    unit: str = "ps",
    status: str = "complete",
    drawn: frozenset[str] = frozenset(),
    by: str | None = None,
    within: str | None = None,
) -> SweepResult:
    """Points with the values of their seeds; no value for a point that was refused."""
    seeds = max(len(values) for _, values in points)
    rows = []
    for place, (keys, values) in enumerate(points):
        summaries: list[dict[str, Any]] = [
            {"other": {"value": 1.0, "unit": "count", "text": ""}, number: {"value": value, "unit": unit, "text": ""}}
            for value in values
        ]
        numbers = {} if not values else mean_numbers(summaries) if seeds > 1 else summaries[0]
        rows.append(
            SweepRow(
                place=place, values=keys, status=status if values else "refused", reason="" if values else "no room",
                wanted=seeds, runs=("runs/x",) * len(values), digests=("d",) * len(values), numbers=numbers,
            )
        )  # fmt: skip
    return judged(rows, name="tiny", seeds=seeds, by=by, within=within, drawn=drawn)


def said(found: SweepResult) -> str:
    return " ".join(sweep_verdict(found)).replace("\u202f", " ")


def test_a_win_of_every_seed_is_more_than_noise_where_seeds_differ_more_than_points() -> None:
    """Times of five seeds of a ring at random, by two controls: intervals overlap, and the first wins each time."""
    slow = [2673e6, 2756e6, 2802e6, 3076e6, 3771e6]
    fast = [2041e6, 2010e6, 1995e6, 2203e6, 2688e6]
    found = result(({"a.k": "slow"}, slow), ({"a.k": "fast"}, fast))
    (verdict,) = found.verdicts
    assert (verdict.best, verdict.is_clear) == (1, True)
    shuffled = result(({"a.k": "slow"}, slow), ({"a.k": "fast"}, [*fast[:4], 4500e6]))
    assert shuffled.verdicts[0].is_clear is False


def test_the_best_of_many_has_to_be_clearer_than_the_best_of_two() -> None:
    best, next_best = [8.0e9, 8.3e9, 8.1e9], [8.2e9, 8.6e9, 8.5e9]
    two = result(({"a.k": "best"}, best), ({"a.k": "next"}, next_best))
    many = result(
        ({"a.k": "best"}, best), ({"a.k": "next"}, next_best), *(({"a.k": str(n)}, [9e9 + n] * 3) for n in range(12))
    )
    assert (two.verdicts[0].is_clear, many.verdicts[0].is_clear) == (True, False)


def test_the_least_time_wins_and_a_clear_gain_says_so() -> None:
    found = result(
        ({"a.k": "one"}, [10e9, 10.1e9, 9.9e9]), ({"a.k": "two"}, [8e9, 8.1e9, 7.9e9]), ({"a.k": "six"}, [16e9] * 3)
    )
    (verdict,) = found.verdicts
    assert (verdict.best, verdict.second, verdict.worst, verdict.is_clear) == (1, 0, 2, True)
    assert verdict.gain_on_second == pytest.approx(0.2)
    assert verdict.gain_on_worst == pytest.approx(0.5)
    assert said(found).startswith(
        "K two is best: time of an iteration 8 ms. 20 % less than the next, k one (10 ms); seed by seed the 95 %"
        " interval of the difference excludes zero, so this is more than noise. 50 % less than the worst, k six (16"
        " ms)."
    )


def test_a_gain_within_the_seeds_may_be_noise() -> None:
    found = result(({"a.k": "one"}, [10e9, 12e9, 8e9]), ({"a.k": "two"}, [9e9, 13e9, 6e9]))
    assert found.verdicts[0].is_clear is False
    assert "includes zero, so this may be noise" in said(found)


def test_one_seed_makes_no_statement_on_noise() -> None:
    found = result(({"a.k": "one"}, [10e9]), ({"a.k": "two"}, [9e9]))
    assert found.verdicts[0].is_clear is None
    assert "With one seed the noise is unknown" in said(found)
    assert "interval" not in said(found)


def test_the_most_of_a_rate_wins() -> None:
    found = result(
        ({"a.k": "one"}, [10e9]), ({"a.k": "two"}, [9e9]), number="goodput_bps", unit="b/s", by="goodput_bps"
    )
    assert found.verdicts[0].best == 0
    assert "11.1 % more than the worst" in said(found)


def test_the_key_with_the_largest_effect_is_named() -> None:
    """By hand: a explains 100 of a variance of 101 (in squared halves), b explains 1."""
    found = result(
        *(({"a": a, "b": b}, [x + y]) for a, x in (("1", 10e9), ("2", 20e9)) for b, y in (("p", 0.0), ("q", 1e9)))
    )
    assert [(one.key, round(one.share or 0, 4)) for one in found.effects] == [
        ("a", round(100 / 101, 4)),
        ("b", round(1 / 101, 4)),
    ]
    assert [(level.text, level.mean) for level in found.effects[0].levels] == [("1", 10.5e9), ("2", 20.5e9)]
    assert "a matters most: the means of its values go from 10.5 ms (1) to 20.5 ms (2), 99 % of" in said(found)


def test_within_a_key_each_of_its_values_has_a_winner() -> None:
    """By hand: small over its mean is 2/3 and 4/3, large 1.2 and 0.8; the means of k are 14/15 and 16/15."""
    points = [("small", "1", 1e9), ("small", "2", 2e9), ("large", "1", 180e9), ("large", "2", 120e9)]
    found = result(*(({"m.model": model, "a.k": k}, [value]) for model, k, value in points), within="m.model")
    assert found.bests == {"small": 0, "large": 3}
    first, second, *_ = sweep_verdict(found)
    assert first.startswith("Model small: K 1 is best: time of an iteration 1 ms. 50 % less than the worst, k 2")
    assert second.startswith("Model large: K 2 is best: time of an iteration 120 ms.")
    (effect,) = found.effects
    assert [(level.text, round(level.mean, 4)) for level in effect.levels] == [("1", 0.9333), ("2", 1.0667)]
    values = [2 / 3, 4 / 3, 1.2, 0.8]
    assert effect.share == pytest.approx(4 * (1 / 15) ** 2 / sum((value - 1) ** 2 for value in values))
    page = sweep_page(found, "out", "weftwork sweep f")
    assert "best, small" in page
    assert page.count('class="dot c2"') == 2
    assert [page.count(f'class="s {colour}" stroke-dasharray') for colour in ("c1", "c3", "c4")] == [
        2,
        2,
        0,
    ]  # with its legend
    assert page.count('class="dot c1"') == page.count('class="dot c3"') == 1
    assert "small</span>" in page
    assert "mean of a value" not in page


def test_a_page_names_no_folder_of_a_machine_and_puts_the_objective_in_words() -> None:
    found = result(({"fabric.k": "one"}, [10e9]), ({"fabric.k": "two"}, [9e9]))
    page = sweep_page(
        found, "/home/me/my runs", "weftwork sweep /home/me/f.yaml --set 'a.b=5 us' -o '/home/me/my runs'"
    )
    assert "/home" not in page
    assert "weftwork sweep f.yaml --set 'a.b=5 us' -o 'my runs'" in html.unescape(page)
    assert page.count("iteration_ps") == 1
    assert "time of an iteration, smaller is better <small>iteration_ps</small>" in page
    assert "weftwork compare 'my runs'/runs/[0-9]*/" in html.unescape(page)
    assert "weftwork compare" not in sweep_page(result(({"a.k": "1"}, [1e9]), ({"a.k": "2"}, [2e9])), "out", "weftwork")
    several = result(({"fabric.k": "one"}, [1e9, 2e9]), ({"fabric.k": "two"}, [9e9, 8e9]))
    assert "weftwork compare" not in sweep_page(several, "out", "weftwork")  # a row for each seed is no comparison


def test_zipped_keys_are_told_by_the_first_of_them() -> None:
    found = result(*(({"a.t": text, "a.d": other}, [1e9 * float(text)]) for text, other in (("1", "8"), ("2", "4"))))
    assert found.keys == ("a.t",)
    assert said(found).startswith("T 1 is best")


def test_a_key_that_was_drawn_is_told_by_thirds() -> None:
    points = [({"a": str(value)}, [value * 1e9]) for value in (6, 1, 5, 2, 4, 3)]
    found = result(*points, drawn=frozenset({"a"}))
    assert [(level.text, level.mean, level.points) for level in found.effects[0].levels] == [
        ("lowest third", 1.5e9, 2),
        ("middle third", 3.5e9, 2),
        ("highest third", 5.5e9, 2),
    ]


def test_points_without_a_result_are_counted_and_never_win() -> None:
    found = result(({"a.k": "one"}, []), ({"a.k": "two"}, [9e9, None]), ({"a.k": "six"}, [12e9, 13e9]))
    assert [row.objective for row in found.rows] == [None, None, 12.5e9]
    assert found.verdicts[0].best == 2
    assert "1 point has no result to judge: 1 refused." in said(found)


@pytest.mark.parametrize("status", ["stuck", "deadlocked", "stopped"])
def test_the_time_of_a_run_that_did_not_finish_does_not_count(status: str) -> None:
    found = result(({"a.k": "one"}, [9e9]), status=status)
    assert found.verdicts[0].best is None
    assert said(found).startswith("No point can be judged")


def test_equal_points_are_said_to_be_equal() -> None:
    assert said(result(({"a.k": "one"}, [9e9]), ({"a.k": "two"}, [9e9]))).startswith("All points are equal")
    found = result(({"a.k": "one"}, [9e9]), ({"a.k": "two"}, [9e9]), ({"a.k": "six"}, [18e9]))
    assert said(found).startswith(
        "K one and k two are equal and best: time of an iteration 9 ms. 50 % less than the worst, k six"
    )
    assert found.verdicts[0].second == found.verdicts[0].worst == 2


def test_an_unknown_number_names_the_nearest() -> None:
    with pytest.raises(ConfigError) as wrong:
        result(({"a.k": "one"}, [9e9]), by="iteration")
    assert wrong.value.mistakes[0].fix == "iteration_ps"


def test_the_page_marks_the_winner_and_escapes_what_a_file_says() -> None:
    found = result(
        ({"a.k": "<b>", "a.l": "1"}, [9e9, 9.1e9]),
        ({"a.k": "two", "a.l": "1"}, [12e9, 13e9]),
        ({"a.k": "six", "a.l": "2"}, []),
    )
    page = sweep_page(found, "out", "weftwork sweep f")
    assert "<b>&lt;b&gt;</b>" in page
    assert "&lt;b&gt;" in page
    assert 'class="dot c2"' in page
    assert page.count('class="dot c1"') == 2
    assert "no room" in page
