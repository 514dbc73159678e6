"""Traps of incremental max-min sharing: each of these has gone wrong somewhere, and looked plausible."""

from __future__ import annotations

import math

import numpy as np
import pytest

from weftwork.engine import _native

pytestmark = pytest.mark.sanitize


def add(fluid: _native.Fluid, *hops: int | tuple[int, float]) -> int:
    pairs = [hop if isinstance(hop, tuple) else (hop, 1.0) for hop in hops]
    return fluid.add_variable(np.array([p[0] for p in pairs], np.int32), np.array([p[1] for p in pairs], np.float64))


def run_out(fluid: _native.Fluid) -> list[tuple[float, int]]:
    found = []
    while (at_ps := fluid.next()) < math.inf:
        found += [(at_ps, activity) for activity in fluid.advance(at_ps)]
        fluid.solve(at_ps)
    return found


def test_a_collective_over_a_hundred_thousand_links_is_one_activity() -> None:
    links = 100_000
    draw = np.random.default_rng(3)
    weight = draw.integers(1, 9, links).astype(np.float64)
    capacity = draw.uniform(1, 2, links)
    fluid = _native.Fluid(capacity, 1e-9)
    every = np.arange(links, dtype=np.int32)
    one, other = fluid.add_variable(every, weight), fluid.add_variable(every[::-1].copy(), np.ones(links))
    small = add(fluid, 5, 6)
    fluid.start(one, 1, 1e3, 0.0)
    fluid.start(small, 3, 10.0, 0.0)
    fluid.solve(0.0)
    alone = capacity / (weight + np.isin(every, [5, 6]))
    assert fluid.rates()[one] == pytest.approx(alone.min(), rel=1e-9)
    fluid.start(other, 2, 1e3, 1.0)
    fluid.solve(1.0)
    assert fluid.rates()[[one, other]] == pytest.approx(
        (capacity / (weight + 1 + np.isin(every, [5, 6]))).min(), rel=1e-6
    )
    end_ps = run_out(fluid)[-1][0]
    wanted = 1e3 * (weight + 1) + 10.0 * np.isin(every, [5, 6])
    np.testing.assert_allclose(fluid.carried(end_ps), wanted, rtol=1e-9)
