"""The fluid engine against textbook filling, written here a second time, plainly, over generated cases."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from helpers.cases import Saw, case_count
from numpy.typing import NDArray

from weftwork.engine import _native

pytestmark = pytest.mark.sanitize

EXACT = 1e-12
WANTED = 1e-7  # relative error of a rate

Hops = list[tuple[int, float]]


def textbook(capacity: NDArray[np.float64], variables: list[Hops], alive: list[int]) -> NDArray[np.float64]:
    """Max-min fair rates: all grow together; who meets a saturated link stays."""
    weight = np.zeros((len(capacity), len(variables)))
    for variable, hops in enumerate(variables):
        for link, units in hops:
            weight[link, variable] += units * alive[variable]
    rates = np.zeros(len(variables))
    grows = (weight > 0).any(axis=0)
    while grows.any():
        weight_sum = weight[:, grows].sum(axis=1)
        left = np.maximum(capacity - weight[:, ~grows] @ rates[~grows], 0)
        share = np.divide(left, weight_sum, out=np.full(len(capacity), np.inf), where=weight_sum > 0)
        lowest = share.min()
        rates[grows] = lowest
        saturated = share <= lowest * (1 + 1e-13)
        grows = grows & ~(weight[saturated] > 0).any(axis=0)
    return rates


@dataclass
class Watched:
    """An engine, and beside it what each activity still has to get, by the engine's rates."""

    capacity: NDArray[np.float64]
    variables: list[Hops]
    tolerance: float = EXACT
    now_ps: float = 0.0
    left: dict[int, float] = field(default_factory=dict)
    members: dict[int, int] = field(default_factory=dict)
    worst: float = 0.0

    def __post_init__(self) -> None:
        self.engine = _native.Fluid(self.capacity, tolerance=self.tolerance)
        self.carried = np.zeros(len(self.capacity))
        for hops in self.variables:
            self.engine.add_variable(**_arrays(hops))

    def alive(self) -> list[int]:
        alive = [0] * len(self.variables)
        for variable in self.members.values():
            alive[variable] += 1
        return alive

    def start(self, variable: int, activity: int, amount: float) -> None:
        self.engine.start(variable, activity=activity, amount=amount, now_ps=self.now_ps)
        self.left[activity] = amount
        self.members[activity] = variable
        self._collect(variable)

    def stop(self, activity: int) -> None:
        variable = self.members.pop(activity)
        rest = self.engine.stop(variable, activity=activity, now_ps=self.now_ps)
        assert rest == pytest.approx(self.left.pop(activity), rel=1e-9, abs=4 * self.capacity.max())

    def set_capacity(self, link: int, capacity: float) -> None:
        self.capacity[link] = capacity
        self.engine.set_capacity(link, capacity=capacity, now_ps=self.now_ps)

    def set_hops(self, variable: int, hops: Hops) -> None:
        self.variables[variable] = hops
        self.engine.set_hops(variable, **_arrays(hops), now_ps=self.now_ps)
        self._collect(variable)

    def _collect(self, variable: int) -> None:
        """Activities without hops are done at once, whatever hops the variable gets later."""
        if not self.variables[variable]:
            self.advance(self.now_ps)

    def advance(self, to_ps: float) -> list[int]:
        """Let time pass; what the engine says is finished must have got all, by its rates, and the rest not."""
        step_ps = to_ps - self.now_ps
        rates = self.engine.rates()
        self.carried += self.engine.loads() * step_ps
        for activity, variable in self.members.items():
            self.left[activity] -= rates[variable] * step_ps
        self.now_ps = to_ps
        finished = self.engine.advance(to_ps)
        assert len(set(finished)) == len(finished)
        for activity in finished:
            variable = self.members.pop(activity)
            left = self.left.pop(activity)
            if self.variables[variable]:
                assert abs(left) <= 1e-9 * max(1.0, self.capacity.max() * to_ps) + 3 * rates[variable]
        for activity, variable in self.members.items():
            assert self.left[activity] >= -1e-9 * self.capacity.max() * to_ps - rates[variable]
        return finished

    def solve(self) -> None:
        self.engine.solve(self.now_ps)
        alive = self.alive()
        rates = self.engine.rates()
        wanted = textbook(self.capacity, self.variables, alive)
        runs = np.array([bool(count and hops) for count, hops in zip(alive, self.variables, strict=True)], dtype=bool)
        assert not rates[~runs].any()
        np.testing.assert_allclose(rates[runs], wanted[runs], rtol=WANTED, atol=1e-14 * self.capacity.max())
        assert (self.engine.loads() <= self.capacity * (1 + 1e-9) + 1e-15).all()
        self.worst = max(self.worst, self.engine.worst_error())

    def run_out(self) -> list[tuple[float, int]]:
        """Go on to the end: (instant, activity) of every completion."""
        completions = []
        while (at_ps := self.engine.next()) < math.inf:
            completions += [(at_ps, activity) for activity in self.advance(at_ps)]
            self.solve()
        return completions


def _arrays(hops: Hops) -> dict[str, NDArray[Any]]:
    return {
        "constraint": np.array([link for link, _ in hops], np.int32),
        "weight": np.array([units for _, units in hops], np.float64),
    }


def _hops(draw: np.random.Generator, links: int, longest: int) -> Hops:
    path = draw.permutation(links)[: draw.integers(0 if draw.random() < 0.1 else 1, min(links, longest) + 1)]
    match draw.integers(4):
        case 0:
            weights = np.ones(len(path))
        case 1:
            weights = np.full(len(path), draw.choice([1.0, 0.25, 1.034]))
        case 2:
            weights = draw.choice([1.0, 2.0, 0.5, 7.0], len(path))
        case _:
            weights = draw.uniform(0.01, 3, len(path)) * draw.choice([1.0, 300.0], len(path))
    return [(int(link), float(units)) for link, units in zip(path, weights, strict=True)]


def _case(draw: np.random.Generator, tolerance: float = EXACT) -> Watched:
    links = int(draw.integers(2, 40))
    capacity = np.where(draw.random(links) < 0.6, draw.integers(1, 5, links), draw.uniform(0.1, 4, links)) * 0.05
    longest = int(draw.choice([4, 7, 24]))
    variables = [_hops(draw, links, longest) for _ in range(draw.integers(1, 60))]
    return Watched(capacity.astype(np.float64), variables, tolerance)


@pytest.mark.parametrize("seed", range(case_count(plain=60, deep=300)))
def test_rates_are_the_textbooks_whatever_happens(seed: int, saw: Saw) -> None:
    saw(1)
    draw = np.random.default_rng(seed)
    w = _case(draw)
    start_ps = float(draw.choice([0.0, 1e12, 1e15]))  # a clock that has run for long
    w.now_ps = start_ps
    w.engine.advance(start_ps)
    activity = 0
    for _ in range(60):
        at_ps = w.now_ps + float(draw.choice([0.0, 2e5, 1e6]) * draw.random())
        while (next_ps := w.engine.next()) < at_ps:
            w.advance(next_ps)
            w.solve()
        w.advance(at_ps)
        for _ in range(draw.integers(1, 4)):
            match draw.integers(12):
                case 0:
                    dead = float(draw.choice([0.0, 0.02, 0.1, 0.3 * draw.random()]))
                    w.set_capacity(int(draw.integers(len(w.capacity))), dead)
                case 1 if w.members:
                    w.stop(int(draw.choice(list(w.members))))
                case 2:
                    w.set_hops(int(draw.integers(len(w.variables))), _hops(draw, len(w.capacity), 24))
                case _:
                    w.start(
                        int(draw.integers(len(w.variables))),
                        activity,
                        1e4 * float(draw.choice([0.0, 1.0, draw.random()])),
                    )
                    activity += 1
        w.solve()
    for link in range(len(w.capacity)):
        w.set_capacity(link, 0.1)
    w.solve()
    w.run_out()
    assert not w.members
    assert w.worst < WANTED
    np.testing.assert_allclose(
        w.engine.carried(w.now_ps), w.carried, rtol=1e-7, atol=1e-6 + 1e-15 * start_ps + 8 * w.capacity.max()
    )
