"""Known mistakes of scenarios, which tests plant together.

The mistakes of a bed are independent: each has its own keys, and none changes whether another one is there.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["BEDS", "Bed", "Planted", "planted"]

_LEAVES: Final = {"topology": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4}
_SERVERS: Final = {"topology": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "node": "dgx-h100"}
_TRAFFIC: Final = {"pattern": "permutation", "size": "16KiB"}
_PATH: Final = ["leaf0", "spine0", "leaf1"]


@dataclass(frozen=True, kw_only=True)
class Planted:
    """One mistake.

    Parameters
    ----------
    keys : what is laid over the scenario of the bed; lists of faults and pins grow
    path : of the mistake, with N for a number in a list
    part : of the stage ``parts`` (`weftwork.study.prepare.prepare.PARTS`); empty in other stages
    """

    keys: dict[str, Any]
    path: str
    part: str = ""


@dataclass(frozen=True, kw_only=True)
class Bed:
    """A sound scenario, and mistakes of one stage for it.

    Parameters
    ----------
    stage : that finds them
    scenario : with its sections
    mistakes : by name
    """

    stage: str
    scenario: dict[str, Any]
    mistakes: dict[str, Planted]


def _fault(**keys: Any) -> dict[str, Any]:
    return {"faults": [{"at": "1us", "event": "down", **keys}]}


_FAULTS: Final = {
    "link": Planted(keys=_fault(link="leaf0-zz"), path="faults.N.link", part="faults"),
    "switch": Planted(keys=_fault(switch="leaf9"), path="faults.N.switch", part="faults"),
    "NIC": Planted(keys=_fault(nic="host99"), path="faults.N.nic", part="faults"),
    "rewiring": Planted(
        keys={"faults": [{"at": "2us", "event": "rewire", "slice": [4, 4, 8]}]},
        path="faults.N.event",
        part="rewirings",
    ),
}
_PINS: Final = {
    "pin of nobody": Planted(
        keys={"fabric": {"pinned": [{"from": "host99", "to": "host5", "path": _PATH}]}},
        path="fabric.pinned.N.from",
        part="pins",
    ),
    "pin without a link": Planted(
        keys={"fabric": {"pinned": [{"from": "host1", "to": "host6", "path": ["leaf0", "leaf1"]}]}},
        path="fabric.pinned.N.path",
        part="pins",
    ),
}

BEDS: Final = {
    "packets": Bed(
        stage="parts",
        scenario={"fabric": _LEAVES, "traffic": _TRAFFIC},
        mistakes={
            **_FAULTS,
            **_PINS,
            "recorded ports": Planted(
                keys={"engine": {"record": {"ports": ["leaf9"]}}}, path="engine.record.ports", part="recording"
            ),
            "recorded flows": Planted(
                keys={"engine": {"record": {"flows": [99]}}}, path="engine.record.flows", part="recording"
            ),
        },
    ),
    "routing": Bed(
        stage="parts",
        scenario={"fabric": {"topology": "torus", "shape": [4, 4], "routing": "minimal"}, "traffic": _TRAFFIC},
        mistakes={
            **_FAULTS,
            "routing": Planted(
                keys={"fabric": {"routing": "valiant"}, "transport": {"port_selection": "conga"}},
                path="transport.port_selection",
                part="routing",
            ),
            "engineering": Planted(
                keys={
                    "fabric": {"engineering": {"scheme": "greedy", "interval": "1ms"}},
                    "transport": {"path_selection": "spray", "reorder_tolerant": True},
                },
                path="transport.path_selection",
                part="engineering",
            ),
            "recorded state": Planted(
                keys={"engine": {"record": {"state": ["rate_bps"]}}}, path="engine.record.state", part="recording"
            ),
        },
    ),
    "jobs": Bed(
        stage="parts",
        scenario={
            "fabric": _SERVERS,
            "jobs": {
                0: {"name": "a", "model": "llama-3-8b", "gpus": 16, "tensor": 8, "global_batch": 8},
                1: {"name": "b", "model": "gpt-1.7b", "first_gpu": 16, "gpus": 16, "global_batch": 16},
            },
            "engine": {"fidelity": "flow"},
        },
        mistakes={
            **_FAULTS,
            "first job": Planted(keys={"jobs": {0: {"sequence": 9_000_000}}}, path="jobs.N.sequence", part="jobs"),
            "second job": Planted(keys={"jobs": {1: {"sequence": 8_000_000}}}, path="jobs.N.sequence", part="jobs"),
        },
    ),
    "lowered packets": Bed(
        stage="engine",
        scenario={"fabric": _LEAVES, "traffic": _TRAFFIC, "transport": {"congestion_control": "none"}},
        mistakes={
            "telemetry": Planted(
                keys={"transport": {"congestion_control": "hpcc"}}, path="transport.congestion_control"
            ),
            "pauses": Planted(keys={"fabric": {"switch": {"pause_quanta": 1}}}, path="fabric.switch.pause_quanta"),
            "pauses of a NIC": Planted(
                keys={"fabric": {"nic": {"pcie_rate": "100Gbps", "pause_quanta": 1}}}, path="fabric.nic.pause_quanta"
            ),
            "buffer": Planted(keys={"fabric": {"switch": {"buffer": "100KB"}}}, path="fabric.switch.buffer"),
            "thresholds": Planted(keys={"fabric": {"switch": {"ecn": {"kmax": "1KB"}}}}, path="fabric.switch.ecn.kmax"),
        },
    ),
    "lowered flows": Bed(
        stage="engine",
        scenario={"fabric": _LEAVES, "traffic": _TRAFFIC, "engine": {"fidelity": "flow"}},
        mistakes={
            "lossy links": Planted(keys={"fabric": {"loss": 1}}, path="fabric.loss"),
            "undeclared ports": Planted(
                keys={"transport": {"port_selection": "conga"}}, path="transport.port_selection"
            ),
            "undeclared paths": Planted(keys={"transport": {"path_selection": "plb"}}, path="transport.path_selection"),
        },
    ),
}


def planted(bed: Bed, names: list[str]) -> dict[str, Any]:
    """The scenario of a bed with some of its mistakes."""
    made = deepcopy(bed.scenario)
    for name in names:
        _lay(made, bed.mistakes[name].keys)
    if "jobs" in made:
        made["jobs"] = list(made["jobs"].values())
    return made


def _lay(made: dict[str, Any], keys: dict[str, Any]) -> None:
    for key, value in keys.items():
        if isinstance(value, dict):
            _lay(made.setdefault(key, {}), value)
        elif key in ("faults", "pinned"):
            made[key] = [*made.get(key, []), *deepcopy(value)]
        else:
            made[key] = deepcopy(value)
