"""The front, its knee and who beats whom: laws over drawn points."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.study.design.front import beaten_by, front, knee

Costs = tuple[float, float, float]
# few values, so that points tie in one cost and in all
POINTS = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=3), st.tuples(*[st.integers(1, 5)] * 3), min_size=1, max_size=14
)


def beats(one: Costs, other: Costs) -> bool:
    """By the definition, written again."""
    return all(a <= b for a, b in zip(one, other, strict=True)) and any(a < b for a, b in zip(one, other, strict=True))


@given(points=POINTS)
def test_nothing_on_the_front_is_beaten_and_everything_else_is(points: dict[str, Costs]) -> None:
    names = front(points)
    best = {name: points[name] for name in names}
    assert names
    assert len(set(best.values())) == len(names)
    for name, costs in points.items():
        by = beaten_by(costs, best)
        if name in best:
            assert not any(beats(other, costs) for other in points.values())
            assert by == name  # nobody but itself, which is equal
        else:
            assert by is not None
            assert beats(best[by], costs) or best[by] == costs


@given(points=POINTS, order=st.randoms(use_true_random=False))
def test_the_order_of_points_does_not_matter(points: dict[str, Costs], order: st.DataObject) -> None:
    items = list(points.items())
    order.shuffle(items)  # type: ignore[attr-defined]  # a random.Random
    shuffled = dict(items)
    assert {points[name] for name in front(points)} == {points[name] for name in front(shuffled)}
    distinct = {costs: name for name, costs in sorted(points.items())}
    one = {name: costs for costs, name in distinct.items()}
    other = dict(sorted(one.items(), reverse=True))
    assert front(one) == front(other)
    best = {name: one[name] for name in front(one)}
    for costs in points.values():
        assert beaten_by(costs, best) == beaten_by(costs, dict(reversed(best.items())))


@given(points=POINTS)
def test_the_front_goes_from_the_cheapest_up(points: dict[str, Costs]) -> None:
    names = front(points)
    money = [points[name][0] for name in names]
    assert money == sorted(money)
    assert money[0] == min(costs[0] for costs in points.values())


def test_who_beats_by_the_most_is_named() -> None:
    best = {"a": (1.0, 1.0, 9.0), "b": (9.0, 1.0, 1.0)}
    assert beaten_by((2.0, 2.0, 10.0), best) == "a"
    assert beaten_by((10.0, 2.0, 10.0), best) == "b"
    assert beaten_by((1.0, 1.0, 1.0), best) is None


@pytest.mark.parametrize(
    ("points", "found"),
    [
        ({}, None),
        ({"only": (3.0, 4.0)}, "only"),
        ({"cheap": (1.0, 10.0), "fast": (2.0, 9.0)}, "cheap"),
        ({"cheap": (1.0, 10.0), "knee": (2.0, 3.0), "fast": (10.0, 2.0)}, "knee"),
        ({"cheap": (1.0, 10.0), "early": (2.0, 4.0), "late": (6.0, 3.0), "fast": (10.0, 2.0)}, "early"),
        ({"cheap": (1.0, 10.0), "on the line": (5.5, 6.0), "fast": (10.0, 2.0)}, "cheap"),
    ],
)
def test_the_knee_lies_farthest_below_the_line(points: dict[str, tuple[float, float]], found: str | None) -> None:
    for order in permutations(points):
        assert knee({name: points[name] for name in order}) == found


@given(points=st.dictionaries(st.sampled_from("abcdef"), st.tuples(*[st.integers(1, 9)] * 2), min_size=1))
def test_the_knee_is_on_the_front_and_scales_do_not_move_it(points: dict[str, tuple[int, int]]) -> None:
    plane = {name: points[name] for name in front(points)}
    found = knee(plane)
    assert found in plane
    scaled = {name: (1024.0 * x, y / 64.0) for name, (x, y) in plane.items()}
    assert knee(scaled) == found
