"""TPU pods: published counts, optical switches, cubes that fail, fixed cables, and slices that do not fit.

Sources: Jouppi et al., ISCA 2023, arXiv:2304.01433: 64 cubes, 48 optical switches, 128 of 136 ports in use. Ironwood's
13,824 used ports (144 cubes, 48 switches of 288 ports) are second hand.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
from helpers.cases import case_count
from helpers.lattice_paths import channels, distances, lowest_dimensions
from helpers.switch_graph import degrees, switch_ends
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.spec.fabric import Fabric
from weftwork.spec.fabric_direct import OpticalSwitches
from weftwork.topology.build import fabric_of
from weftwork.topology.largest import fabric_limits
from weftwork.topology.lost_names import find_lost
from weftwork.topology.tpu_slices import blocks, cubes_of, grid_of, largest_slice, place_slice

SLICES = st.tuples(*[st.sampled_from([4, 8, 12])] * 3).filter(lambda sides: math.prod(sides) <= 768)


def pod(*sides: int, **keys: Any) -> Fabric:
    return fabric_of(topology="tpu-pod", slice=sides or None, **keys)


def optics(fabric: Fabric) -> OpticalSwitches:
    assert fabric.direct is not None
    assert fabric.direct.optical is not None
    return fabric.direct.optical


def refusal(*sides: int, **keys: Any) -> str:
    with pytest.raises(ConfigError) as wrong:
        pod(*sides, **keys)
    return str(wrong.value)


def cubes(fabric: Fabric) -> list[int]:
    """Cubes of the switches, each with its 64 chips."""
    assert fabric.node_pod is not None
    found = Counter(fabric.node_pod[len(fabric.hosts) :].tolist())
    assert set(found.values()) == {64}
    return sorted(found)


def test_a_whole_pod_has_the_published_counts() -> None:
    fabric = pod()
    of = optics(fabric).link_switch
    assert (len(fabric.hosts), len(of) - 4_096) == (4_096, 3 * 4_096)
    optical = of[of >= 0]
    assert len(optics(fabric).names) == 48
    assert optics(fabric).ports == 136
    assert set(np.bincount(optical).tolist()) == {64}  # circuits; 128 ports
    assert 2 * len(optical) == 6_144  # ends of fibres
    assert fabric.node_pod is not None
    ends = np.concatenate([fabric.links[end][of >= 0] for end in ("a", "b")])
    assert set(np.bincount(fabric.node_pod[ends]).tolist()) == {96}
    assert fabric.links["rate_bps"][-1] == 400_000_000_000
    assert fabric.links["rate_bps"][0] == 6 * 400_000_000_000


def test_ports_of_a_pod_of_144_cubes() -> None:
    fabric = pod(cubes=144, optical_ports=288, hosts=1)
    of = optics(fabric).link_switch
    assert 2 * int((of >= 0).sum()) == 13_824 == 144 * 96
    assert set(np.bincount(of[of >= 0]).tolist()) == {144}


@settings(max_examples=case_count(plain=12, deep=60))
@given(sides=SLICES, failed=st.sets(st.integers(0, 19), max_size=6))
def test_a_slice_is_a_torus_whose_circuits_use_each_port_of_a_cube_once(
    sides: tuple[int, ...], failed: set[int]
) -> None:
    fabric = pod(*sides, cubes=20, failed_cubes=tuple(f"cube{cube}" for cube in failed))
    torus = fabric_of(topology="torus", shape=sides)
    assert np.array_equal(fabric.links[["a", "b"]], torus.links[["a", "b"]])
    assert fabric.direct is not None
    assert torus.direct is not None
    assert np.array_equal(fabric.direct.link_wraps, torus.direct.link_wraps)
    assert not {*cubes(fabric)} & failed
    assert cubes(fabric) == [cube for cube in range(20) if cube not in failed][: math.prod(cubes_of(sides))]
    _check_circuits(fabric)


@pytest.mark.parametrize("sides", [(4, 4, 8), (8, 4, 8), (8, 8, 16), (8, 16, 16)])
def test_a_twisted_slice_is_a_twisted_torus_by_other_circuits_alone(sides: tuple[int, ...]) -> None:
    fabric, straight = pod(*sides, twisted=True), pod(*sides)
    torus = fabric_of(topology="twisted-torus", shape=sides)
    assert np.array_equal(fabric.links[["a", "b"]], torus.links[["a", "b"]])
    _check_circuits(fabric)
    copper = optics(fabric).link_switch < 0
    assert np.array_equal(copper, optics(straight).link_switch < 0)
    assert np.array_equal(fabric.links[copper], straight.links[copper])
    ways = channels(fabric)
    hops = distances(ways, math.prod(sides), np.arange(1))[0]
    assert lowest_dimensions(ways, hops)[1].all()


def _check_circuits(fabric: Fabric) -> None:
    """Each cube has a link in + and in - direction at every optical switch, at the switch's own face position."""
    assert fabric.direct is not None
    assert fabric.node_pod is not None
    through, of = optics(fabric).link_switch, fabric.direct.link_dimension
    own = np.flatnonzero(through >= 0)
    at = fabric.direct.coordinates % 4
    for end, place in (("a", 3), ("b", 0)):
        nodes = fabric.links[end][own]
        dimension = of[own].astype(int)
        assert (at[nodes, dimension] == place).all()
        u, v = np.array([[1, 2], [0, 2], [0, 1]])[dimension].T
        row = at[nodes]
        rule = 16 * dimension + 4 * row[np.arange(len(own)), v] + row[np.arange(len(own)), u]
        assert np.array_equal(rule, through[own])
        ports = Counter(zip(through[own].tolist(), fabric.node_pod[nodes].tolist(), strict=True))
        assert set(ports.values()) == {1}
        assert len(ports) == 48 * len(cubes(fabric))


@pytest.mark.parametrize("sides", [(2, 2, 1), (2, 2, 2), (2, 4, 4), (1, 1, 2)])
def test_a_part_of_a_cube_is_a_mesh_without_optical_switches(sides: tuple[int, ...]) -> None:
    fabric, mesh = pod(*sides, failed_cubes=("0", "cube1")), fabric_of(topology="mesh", shape=sides)
    assert np.array_equal(fabric.links[["a", "b"]], mesh.links[["a", "b"]])
    assert fabric.direct is not None
    assert fabric.direct.optical is None
    assert fabric.node_pod is not None
    assert set(fabric.node_pod.tolist()) == {2}


def test_fixed_cables_close_only_dimensions_that_span_the_pod() -> None:
    block = pod(4, 8, 16, optical_switches=False)
    assert block.direct is not None
    assert block.direct.optical is None
    by_dimension = Counter(block.direct.link_dimension[block.direct.link_wraps].tolist())
    assert by_dimension == {2: 4 * 8}
    whole, torus = pod(optical_switches=False), fabric_of(topology="torus", shape=(16, 16, 16))
    assert np.array_equal(whole.links[["a", "b"]], torus.links[["a", "b"]])
    assert set(degrees(whole).tolist()) == {6}


def test_fixed_cables_need_a_block_of_healthy_cubes() -> None:
    layer = tuple(f"cube{cube}" for cube in range(16, 32))  # z = 1 of the pod of 4x4x4 cubes
    moved = pod(8, 8, 8, optical_switches=False, failed_cubes=("cube0",))
    assert cubes(moved) == [1, 2, 5, 6, 17, 18, 21, 22]
    round_the_end = pod(16, 16, 12, optical_switches=False, failed_cubes=layer)
    assert cubes(round_the_end) == [*range(16), *range(32, 64)]
    assert cubes(pod(16, 16, 12, failed_cubes=layer)) == cubes(round_the_end)
    diagonal = [x + 4 * y + 16 * z for x, y, z in product(range(4), repeat=3) if (x + y + z) % 4 == 0]
    failed = tuple(f"cube{cube}" for cube in diagonal)
    assert len(cubes(pod(8, 8, 16, failed_cubes=failed))) == 16
    told = refusal(8, 8, 16, failed_cubes=failed, optical_switches=False)
    assert "48 of 64 cubes are healthy, but no block of 2x2x4 healthy cubes is left in the 4x4x4 cubes" in told
    assert "the largest slice up to this size is " in told


@settings(max_examples=case_count(plain=20, deep=200))
@given(failed=st.sets(st.integers(0, 63), max_size=30), block=st.tuples(*[st.integers(1, 4)] * 3))
def test_a_block_is_found_exactly_if_one_is_healthy(failed: set[int], block: tuple[int, int, int]) -> None:
    sides = tuple(4 * side for side in block)
    placed = place_slice(sides, cubes=64, failed=failed, has_optical=False)
    healthy = [one for one in blocks(64, block) if not failed & {*one}]
    assert (placed is not None) == bool(healthy)
    assert placed is None or frozenset(placed.cubes) in {frozenset(one) for one in healthy}


def test_positions_of_a_block_in_the_pod() -> None:
    assert grid_of(64) == (4, 4, 4)
    assert grid_of(144) == (4, 6, 6)
    assert len(blocks(64, (1, 1, 1))) == len(blocks(64, (4, 4, 3))) * 64 / 12 == 64
    assert len(blocks(64, (1, 1, 2))) == 3 * 64
    assert len(blocks(64, (4, 4, 4))) == 1
    assert blocks(64, (1, 1, 5)) == ()


@pytest.mark.parametrize(
    ("failed", "has_optical", "largest"),
    [(0, True, (16, 16, 16)), (1, True, (12, 12, 28)), (1, False, (12, 16, 16)), (64, True, None)],
)
def test_the_largest_slice(failed: int, has_optical: bool, largest: tuple[int, ...] | None) -> None:  # noqa: FBT001 - a parameter
    assert largest_slice(cubes=64, failed=range(failed), has_optical=has_optical) == largest


def test_cubes_and_optical_switches_can_be_lost_by_name() -> None:
    fabric = pod(4, 4, 8, failed_cubes=("cube0",))
    nodes, links = find_lost(fabric, ["cube2"])
    assert fabric.node_pod is not None
    assert np.array_equal(nodes, fabric.node_pod == 2)
    # hosts, copper, and 96 ends of circuits, of which 32 circuits along x and y have both ends at the cube itself
    assert int(links.sum()) == 64 + 3 * 48 + 96 - 32
    nodes, links = find_lost(fabric, ["ocs33", "ocs2"])
    assert not nodes.any()
    assert sorted(optics(fabric).link_switch[links].tolist()) == [2, 2, 33, 33]
    for name, told in (
        ("cube0", "found 'cube0', which is not in the slice, wanted a cube of it: 1, 2"),
        ("ocs48", "found 'ocs48', wanted ocs0 to ocs47"),
    ):
        with pytest.raises(ConfigError, match=told):
            find_lost(fabric, [name])
    with pytest.raises(ConfigError, match="found 'cube0', which the fabric does not have"):
        find_lost(fabric_of(topology="torus", shape=(4, 4)), ["cube0"])


@pytest.mark.parametrize(
    ("sides", "keys", "told"),
    [
        ((16, 16, 16), {"failed_cubes": ("cube9",)}, "found 16x16x16 (64 cubes), but 63 of 64 cubes are healthy"),
        ((4, 4, 9), {}, "found 4x4x9, wanted sides that are multiples of 4"),
        ((4, 4), {}, "found 2 sides, wanted three"),
        ((2, 3, 4), {}, "a part of one cube with sides of 1, 2 or 4"),
        ((4, 4, 12), {"twisted": True}, "found 4x4x12, wanted K x K x 2K"),
        ((2, 2, 4), {"twisted": True}, "found true, but 2x2x4 (part of a cube) has no rings to shift"),
        ((4, 4, 8), {"twisted": True, "optical_switches": False}, "fixed cables make no twist"),
        ((4, 4, 8), {"cubes": 69}, "found 69, wanted at most 68: an optical switch has 136 ports, two for each cube"),
        ((4, 4, 8), {"failed_cubes": ("cube64",)}, "found 'cube64', wanted cube0 to cube63"),
        ((4, 4, 8), {"failed_cubes": ("rack1",)}, "found 'rack1', wanted cube0 to cube63"),
        ((4, 4, 8), {"radix": 6}, "found 6, but a chip needs 7: 1 port to its host and 6 to neighbours"),
        ((4, 4, 8), {"hosts": 129}, "found 129, wanted at most 128"),
    ],
)
def test_slices_that_do_not_fit_are_refused(sides: tuple[int, ...], keys: dict[str, Any], told: str) -> None:
    assert told in refusal(*sides, **keys)


def test_the_end_of_a_pod_is_counted_with_gaps_between_cubes() -> None:
    found = fabric_limits(pod(4, 8, 8, failed_cubes=("cube1",))).direct
    assert found is not None
    assert "each cube takes 2 of them" in found.ends
    assert found.sizes[-1].endpoints == 68 * 64


def test_links_of_a_slice_join_neighbours() -> None:
    fabric = pod(8, 4, 12, cubes=20)
    assert fabric.direct is not None
    a, b = switch_ends(fabric)
    at = fabric.direct.coordinates[len(fabric.hosts) :]
    step = (at[b] - at[a]) % np.array((8, 4, 12))
    assert (step.sum(axis=1) == 1).all()
