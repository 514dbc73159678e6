"""Recorded series: each one is drawn, several runs share the axes, and what is not drawn is said."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from weftwork.report.figures.traces import Band, Trace, traces


def test_a_thinned_line_keeps_its_highest_and_lowest_sample() -> None:
    at = np.arange(1, 100_001, dtype=np.int64)
    values = np.random.default_rng(7).normal(size=len(at))
    values[12_345], values[77_777] = 40.0, -30.0
    html = traces("t", [Trace(name="n", at_ps=at, values=values, look=(0, 0))], end_ps=100_000, unit="ratio")
    (path,) = re.findall(r'<path class="s c1" stroke-dasharray="" d="(M[^"]{999,})"/>', html)
    points = np.array([tuple(map(float, point.split())) for point in path[1:].split("L")])
    assert len(points) <= 810
    high = 40 * 1.06
    peak, pit = points[points[:, 1].argmin()], points[points[:, 1].argmax()]
    assert peak == pytest.approx((123.5, 1000 * (high - 40) / (high + 30)), abs=0.1)
    assert pit == pytest.approx((777.8, 1000), abs=0.1)
    assert (np.diff(points[:, 0]) >= 0).all()


def test_a_gap_interrupts_a_line_and_the_pointer_says_so() -> None:
    at = np.array([0, 10, 20, 30, 40], np.int64)
    values = np.array([1.0, 2.0, np.nan, 2.0, 1.0])
    band = Band(at_ps=at[:2], low=values[:2], high=values[:2] + 1, colour=1)
    line = Trace(name="n", at_ps=at, values=values, look=(0, 0))
    html = traces("t", [line], end_ps=40, unit="ratio", bands=[band])
    assert re.search(r'd="M0 \S+L250 \S+M750 \S+L1000 \S+"', html)
    told = json.loads(re.findall(r"data-tip='([^']*)'", html)[0].replace("&quot;", '"'))
    assert told["s"][0][2] == ["1", "2", "no sample", "2", "1"]
