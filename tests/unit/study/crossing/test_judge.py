"""Who wins a crossing: ratios seed by seed, what is not told apart, standings, and whom the second round crosses."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.report.crossing_words import standing_words
from weftwork.spec.crossing import Contender, CrossingCell, Setting
from weftwork.study.crossing.judge import best_policies, judged_cells, ratio_of, standings_of, three_best

SETTINGS = tuple(
    Setting(workload=name, is_failed=False, objective="iteration_ps", unit="ps", text=name) for name in ("a", "b")
)


def contender(control: str, balancer: str, origin: str = "controls") -> Contender:
    return Contender(
        control=control, balancer=balancer, path_selection=balancer, port_selection="ecmp", scheme="", preset="",
        carried="PFC", switch=(), nic=(), origin=origin,
    )  # fmt: skip


def cells(*rows: tuple[tuple[float, ...], ...]) -> list[CrossingCell]:
    """Cells by contender, then by setting; no values: nothing came."""
    return [
        CrossingCell(
            contender=place, setting=number, values=values, reason="" if values else "lost", runs=(), prices={}
        )
        for place, row in enumerate(rows)
        for number, values in enumerate(row)
    ]


positive = st.floats(1e-3, 1e12)


@given(values=st.lists(st.tuples(positive, positive), min_size=2, max_size=9))
def test_a_ratio_turns_round_with_its_sides(values: list[tuple[float, float]]) -> None:
    one, other = (list(side) for side in zip(*values, strict=True))
    forth, back = ratio_of(one, other), ratio_of(other, one)
    assert forth is not None
    assert back is not None
    assert forth[0] == pytest.approx(1 / back[0])
    assert forth[1] is not None
    assert forth[2] is not None
    assert forth[1] <= forth[0] <= forth[2]


def test_one_seed_has_no_interval_and_tells_nothing_apart() -> None:
    assert ratio_of([1.0], [2.0]) == (0.5, None, None)
    base, fast = judged_cells(cells(((10.0,),), ((1.0,),)), SETTINGS[:1], base=0)
    assert fast.is_best
    assert not fast.differs
    assert base.ratio == 1.0
    best, other = standings_of((base, fast), 1, 0)
    assert (best.is_as_good, other.is_as_good) == (True, False)
    assert (best.contender, best.ratio, best.differs) == (1, pytest.approx(0.1), False)
    assert standing_words(best) == "0.10"


def test_what_seeds_have_in_common_is_no_noise() -> None:
    # The seeds differ by a factor of ten, the contender is a tenth faster in each.
    found = ratio_of([0.9, 9.0, 90.0], [1.0, 10.0, 100.0])
    assert found == pytest.approx((0.9, 0.9, 0.9))


def test_without_values_of_both_there_is_no_ratio() -> None:
    assert ratio_of([], [1.0]) is None
    assert ratio_of([1.0], [1.0, 2.0]) is None
    assert ratio_of([0.0], [1.0]) is None


def test_the_best_of_a_setting_and_whoever_is_not_told_from_it() -> None:
    found = judged_cells(
        cells(
            ((10.0, 10.0, 10.0), (1.0, 1.0, 1.0)),
            ((5.0, 5.1, 4.9), (2.0, 2.1, 2.2)),
            ((5.1, 4.9, 5.1), ()),
        ),
        SETTINGS,
        base=0,
    )
    base, base_b, second, second_b, third, third_b = found
    assert [cell.is_best for cell in found] == [False, True, True, False, False, False]
    assert third.is_as_good
    assert not third.is_best
    assert not base.is_as_good
    assert (second.differs, second_b.differs, base.differs) == (True, True, False)
    assert (base_b.ratio, third_b.ratio, third_b.behind) == (1.0, None, None)


def test_standings_are_geometric_means_over_settings_of_contenders_that_are_whole() -> None:
    rows = cells(((4.0, 4.0), (9.0, 9.0)), ((1.0, 1.0), (9.0, 9.0)), ((1.0, 1.0), ()))
    found = standings_of(judged_cells(rows, SETTINGS, 0), 2, 0)
    assert [one.contender for one in found] == [1, 0]
    assert found[0].ratio == pytest.approx(math.sqrt(1 / 4))
    assert found[0].low == pytest.approx(found[0].high)


def test_the_second_round_takes_the_best_controls_and_the_balancers_that_all_controls_had() -> None:
    controls = [contender(name, balancer) for name in ("c1", "c2", "c3", "c4") for balancer in ("ecmp", "spray")]
    balancers = [contender(name, balancer, "balancers") for balancer in ("b1", "b2") for name in ("c1", "c2")]
    lonely = [contender("c1", "b3", "balancers")]
    contenders = [*controls, *balancers, *lonely]
    times = [8, 8, 7, 6, 5, 4, 3, 9, 3, 3, 2, 2, 1]
    rows = cells(*(((float(time), float(time)), (1.0, 1.0)) for time in times))
    standings = standings_of(judged_cells(rows, SETTINGS, 0), 2, 0)
    best_controls, best_balancers = best_policies(standings, contenders)
    assert best_controls == ["c4", "c3", "c2"]
    assert best_balancers == ["b2", "b1", "spray"]
    assert "b3" not in best_balancers
    crossed = [replace(contenders[0], control="c4", balancer="b2"), replace(contenders[0], control="c3", balancer="b1")]
    rows = cells(*(((float(time), float(time)), (1.0, 1.0)) for time in [*times, 2.5, 1.5]))
    standings = standings_of(judged_cells(rows, SETTINGS, 0), 2, 0)
    places = three_best(standings, [*contenders, *crossed], best_controls, best_balancers)
    assert places == (14, 11, 13)
