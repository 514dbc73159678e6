"""Variables of the fluid solver, added and run to their ends."""

from __future__ import annotations

import math

import numpy as np

from weftwork.engine import _native


def add(fluid: _native.Fluid, *hops: int | tuple[int, float]) -> int:
    pairs = [hop if isinstance(hop, tuple) else (hop, 1.0) for hop in hops]
    return fluid.add_variable(
        constraint=np.array([p[0] for p in pairs], np.int32), weight=np.array([p[1] for p in pairs], np.float64)
    )


def run_out(fluid: _native.Fluid) -> list[tuple[float, int]]:
    found = []
    while (at_ps := fluid.next()) < math.inf:
        found += [(at_ps, activity) for activity in fluid.advance(at_ps)]
        fluid.solve(at_ps)
    return found
