"""Traps of incremental max-min sharing: each of these has gone wrong somewhere, and looked plausible."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.fluid_traps import add, run_out

from weftwork.engine import _native

pytestmark = pytest.mark.sanitize


def test_a_collective_over_a_hundred_thousand_links_is_one_activity() -> None:
    links = 100_000
    draw = np.random.default_rng(3)
    weight = draw.integers(1, 9, links).astype(np.float64)
    capacity = draw.uniform(1, 2, links)
    fluid = _native.Fluid(capacity, tolerance=1e-9)
    every = np.arange(links, dtype=np.int32)
    one = fluid.add_variable(constraint=every, weight=weight)
    other = fluid.add_variable(constraint=every[::-1].copy(), weight=np.ones(links))
    small = add(fluid, 5, 6)
    fluid.start(one, activity=1, amount=1e3, now_ps=0.0)
    fluid.start(small, activity=3, amount=10.0, now_ps=0.0)
    fluid.solve(0.0)
    alone = capacity / (weight + np.isin(every, [5, 6]))
    assert fluid.rates()[one] == pytest.approx(alone.min(), rel=1e-9)
    fluid.start(other, activity=2, amount=1e3, now_ps=1.0)
    fluid.solve(1.0)
    assert fluid.rates()[[one, other]] == pytest.approx(
        (capacity / (weight + 1 + np.isin(every, [5, 6]))).min(), rel=1e-6
    )
    end_ps = run_out(fluid)[-1][0]
    wanted = 1e3 * (weight + 1) + 10.0 * np.isin(every, [5, 6])
    np.testing.assert_allclose(fluid.carried(end_ps), wanted, rtol=1e-9)
