"""Collectives as one operation: overhead, bytes and efficiencies give the time of the closed form on free links."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.clock import SECOND_PS
from weftwork.base.errors import ConfigError
from weftwork.data.measured import measured
from weftwork.hardware.catalogue import node
from weftwork.spec.training import Software
from weftwork.workload.collectives.closed_form import OPERATIONS
from weftwork.workload.collectives.cost import CollectiveCost, collective_cost
from weftwork.workload.collectives.figures import CollectiveFigures, collective_facts, collective_figures

SOFTWARE = Software()
MIB = 1 << 20


def figures(name: str) -> CollectiveFigures:
    model = node(name)
    assert model.nic_port_rate_bps is not None
    return collective_figures(model.server, nic_port_rate_bps=model.nic_port_rate_bps)


def cost(operation: str, name: str, members: int, per_domain: int, size_bytes: float) -> CollectiveCost:
    domain = node(name).server.nvlink_domain_gpus
    return collective_cost(
        operation, members=members, per_domain=per_domain, domain_gpus=domain, size_bytes=size_bytes,
        figures=figures(name), software=SOFTWARE,
    )  # fmt: skip


def on_free_links_ps(found: CollectiveCost, name: str, members: int, per_domain: int) -> float:
    """As the flow engine has it: edges inside a domain and NICs carry their bytes at once, and a path has a latency."""
    now = figures(name)
    is_far = members > per_domain
    if found.pattern == "ring":
        near, far = (1 - 1 / per_domain if is_far else 1), (1 / per_domain if is_far else 0)
    else:
        near, far = (per_domain - 1) / members, (members - per_domain) / members
    local = near / (now.nvlink_rate_bps * found.local_efficiency)
    network = far / (now.network_rate_bps * found.network_efficiency)
    path_ps = now.network_latency_ps if is_far else now.nvlink_latency_ps
    return found.overhead_ps + found.amount_bytes * 8 * SECOND_PS * max(local, network) + path_ps


@pytest.mark.parametrize(("name", "column"), [("azure-nd-a100-v4", "a100"), ("azure-nd-h100-v5", "h100")])
def test_one_server_is_as_fast_as_measured_from_64_mib(name: str, column: str) -> None:
    for row in measured("nccl-all-reduce-one-node").to_pylist():
        if row["size_bytes"] >= 64 * MIB:
            taken_ps = cost("all-reduce", name, 8, 8, row["size_bytes"]).alone_ps
            bus = 1.75 * row["size_bytes"] * SECOND_PS / taken_ps / 1e9
            assert bus == pytest.approx(row[f"{column}_bus_bandwidth_gbyte_per_s"], rel=0.05), row


@given(
    operation=st.sampled_from(OPERATIONS),
    name=st.sampled_from(["dgx-a100", "dgx-h100", "p5", "gb200-nvl72"]),
    shape=st.sampled_from([(2, 2), (4, 4), (8, 8), (16, 8), (64, 8), (32, 1), (6, 2), (512, 8)]),
    size_bytes=st.integers(1, 1 << 34),
)
def test_overhead_and_bytes_make_the_time_of_the_closed_form(
    operation: str, name: str, shape: tuple[int, int], size_bytes: int
) -> None:
    found = cost(operation, name, *shape, size_bytes)
    assert found.overhead_ps >= 0
    took_ps = on_free_links_ps(found, name, *shape)
    byte_ps = 8 * SECOND_PS / min(figures(name).nvlink_rate_bps, figures(name).network_rate_bps)
    assert took_ps == pytest.approx(found.alone_ps, rel=1e-6, abs=4 + 64 * byte_ps)  # whole bytes


def test_bytes_are_those_that_nccl_tests_counts_on_the_bus() -> None:
    assert cost("all-reduce", "dgx-h100", 8, 8, 8000).amount_bytes == 14000
    assert cost("all-gather", "dgx-h100", 8, 8, 8000).amount_bytes == 7000
    assert cost("reduce-scatter", "dgx-h100", 8, 8, 8000).amount_bytes == 7000
    found = cost("all-to-all", "dgx-h100", 8, 8, 8000)
    assert (found.amount_bytes, found.pattern) == (8000, "all-to-all")  # the engine takes the member's own part away


def test_nothing_is_free_of_charge_only_for_one() -> None:
    one = cost("all-reduce", "dgx-h100", 1, 1, MIB)
    assert (one.overhead_ps, one.amount_bytes, one.method, one.alone_ps) == (0, 0, None, 0)
    assert cost("all-reduce", "dgx-h100", 2, 2, MIB).overhead_ps > figures("dgx-h100").launch_ps


def test_a_server_that_nobody_measured_gets_what_its_nvlink_carries() -> None:
    server = node("dgx-h100").server.model_copy(update={"name": "mine"})
    found = collective_figures(server, nic_port_rate_bps=400_000_000_000)
    assert found.name == "other"
    assert found.nvlink_rate_bps == server.nvlink_rate_bps
    assert found.network_rate_bps == 400_000_000_000
    known = collective_figures(server, nic_port_rate_bps=400_000_000_000, gpu="h200")
    assert known.name == "h100"
    assert "collectives.h100.launch_ps" in collective_facts(known)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="2 mistakes"):
        cost("all-scatter", "dgx-h100", 8, 16, MIB)
