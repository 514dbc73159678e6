"""Scenarios with servers: what a node brings, servers and GPUs, rails and planes."""

from __future__ import annotations

import pytest

from weftwork.hardware.catalogue import nodes
from weftwork.spec.scenario.scenario import Scenario, loads
from weftwork.spec.scenario.written import dump

EXAMPLES = {
    "rail-optimized": """
schema: 3
fabric: {topology: rail-optimized, gpus: 1024, node: dgx-h100, switch: tomahawk-5, cable_length: 20m}
collective: {size: 256MiB}
""",
    "dual-plane": """
schema: 3
fabric:
  topology: rail-only
  pods: 4
  nodes_per_pod: 16
  node: {model: dgx-h100, nic_ports: 16, nvlink_rate: 2Tbps}
  link_rate: 200Gbps
  nic: {pcie_latency: 600ns}
  planes: 2
  spines: 4
  failover_delay: 100us
collective: {gpus: 512, size: 256MiB}
""",
    "dual-homed": """
schema: 3
fabric: {topology: leaf-spine, leaves: 4, spines: 2, hosts_per_leaf: 8, node: {nic_ports: 2}, dual_homed: true}
traffic: {pattern: permutation}
""",
}


def read(text: str) -> Scenario:
    return loads(text, nodes=nodes())


def test_a_node_brings_its_gpus_its_nic_and_the_rate_of_its_links() -> None:
    fabric = read(EXAMPLES["rail-optimized"]).fabric
    assert (fabric.hosts, fabric.gpus, fabric.options.rails, fabric.options.planes) == (128, 1_024, 8, 1)
    assert (fabric.link_rate_bps, fabric.nic.model) == (400_000_000_000, "connectx-7")
    fabric = read(EXAMPLES["dual-plane"]).fabric
    assert (fabric.hosts, fabric.gpus, fabric.link_rate_bps) == (64, 512, 200_000_000_000)
    assert (fabric.nic.model, fabric.nic.fields) == ("connectx-7", {"pcie_latency_ps": 600_000})
    assert fabric.failover_delay_ps == 100_000_000


def test_a_nic_that_the_user_names_stays() -> None:
    text = EXAMPLES["rail-optimized"].replace("node: dgx-h100", "node: dgx-h100, nic: plain")
    assert read(text).fabric.nic.model == "plain"


def test_without_the_catalogue_what_follows_from_a_node_stays_open() -> None:
    fabric = loads(EXAMPLES["rail-optimized"]).fabric
    assert (fabric.hosts, fabric.gpus, fabric.options.rails, fabric.link_rate_bps) == (None, 1_024, None, None)


def test_servers_count_where_gpus_do_not() -> None:
    text = "{schema: 3, fabric: {radix: 64, node: dgx-h100}, traffic: {pattern: permutation}}"
    fabric = read(text).fabric
    assert (fabric.hosts, fabric.gpus) == (8_192, 65_536)
    fabric = read(EXAMPLES["dual-homed"]).fabric
    assert (fabric.hosts, fabric.options.oversubscription) == (16, 4.0)


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES)
def test_what_is_dumped_is_complete_and_loads_back_equal(text: str) -> None:
    scenario = read(text)
    written = dump(scenario)
    assert read(written) == scenario
    assert dump(read(written)) == written
