"""Optical switches that change circuits while a job runs: circuits, instants, routes and both packet engines."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from helpers.both import both

import weftwork
from weftwork.base.errors import ConfigError
from weftwork.engine.instants import LinkState, link_states
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.rows.fabric import Instant
from weftwork.spec.fabric import Fabric
from weftwork.study.prepare import what_if
from weftwork.study.prepare.prepared import Prepared
from weftwork.study.record.road import execute
from weftwork.study.results.link_use import rate_steps, sent_bytes
from weftwork.study.results.record import about
from weftwork.topology.build import fabric_of
from weftwork.topology.optical_circuits import first_wiring, with_wirings
from weftwork.topology.torus_lattice import TorusLattice, twisted

US_PS = 1_000_000
TWIST = {"at": "10us", "event": "rewire", "twisted": True, "switching_time": "20us", "bring_up": "30us"}
BACK = {"at": "80us", "event": "rewire", "switching_time": "20us", "bring_up": "0us"}


def scenario(*faults: dict[str, Any], **sections: Any) -> dict[str, Any]:
    return {
        "schema": 3,
        "fabric": {
            "topology": "tpu-pod", "slice": [4, 4, 8], "link_rate": "100Gbps", "fabric_rate": "100Gbps",
            "routing": "dimension-order", "reconvergence_delay": "5us",
        },
        "transport": {"timeout": "100us"},
        "traffic": {"pattern": "permutation", "size": "128KiB"},
        **({"faults": list(faults)} if faults else {}),
        **sections,
    }  # fmt: skip


def prepared(*faults: dict[str, Any], **sections: Any) -> Prepared:
    return weftwork.prepare(scenario(*faults, **sections))


def ends(fabric: Fabric, kept: Any) -> Counter[tuple[int, int]]:
    """Pairs of nodes that some links join."""
    links = fabric.links[kept]
    return Counter(zip(links["a"].tolist(), links["b"].tolist(), strict=True))


def states(run: Prepared) -> list[LinkState]:
    return link_states(run.fabric, [fault for occurrence in run.faults for fault in occurrence.faults])


def test_each_wiring_has_the_links_of_its_torus() -> None:
    pod = fabric_of(topology="tpu-pod", slice=(4, 8, 8))
    turned = TorusLattice(sides=(4, 4, 16), rings=(True,) * 3)
    fabric, lit = with_wirings(pod, [twisted((4, 8, 8)), turned])
    assert ends(fabric, lit[0]) == ends(fabric_of(topology="tpu-pod", slice=(4, 8, 8)), slice(None))
    assert ends(fabric, lit[1]) == ends(fabric_of(topology="twisted-torus", shape=(4, 8, 8)), slice(None))
    assert np.array_equal(fabric.links_at_start, lit[0])
    assert first_wiring(fabric).links.tolist() == pod.links.tolist()
    assert list(first_wiring(fabric).link_names) == list(pod.link_names)
    # the last wiring joins the same cubes in a row: as a graph it is a torus of 4x4x16 with other numbers
    assert fabric.direct is not None
    assert fabric.direct.optical is not None
    own = lit[2] & (fabric.direct.optical.link_switch >= 0)
    assert fabric.node_pod is not None
    along_z = own & (fabric.direct.link_dimension == 2)
    pairs = Counter(
        zip(*(fabric.node_pod[fabric.links[end][along_z]].tolist() for end in ("a", "b")), strict=True)
    )  # fmt: skip
    assert pairs == {(0, 1): 16, (1, 2): 16, (2, 3): 16, (3, 0): 16}
    assert set(np.bincount(fabric.direct.optical.link_switch[own]).tolist()) == {4}


def test_circuits_go_at_once_and_come_after_switching_and_bring_up() -> None:
    run = prepared(TWIST)
    found = states(run)
    links = ends(run.fabric, slice(None))
    assert [state.at_ps for state in found] == [0, 10 * US_PS, 60 * US_PS]
    assert ends(run.fabric, found[0].works) == ends(prepared().fabric, slice(None))
    assert ends(run.fabric, found[2].works) == ends(
        fabric_of(topology="twisted-torus", shape=(4, 4, 8)), slice(None)
    )  # fmt: skip
    both_have = found[0].works & found[2].works
    assert np.array_equal(found[1].works, both_have)  # what does not change stays up
    assert int(found[0].works.sum() - both_have.sum()) == 64  # the rings of x and y: 2 x 32 circuits
    assert sum(links.values()) == 512 + 64


def test_routes_know_only_circuits_that_exist() -> None:
    run = prepared(TWIST)
    made = run.engine_input
    assert isinstance(made, PacketInput)
    fabric, ports = run.fabric, run.fabric.ports
    is_dark = ~fabric.links_at_start[ports.link]
    assert not is_dark[made.routes[0].group_ports].any()
    at_start = made.instants[made.instants["at_ps"] == 0]
    assert {*at_start["code"].tolist()} == {Instant.LINK_DOWN}
    assert sorted(ports.link[at_start["port"]].tolist()) == np.flatnonzero(~fabric.links_at_start).tolist()
    changes = made.instants[made.instants["code"] == Instant.ROUTES]
    assert changes["at_ps"].tolist() == [15 * US_PS, 65 * US_PS]
    last = made.routes[int(changes["value"][-1])]
    assert is_dark[last.group_ports].any()


@pytest.mark.parametrize(
    ("faults", "sections"),
    [
        pytest.param((TWIST,), {}, marks=pytest.mark.deep),
        ((TWIST, BACK, {"at": "30us", "switch": "ocs3", "event": "down"}), {}),
        pytest.param((TWIST,), {"transport": {"timeout": "100us", "flow_control": "none"}}, marks=pytest.mark.deep),
        pytest.param(({"at": "5us", "switch": "ocs33", "event": "down", "for": "20us"},), {}, marks=pytest.mark.deep),
    ],
)
def test_both_packet_engines_agree_and_deliver_everything(
    faults: tuple[dict[str, Any], ...], sections: dict[str, Any]
) -> None:
    made = prepared(*faults, **sections).engine_input
    assert isinstance(made, PacketInput)
    assert both(made).complete


@pytest.mark.parametrize("fidelity", ["packet", "flow"])
def test_a_run_uses_the_new_circuits_and_none_that_is_dark(fidelity: str) -> None:
    sections = {"traffic": {"pattern": "permutation", "size": "2MiB"}, "engine": {"fidelity": fidelity}}
    routing = {"routing": "dimension-order" if fidelity == "packet" else "shortest"}
    document = scenario(TWIST, **sections)
    document["fabric"] |= routing
    run = weftwork.prepare(document)
    execution = execute(run)
    assert execution.outcome.complete
    sent = sent_bytes(run, execution)
    link = run.fabric.ports.link
    fresh = ~run.fabric.links_at_start[link]
    assert sent[fresh].sum() > 0
    steps = rate_steps(run, execution.outcome.simulated_ps)
    new = np.flatnonzero(~run.fabric.links_at_start).tolist()
    assert [steps[one] for one in new] == [[(0, 0), (60 * US_PS, 100 * 10**9)]] * len(new)
    assert "512 links" in about(run)["fabric"]


def test_an_optical_switch_that_fails_takes_no_dark_circuit_along() -> None:
    during = {"at": "20us", "switch": "ocs3", "event": "down", "for": "100us"}
    run = prepared(TWIST, during)
    found = {state.at_ps: state.works for state in states(run)}
    twist = ends(fabric_of(topology="twisted-torus", shape=(4, 4, 8)), slice(None))
    lost = twist - ends(run.fabric, found[60 * US_PS])
    assert sum(lost.values()) == 2
    assert ends(run.fabric, found[120 * US_PS]) == twist


def test_a_cube_can_fail_while_a_job_runs() -> None:
    run = prepared({"at": "5us", "switch": "cube1", "event": "down"}, engine={"until": "1ms"})
    works = states(run)[-1].works
    assert run.fabric.node_pod is not None
    is_chip = run.fabric.node_kind == 1
    for end in ("a", "b"):
        nodes = run.fabric.links[end][works]
        assert not (is_chip[nodes] & (run.fabric.node_pod[nodes] == 1)).any()


def test_a_run_without_its_rewiring_has_the_first_fabric() -> None:
    run = prepared(TWIST)
    again = what_if.with_section(run, faults=())
    assert again.fabric.links.tolist() == prepared().fabric.links.tolist()
    same = what_if.with_section(run, faults=run.scenario.faults)
    assert same.fabric.links.tolist() == run.fabric.links.tolist()
    assert [fault.at_ps for fault in same.faults] == [10 * US_PS, 60 * US_PS]


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (TWIST | {"twisted": False}, "changes no circuit: the slice already has this wiring"),
        (TWIST | {"slice": [4, 4, 16], "twisted": False}, "found 4x4x16 (4 cubes), wanted 2 cubes, as 4x4x8 (2 cubes)"),
        (TWIST | {"slice": [4, 4, 12]}, "found 4x4x12, wanted K x K x 2K"),
        (TWIST | {"link": "chip0-chip1"}, "means nothing for 'rewire', which changes circuits of the whole slice"),
        (TWIST | {"for": "1ms"}, "means nothing for 'rewire', which happens once"),
        ({"at": "1us", "event": "down", "link": "chip0-chip1", "bring_up": "1s"}, "only with"),
    ],
)
def test_rewirings_that_are_impossible_are_refused(fault: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        prepared(fault)
    assert told in str(wrong.value)


def test_a_rewiring_waits_for_the_one_before() -> None:
    with pytest.raises(ConfigError, match="begins before the rewiring that ends at 60us"):
        prepared(TWIST, BACK | {"at": "59us"})


@pytest.mark.parametrize(
    "fabric",
    [{"topology": "torus", "shape": [4, 4]}, {"topology": "tpu-pod", "slice": [4, 4, 8], "optical_switches": False}],
)
def test_only_a_slice_behind_optical_switches_can_be_rewired(fabric: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="has no optical switches; wanted a tpu-pod with whole cubes"):
        prepared(TWIST, fabric=fabric, transport={"flow_control": "none"})
