"""A key that a fabric file leaves out changes no result without a word.

For every optional key of a file: the file without it is refused, or says in full what holds instead, or has the same
engine input. Files are exports of the catalogue's topologies; a key is dropped everywhere or at some places.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import fields
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest
from helpers.cases import case_count
from helpers.every_topology import FABRICS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.spec.fabric import Fabric
from weftwork.study.prepare.given_fabric import with_fabric
from weftwork.study.prepare.prepare import fabric_of_scenario, prepare
from weftwork.topology.export import to_graphml, to_json
from weftwork.topology.fabric_formats import read_graphml, read_json
from weftwork.topology.from_file import GRAPH_KEYS, LINK_KEYS, NODE_KEYS, fabric_from
from weftwork.topology.routing_plan import has_groups

Document = dict[str, Any]

REQUIRED = {"id", "kind", "source", "target"}
LISTS = {"switch": "switches", "nic": "nics", "server": "servers"}
# the smallest of each topology; hosts that forward are in no engine
SHAPES = {name: keys[-1] for name, keys in FABRICS.items() if name not in {"bcube", "tpu-pod", "rail-optimized"}}
SHAPES |= {
    "tpu-pod": {"slice": [4, 4, 4]},
    "rail-optimized": FABRICS["rail-optimized"][0],
    "superpod": FABRICS["superpod"][0],
    "fat-tree": {"radix": 4},
}
ROUTINGS = ("shortest", "minimal", "up-down", "k-shortest", "dimension-order", "valiant")


@cache
def exported(topology: str) -> str:
    """A small fabric with lossy links as JSON text."""
    keys = {"topology": topology, "link_rate": "100Gbps", "loss": 0.001, **SHAPES[topology]}
    fabric = fabric_of_scenario({"fabric": keys, "traffic": {"pattern": "permutation"}})
    return to_json(fabric)


def read(document: Document) -> Fabric:
    return fabric_from(read_json(json.dumps(document).encode(), "file.json"), "file.json")


def assumed(fabric: Fabric) -> set[str]:
    return {caveat.text for caveat in fabric.caveats.values() if caveat.kind == "assumed"}


def lowered(fabric: Fabric, routing: str) -> list[object]:
    """What the packet engine is told of the fabric, or the refusal."""
    scenario: Document = {
        "fabric": {"routing": routing, "cycles": "allow"},
        "traffic": {"pattern": "incast", "senders": 1, "size": "10KB"},
    }
    read_back, checked = with_fabric(scenario, fabric, None)
    try:
        made = prepare(read_back, fabric=checked.fabric).engine_input
    except ConfigError as refused:
        return [mistake.path for mistake in refused.mistakes]
    values = {field.name: getattr(made, field.name) for field in fields(made)}
    if not has_groups(fabric):  # policies of a user's own read pods, and none of the catalogue does
        del values["node_group"]
    return [
        (name, value.tobytes() if isinstance(value, np.ndarray) else value)
        for name, value in values.items()
        if isinstance(value, np.ndarray | int | float | str) or name == "transport"
    ]


def optional_keys(document: Document) -> list[tuple[str, str]]:
    """Pairs of a place and a key that the document has and need not have."""
    keys = {(place, key) for place, rows in places(document).items() for row in rows for key in row}
    return sorted((place, key) for place, key in keys if key not in REQUIRED | {"nodes", "links"})


def places(document: Document) -> dict[str, list[Document]]:
    """Rows by the place in which keys stand."""
    lists = {word: document[key] for word, key in LISTS.items()}
    return {
        "graph": [document],
        "direct": [document["direct"]] if "direct" in document else [],
        "node": document["nodes"],
        "link": document["links"],
        **lists,
    }


@pytest.mark.parametrize("topology", SHAPES)
def test_an_export_leaves_nothing_open(topology: str) -> None:
    document = json.loads(exported(topology))
    assert assumed(read(document)) == set()
    assert assumed(fabric_from(read_graphml(to_graphml(read(document)).encode(), "f.graphml"), "f.graphml")) == set()


@settings(max_examples=case_count(plain=25, deep=150), suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), topology=st.sampled_from(sorted(SHAPES)), routing=st.sampled_from(ROUTINGS))
def test_a_missing_key_changes_nothing_without_a_word(data: st.DataObject, topology: str, routing: str) -> None:
    whole = json.loads(exported(topology))
    place, key = data.draw(st.sampled_from(optional_keys(whole)))
    document = deepcopy(whole)
    rows = [row for row in places(document)[place] if key in row]
    if len(rows) > 1 and data.draw(st.booleans(), label="some"):
        rows = Random(data.draw(st.integers(0, 99))).sample(rows, data.draw(st.integers(1, len(rows) - 1)))
    for row in rows:
        del row[key]
    try:
        fabric = read(document)
    except ConfigError:
        return
    if not assumed(fabric):
        assert lowered(fabric, routing) == lowered(read(whole), routing)


def test_every_key_of_a_file_is_tried_by_the_law() -> None:
    tried = {pair for topology in SHAPES for pair in optional_keys(json.loads(exported(topology)))}
    by_place = {place: {key for at, key in tried if at == place} for place in ("graph", "node", "link")}
    # names of the catalogue, texts with units and lengths are other ways to write keys that exports have as numbers;
    # extras are in the bill alone
    others = {"switch", "nic", "server", "rate", "delay", "length", "length_m", "extras"}
    assert set(NODE_KEYS) - others <= by_place["node"] | REQUIRED
    assert set(LINK_KEYS) - others <= by_place["link"] | REQUIRED
    defaults = {"rate_bps", "delay_ps", "loss", "corruption"}
    assert set(GRAPH_KEYS) - others - defaults <= by_place["graph"]
