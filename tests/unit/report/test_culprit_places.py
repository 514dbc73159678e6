"""Where the culprit is on the page: its rows of the heat maps, its place in the fabric, its bands over time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from helpers.culprit_places import outlined
from helpers.pages import Page
from helpers.shown import page_of

from weftwork.report.culprit_places import CulpritPlace
from weftwork.report.figures.fabric import MOST_CELLS, fabric_picture
from weftwork.report.figures.heat_map import heat_map, rows_of


def test_thin_rows_are_named_and_not_covered() -> None:
    shares = np.linspace(1, 0, 100)[:, None] * np.ones((1, 4))
    rows = rows_of(shares, [f"l{at}" for at in range(100)])
    assert rows.row_of.tolist() == list(range(100))
    html = heat_map("Links", rows, edges_ps=np.array([0, 1, 2, 3, 4]) * 1_000_000, culprits=[40, 41])
    Page(html)
    drawn = page_of(html)
    assert drawn.all("path", kind="blame") == []
    (label,) = drawn.all("span", kind="blame")
    assert label.attributes["style"] == "bottom:59.00%"
    assert "to blame: l40, l41" in drawn.all("svg")[0].attributes["aria-label"]


def test_in_a_large_fabric_the_culprit_shares_no_cell_and_keeps_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weftwork.report.figures.fabric.MOST_LINES", 100)
    hosts, leaves = 2 * MOST_CELLS, MOST_CELLS
    nodes = pa.table({
        "name": [f"host{at}" for at in range(hosts)] + [f"leaf{at}" for at in range(leaves)] + ["spine"],
        "kind": ["host"] * hosts + ["switch"] * (leaves + 1),
        "role": ["host"] * hosts + ["leaf"] * leaves + ["spine"],
        "tier": [0] * hosts + [1] * leaves + [2],
    })  # fmt: skip
    # every host on two leaves, no two on the same, and each leaf on the spine
    ends = [(at, hosts + (at + k) % leaves) for at in range(hosts) for k in (at // leaves + 1, 0)]
    ends += [(hosts + at, hosts + leaves) for at in range(leaves)]
    both = [pair for a, b in ends for pair in ((a, b), (b, a))]
    links = pa.table({
        "node": [a for a, _ in both], "peer": [b for _, b in both],
        "name": [f"{a}->{b}" for a, b in both], "link": [f"{min(pair)}-{max(pair)}" for pair in both],
        "utilisation": [0.0 if place < 2 else 0.5 for place in range(len(both))],
    })  # fmt: skip
    blamed = CulpritPlace(name="host0-leaf1", ports=frozenset({0, 1}), nodes=frozenset())
    html, _, note = fabric_picture(nodes, links, blamed)
    lines, names = outlined(page_of(html))
    assert lines == ["host0 to leaf1"]
    assert names == ["host0-leaf1, to blame"]
    assert "several neighbours share one cell" in note
    (drawing,) = page_of(html).all("svg", role="img")
    assert len(drawing.all("path", kind="l")) == 101  # the busiest, and the culprit's, which is idle
    assert "least used lines are left out." in note
