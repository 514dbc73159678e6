"""The place of a run's culprit in the fabric.

The place is the ports of its links, and its servers or its switch.

Reads `summary.json`, the scenario and the tables `links`, `nodes` and `segments` of a run's folder. Leaves out:
culprits that have no place, such as a setting or a job; the servers of a stage whose ranks are not placed one after the
other; and of several links or NICs that are alike all but the first, which alone has its name in the answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from weftwork.store.runs import Run

__all__ = ["CulpritPlace", "culprit_place"]

_LIKE_IT: Final = re.compile(r" and [\d,]+ like it$")
_NIC: Final = re.compile(r"/nic(\d+)$")
_PIPELINE_LAST: Final = "tp-cp-dp-pp"  # the order of ranks in which those of a stage follow each other
_PACKED: Final = "packed"  # the placement that gives ranks the GPUs in their order


@dataclass(frozen=True, kw_only=True, slots=True)
class CulpritPlace:
    """The place of the culprit in the fabric.

    Attributes
    ----------
    name : as in the answer
    ports : numbers of the ports at both ends of its links
    nodes : numbers of the servers and switches that are to blame, or have the NIC, the GPU or the stage
    """

    name: str
    ports: frozenset[int]
    nodes: frozenset[int]


def culprit_place(run: Run) -> CulpritPlace | None:
    """The place of the culprit of a run of one seed.

    None if the culprit has no place.
    """
    if run.seeds:
        return None
    culprit = run.answer.culprit
    name = _LIKE_IT.sub("", culprit.name)
    links: list[dict[str, Any]] = run.query("select port, link, node, peer from links order by port").to_pylist()
    ports: set[int] = set()
    nodes: set[int] = set()
    if culprit.kind == "link":
        ports = {row["port"] for row in links if row["link"] == name}
    elif culprit.kind in {"nic", "server", "switch"}:
        number = _NIC.search(name) if culprit.kind == "nic" else None
        nodes = _named(run, name[: number.start()] if number else name)
        own = [row for row in links if row["node"] in nodes]
        if number:  # NICs of a host are counted as its ports are
            own = own[int(number[1]) : int(number[1]) + 1]
        names = {row["link"] for row in own}
        ports = {row["port"] for row in links if row["link"] in names}
    elif culprit.kind == "gpu":
        nodes = _servers(run, {int(name.removeprefix("GPU "))})
    elif culprit.kind == "stage":
        nodes = _servers(run, _gpus_of_stage(run, name))
    if not ports and not nodes:
        return None
    return CulpritPlace(name=culprit.name, ports=frozenset(ports), nodes=frozenset(nodes))


def _named(run: Run, name: str) -> set[int]:
    rows = run.query("select node, name from nodes").to_pylist()
    return {row["node"] for row in rows if row["name"] == name}


def _servers(run: Run, gpus: set[int]) -> set[int]:
    """Servers of the given GPUs, which are numbered over all servers.

    Empty if the scenario does not say how many GPUs a server has.
    """
    fabric = yaml.safe_load(run.scenario).get("fabric", {})
    of_all, servers = fabric.get("gpus"), fabric.get("hosts")
    if not isinstance(of_all, int) or not isinstance(servers, int) or of_all % servers:
        return set()
    hosts = run.query("select node from nodes where kind = 'host' order by node")["node"].to_pylist()
    places = {gpu // (of_all // servers) for gpu in gpus}
    return {hosts[place] for place in places if place < len(hosts)}


def _gpus_of_stage(run: Run, name: str) -> set[int]:
    """GPUs of a stage of a pipeline.

    Empty if its ranks, or their GPUs, are not consecutive.
    """
    stage, _, job = name.removeprefix("stage ").partition(" of ")
    scenario = yaml.safe_load(run.scenario)
    jobs = run.table("jobs").to_pylist()
    place = next((at for at, row in enumerate(jobs) if row["job"] == job or not job), None)
    if place is None:
        return set()
    plan = scenario["training"] if scenario.get("training") else scenario["jobs"][place]
    if plan.get("order") != _PIPELINE_LAST or plan.get("placement") != _PACKED:
        return set()
    first = run.query("select job, min(gpu - rank) as gpu from segments group by job").to_pylist()
    base = next((row["gpu"] for row in first if row["job"] == jobs[place]["job"]), None)
    if base is None:
        return set()
    each = jobs[place]["gpus"] // plan["pipeline"]
    return set(range(base + int(stage) * each, base + (int(stage) + 1) * each))
