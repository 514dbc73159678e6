"""A contradiction of a fabric is refused by one check in one wording, in a scenario and in a call of Python."""

from __future__ import annotations

import json
from typing import Any

import pytest

from weftwork.base.errors import ConfigError, Mistake
from weftwork.hardware.catalogue import nodes
from weftwork.spec.scenario.scenario import loads
from weftwork.topology.build import fabric_of

LEAF_SPINE = {"topology": "leaf-spine", "leaves": 4, "spines": 2, "hosts_per_leaf": 8}
RAILS = {"topology": "rail-optimized", "node": "dgx-h100", "switch": "tomahawk-5"}


def told(error: ConfigError) -> set[tuple[str, str, str | None]]:
    return {(mistake.path, mistake.text, mistake.fix) for mistake in error.mistakes if isinstance(mistake, Mistake)}


@pytest.mark.parametrize(
    "section",
    [
        {"topology": "fat-tree"},
        {"topology": "fat-tree", "radix": 7},
        {"topology": "fat-tree", "tiers": 2, "radix": 4, "hosts": 9},
        {"topology": "fat-tree", "tiers": 2, "radix": 16, "gpus": 800, "node": "dgx-h100"},
        {"topology": "fat-tree", "radix": 8, "node": "dgx-h100"},
        {"topology": "fat-tree", "radix": 1_022},
        {"topology": "fat-tree", "radix": 64, "leaves": 3, "planes": 2},
        {**LEAF_SPINE, "hosts": 33},
        {**LEAF_SPINE, "hosts": 33, "radix": 8, "oversubscription": 3},
        {**LEAF_SPINE, "leaves": 3, "dual_homed": True},
        {**LEAF_SPINE, "leaves": 3, "dual_homed": True, "node": {"nic_ports": 2}},
        {"topology": "leaf-spine", "leaves": 4},
        {"topology": "leaf-spine", "links_per_pair": 2},
        {"topology": "leaf-spine", "hosts": 10, "radix": 8, "hosts_per_leaf": 3, "oversubscription": 2},
        {"topology": "leaf-spine", "hosts": 10, "radix": 8, "oversubscription": 5_000},
        {"topology": "leaf-spine", "hosts": 10, "radix": 8, "tiers": 2},
        RAILS,
        {**RAILS, "gpus": 100},
        {**RAILS, "gpus": 64, "hosts": 7},
        {**RAILS, "gpus": 128, "pods": 3, "nodes_per_pod": 4, "rails": 12},
        {**RAILS, "gpus": 128, "planes": 2},
        {**RAILS, "gpus": 128, "leaves": 2},
        {**LEAF_SPINE, "spines": 0, "links_per_pair": 2_000},
        {**LEAF_SPINE, "oversubscription": 0},
        {"topology": "fat-tree", "tiers": 4, "radix": 8},
        {**RAILS, "gpus": 128, "planes": 65},
        {**RAILS, "pods": 65_000, "nodes_per_pod": 1_000},
    ],
    ids=lambda section: " ".join(f"{key}={value}" for key, value in section.items()),
)
def test_a_scenario_and_python_refuse_the_same_in_the_same_words(section: dict[str, Any]) -> None:
    text = json.dumps({"schema": 3, "fabric": section, "traffic": {"pattern": "permutation"}})
    with pytest.raises(ConfigError) as read:
        loads(text, nodes=nodes())
    with pytest.raises(ConfigError) as called:
        fabric_of(**section)
    assert told(called.value) == told(read.value)
