"""Figures: paths, ticks, colours, the small PNG, rows of a heat map, and the cells of a fabric."""

from __future__ import annotations

import re

import numpy as np
import pytest
from helpers.cases import case_count
from helpers.gallery import Gallery
from helpers.pages import Page
from hypothesis import example, given, settings
from hypothesis import strategies as st

from weftwork.report.figures.distribution import distribution
from weftwork.report.over_time import directions, read_over_time


@given(st.lists(st.floats(1, 1e12), min_size=1, max_size=50))
def test_a_distribution_is_drawn_inside_and_tells_its_percentiles(values: list[float]) -> None:
    html = distribution("Times", [("one", np.array(values)), ("two", np.array(values) * 2)], "ps")
    Page(html)
    assert html.count(">p50 ") == html.count(">p95 ") == html.count(">p99 ") == 2
    assert 'class="legend"' in html


SAMPLES = st.one_of(
    st.lists(st.floats(1, 1e12), min_size=1, max_size=40),
    st.builds(lambda low, size: [low * (1 + 0.001 * i) for i in range(size)], st.floats(1, 1e12), st.integers(1, 40)),
)


# px of bold digits and letters of 12.5 px; DejaVu Sans, the widest font of the style, has up to 8.7 for a digit and
# less for the others, 4.4 for a thin space
WIDEST = {" ": 4.4, "\u202f": 3.0, ".": 4.8, ",": 4.8, "m": 13.1}


def boxes(html: str, width_px: float) -> list[tuple[float, float, float, float]]:
    """Left, right, bottom and top of the words of percentiles in a plot of a width."""
    found = []
    for side, percent, bottom, text in re.findall(
        r'<span class="mark c\d" style="(left|right):([\d.]+)%;bottom:(\d+)px">([^<]*)</span>', html
    ):
        own = 25 + sum(WIDEST.get(letter, 8.7) for letter in text)  # padding, and the bar in front
        edge = float(percent) / 100 * width_px
        left = edge if side == "left" else width_px - edge - own
        found.append((left, left + own, float(bottom), float(bottom) + 18))
    return found


@settings(max_examples=case_count(plain=150, deep=4000))
@given(first=SAMPLES, second=st.none() | SAMPLES, unit=st.sampled_from(["ps", "ratio"]), width=st.integers(260, 1200))
@example(first=[3.4e11], second=[1.32e11] * 3 + [3.58e11, 8.18e11], unit="ps", width=260)  # an m is wide
def test_words_of_percentiles_never_overlap(
    first: list[float], second: list[float] | None, unit: str, width: int
) -> None:
    samples = [("one", np.array(first))] + ([] if second is None else [("two", np.array(second))])
    if unit == "ratio":  # nothing is a million times slower than alone
        samples = [(name, 1 + values / 1e6) for name, values in samples]
    html = distribution("Times", samples, unit)
    found = boxes(html, width)
    assert len(found) == 3 * len(samples)
    (height,) = {int(height) for height in re.findall(r'class="pa" style="height:(\d+)px"', html)}
    for place, (left, right, bottom, top) in enumerate(found):
        assert bottom >= 240  # above the curves
        assert top <= height
        assert left >= -58  # inside the card, whose ticks are 58 px wide
        assert right <= width + 14
        for other_left, other_right, other_bottom, other_top in found[:place]:
            assert right <= other_left or other_right <= left or top <= other_bottom or other_top <= bottom


def test_the_sums_over_time_are_those_of_the_links(gallery: Gallery) -> None:
    run = gallery("incast")
    found = read_over_time(run)
    assert found is not None
    everywhere = np.arange(found.ports)
    links = run.query("select * from links order by port")
    assert found.values("bytes", everywhere).sum(axis=1).tolist() == links["bytes"].to_pylist()
    for column, counter in (("marks", "marks"), ("drops", "drops"), ("pauses", "pauses_sent")):
        assert found.total(column).sum() == sum(links[counter].to_pylist())
    mean = (found.utilisation(everywhere) * found.length_ps).sum(axis=1) / found.end_ps
    assert mean == pytest.approx(links["utilisation"].to_numpy(), abs=0.03)
    assert [one.name for one in directions(run)] == [
        "host \u2192 leaf", "leaf \u2192 spine", "spine \u2192 leaf", "leaf \u2192 host"
    ]  # fmt: skip
    port = int(np.argmax(links["bytes"].to_numpy()))
    whole = found.within("bytes", port, 0, found.end_ps)
    halves = found.within("bytes", port, 0, found.end_ps // 2) + found.within(
        "bytes", port, found.end_ps // 2, found.end_ps
    )
    assert whole == pytest.approx(halves) == pytest.approx(links["bytes"][port].as_py())
