"""Fat trees: counts equal the closed forms, hosts hang where they should, and what is no fat tree is refused."""

from __future__ import annotations

import time

import numpy as np
import pytest

from weftwork.base.errors import ConfigError
from weftwork.spec.device import Nic, Switch
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.topology.shapes.fat_tree import fat_tree, fat_tree_counts

GBPS = 10**9


def tree(**changes: object) -> Fabric:
    values: dict[str, object] = {
        "tiers": 2, "radix": 4, "host_rate_bps": 400 * GBPS, "fabric_rate_bps": 400 * GBPS, "host_delay_ps": 10_000,
        "fabric_delay_ps": 100_000, "switch": Switch(), "nic": Nic(),
    }  # fmt: skip
    return fat_tree(**(values | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tiers", "radix", "hosts", "switches", "switch_links"),
    # the last two rows of each kind: DeepSeek-V3 hardware paper, ISCA 2025, doi:10.1145/3695053.3731412, table 3
    [(2, 2, 2, 3, 2), (2, 6, 18, 9, 18), (2, 64, 2_048, 96, 2_048),
     (3, 2, 2, 5, 4), (3, 6, 54, 45, 108), (3, 10, 250, 125, 500), (3, 64, 65_536, 5_120, 131_072)],
)  # fmt: skip
def test_counts_equal_the_closed_forms(tiers: int, radix: int, hosts: int, switches: int, switch_links: int) -> None:
    began = time.process_time()
    fabric = tree(tiers=tiers, radix=radix)
    assert time.process_time() - began < 2
    assert len(fabric.hosts) == hosts == fat_tree_counts(tiers=tiers, radix=radix).hosts
    assert np.count_nonzero(fabric.node_kind == SWITCH) == switches
    between = (fabric.node_kind[fabric.links["a"]] == SWITCH) & (fabric.node_kind[fabric.links["b"]] == SWITCH)
    assert np.count_nonzero(between) == switch_links
    degree = np.diff(fabric.ports.base)
    assert set(degree[fabric.node_kind == SWITCH].tolist()) == {radix}
    assert set(degree[fabric.node_kind == HOST].tolist()) == {1}


def test_host_i_hangs_on_leaf_i_over_half_the_radix() -> None:
    fabric = tree(tiers=3, radix=6)
    for host in range(54):
        assert fabric.link_names[host] == f"host{host}-leaf{host // 3}"
    assert fabric.node_names[fabric.node("agg4")] == "agg4"
    # aggregation switch 1 of pod 1 is agg4 and reaches the cores of group 1
    assert [f"agg4-core{core}" in fabric.link_names for core in range(9)] == [False] * 3 + [True] * 3 + [False] * 3


def test_links_carry_rates_and_delays_by_layer() -> None:
    fabric = tree(host_rate_bps=200 * GBPS, loss=0.25, corruption=0.5)
    link = fabric.links[fabric.link("host3-leaf1")]
    assert (link["rate_bps"], link["delay_ps"], link["loss"], link["corruption"]) == (200 * GBPS, 10_000, 0.25, 0.5)
    link = fabric.links[fabric.link("leaf3-spine1")]
    assert (link["rate_bps"], link["delay_ps"]) == (400 * GBPS, 100_000)


def test_leaves_and_pods_without_hosts_are_left_out() -> None:
    fabric = tree(tiers=3, radix=4, hosts=5)
    names = fabric.node_names
    assert [name for name in names if name.startswith("leaf")] == ["leaf0", "leaf1", "leaf2"]
    assert [name for name in names if name.startswith("agg")] == ["agg0", "agg1", "agg2", "agg3"]
    assert [name for name in names if name.startswith("core")] == ["core0", "core1", "core2", "core3"]
    assert len(fabric.links) == 5 + 3 * 2 + 4 * 2


@pytest.mark.parametrize(
    ("changes", "path", "text"),
    [
        ({"radix": 5}, "fabric.radix", "found 5, wanted an even number"),
        ({"radix": 0}, "fabric.radix", "found 0, wanted an even number"),
        ({"tiers": 4}, "fabric.tiers", "found 4, wanted 2 or 3"),
        ({"hosts": 9}, "fabric.hosts", "found 9, wanted at most 8"),
        ({"hosts": 0}, "fabric.hosts", "found 0, wanted at least 1"),
        ({"host_rate_bps": 0}, "links.host0-leaf0", "found rate_bps 0, wanted a rate above 0"),
        ({"fabric_rate_bps": -1}, "links.leaf0-spine0", "found rate_bps -1"),
        ({"host_delay_ps": 0}, "links.host0-leaf0", "found delay_ps 0, wanted at least 1000 (1 ns)"),
        ({"fabric_delay_ps": 999}, "links.leaf0-spine0", "found delay_ps 999"),
        ({"loss": 1.5}, "links.host0-leaf0", "found loss 1.5, wanted a probability"),
        ({"corruption": float("nan")}, "links.host0-leaf0", "found corruption nan"),
        ({"switch": Switch(name="small", radix=3)}, "nodes.leaf0", "4 links, but switch 'small' has 3 ports"),
    ],
)
def test_what_is_no_fat_tree_is_refused(changes: dict[str, object], path: str, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        tree(**changes)
    assert any(mistake.path == path and text in mistake.text for mistake in caught.value.mistakes)


def test_all_mistakes_come_at_once_and_odd_radix_names_the_next() -> None:
    with pytest.raises(ConfigError) as caught:
        tree(tiers=1, radix=7, hosts=-1)
    assert [mistake.path for mistake in caught.value.mistakes] == ["fabric.tiers", "fabric.radix", "fabric.hosts"]
    assert "such as 8:" in caught.value.mistakes[1].text
