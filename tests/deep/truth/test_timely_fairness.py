"""Two flows under TIMELY that start apart keep changing places; with the patch they meet, at one RTT that stays.

Source: Zhu et al., "ECN or Delay", CoNEXT 2016, doi:10.1145/2999572.2999593: infinitely many fixed points, and one.
"""

from __future__ import annotations

import numpy as np
import pytest
from helpers.figures import Show
from helpers.told_sender import long_flow, probe_rtts_ps, probes, run, shares, star

from weftwork.base.clock import MS_PS, US_PS
from weftwork.policies.load import load

LINE_BPS = 10_000_000_000
LATE_PS, END_PS = 60 * MS_PS, 100 * MS_PS


def late(variant: str, lead_ps: int) -> tuple[list[float], float]:
    """Difference of the rates as a part of their sum, every 5 ms; and by how much the RTT strays from its mean."""
    messages = [*long_flow(0, 2, 0, 120_000_000), *long_flow(1, 2, lead_ps, 120_000_000)]
    messages += probes(3, 2, range(LATE_PS, END_PS, 100 * US_PS))
    outcome = run(star(4, LINE_BPS), messages, load("congestion_control", "timely", {}, variant), until_ps=END_PS)
    rates = [shares(outcome, 2, at_ps, at_ps + 5 * MS_PS) for at_ps in range(LATE_PS, END_PS, 5 * MS_PS)]
    return [(first - second) / (first + second) for first, second in rates], float(np.std(probe_rtts_ps(outcome)))


@pytest.mark.parametrize("lead_ms", [2, *(pytest.param(lead_ms, marks=pytest.mark.deep) for lead_ms in (5, 10))])
def test_flows_that_start_apart_meet_only_with_the_patch(lead_ms: int, show: Show) -> None:
    (gaps, strays_ps), (patched, patched_strays_ps) = (late(name, lead_ms * MS_PS) for name in ("zhu-repo", "patched"))
    for name, found in (("zhu-repo", gaps), ("patched", patched)):
        show(f"{name}: (R1 - R2) / (R1 + R2) = " + ", ".join(f"{gap:.3f}" for gap in found))
    assert max(gaps) - min(gaps) > 0.15  # it grows again after it was small
    assert 0 < patched[-1] < 0.6 * patched[0] < 0.06
    assert strays_ps > 2.5 * patched_strays_ps
