"""Damaged fabric files: a fabric, or a mistake that the user is told; never another exception."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.topology.export import to_dot, to_graphml, to_json
from weftwork.topology.fabric_formats import read_graphml, read_json
from weftwork.topology.from_file import fabric_from

EXAMPLES = Path(__file__).parents[2] / "examples" / "fabrics"
GOOD: dict[str, Any] = json.loads((EXAMPLES / "two_leaves.json").read_text(encoding="utf-8"))
GRAPHML = (EXAMPLES / "ring_of_four.graphml").read_bytes()

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["400Gbps", "-1", "spine0"])
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)
keys = st.sampled_from(
    ["id", "kind", "tier", "switch", "nic", "device", "source", "target", "name", "rate", "rate_bps", "delay",
     "delay_ps",
     "length", "length_m", "loss", "corruption", "switches", "nics", "caveats", "graph", "nodes", "links", "edges"]
)  # fmt: skip


def told(refused: ConfigError) -> None:
    """Every mistake has a place and a text."""
    assert refused.mistakes
    assert all(mistake.path and mistake.text for mistake in refused.mistakes)


@st.composite
def damaged(draw: st.DrawFn) -> dict[str, Any]:
    """The good example with one to three keys set to anything."""
    data = deepcopy(GOOD)
    for _ in range(draw(st.integers(1, 3))):
        lists = (data.get(key) for key in ("nodes", "links"))
        rows = [data, *(row for found in lists if isinstance(found, list) for row in found if isinstance(row, dict))]
        draw(st.sampled_from(rows))[draw(keys)] = draw(values)
    return data


@given(data=damaged())
def test_a_damaged_json_file_is_a_fabric_or_a_mistake(data: dict[str, Any]) -> None:
    try:
        fabric = fabric_from(read_json(json.dumps(data).encode(), "fuzz.json"), "fuzz.json")
    except ConfigError as refused:
        told(refused)
        return
    for text in (to_json(fabric), to_graphml(fabric), to_dot(fabric)):
        assert text.encode()
    again = fabric_from(read_graphml(to_graphml(fabric).encode(), "again.graphml"), "again.graphml")
    assert again.node_names == fabric.node_names
    assert again.link_names == fabric.link_names


@given(start=st.integers(0, len(GRAPHML)), length=st.integers(0, 60), instead=st.binary(max_size=20))
def test_a_damaged_graphml_file_is_a_fabric_or_a_mistake(start: int, length: int, instead: bytes) -> None:
    content = GRAPHML[:start] + instead + GRAPHML[start + length :]
    try:
        fabric = fabric_from(read_graphml(content, "fuzz.graphml"), "fuzz.graphml")
    except ConfigError as refused:
        told(refused)
        return
    assert len(fabric.hosts) > 0
