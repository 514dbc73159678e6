"""Figures: paths, ticks, colours, the small PNG, rows of a heat map, and the cells of a fabric."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pyarrow as pa
import pytest
from helpers.pages import Page, plain
from hypothesis import given
from hypothesis import strategies as st

from weftwork.report.figures.axes import area, line, log_ticks, stairs, ticks
from weftwork.report.figures.colours import RAMP_STEPS, css_variables, ramp
from weftwork.report.figures.distribution import distribution
from weftwork.report.figures.fabric import MOST_CELLS, fabric_picture
from weftwork.report.figures.heat_map import rows_of
from weftwork.report.figures.lines import Curve, Moment, curves
from weftwork.report.figures.png import levels, png
from weftwork.report.figures.waterfall import Step, waterfall


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


SAMPLES = st.one_of(
    st.lists(st.floats(1, 1e12), min_size=1, max_size=40),
    st.builds(lambda low, size: [low * (1 + 0.001 * i) for i in range(size)], st.floats(1, 1e12), st.integers(1, 40)),
)


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


def test_totals_of_a_waterfall_have_the_digits_that_tell_them_apart() -> None:
    """Parts keep three digits: they stand beside their shares."""
    steps = [
        Step(name="forward", length_ps=6.1234e12, colour="k0"),
        Step(name="an iteration", length_ps=17.98e12, colour="total", starts_anew=True),
        Step(name="what if", length_ps=18.02e12, colour="case", starts_anew=True),
    ]
    text = plain(waterfall(steps))
    assert [length for length in ("6.12 s", "17.98 s", "18.02 s") if length not in text] == []
