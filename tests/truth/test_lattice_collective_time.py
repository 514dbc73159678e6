"""Collectives on tori and meshes take the time of their closed form on flows, and little more packet by packet.

The closed form is as published: a bucket algorithm is optimal on equal sides, and Swing sends about as much more
than the least as its paper says (De Sensi et al., NSDI 2024, arXiv:2401.09356: 1.19, 1.03, 1.008 on 2 to 4 axes).
"""

from __future__ import annotations

from typing import Any

import pytest
from helpers.lattice_fabrics import HOST_BPS, LINK_BPS, PAYLOAD_SHARE, grid_fabric, took_ps

from weftwork.base.clock import SECOND_PS
from weftwork.spec.fabric import Fabric
from weftwork.testing.lattices import torus_of
from weftwork.topology.build import fabric_of
from weftwork.workload.collectives.algorithms._hierarchical_groups import group_time_ps
from weftwork.workload.collectives.algorithms.swing import swing_factor
from weftwork.workload.collectives.fabric_lattice import LatticePlaces, LatticeRates, lattice_of, lattice_rates
from weftwork.workload.collectives.group_time import group_ranks, group_rates
from weftwork.workload.collectives.lattice import Lattice
from weftwork.workload.collectives.lattice_time import LatticeMethod, all_to_all_ps, lattice_time_ps
from weftwork.workload.placement import packed

pytestmark = pytest.mark.deep  # each case runs both fidelities; the step `truth` of .ci/run takes them

MESH = grid_fabric(4, 4, closed=False)
KIB, MIB = 1 << 10, 1 << 20
STEP_PS = 1_000_000
RINGS, VERSIONS = ("all", "both", "one"), ("bandwidth", "latency")
METHODS = [
    *(LatticeMethod(algorithm="bucket", key=key, protocol="none") for key in RINGS),
    *(LatticeMethod(algorithm="swing", key=key, protocol="none") for key in VERSIONS),
]
SPRAY = "{congestion_control: fixed-window, load_balancing: spray, reorder_tolerant: true, flow_control: none}"


def lattice_and_rates(fabric: Fabric) -> tuple[Lattice, LatticeRates]:
    placement = packed(fabric, fabric.gpus)
    found = lattice_of(fabric, placement)
    assert isinstance(found, LatticePlaces)
    return found.lattice, lattice_rates(fabric, placement, payload_share=PAYLOAD_SHARE, packet_bytes=4096)


def over_closed_form(
    fabric: Fabric, operation: str, method: LatticeMethod, size_bytes: int, fidelity: str = "flow"
) -> float:
    """Time of the program over that of the closed form, less one."""
    keys: dict[str, Any] = {"operation": operation, "algorithm": method.algorithm, **method.options}
    program_ps = took_ps(fabric, size_bytes, fidelity, step_latency=f"{STEP_PS}ps", **keys)
    lattice, rates = lattice_and_rates(fabric)
    return program_ps / lattice_time_ps(operation, method, lattice, size_bytes, rates, step_latency_ps=STEP_PS) - 1


@pytest.mark.parametrize("size_bytes", [4 * KIB, 64 * KIB, 64 * MIB])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method.algorithm}-{method.key}")
@pytest.mark.parametrize(
    "sides",
    [(4, 4), (4, 4, 4), pytest.param((4, 4, 8), marks=pytest.mark.deep), pytest.param((16,), marks=pytest.mark.deep)],
)
def test_flows_take_the_time_of_the_closed_form(sides: tuple[int, ...], method: LatticeMethod, size_bytes: int) -> None:
    found = over_closed_form(grid_fabric(*sides), "all-reduce", method, size_bytes)
    assert found == pytest.approx(0, abs=5e-4 if size_bytes > MIB else 0.01)


@pytest.mark.parametrize("operation", ["reduce-scatter", "all-gather"])
@pytest.mark.parametrize("method", METHODS[:4], ids=lambda method: f"{method.algorithm}-{method.key}")
def test_each_half_of_an_all_reduce_takes_half_of_it(operation: str, method: LatticeMethod) -> None:
    assert over_closed_form(grid_fabric(4, 4), operation, method, 16 * MIB) == pytest.approx(0, abs=5e-4)


@pytest.mark.parametrize("method", METHODS[:3], ids=lambda method: method.key)
@pytest.mark.parametrize("fabric", [grid_fabric(3, 5), grid_fabric(5, 3, 2), MESH, grid_fabric(6, closed=False)])
def test_a_bucket_takes_any_sides_and_open_axes(fabric: Fabric, method: LatticeMethod) -> None:
    found = over_closed_form(fabric, "all-reduce", method, 16 * MIB)
    assert found == pytest.approx(0, abs=0.005)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method.algorithm}-{method.key}")
def test_a_nic_port_slower_than_the_links_together_is_the_limit(method: LatticeMethod) -> None:
    fabric = grid_fabric(4, 4, 4, host_bps=LINK_BPS)
    assert over_closed_form(fabric, "all-reduce", method, 64 * MIB) == pytest.approx(0, abs=5e-4)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method.algorithm}-{method.key}")
def test_each_lane_has_a_nic_port_of_its_own_where_there_are_as_many(method: LatticeMethod) -> None:
    fabric = grid_fabric(4, 4, nic_ports=4, host_bps=LINK_BPS)
    assert over_closed_form(fabric, "all-reduce", method, 64 * MIB) == pytest.approx(0, abs=5e-4)


@pytest.mark.parametrize("size_bytes", [64 * KIB, 4 * MIB])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method.algorithm}-{method.key}")
def test_packets_take_little_longer(method: LatticeMethod, size_bytes: int) -> None:
    found = over_closed_form(grid_fabric(4, 4), "all-reduce", method, size_bytes, "packet")
    assert -0.001 < found < 0.04  # acknowledgements share the links, and packets wait for those of other lanes


@pytest.mark.parametrize("sides", [(4, 4), (4, 4, 4), (8, 8)])
def test_a_bucket_on_equal_sides_is_optimal(sides: tuple[int, ...]) -> None:
    lattice, rates = lattice_and_rates(grid_fabric(*sides))
    size_bytes, axes = 1 << 40, len(sides)
    least_ps = 2 * (lattice.size - 1) / lattice.size * size_bytes * 8 * SECOND_PS / (2 * axes * rates.link_bps)
    found_ps = lattice_time_ps("all-reduce", METHODS[0], lattice, size_bytes, rates)
    assert found_ps == pytest.approx(least_ps, rel=1e-4)


def test_a_bucket_waits_for_the_longest_ring_of_each_phase() -> None:
    lattice, rates = lattice_and_rates(grid_fabric(4, 4, 8))
    sent = lattice_time_ps("reduce-scatter", METHODS[0], lattice, 1 << 40, rates) * rates.link_bps / 8 / SECOND_PS
    assert sent / (1 << 40) * 6 == pytest.approx(7 / 8 * (1 + 1 / 4 + 1 / 16), rel=1e-4)  # of all sides eight: 511/512


# On one axis a third of log2(n) and a ninth; the other sums end at 6/5, 28/27 and 120/119.
@pytest.mark.parametrize(
    ("axes", "side", "factor"), [(1, 256, 8 / 3 + 1 / 9), (2, 256, 6 / 5), (3, 256, 28 / 27), (4, 64, 120 / 119)]
)
def test_swing_sends_as_much_more_than_the_least_as_published(axes: int, side: int, factor: float) -> None:
    assert swing_factor(torus_of(*[side] * axes)) == pytest.approx(factor, rel=0.005)


@pytest.mark.parametrize("sides", [(4, 4), (8,), (4, 4, 8), (3, 5)])
def test_a_sprayed_all_to_all_takes_an_eighth_of_the_longest_side(sides: tuple[int, ...]) -> None:
    fabric = grid_fabric(*sides, host_bps=2 * HOST_BPS)
    lattice, rates = lattice_and_rates(fabric)
    size_bytes = 64 * MIB
    form_ps = all_to_all_ps(lattice, size_bytes, rates)
    if max(sides) % 2 == 0:
        assert form_ps == pytest.approx(max(sides) / 8 * size_bytes * 8 * SECOND_PS / rates.link_bps)
    keys = {"operation": "all-to-all", "algorithm": "direct"}
    assert took_ps(fabric, size_bytes, transport=SPRAY, **keys) == pytest.approx(form_ps, rel=0.002)


@pytest.mark.parametrize("sides", [(4, 4), (8,)])
def test_packets_of_a_sprayed_all_to_all_collide_a_little(sides: tuple[int, ...]) -> None:
    fabric = grid_fabric(*sides, host_bps=2 * HOST_BPS)
    lattice, rates = lattice_and_rates(fabric)
    keys = {"operation": "all-to-all", "algorithm": "direct"}
    found = took_ps(fabric, 4 * MIB, "packet", transport=SPRAY, **keys)
    assert 1 <= found / all_to_all_ps(lattice, 4 * MIB, rates) < 1.15


@pytest.mark.parametrize("across", ["ring", "direct"])
@pytest.mark.parametrize("within", ["ring", "direct"])
@pytest.mark.parametrize("size_bytes", [MIB, 64 * MIB])
def test_a_hierarchical_all_reduce_over_groups_takes_its_closed_form(size_bytes: int, within: str, across: str) -> None:
    fabric = fabric_of(
        topology="dragonfly", groups=3, hosts_per_router=2, routers_per_group=4, global_ports=2,
        link_rate_bps=LINK_BPS,
    )  # fmt: skip
    placement = packed(fabric, fabric.gpus)
    rates = group_rates(fabric, placement, group_ranks(fabric, placement), payload_share=PAYLOAD_SHARE)
    assert rates is not None
    assert (rates.members, rates.groups) == (8, 3)
    keys = {
        "operation": "all-reduce",
        "algorithm": "hierarchical",
        "level": "group",
        "within": within,
        "across": across,
    }
    form_ps = group_time_ps("all-reduce", {"within": within, "across": across}, size_bytes, rates)
    assert took_ps(fabric, size_bytes, **keys) == pytest.approx(form_ps, rel=0.02)
