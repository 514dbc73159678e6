"""A fabric of 131,072 GPUs is built, placed and routed as a small one; what is too large is refused with a reason."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from weftwork.base.errors import ConfigError
from weftwork.engine import lower as lowering
from weftwork.engine.flow.paths import FlowPaths
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import load
from weftwork.spec.fabric import HOST, Fabric
from weftwork.spec.transport import Transport
from weftwork.topology.build import fabric_of
from weftwork.workload import placement
from weftwork.workload.traffic.patterns.incast import incast

GPUS = 131_072


@cache
def large() -> Fabric:
    return fabric_of(topology="rail-optimized", gpus=GPUS, node="dgx-h100", switch="tomahawk-5", tiers=3)


def test_every_port_reaches_every_pod_over_at_most_three_tiers() -> None:
    fabric = large()
    ports = np.flatnonzero(fabric.node_kind[fabric.ports.node] == HOST)
    for mode in ("hashed", "deterministic", "spray"):
        found = FlowPaths(fabric, mode).paths(ports, np.roll(ports, 8 * 4_099 + 3))
        assert found.about["reachable"].all()
        assert found.about["links"].max() == 6


def test_loads_are_those_of_an_even_split_after_a_link_has_failed() -> None:
    fabric = large()
    ports = np.flatnonzero(fabric.node_kind[fabric.ports.node] == HOST)
    router = FlowPaths(fabric, "spray")
    link_up = np.ones(len(fabric.links), np.bool_)
    dead = fabric.link("leaf3-spine5")
    link_up[dead] = False
    router.use(link_up)
    below = ports[fabric.ports.node[fabric.ports.peer[ports]] == fabric.node("leaf3")]
    found = router.paths(ports[-len(below) :], below)  # from the last pod to the leaf that has lost a link
    loads = router.port_loads(found, np.ones(len(below)))
    assert loads[fabric.ports.link == dead].max() == 0
    into = loads[fabric.ports.node[fabric.ports.peer] == fabric.node("leaf3")]
    assert into.sum() == pytest.approx(len(below))
    assert into[into > 0] == pytest.approx(len(below) / 63)  # of 64 spines
    assert np.allclose(router.port_loads(found, np.zeros(len(below))), 0)


def without_cores(fabric: Fabric) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """All links but those from the first spine to the cores, so that its leaves have parents that reach less."""
    link_up = np.ones(len(fabric.links), np.bool_)
    spine = fabric.node("spine0")
    link_up[(fabric.links["a"] == spine) & (fabric.node_tier[fabric.links["b"]] == 3)] = False
    return link_up


def test_a_spine_that_has_lost_its_cores_is_left_out_of_long_paths() -> None:
    fabric = large()
    ports = np.flatnonzero(fabric.node_kind[fabric.ports.node] == HOST)
    router = FlowPaths(fabric, "spray")
    router.use(without_cores(fabric))
    loads = router.port_loads(router.paths(ports[:1], ports[-1:]), np.ones(1))
    up = loads[fabric.ports.node == fabric.ports.node[fabric.ports.peer[ports[0]]]]
    assert up[up > 0] == pytest.approx(1 / 63)


def test_a_fabric_that_is_too_large_to_search_is_refused() -> None:
    router = FlowPaths(large(), "hashed", most_steps=1_000_000)
    with pytest.raises(ConfigError, match="do not form tiers, and it is too large to search 2048 destinations"):
        router.use(without_cores(large()))


def test_the_packet_engine_refuses_what_its_routes_cannot_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lowering, "MAX_ROUTES", 10)
    fabric = fabric_of(topology="leaf-spine", leaves=2, spines=2, hosts_per_leaf=2)
    with pytest.raises(ConfigError, match=r"8 x 2, wanted at most 10; take a smaller fabric, or engine.fidelity: flow"):
        lowering.lower(
            fabric=fabric,
            job=incast(hosts=4, senders=2, size_bytes=1_000, seed=1),
            transport=Transport(),
            congestion_control=load("congestion_control", "none"),
            settings=EngineSettings(port_selection=load("port_selection", "ecmp")),
        )


@pytest.mark.parametrize("name", sorted(placement.PLACEMENTS))
def test_ranks_are_placed_on_distinct_gpus(name: str) -> None:
    placed = placement.PLACEMENTS[name](large(), GPUS, seed=3)
    assert placed.gpu is not None
    assert len(np.unique(placed.host.astype(np.int64) * 8 + placed.gpu)) == GPUS
