"""Fabrics from files and to files: round trips, what the format allows, and what is refused with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from weftwork.base.errors import ConfigError
from weftwork.spec.device import Nic, Switch
from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of
from weftwork.topology.export import to_dot, to_graphml, to_json

EXAMPLES = Path(__file__).parents[3] / "examples" / "fabrics"


@pytest.fixture
def fabric() -> Fabric:
    return fabric_of(
        topology="leaf-spine", leaves=2, spines=2, hosts_per_leaf=3, links_per_pair=2, switch="tomahawk-3",
        nic="connectx-7",        link_rate_bps=200 * 10**9, fabric_rate_bps=400 * 10**9, loss=1e-9, cable_length_m=1.5,
    )  # fmt: skip


def test_dot_ranks_tiers(fabric: Fabric) -> None:
    dot = to_dot(fabric)
    assert '{ rank=same; "spine0"; "spine1"; }' in dot
    assert dot.count('"leaf1" -- "spine0" [label="400Gbps"];') == 2


def test_a_section_takes_devices_as_names_mappings_and_records() -> None:
    shape: dict[str, Any] = {"topology": "fat-tree", "radix": 4}
    assert fabric_of(**shape, switch="tomahawk-5").switches[0].radix == 4
    own = fabric_of(**shape, switch={"name": "tomahawk-3", "buffer_bytes": 10**6, "ecn": {"pmax": 0.5}})
    assert (own.switches[0].buffer_bytes, own.switches[0].ecn.pmax) == (10**6, 0.5)
    assert own.switches[0].ecn.kmin_bytes == 1_048_576
    assert "tomahawk-3.buffer_bytes" not in own.caveats  # the user's own figure
    assert fabric_of(**shape, switch=Switch(name="mine"), nic=Nic(name="mine")).nics[0].name == "mine"
    with pytest.raises(ConfigError, match=r"fabric.switch.bufer_bytes .*did you mean 'buffer_bytes'"):
        fabric_of(**shape, switch={"bufer_bytes": 3})
    with pytest.raises(ConfigError, match="did you mean 'fat-tree'"):
        fabric_of(topology="fattree", radix=4)


def test_a_section_derives_what_it_leaves_out() -> None:
    assert len(fabric_of(topology="fat-tree", tiers=2, switch="quantum-2").hosts) == 2_048
    fabric = fabric_of(topology="leaf-spine", hosts=96, oversubscription=3, switch="tomahawk-3")
    assert [name for name in fabric.node_names if name.startswith("spine")] == [f"spine{i}" for i in range(1)]
    assert fabric.links["delay_ps"].tolist()[0] == 100_000  # 20 m of fibre
    assert len(fabric_of(topology="leaf-spine", leaves=2, spines=1, hosts_per_leaf=3, hosts=5).hosts) == 5


@pytest.mark.parametrize(
    ("section", "part"),
    [
        ({"topology": "fat-tree"}, "fabric.radix  missing, wanted an even whole number"),
        ({"topology": "fat-tree", "radix": 66, "switch": "quantum-2"}, "found 66, but 'quantum-2' has 64 ports"),
        (
            {"topology": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4, "oversubscription": 3},
            "found 3:1, wanted 2:1, which hosts_per_leaf, spines",
        ),
        (
            {"topology": "fat-tree", "radix": 4, "leaves": 3},
            "fabric.leaves  means nothing with topology fat-tree, only with leaf-spine",
        ),
        ({"topology": "leaf-spine", "tiers": 2, "hosts": 4, "radix": 4}, "fabric.tiers  means nothing"),
        ({"topology": "leaf-spine", "radix": 8}, "fabric.hosts  missing: give hosts and radix"),
        ({"topology": "leaf-spine", "leaves": 2, "spines": 2}, "fabric.hosts_per_leaf  missing: leaves, spines"),
        (
            {"topology": "leaf-spine", "leaves": 2, "hosts": 8, "radix": 8},
            "fabric.spines          missing: leaves, spines and hosts_per_leaf are given together",
        ),
        (
            {"topology": "fat-tree", "switch": "tomahawk-4", "link_rate_bps": 8 * 10**11},
            "whose fastest port has 400Gbps",
        ),
        ({"topology": "fat-tree", "radix": 4, "tiers": 5}, "found '5', wanted a whole number from 2 to 3"),
    ],
)
def test_sections_without_a_meaning_are_refused(section: dict[str, object], part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        fabric_of(**section)  # type: ignore[arg-type]
    assert part in str(caught.value)


def test_graphml_and_json_hold_the_same(fabric: Fabric) -> None:
    assert to_graphml(fabric).count("<edge ") == to_json(fabric).count('"source"') == 14


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.*")))
def test_the_examples_are_fabrics(name: str) -> None:
    assert len(fabric_of(file=EXAMPLES / name).hosts) == 4
