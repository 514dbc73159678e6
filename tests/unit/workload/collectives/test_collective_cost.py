"""Collectives as one operation: overhead, bytes and efficiencies give the time of the formula on free links."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from weftwork.base.clock import SECOND_PS
from weftwork.base.errors import ConfigError
from weftwork.data.measured import measured
from weftwork.hardware.catalogue import node
from weftwork.spec.training import Software
from weftwork.workload.collectives.cost import (
    FIGURES,
    CollectiveCost,
    CollectiveFigures,
    collective_cost,
    collective_facts,
    collective_figures,
)

SOFTWARE = Software()
MIB = 1 << 20


def figures(name: str) -> CollectiveFigures:
    model = node(name)
    return collective_figures(model.server, nic_port_rate_bps=model.nic_port_rate_bps)


def cost(operation: str, name: str, members: int, per_domain: int, size_bytes: float) -> CollectiveCost:
    domain = node(name).server.nvlink_domain_gpus
    return collective_cost(
        operation, members=members, per_domain=per_domain, domain_gpus=domain, size_bytes=size_bytes,
        figures=figures(name), software=SOFTWARE,
    )  # fmt: skip


def local_ps(found: CollectiveCost, name: str) -> float:
    rate_bps = figures(name).nvlink_rate_bps * found.local_efficiency
    return found.overhead_ps + found.amount_bytes * 8 * SECOND_PS / rate_bps


@pytest.mark.parametrize(("name", "column"), [("azure-nd-a100-v4", "a100"), ("azure-nd-h100-v5", "h100")])
def test_one_server_is_as_fast_as_measured_from_64_mib(name: str, column: str) -> None:
    for row in measured("nccl-all-reduce-one-node").to_pylist():
        if row["size_bytes"] >= 64 * MIB:
            taken_ps = local_ps(cost("all-reduce", name, 8, 8, row["size_bytes"]), name)
            bus = 1.75 * row["size_bytes"] * SECOND_PS / taken_ps / 1e9
            assert bus == pytest.approx(row[f"{column}_bus_bandwidth_gbyte_per_s"], rel=0.04), row


def test_the_fit_gives_the_figures() -> None:
    path = Path(__file__).resolve().parents[4] / "benchmarks" / "fit_one_node.py"
    spec = importlib.util.spec_from_file_location("fit_one_node", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for gpu in ("a100", "h100"):
        found, error = module.fit(gpu)
        assert error < 0.08
        for key, value in found.items():
            assert FIGURES[gpu].value(key) == pytest.approx(value, rel=0.02), key


def test_bytes_are_those_that_nccl_tests_counts_on_the_bus() -> None:
    assert cost("all-reduce", "dgx-h100", 8, 8, 8000).amount_bytes == 14000
    assert cost("all-gather", "dgx-h100", 8, 8, 8000).amount_bytes == 7000
    assert cost("reduce-scatter", "dgx-h100", 8, 8, 8000).amount_bytes == 7000
    found = cost("all-to-all", "dgx-h100", 8, 8, 8000)
    assert (found.amount_bytes, found.pattern) == (8000, "all-to-all")  # the engine takes the member's own part away


def test_switches_reduce_for_a_whole_domain_and_rings_do_the_rest() -> None:
    rate_bps = figures("dgx-h100").nvlink_rate_bps
    whole, half = (cost("all-reduce", "dgx-h100", n, n, MIB).local_efficiency * rate_bps for n in (8, 4))
    gather = cost("all-gather", "dgx-h100", 8, 8, MIB).local_efficiency * rate_bps
    assert whole == pytest.approx(FIGURES["h100"].value("nvls_bus_bandwidth_bps"))
    assert half == gather == pytest.approx(FIGURES["h100"].value("ring_bus_bandwidth_bps"))
    ring = cost("all-reduce", "dgx-a100", 8, 8, MIB).local_efficiency * figures("dgx-a100").nvlink_rate_bps
    assert ring == pytest.approx(FIGURES["a100"].value("ring_bus_bandwidth_bps"))


def test_between_servers_launches_steps_and_headers_count() -> None:
    alpha_ps = figures("dgx-a100").alpha_ps
    gather = cost("all-gather", "dgx-a100", 32, 8, 1 << 30)
    assert gather.overhead_ps == alpha_ps + SOFTWARE.network_latency_ps + 3 * SOFTWARE.network_step_ps
    assert gather.network_efficiency == SOFTWARE.network_efficiency
    exchange = cost("all-to-all", "dgx-a100", 32, 8, 1 << 30)
    assert exchange.overhead_ps == SOFTWARE.network_latency_ps + 3 * SOFTWARE.network_step_ps


def test_an_all_reduce_of_many_servers_takes_a_tree_where_steps_weigh_more_than_bytes() -> None:
    small, large = (cost("all-reduce", "dgx-h100", 8192, 8, size) for size in (64 * MIB, 1 << 40))
    steps_ps = 2 * 10 * SOFTWARE.network_step_ps  # 1,024 servers
    assert small.overhead_ps == figures("dgx-h100").alpha_ps + SOFTWARE.network_latency_ps + steps_ps
    assert small.network_efficiency == pytest.approx(0.92 * SOFTWARE.network_efficiency)
    assert large.network_efficiency == SOFTWARE.network_efficiency


def test_nothing_is_free_of_charge_only_for_one() -> None:
    assert cost("all-reduce", "dgx-h100", 1, 1, MIB).overhead_ps == 0
    assert cost("all-reduce", "dgx-h100", 2, 2, MIB).overhead_ps > figures("dgx-h100").alpha_ps


def test_a_server_that_nobody_measured_gets_what_its_nvlink_carries() -> None:
    server = node("dgx-h100").server.model_copy(update={"name": "mine"})
    found = collective_figures(server, nic_port_rate_bps=400_000_000_000)
    assert found.name == "other"
    assert found.ring_bus_bandwidth_bps == server.nvlink_rate_bps
    assert found.network_rate_bps == 400_000_000_000
    known = collective_figures(server, nic_port_rate_bps=400_000_000_000, gpu="h200")
    assert known.name == "h100"
    assert "collectives.h100.ring_bus_bandwidth_bps" in collective_facts(known)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="2 mistakes"):
        cost("all-scatter", "dgx-h100", 8, 16, MIB)
