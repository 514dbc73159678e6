"""Planned paths: what a controller knows, when it computes again, and that every engine takes its paths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from helpers.both import both

import weftwork
from weftwork.base.errors import CodeError, ConfigError
from weftwork.engine import packet
from weftwork.engine.flow import run as flow
from weftwork.engine.rows.fabric import Instant
from weftwork.spec.scenario.scenario import loads
from weftwork.spec.scenario.written import dump
from weftwork.study.prepare.prepare import check_parameters, known_names, prepare
from weftwork.study.prepare.prepared import Prepared

US_PS = 10**6
FABRIC = {
    "topology": "leaf-spine", "leaves": 4, "spines": 4, "hosts_per_leaf": 4, "link_rate": "100Gbps",
    "link_delay": "500ns", "reconvergence_delay": "5us",
}  # fmt: skip


def document(scheme: str = "placement", fidelity: str = "packet", **sections: Any) -> dict[str, Any]:
    made = {
        "schema": 3,
        "fabric": FABRIC | {"engineering": {"scheme": scheme}},
        "transport": {"timeout": "100us"},
        "engine": {"fidelity": fidelity, "seed": 3},
    }
    fabric = made["fabric"] | sections.pop("fabric", {})
    if not {"collective", "training", "traffic"} & set(sections):
        made["traffic"] = {"pattern": "permutation", "size": "64KiB"}
    return made | sections | {"fabric": fabric}


def prepared(scheme: str = "placement", fidelity: str = "packet", **sections: Any) -> Prepared:
    text = yaml.safe_dump(document(scheme, fidelity, **sections))
    return prepare(loads(text, known=known_names(), check_parameters=check_parameters))


def refused(scheme: str = "placement", **sections: Any) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        prepared(scheme, **sections)
    return {one.path: one.text for one in caught.value.mistakes}


SCHEMES = ["constrained-shortest-paths", "greedy", "placement"]


def link_of_host0() -> str:
    """The link by which the planned path of the first host leaves its leaf."""
    made = prepared()
    assert made.planned is not None
    path = next(path for (source, _), path in made.planned.first_paths.items() if source == 0)
    return str(made.fabric.link_names[made.fabric.ports.link[path[0]]])


FAULTS = [{"at": "5us", "link": "leaf0-spine1", "event": "down", "for": "40us"}]
AGAIN: dict[str, Any] = {"interval": "16us"}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_both_engines_agree_and_flows_take_the_same_links(scheme: str) -> None:
    one, two = prepared(scheme), prepared(scheme, "flow")
    assert one.planned is not None
    assert two.planned is not None
    assert one.planned.first_paths == two.planned.first_paths
    both(one.engine_input)  # type: ignore[arg-type]
    columns = ["queue_pair", "port", "packets"]
    told = packet.run(one.engine_input, series=packet.Series(path_sample=1)).paths  # type: ignore[arg-type]
    found = flow.run(two.engine_input).packets.paths  # type: ignore[arg-type]
    assert told[columns].tolist() == found[columns].tolist()
    ports = {port for path in one.planned.first_paths.values() for port in path}
    node = one.fabric.node_tier[one.fabric.ports.node]
    between = (node >= 1) & (one.fabric.node_tier[one.fabric.ports.node[one.fabric.ports.peer]] >= 1)
    assert set(np.unique(told["port"][between[told["port"]]]).tolist()) == ports


@pytest.mark.parametrize("scheme", SCHEMES)
def test_both_engines_agree_when_paths_are_computed_again(scheme: str) -> None:
    sections: dict[str, Any] = {
        "faults": FAULTS,
        "fabric": {"engineering": {"scheme": scheme, **AGAIN}},
        "traffic": {"pattern": "permutation", "size": "256KiB"},
    }
    made = prepared(scheme, **sections)
    both(made.engine_input)  # type: ignore[arg-type]
    instants = made.engine_input.instants
    at_us = (instants["at_ps"][instants["code"] == Instant.ROUTES] // US_PS).tolist()
    assert at_us == [10, 16, 50, 64]  # the fault and 5 us, its epoch; its end and 5 us, the epoch of that
    assert made.planned is not None
    assert [one.at_ps // US_PS for one in made.planned.computed] == [0, 16, 64]


def test_between_a_fault_and_the_epoch_only_dead_paths_are_left() -> None:
    """Layers of the first table, of routes that know of the fault, and of the new paths."""
    dead = link_of_host0()
    faults = [{"at": "5us", "link": dead, "event": "down"}]
    made = prepared(faults=faults, fabric={"engineering": {"scheme": "placement", **AGAIN}})
    assert made.planned is not None
    tables = made.engine_input.routes
    assert len(tables) == 3
    links = made.fabric.ports.link
    changed = [pin for pin in made.planned.pins if made.fabric.link(dead) in links[list(pin.ports)]]
    assert changed
    for pin in made.planned.pins:
        assert made.fabric.link(dead) not in links[list(pin.later[0])]
    known = [(table.layer_of[..., : table.pinned_ways] >= 0).sum() for table in tables]
    assert known[0] - known[1] == len(changed)
    assert known[2] == known[0]


def test_without_an_interval_paths_stay() -> None:
    made = prepared(faults=FAULTS)
    assert made.planned is not None
    assert len(made.planned.computed) == 1


def test_a_slower_link_moves_paths_although_routes_stay() -> None:
    faults = [{"at": "1us", "link": link_of_host0(), "event": "degrade", "fraction": 0.1}]
    made = prepared(faults=faults, fabric={"engineering": {"scheme": "placement", **AGAIN}})
    assert made.planned is not None
    assert len(made.planned.computed) == 2
    both(made.engine_input)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "sections",
    [
        {"collective": {"operation": "all-to-all", "size": "256KiB"}},
        {"collective": {"operation": "all-reduce", "algorithm": "ring", "size": "256KiB", "channels": 2}},
        {"traffic": {"pattern": "poisson", "sizes": "web-search", "load": 0.3, "flows": 12}},
        {
            "fabric": {"node": {"gpus": 2, "nic_ports": 2}, "dual_homed": True, "hosts_per_leaf": 4, "spines": 2},
            "collective": {"operation": "all-reduce", "algorithm": "ring", "size": "256KiB"},
            "faults": [{"at": "20us", "nic": "host0/nic0", "event": "down"}],
        },
    ],
)
def test_both_engines_agree_on_other_jobs(sections: dict[str, Any]) -> None:
    made = prepared("greedy", **sections)
    assert made.planned is not None
    assert made.planned.computed[0].pairs > 0
    both(made.engine_input)  # type: ignore[arg-type]


def test_paths_are_those_that_routing_has() -> None:
    every = prepared(fabric={"routing": "k-shortest", "paths": 6})
    assert every.planned is not None
    assert every.planned.most_candidates == 6  # four by a spine, two longer ones
    few = prepared()
    assert few.planned is not None
    assert few.planned.most_candidates == 4


def test_what_would_leave_the_paths_is_refused() -> None:
    sprayed = {"path_selection": "spray", "reorder_tolerant": True}
    assert "which 'spray' changes" in refused(transport=sprayed)["transport.path_selection"]
    pins = [{"from": "host0", "to": "host5", "path": ["leaf0", "spine1", "leaf1"]}]
    assert "give one of the two" in refused(fabric={"pinned": pins})["fabric.pinned"]


def test_a_file_of_ones_own_is_a_scheme(tmp_path: Path) -> None:
    text = '''"""First: everybody takes the first path."""
from typing import Final
from weftwork.spec.plug_in import NoKeys, PathProblem, PathScheme, Planned

def place(_: NoKeys, problem: PathProblem) -> Planned:
    return Planned(chosen=problem.path_ptr[problem.relation]{more})

SCHEME: Final = PathScheme(place=place, source="chosen: a test")
'''
    file = tmp_path / "first.py"
    file.write_text(text.replace("{more}", ""), encoding="utf-8")
    made = prepared(str(file))
    assert made.planned is not None
    assert made.planned.computed[0].busiest_share > 1
    file.write_text(text.replace("{more}", " - 1"), encoding="utf-8")
    with pytest.raises(CodeError, match="a path outside the pair's candidates"):
        prepared(str(file))


def test_paths_in_the_run_folder_can_be_pinned(tmp_path: Path) -> None:
    scenario = tmp_path / "a.yaml"
    scenario.write_text(yaml.safe_dump(document("greedy")), encoding="utf-8")
    run = weftwork.run(scenario, out=tmp_path / "planned", what_if="none")
    said = run.provenance["engineering"]
    assert (said["scheme"], said["computed"][0]["pairs"]) == ("greedy", run.summary["planned_pairs"]["value"])
    assert run.summary["planned_busiest_link"]["value"] == said["computed"][0]["busiest_share"]
    pinned = yaml.safe_load((tmp_path / "planned" / said["file"]).read_text(encoding="utf-8"))["fabric"]["pinned"]
    made = document("greedy")
    made["fabric"] = FABRIC | {"pinned": pinned}
    scenario.write_text(yaml.safe_dump(made), encoding="utf-8")
    again = weftwork.run(scenario, out=tmp_path / "pinned", what_if="none")
    assert again.provenance["digest"] == run.provenance["digest"]
    assert "engineering" not in again.provenance


def test_what_is_read_is_what_is_written() -> None:
    text = yaml.safe_dump(document(fabric={"engineering": {"scheme": "placement", "interval": "10ms", "gap": 0.1}}))
    scenario = loads(text, known=known_names())
    again = loads(dump(scenario), known=known_names())
    assert again.fabric.engineering == scenario.fabric.engineering
    assert scenario.fabric.engineering is not None
    assert scenario.fabric.engineering.interval_ps == 10**10
