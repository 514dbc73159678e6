"""Traps of incremental max-min sharing: each of these has gone wrong somewhere, and looked plausible."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from helpers.fluid_traps import add, run_out
from numpy.typing import NDArray

from weftwork.engine import _native
from weftwork.engine.rows.flow_outcome import FLUID_REPORT_DTYPE
from weftwork.engine.rows.flow_run import FLUID_RUN

pytestmark = pytest.mark.sanitize


EXACT = 1e-12


FLAT = np.ones(1)


def engine(*capacity: float, tolerance: float = EXACT) -> _native.Fluid:
    return _native.Fluid(np.array(capacity, np.float64), tolerance=tolerance)


def test_a_newcomer_that_fits_still_slows_those_who_are_faster() -> None:
    # Link 0 holds 6 + two that are slow elsewhere; the newcomer fits beside them with 4, but 5 and 5 is fair.
    fluid = engine(10.0, 6.0, 0.0, 100.0)
    fast, slow, newcomer = add(fluid, 0, 1), add(fluid, 0, 2), add(fluid, 0, 3)
    fluid.start(fast, activity=0, amount=1e6, now_ps=0.0)
    fluid.start(slow, activity=1, amount=1e6, now_ps=0.0)
    fluid.start(slow, activity=2, amount=1e6, now_ps=0.0)
    fluid.solve(0.0)
    assert fluid.rates().tolist() == [6.0, 0.0, 0.0]
    fluid.start(newcomer, activity=3, amount=1e6, now_ps=1.0)
    fluid.solve(1.0)
    assert fluid.rates() == pytest.approx([5.0, 0.0, 5.0])


def test_a_link_that_falls_idle_has_no_level_and_no_nan() -> None:
    fluid = engine(1.0, 2.0)
    near, far = add(fluid, 0), add(fluid, 0, 1)
    for round_ in range(3):
        now_ps = 1e6 * round_
        fluid.start(near, activity=2 * round_, amount=100.0, now_ps=now_ps)
        fluid.start(far, activity=2 * round_ + 1, amount=100.0, now_ps=now_ps)
        fluid.solve(now_ps)
        assert fluid.rates().tolist() == [0.5, 0.5]
        assert [activity for _, activity in run_out(fluid)] == [2 * round_, 2 * round_ + 1]
        assert fluid.rates().tolist() == [0.0, 0.0]
        assert fluid.loads().tolist() == [0.0, 0.0]
        assert fluid.worst_error() == 0


@pytest.mark.parametrize("begin_ps", [0.0, 1e12, 1e15, 1e17])
def test_a_late_clock_makes_no_step_of_length_zero(begin_ps: float) -> None:
    fluid = engine(0.05)
    variable = add(fluid, 0)
    for activity in range(200):
        fluid.start(variable, activity=activity, amount=0.001 + 1e-4 * activity, now_ps=begin_ps)
    fluid.solve(begin_ps)
    found = run_out(fluid)
    assert sorted(activity for _, activity in found) == list(range(200))
    assert len({at_ps for at_ps, _ in found}) <= 200
    ulp_ps = float(np.spacing(begin_ps))
    bytes_sent = sum(0.001 + 1e-4 * activity for activity in range(200))
    assert found[-1][0] - begin_ps == pytest.approx(bytes_sent / 0.05, abs=200 + 200 * ulp_ps)


def test_completions_within_a_picosecond_are_one_event() -> None:
    fluid = engine(1.0, 1.0)
    one, other = add(fluid, 0), add(fluid, 1)
    fluid.start(one, activity=1, amount=1000.0, now_ps=0.0)
    fluid.start(other, activity=2, amount=1000.9, now_ps=0.0)
    fluid.start(other, activity=3, amount=5000.0, now_ps=0.0)
    fluid.stop(other, activity=3, now_ps=0.0)
    fluid.solve(0.0)
    assert fluid.next() == 1000.0
    assert sorted(fluid.advance(1000.0)) == [1, 2]
    assert fluid.carried(1000.0) == pytest.approx([1000.0, 1000.9])  # what has ended has been carried in full


def test_the_load_of_a_link_that_is_never_full_does_not_drift() -> None:
    fluid = engine(1e3, *[1.0 / (1 + link) for link in range(9)])
    variables = [add(fluid, 0, 1 + link) for link in range(9)]
    stay = add(fluid, 0, (1, 1e-3))
    fluid.start(stay, activity=-1, amount=1e12, now_ps=0.0)
    draw = np.random.default_rng(1)
    now_ps = 0.0
    for activity in range(3_000):
        fluid.start(variables[draw.integers(9)], activity=activity, amount=draw.uniform(0.1, 3), now_ps=now_ps)
        fluid.solve(now_ps)
        now_ps += draw.uniform(0, 2)
        while fluid.next() < now_ps:
            fluid.advance(at_ps := fluid.next())
            fluid.solve(at_ps)
        fluid.advance(now_ps)
        fluid.solve(now_ps)
    assert fluid.worst_error() < 1e-9
    rates = fluid.rates()
    while fluid.next() < 1e9:
        fluid.advance(at_ps := fluid.next())
        fluid.solve(at_ps)
    rates = fluid.rates()
    assert np.count_nonzero(rates) == 1
    assert fluid.loads()[0] == pytest.approx(rates[stay], rel=1e-12)


def test_a_dead_link_stalls_its_activities_and_gives_them_back() -> None:
    fluid = engine(1.0, 4.0)
    both, beside = add(fluid, 0, 1), add(fluid, 1)
    fluid.start(both, activity=0, amount=100.0, now_ps=0.0)
    fluid.start(beside, activity=1, amount=1000.0, now_ps=0.0)
    fluid.solve(0.0)
    assert fluid.rates().tolist() == [1.0, 3.0]
    fluid.advance(40.0)
    fluid.set_capacity(0, capacity=0.0, now_ps=40.0)
    fluid.solve(40.0)
    assert fluid.rates().tolist() == [0.0, 4.0]
    assert fluid.next() == pytest.approx(40 + (1000 - 120) / 4)
    assert fluid.advance(fluid.next()) == [1]
    fluid.solve(260.0)
    assert fluid.next() == math.inf
    fluid.advance(1e6)
    fluid.set_capacity(0, capacity=2.0, now_ps=1e6)
    fluid.solve(1e6)
    assert run_out(fluid) == [(1e6 + 30.0, 0)]
    assert fluid.carried(1e6 + 30.0) == pytest.approx([100.0, 1100.0])


def test_a_dead_link_from_the_beginning_lets_nothing_trickle_through() -> None:
    fluid = engine(0.0, 0.3, 0.7)
    variables = [add(fluid, 1, 2), add(fluid, 0, 1), add(fluid, (0, 3.7), (2, 0.1))]
    for variable in variables:
        fluid.start(variable, activity=variable, amount=10.0, now_ps=0.0)
    fluid.solve(0.0)
    assert fluid.rates().tolist() == [0.3, 0.0, 0.0]


def test_no_amount_and_no_links_are_done_at_once() -> None:
    fluid = engine(1.0)
    nowhere, here, dead = add(fluid), add(fluid, 0), add(fluid, (0, 0.0))
    for variable, activity in ((nowhere, 0), (here, 1), (dead, 2)):
        fluid.start(variable, activity=activity, amount=5.0 if variable != here else 0.0, now_ps=7.0)
    fluid.solve(7.0)
    assert fluid.next() == 7.0
    assert sorted(fluid.advance(7.0)) == [0, 1, 2]
    fluid.solve(7.0)
    assert fluid.next() == math.inf


def test_weights_scale_the_use_of_a_link_and_not_the_rate() -> None:
    fluid = engine(12.0, 100.0)
    heavy, light = add(fluid, (0, 3.0), (1, 1.0)), add(fluid, (0, 0.5), (0, 0.5))  # hops of one link add up
    fluid.start(heavy, activity=0, amount=30.0, now_ps=0.0)
    fluid.start(light, activity=1, amount=60.0, now_ps=0.0)
    fluid.solve(0.0)
    assert fluid.rates().tolist() == [3.0, 3.0]
    assert fluid.loads().tolist() == [12.0, 3.0]
    assert run_out(fluid) == [(10.0, 0), (12.5, 1)]
    assert fluid.carried(12.5) == pytest.approx([150.0, 30.0])


def test_rerouted_activities_keep_what_they_have_got() -> None:
    fluid = engine(1.0, 0.25, 5.0)
    variable, neighbour = add(fluid, 0), add(fluid, 1)
    fluid.start(variable, activity=0, amount=100.0, now_ps=0.0)
    fluid.start(variable, activity=1, amount=50.0, now_ps=0.0)
    fluid.start(neighbour, activity=2, amount=1000.0, now_ps=0.0)
    fluid.solve(0.0)
    fluid.advance(20.0)
    fluid.set_hops(variable, constraint=np.array([1, 2], np.int32), weight=np.array([0.5, 2.0]), now_ps=20.0)
    fluid.solve(20.0)
    assert fluid.rates().tolist() == [0.125, 0.125]
    assert fluid.carried(20.0) == pytest.approx([20.0, 5.0, 0.0])
    assert fluid.stop(variable, activity=0, now_ps=36.0) == pytest.approx(100 - 10 - 2)
    fluid.solve(36.0)
    assert fluid.rates() == pytest.approx([0.25 / 1.5, 0.25 / 1.5])
    assert fluid.advance(fluid.next()) == [1]


def test_counters_that_have_run_for_long_are_as_exact_as_new_ones() -> None:
    fluid = engine(0.4)
    variable, other = add(fluid, 0), add(fluid, 0)
    fluid.start(variable, activity=0, amount=4e14, now_ps=0.0)  # 1e15 ps alone
    fluid.solve(0.0)
    for activity in range(1, 6):
        now_ps = activity * 1e14
        fluid.advance(now_ps)
        fluid.start(variable if activity % 2 else other, activity=activity, amount=1000.0, now_ps=now_ps)
        fluid.solve(now_ps)
        assert fluid.next() - now_ps == pytest.approx(5000.0, abs=0.5)
        assert fluid.advance(fluid.next()) == [activity]
        fluid.solve(now_ps + 5000)
    assert fluid.next() == pytest.approx(1e15 + 5 * 2500, abs=2)


@pytest.mark.parametrize("hops", [[(7, 1.0)], [(-1, 1.0)], [(0, -1.0)], [(0, math.nan)]])
def test_hops_that_cannot_be_are_refused(hops: list[tuple[int, float]]) -> None:
    with pytest.raises(ValueError, match="a hop needs a link"):
        add(engine(1.0), *hops)


def test_stopping_what_is_not_there_is_refused() -> None:
    fluid = engine(1.0)
    variable = add(fluid, 0)
    with pytest.raises(ValueError, match="no such activity"):
        fluid.stop(variable, activity=5, now_ps=0.0)


def run_of(**members: Any) -> dict[str, NDArray[np.uint8]]:
    """A whole run of the solver, by the members of its declaration."""
    return _native.fluid_run(FLUID_RUN.values(None, members))


def test_a_whole_run_is_the_textbooks_and_loses_nothing() -> None:
    draw = np.random.default_rng(11)
    links, variables, count = 30, 80, 2_000
    capacity = draw.uniform(0.02, 0.1, links)
    length = draw.integers(1, 9, variables)
    variable_ptr = np.concatenate([[0], length.cumsum()])
    link = np.concatenate([draw.permutation(links)[:hops] for hops in length]).astype(np.int32)
    weight = np.repeat(draw.choice([1.0, 1.034], variables), length)
    at_ps = draw.exponential(4e6, count).cumsum()
    variable = draw.integers(variables, size=count).astype(np.int32)
    amount = draw.pareto(1.2, count) * 1e4 + 1
    completions = {}
    for tolerance in (1e-9, 1e-6):
        run = run_of(
            capacity=capacity,
            variable_ptr=variable_ptr,
            hop_constraint=link,
            hop_weight=weight,
            start_at_ps=at_ps,
            start_variable=variable,
            start_amount=amount,
            tolerance=tolerance,
            check_every=10,
        )
        completions[tolerance] = run["completed_at_ps"].view(np.float64)
        carried = run["carried_units"].view(np.float64)
        (report,) = run["report"].view(FLUID_REPORT_DTYPE)
        assert report["worst_rate_error"] < (1e-7 if tolerance == 1e-9 else 1e-3)
        assert report["full"] < report["events"] / 10
        wanted = np.zeros(links)
        for start in range(count):
            rows = slice(variable_ptr[variable[start]], variable_ptr[variable[start] + 1])
            wanted[link[rows]] += weight[rows] * amount[start]
        np.testing.assert_allclose(carried, wanted, rtol=1e-9)
    assert (completions[1e-9] > at_ps).all()
    np.testing.assert_allclose(completions[1e-6], completions[1e-9], rtol=1e-6)


def test_what_can_never_end_is_said() -> None:
    with pytest.raises(RuntimeError, match="for ever"):
        run_of(
            capacity=np.zeros(1),
            variable_ptr=np.array([0, 1]),
            hop_constraint=np.zeros(1, np.int32),
            hop_weight=FLAT,
            start_at_ps=np.zeros(1),
            start_variable=np.zeros(1, np.int32),
            start_amount=FLAT,
            tolerance=1e-6,
            check_every=0,
        )
