"""Figures: paths, ticks, colours, the small PNG, rows of a heat map, and the cells of a fabric."""

from __future__ import annotations

import re
import struct
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from helpers.cases import case_count
from helpers.pages import Page, plain, simulated
from hypothesis import example, given, settings
from hypothesis import strategies as st

from weftwork.report.figures.axes import area, line, log_ticks, stairs, ticks
from weftwork.report.figures.colours import RAMP_STEPS, css_variables, ramp
from weftwork.report.figures.distribution import distribution
from weftwork.report.figures.fabric import MOST_CELLS, fabric_picture
from weftwork.report.figures.heat_map import rows_of
from weftwork.report.figures.lines import Curve, Moment, curves
from weftwork.report.figures.png import levels, png
from weftwork.report.over_time import directions, read_over_time


@given(high=st.floats(1e-6, 1e15), most=st.integers(2, 8))
def test_ticks_are_round_and_inside(high: float, most: int) -> None:
    found = ticks(high, "ratio", most=most)
    assert found[0].at == 0
    assert all(0 <= tick.at <= 1 + 1e-9 for tick in found)
    assert 2 <= len(found) <= most + 1


@given(low=st.floats(1, 1e12), factor=st.floats(1.1, 1e9))
def test_logarithmic_ticks_are_inside_and_rise(low: float, factor: float) -> None:
    places = [tick.at for tick in log_ticks(low, low * factor, "ps")]
    assert all(-1e-9 <= at <= 1 + 1e-9 for at in places)
    assert places == sorted(places)


def test_paths_are_in_thousandths_with_y_upwards() -> None:
    edges = np.array([0, 0.25, 0.5, 1])
    assert line(np.array([0.1234, 1]), np.array([0, 0.5])) == "M123.4 1000L1000 500"
    assert stairs(edges, np.array([1, 1, 0])) == "M0 0H500V1000H1000"  # two equal bins are one line
    assert area(edges, np.array([1, 1, 0])) == "M0 0H500V1000H1000V1000H0Z"


def _lightness(colour: str) -> float:
    """Relative luminance, WCAG 2.2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    high, low = sorted((_lightness(one), _lightness(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read_and_shares_differ_in_lightness(theme: str) -> None:
    known = dict(pair.split(":") for pair in css_variables(theme).strip("-;").replace(";--", ";").split(";"))
    for paper in ("bg", "panel"):
        assert _contrast(known["ink"], known[paper]) >= 7
        assert _contrast(known["soft"], known[paper]) >= 4.5
        assert _contrast(known["accent"], known[paper]) >= 4.5
    steps = [_lightness(known[f"u{step}"]) for step in range(RAMP_STEPS)]
    assert steps == sorted(steps, reverse=theme == "light")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_image_holds_the_shares(theme: str) -> None:
    shares = np.array([[0, 0.004, 0.5], [1, 1.5, 0.25]])
    data = png(levels(shares), theme)
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    chunks, at = {}, 8
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size]) == (zlib.crc32(name + body),)
        chunks[name] = body
        at += 12 + size
    assert chunks[b"IHDR"] == struct.pack(">IIBBBBB", 3, 2, 8, 3, 0, 0, 0)
    assert zlib.decompress(chunks[b"IDAT"]) == bytes([0, 0, 1, 50, 0, 100, 100, 25])
    assert chunks[b"PLTE"][3:] == ramp(theme, 100).tobytes()
    assert chunks[b"tRNS"] == b"\x00"


def test_rows_of_a_heat_map_show_the_busiest_first_and_the_largest_of_those_that_share() -> None:
    shares = np.array([[0, 0.1], [0.9, 0.5], [0.2, 0.2], [1.0, 0.2], [0, 0]])
    rows = rows_of(shares, ["a", "b", "c", "d", "e"], most=3)
    assert rows.links_per_row == 2
    assert rows.names == ("b and 1 more", "c and 1 more", "e")
    assert rows.shares.tolist() == [[1.0, 0.5], [0.2, 0.2], [0, 0]]


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


def test_percentiles_of_more_than_two_lines_are_in_a_table() -> None:
    values = np.arange(1, 101) * 1e6
    html = distribution("Times", [(name, values) for name in ("a", "b", "c")], "ps")
    assert "mark c" not in html
    assert html.count("<tr>") == 4
    assert plain(Page(html).text).count("50.5 us") == 3


def test_a_distribution_of_nothing_is_nothing() -> None:
    assert distribution("Times", [("none", np.empty(0))], "ps") == ""


def test_a_line_has_its_name_its_axis_and_what_happened() -> None:
    html = curves(
        "Marks",
        [Curve(name="marks", values=np.array([0, 5, 1]))],
        edges_ps=np.array([0, 10, 20, 25]) * 1_000_000,
        unit="count",
        moments=[Moment(at=0.5, text="a<b down")],
    )
    Page(html)
    assert 'aria-label="Marks. marks: at most 5"' in html
    assert "a&lt;b down" in html


def test_the_sums_over_time_are_those_of_the_links(tmp_path: Path) -> None:
    run = simulated(tmp_path, "traffic: {pattern: incast, senders: 7, size: 256KB}")
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


def test_hosts_of_a_leaf_share_a_cell_and_long_rows_are_shortened() -> None:
    leaves, hosts = 400, 800
    node = np.arange(hosts + leaves)
    nodes = pa.table({
        "name": [f"host{i}" for i in range(hosts)] + [f"leaf{i}" for i in range(leaves)],
        "kind": ["host"] * hosts + ["switch"] * leaves,
        "role": ["host"] * hosts + ["leaf"] * leaves,
        "tier": [0] * hosts + [1] * leaves,
    })  # fmt: skip
    host, leaf = node[:hosts], hosts + node[:hosts] // 2
    links = pa.table({
        "node": np.concatenate([host, leaf]), "peer": np.concatenate([leaf, host]),
        "link": [f"host{i}-leaf{i // 2}" for i in range(hosts)] * 2,
        "utilisation": np.concatenate([np.linspace(0, 0.5, hosts), np.zeros(hosts)]),
    })  # fmt: skip
    drawing, hot, note = fabric_picture(nodes, links)
    Page(drawing)
    assert drawing.count('class="cell') == 2 * -(-leaves // 3) <= 2 * MOST_CELLS
    assert "400 leaves" in drawing
    assert "800 hosts" in drawing
    assert [one.row for one in hot] == [799, 798, 797, 796, 795]
    assert "several neighbours share one cell" in note
