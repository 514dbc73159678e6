"""The catalogue of servers, their rates as messages get them, and servers on leaf-spines, fat trees and in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from weftwork.base.errors import ConfigError
from weftwork.hardware.catalogue import node_caveats
from weftwork.spec.device import Nic, Server, Switch
from weftwork.spec.fabric import HOST, SWITCH
from weftwork.topology.assemble import assemble, links_between
from weftwork.topology.build import fabric_of
from weftwork.topology.export import export
from weftwork.topology.from_file import read_fabric
from weftwork.topology.measures import measure
from weftwork.topology.shapes.fat_tree import fat_tree_counts


def test_what_is_calibrated_or_unverified_reaches_the_user() -> None:
    fabric = fabric_of(topology="rail-optimized", gpus=64, node="dgx-h100", switch="quantum-2")
    assert fabric.caveats["dgx-h100.nvlink_efficiency"].kind == "chosen"
    assert "connectx-7.receive_latency_ps" in fabric.caveats
    own = {"model": "dgx-h100", "nvlink_rate_bps": 10**12}
    mine = fabric_of(topology="rail-optimized", gpus=64, node=own, switch="quantum-2")
    assert not [key for key in mine.caveats if key.startswith("dgx-h100.nvlink_eff")]
    assert not node_caveats("plain")


def test_a_wrong_server_is_helped() -> None:
    with pytest.raises(ConfigError, match=r"fabric.node .*did you mean 'dgx-h100'"):
        fabric_of(topology="fat-tree", radix=64, node="dgx-h10")
    with pytest.raises(ConfigError, match=r"fabric.node.nic_ports  found 12"):
        fabric_of(topology="fat-tree", radix=64, node={"model": "dgx-h100", "nic_ports": 12})


@pytest.mark.parametrize(("tiers", "hosts"), [(2, 256), (3, 8_192)])
def test_a_fat_tree_of_servers_with_eight_ports(tiers: int, hosts: int) -> None:
    assert fat_tree_counts(tiers=tiers, radix=64, ports_per_host=8).hosts == hosts
    if tiers == 2:
        fabric = fabric_of(topology="fat-tree", tiers=2, radix=64, node="dgx-h100")
        assert (len(fabric.hosts), fabric.gpus) == (hosts, 8 * hosts)
        assert measure(fabric).switches == 96


def test_all_ports_of_a_server_hang_on_its_leaf() -> None:
    fabric = fabric_of(topology="leaf-spine", gpus=128, node="p5", switch="tomahawk-5")
    ports = fabric.ports
    leaf = ports.node[ports.peer[: 16 * 32]].reshape(16, 32)
    assert (leaf == leaf[:, :1]).all()
    assert measure(fabric).oversubscription_by_tier[1] == 1
    assert fabric.link_names[:2] == ("host0-leaf0", "host0-leaf0.2")


def test_dual_homed_servers_hang_on_two_leaves_of_one_fabric() -> None:
    fabric = fabric_of(topology="leaf-spine", hosts=64, node={"nic_ports": 2}, radix=32, dual_homed=True)
    ports = fabric.ports
    leaf = ports.node[ports.peer[:128]].reshape(64, 2) - 64
    assert (leaf[:, 1] == leaf[:, 0] + 1).all()
    assert (leaf[:, 0] % 2 == 0).all()
    assert np.bincount(leaf.ravel()).tolist() == [16] * 8
    with pytest.raises(ConfigError, match="dual_homed"):
        fabric_of(topology="leaf-spine", hosts=64, radix=32, dual_homed=True)
    with pytest.raises(ConfigError, match="come in pairs"):
        fabric_of(topology="leaf-spine", leaves=3, spines=2, hosts_per_leaf=4, node={"nic_ports": 2}, dual_homed=True)


@pytest.mark.parametrize("ending", ["json", "graphml"])
def test_servers_and_pods_go_through_a_file(tmp_path: Path, ending: str) -> None:
    fabric = fabric_of(topology="rail-optimized", gpus=64, node="dgx-h100", radix=16)
    path = tmp_path / f"rails.{ending}"
    export(fabric, path)
    again = read_fabric(path)
    assert again.servers == fabric.servers
    assert again.gpus == 64
    assert again.node_pod is not None
    assert fabric.node_pod is not None
    assert again.node_pod.tolist() == fabric.node_pod.tolist()
    assert again.caveats == fabric.caveats


FILE = """{"rate": "400Gbps", "length": "2m", "server": "plain", "nodes": [
  {"id": "a", "kind": "host", "server": "p4d"}, {"id": "b", "kind": "host"}, {"id": "s", "kind": "switch"}],
 "links": [%s]}"""


def test_a_file_names_servers_by_node(tmp_path: Path) -> None:
    path = tmp_path / "mixed.json"
    four = ['{"source": "a", "target": "s"}'] * 4
    path.write_text(FILE % ", ".join([*four, '{"source": "b", "target": "s"}']), encoding="utf-8")
    fabric = read_fabric(path)
    assert [fabric.server(host).name for host in fabric.hosts.tolist()] == ["p4d", "plain"]
    assert fabric.gpus == 9
    assert fabric.nics[fabric.node_device[0]].name == "efa-v1"
    path.write_text(FILE % ", ".join([*four[:3], '{"source": "b", "target": "s"}']), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"nodes.a  3 links, but the NIC ports of server 'p4d' are 4"):
        read_fabric(path)
    path.write_text(FILE.replace('"p4d"', '"p4"') % '{"source": "a", "target": "s"}', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"nodes.a.server .*did you mean 'p4d'"):
        read_fabric(path)
    path.write_text(FILE.replace('"p4d"', "3") % '{"source": "a", "target": "s"}', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"nodes.a.server  found 3, wanted a number into"):
        read_fabric(path)


def test_servers_that_do_not_exist_or_contradict_themselves_are_refused() -> None:
    common: dict[str, Any] = {
        "name": "small", "node_names": ["a", "b", "s"], "node_kind": [HOST, HOST, SWITCH], "node_tier": [0, 0, 1],
        "links": links_between([0, 1], [2, 2], rate_bps=1, delay_ps=1_000), "switches": [Switch()], "nics": [Nic()],
    }  # fmt: skip
    with pytest.raises(ConfigError, match="found servers 0 to 1, wanted 0 to 0"):
        assemble(**common, node_server=[0, 1, 0])
    with pytest.raises(ConfigError, match=r"servers.0.nic_ports  found 3, wanted a multiple or a divisor"):
        assemble(**common, servers=[Server(gpus=2, nic_ports=3)])
