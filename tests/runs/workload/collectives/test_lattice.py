"""The box of a torus that the GPUs of a job fill: found, or refused with the reason; what auto takes there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.both import both
from helpers.lattice_fabrics import grid_fabric, scenario_on, took_ps

from weftwork.base.errors import ConfigError
from weftwork.spec.fabric import Fabric
from weftwork.spec.job import Placement
from weftwork.study.prepare.collective import method_used
from weftwork.study.prepare.prepare import prepare
from weftwork.testing.lattices import torus_of
from weftwork.topology.build import fabric_of
from weftwork.workload.collectives.call import Call
from weftwork.workload.collectives.catalogue import ALGORITHMS, schedule
from weftwork.workload.collectives.fabric_lattice import LatticePlaces, NoLattice, in_order, lattice_of
from weftwork.workload.collectives.group_time import group_ranks, group_rates
from weftwork.workload.collectives.lattice_lanes import swing_lanes
from weftwork.workload.placement import packed, random

LINK_BPS = 100_000_000_000


def found_on(fabric: Fabric, placement: Placement | None = None) -> LatticePlaces:
    found = lattice_of(fabric, packed(fabric, fabric.gpus) if placement is None else placement)
    assert isinstance(found, LatticePlaces)
    return found


def reason_of(fabric: Fabric, placement: Placement | None = None) -> str:
    found = lattice_of(fabric, packed(fabric, fabric.gpus) if placement is None else placement)
    assert isinstance(found, NoLattice)
    return found.reason


def without_link(fabric: Fabric, one: int, other: int) -> Fabric:
    """Without the link between two switches."""
    a, b = fabric.links["a"], fabric.links["b"]
    first = len(fabric.hosts)
    kept = ~(((a == first + one) & (b == first + other)) | ((b == first + one) & (a == first + other)))
    assert kept.sum() == len(a) - 1
    assert fabric.direct is not None
    return replace(fabric, links=fabric.links[kept], direct=fabric.direct.without(kept))


def test_a_whole_torus_is_a_box_of_closed_axes() -> None:
    found = found_on(grid_fabric(4, 3, 1, 2))
    assert [(axis.name, axis.size, axis.is_closed) for axis in found.lattice.axes] == [
        ("x", 4, True), ("y", 3, True), ("w", 2, False),
    ]  # fmt: skip
    assert found.order.tolist() == list(range(24))


def test_a_part_of_a_torus_has_open_axes_where_its_rings_do_not_close() -> None:
    fabric = grid_fabric(4, 4, 4)
    found = found_on(fabric, packed(fabric, 32))
    assert [(axis.size, axis.is_closed) for axis in found.lattice.axes] == [(4, True), (4, True), (2, False)]
    assert not any(axis.is_closed for axis in found_on(grid_fabric(4, 4, closed=False)).lattice.axes)


def test_ranks_in_any_order_are_put_in_that_of_the_box() -> None:
    fabric = grid_fabric(4, 4)
    placement = random(fabric, 16, seed=3)
    places = found_on(fabric, placement)
    assert in_order(placement, places).host.tolist() == list(range(16))
    assert took_ps(fabric, 1 << 20, algorithm="bucket", placement="random") == took_ps(
        fabric, 1 << 20, algorithm="bucket"
    )


@pytest.mark.parametrize(
    ("fabric", "ranks", "words"),
    [
        (fabric_of(topology="leaf-spine", hosts=8, radix=8), 8, "the switches of this fabric have no coordinates"),
        (grid_fabric(4, 4), 6, "do not fill their box of 4x2: 2 places without a GPU, (2, 1), (3, 1)"),
        (grid_fabric(4, 4, hosts=11), 11, "1 place without a GPU, (3, 2)"),
        (without_link(grid_fabric(4, 4), 5, 6), 16, "no link joins (1, 1) and (2, 1) along x"),
        (without_link(grid_fabric(4, 4), 3, 0), 16, "a link that closes a ring along x is missing"),
        (grid_fabric(4, 4, twist=2), 16, "a link joins (3, 0) and (0, 2), which are no neighbours"),
        (
            fabric_of(topology="dragonfly", groups=3, hosts_per_router=2, routers_per_group=4, global_ports=2,
                      link_rate_bps=LINK_BPS),
            24,
            "2 GPUs share the place (0, 0); wanted one on each place",
        ),
    ],
)  # fmt: skip
def test_gpus_without_a_box_are_refused_with_the_reason(fabric: Fabric, ranks: int, words: str) -> None:
    assert words in reason_of(fabric, packed(fabric, ranks))


def test_a_scenario_that_needs_a_box_says_what_is_missing() -> None:
    fabric = grid_fabric(4, 4)
    with pytest.raises(ConfigError, match=r"bucket needs GPUs that fill a box .* \(2, 1\), \(3, 1\)"):
        prepare(scenario_on(fabric, algorithm="bucket", gpus=6), fabric=fabric)


def mistakes(name: str, call: Call) -> dict[str, str]:
    with pytest.raises(ConfigError) as error:
        schedule(name, call)
    return {mistake.path: mistake.text for mistake in error.value.mistakes}


def call_on(*sides: int, **keys: Any) -> Call:
    lattice = torus_of(*sides)
    return Call(**{"operation": "all-reduce", "ranks": lattice.size, "size_bytes": 1 << 20, "lattice": lattice, **keys})


def test_swing_refuses_sides_that_are_no_powers_of_two() -> None:
    found = mistakes("swing", call_on(4, 6))
    assert "6 along axis 1" in found["collective.algorithm"]
    assert "bucket takes any side" in found["collective.algorithm"]


def test_a_call_fits_its_lattice() -> None:
    assert "the 16 places of the box of 4x4" in mistakes("bucket", call_on(4, 4, ranks=12))["collective.gpus"]
    assert "an NVLink domain has 4 GPUs" in mistakes("bucket", call_on(4, 4, domain=4))["collective.algorithm"]
    latency = ALGORITHMS["swing"].keys(version="latency")
    assert "wanted bandwidth" in mistakes("swing", call_on(4, 4, operation="all-gather", options=latency))[
        "collective.version"
    ]  # fmt: skip


def test_partners_of_swing_find_each_other_and_share_bits_of_their_labels() -> None:
    for lane in swing_lanes(torus_of(4, 8, 2)):
        labels = lane.labels()
        assert sorted(labels) == list(range(64))
        for step in range(len(lane.steps)):
            partners = lane.partners(step)
            for rank, partner in enumerate(partners):
                assert partners[partner] == rank != partner
                assert (labels[rank] ^ labels[partner]) % (2 << step) == 1 << step


def taken(fabric: Fabric, size_bytes: int, **keys: Any) -> tuple[str, str]:
    section = scenario_on(fabric, algorithm="auto", size=size_bytes, **keys).collective
    assert section is not None
    return method_used(section, fabric, seed=0)


def test_auto_takes_swing_for_small_sizes_and_a_bucket_for_large_ones_on_a_torus() -> None:
    fabric = grid_fabric(8, 8)
    names = [taken(fabric, size_bytes)[0] for size_bytes in (1 << 10, 1 << 20, 1 << 26, 1 << 30)]
    assert names == ["swing", "swing", "bucket", "bucket"]
    assert taken(grid_fabric(6, 6), 1 << 10)[0] == "bucket"
    assert taken(fabric, 1 << 10, protocol="simple") == ("swing", "ll")
    assert taken(fabric, 1 << 30, protocol="ll128") == ("bucket", "ll128")


def test_auto_takes_the_faster_one_on_flows() -> None:
    fabric = grid_fabric(8, 8)
    for size_bytes in (1 << 16, 1 << 26):
        times_ps = {
            (name, key): took_ps(fabric, size_bytes, algorithm=name, **{option: key})
            for name, option, keys in (
                ("bucket", "rings", ("all", "both", "one")),
                ("swing", "version", ("bandwidth", "latency")),
            )
            for key in keys
        }
        assert took_ps(fabric, size_bytes, algorithm="auto") == min(times_ps.values())


def test_auto_takes_groups_of_a_dragonfly_and_leaves_trees_to_nccl() -> None:
    dragonfly = fabric_of(
        topology="dragonfly", groups=3, hosts_per_router=2, routers_per_group=4, global_ports=2, link_rate_bps=LINK_BPS
    )
    assert taken(dragonfly, 1 << 20)[0] == "hierarchical"
    assert taken(dragonfly, 1 << 20, operation="all-to-all")[0] == "direct"
    job = prepare(scenario_on(dragonfly, algorithm="auto", size=1 << 20), fabric=dragonfly)
    assert "auto took hierarchical, level group" in job.notes["collective.algorithm"].text
    assert taken(fabric_of(topology="leaf-spine", hosts=16, radix=8), 1 << 28)[0] in {"ring", "tree"}


def test_groups_are_whole_blocks_of_ranks() -> None:
    fabric = fabric_of(
        topology="dragonfly", groups=3, hosts_per_router=2, routers_per_group=4, global_ports=2, link_rate_bps=LINK_BPS
    )
    assert group_ranks(fabric, packed(fabric, 24)) == 8
    assert group_ranks(fabric, packed(fabric, 16)) == 8
    assert group_ranks(fabric, packed(fabric, 20)) == 1
    assert group_ranks(fabric, random(fabric, 24, seed=1)) == 1
    assert group_ranks(grid_fabric(4, 4), packed(grid_fabric(4, 4), 16)) == 1
    one = packed(fabric, 8)
    assert group_rates(fabric, one, 8) is None  # a single group
    assert np.unique(one.host).size == 8


@pytest.mark.parametrize("keys", [{"algorithm": "bucket"}, {"algorithm": "swing"}, {"algorithm": "auto"}])
def test_both_packet_engines_agree_on_a_lossless_torus(keys: dict[str, Any]) -> None:
    scenario = {
        "schema": 3,
        "fabric": {"topology": "torus", "shape": [4, 2], "link_rate": "400Gbps", "fabric_rate": "100Gbps",
                   "routing": "dimension-order"},
        "transport": {"congestion_control": "fixed-window"},
        "collective": {"size": "40KiB", "protocol": "none", **keys},
    }  # fmt: skip
    outcome = both(prepare(scenario).engine_input)
    assert outcome.complete
    assert outcome.counters["packet_hops"] > 8 * 14  # every GPU sends in each step
