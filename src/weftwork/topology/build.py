"""From the values of a scenario's ``fabric`` section to a `Fabric`: devices from the catalogue, shape by its builder.

Leaves out: parsing (values have their units in their names here) and everything that a job needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.nearest import nearest
from weftwork.base.units import PROPAGATION_PS_PER_M, RATE, format_quantity
from weftwork.hardware import catalogue
from weftwork.spec.device import Server, Switch
from weftwork.spec.fabric import SWITCH, Fabric
from weftwork.spec.rails import default_rails
from weftwork.spec.scenario.devices import NodeModel
from weftwork.spec.scenario.fabric import FabricSection
from weftwork.topology.devices import Device, nic_of, node_of, switch_of
from weftwork.topology.fat_tree import fat_tree
from weftwork.topology.from_file import read_fabric
from weftwork.topology.leaf_spine import leaf_spine, leaf_spine_counts
from weftwork.topology.rail_optimized import rail_counts, rail_optimized

__all__ = ["TOPOLOGIES", "fabric_of", "fabric_of_section"]

TOPOLOGIES = ("fat-tree", "leaf-spine", "rail-optimized")
DEFAULT_CABLE_M = 20.0  # chosen: a row of racks, as the row fabric.cable_length of the scenario says
NO_LIMIT = 2**62  # above any sum of rates

# the keys of a shape that mean something for each topology
_KEYS: dict[str, frozenset[str]] = {
    "fat-tree": frozenset({"tiers"}),
    "leaf-spine": frozenset(
        {"leaves", "spines", "hosts_per_leaf", "links_per_pair", "oversubscription", "dual_homed"}
    ),
    "rail-optimized": frozenset(
        {"tiers", "spines", "links_per_pair", "oversubscription", "pods", "nodes_per_pod", "rails", "planes",
         "rail_only"}
    ),
}  # fmt: skip


def fabric_of_section(section: FabricSection, *, directory: Path) -> Fabric:
    """Build the fabric of a scenario.

    Parameters
    ----------
    section : ``fabric`` of a scenario, resolved
    directory : of the scenario, to which ``fabric.file`` is relative

    Raises
    ------
    ConfigError : with all reasons; `Scenario.locate` gives them their lines
    """
    if section.file is not None:
        return fabric_of(file=directory / section.file)
    keys = ("topology", "tiers", "radix", "hosts", "gpus", "leaves", "spines", "hosts_per_leaf", "links_per_pair",
            "oversubscription", "link_rate_bps", "fabric_rate_bps", "link_delay_ps", "cable_length_m",
            "host_link_delay_ps", "loss", "corruption", "pods", "nodes_per_pod", "rails", "planes", "rail_only",
            "dual_homed", "switch", "nic", "node")  # fmt: skip
    return fabric_of(**{key: getattr(section, key) for key in keys})


def fabric_of(  # noqa: PLR0913 - the keys of a section, all by name
    *,
    topology: str | None = None,
    file: str | Path | None = None,
    tiers: int | None = None,
    radix: int | None = None,
    hosts: int | None = None,
    gpus: int | None = None,
    node: Device = "plain",
    pods: int | None = None,
    nodes_per_pod: int | None = None,
    rails: int | None = None,
    planes: int | None = None,
    rail_only: bool | None = None,
    dual_homed: bool | None = None,
    leaves: int | None = None,
    spines: int | None = None,
    hosts_per_leaf: int | None = None,
    links_per_pair: int | None = None,
    oversubscription: float | None = None,
    link_rate_bps: int | None = None,
    fabric_rate_bps: int | None = None,
    link_delay_ps: int | None = None,
    cable_length_m: float | None = None,
    host_link_delay_ps: int | None = None,
    switch: Device = "plain",
    nic: Device | None = None,
    loss: float = 0.0,
    corruption: float = 0.0,
) -> Fabric:
    """Build a fabric from plain values, as the ``fabric`` section of a scenario names them.

    Parameters
    ----------
    topology : ``fat-tree``, ``leaf-spine`` or ``rail-optimized``; None with ``file``
    file : a fabric file, JSON or GraphML, instead of all other keys
    tiers : 2 or 3; by default 3 of a fat tree, and as few as suffice of a rail-optimized fabric
    radix : ports of every switch; by default those of the switch at the links' rate
    hosts, gpus : servers, or the GPUs of all together; by default as many as fit
    node : the server, which brings its NIC and the rate of its ports
    leaves, spines, hosts_per_leaf, links_per_pair : shape of a leaf-spine
    dual_homed : whether the ports of a server on a leaf-spine go to two leaves by turns
    pods, nodes_per_pod, rails, planes, rail_only : shape of a rail-optimized fabric, with ``spines``
    oversubscription : bandwidth of a leaf down divided by up; derives the shape from ``hosts``
    link_rate_bps : of the links to hosts; by default that of the node's NIC
    fabric_rate_bps : of the links between switches; by default ``link_rate_bps``
    link_delay_ps : propagation one way on every link; or ``cable_length_m``, 5 ns a metre; by default 20 m
    host_link_delay_ps : of the links to hosts, where it differs
    switch, nic, node : a name of the catalogue, a mapping with ``model`` and fields that differ, or the record; by
        default the node's NIC
    loss, corruption : probability per packet, on every link

    Raises
    ------
    ConfigError : with all reasons
    """
    if file is not None:
        fabric = read_fabric(Path(file))
        if overload := _overload(fabric):
            raise ConfigError(str(file), overload)
        return fabric
    model, node_facts = node_of(node)
    server = model.server
    link_rate_bps = model.nic_port_rate_bps if link_rate_bps is None else link_rate_bps
    fabric_rate = link_rate_bps if fabric_rate_bps is None else fabric_rate_bps
    hosts = _servers(hosts, gpus, server)
    rates = [rate for rate in (link_rate_bps, fabric_rate) if rate > 0]
    switch_record, switch_facts = switch_of(switch, rates)
    if radix is not None:
        if 0 < switch_record.radix < radix:
            text = f"found {radix}, but '{switch_record.name}' has {switch_record.radix} ports for such links"
            raise ConfigError("fabric", [Mistake(path="fabric.radix", text=text)])
        switch_record = switch_record.model_copy(update={"radix": radix})
    nic_record, nic_facts = nic_of(model.nic if nic is None else nic)
    if link_delay_ps is None:
        length_m = DEFAULT_CABLE_M if cable_length_m is None else cable_length_m
        link_delay_ps = round(length_m * PROPAGATION_PS_PER_M)
    common: dict[str, Any] = {
        "host_rate_bps": link_rate_bps,
        "fabric_rate_bps": fabric_rate,
        "host_delay_ps": link_delay_ps if host_link_delay_ps is None else host_link_delay_ps,
        "fabric_delay_ps": link_delay_ps,
        "switch": switch_record,
        "nic": nic_record,
        "server": server,
        "loss": loss,
        "corruption": corruption,
        "facts": switch_facts | nic_facts | node_facts,
    }
    given = {"tiers": tiers, "leaves": leaves, "spines": spines, "hosts_per_leaf": hosts_per_leaf,
             "links_per_pair": links_per_pair, "oversubscription": oversubscription, "pods": pods,
             "nodes_per_pod": nodes_per_pod, "rails": rails, "planes": planes, "rail_only": rail_only,
             "dual_homed": dual_homed}  # fmt: skip
    if topology not in _KEYS:
        text = f"found {topology!r}, wanted {', '.join(TOPOLOGIES[:-1])} or {TOPOLOGIES[-1]}, or a file"
        mistake = Mistake(path="fabric.topology", text=text, fix=nearest(str(topology), TOPOLOGIES))
        raise ConfigError("fabric", [mistake])
    _refuse_foreign(topology, given)
    if topology == "fat-tree":
        shape = {"tiers": 3 if tiers is None else tiers, "radix": _radix(radix, switch_record), "hosts": hosts}
        build: Callable[..., Fabric] = fat_tree
    elif topology == "leaf-spine":
        shape = _leaf_spine_shape(given, hosts, radix, switch_record, (link_rate_bps, fabric_rate), server)
        build = leaf_spine
    else:
        shape = _rail_shape(given, hosts, switch_record, (link_rate_bps, fabric_rate), model)
        build = rail_optimized
    try:
        fabric = build(**shape, **common)
    except ConfigError as wrong:
        raise ConfigError("fabric", [_by_key(mistake, "fabric.switch.radix") for mistake in wrong.mistakes]) from wrong
    if overload := _overload(fabric):
        raise ConfigError("fabric", [_by_key(mistake, "fabric.switch") for mistake in overload])
    return fabric


def _by_key(mistake: Mistake, key: str) -> Mistake:
    """Name the key that is to blame for a node or a link of a fabric that nobody has written down."""
    part, _, name = mistake.path.partition(".")
    if part not in {"nodes", "links"}:
        return mistake
    text = f"{name}: {mistake.text}" if name else mistake.text
    return Mistake(path=key if part == "nodes" else "fabric", text=text, fix=mistake.fix)


def _radix(radix: int | None, switch: Switch) -> int:
    if radix is not None or switch.radix:
        return radix if radix is not None else switch.radix
    text = "is needed: 'plain' switches have any number of ports; give the radix or a switch of the catalogue"
    raise ConfigError("fabric", [Mistake(path="fabric.radix", text=text)])


def _servers(hosts: int | None, gpus: int | None, server: Server) -> int | None:
    """How many servers there are, from their number or that of their GPUs."""
    if gpus is None:
        return hosts
    if gpus % server.gpus or (hosts is not None and hosts * server.gpus != gpus):
        wanted = f"a multiple of {server.gpus}" if hosts is None else f"{hosts * server.gpus:,}, hosts x {server.gpus}"
        text = f"found {gpus:,}, wanted {wanted}, the GPUs of '{server.name}'"
        raise ConfigError("fabric", [Mistake(path="fabric.gpus", text=text)])
    return gpus // server.gpus


def _refuse_foreign(topology: str, given: Mapping[str, Any]) -> None:
    mistakes = [
        Mistake(path=f"fabric.{key}", text=f"means nothing for topology '{topology}'")
        for key, value in given.items()
        if value is not None and key not in _KEYS[topology]
    ]
    if mistakes:
        raise ConfigError("fabric", mistakes)


def _leaf_spine_shape(
    given: Mapping[str, Any], hosts: int | None, radix: int | None, switch: Switch, rates_bps: tuple[int, int],
    server: Server,
) -> dict[str, Any]:  # fmt: skip
    """Counts as given, or derived from hosts and oversubscription."""
    homes = 2 if given["dual_homed"] else 1
    if server.nic_ports % homes:
        text = f"found true, but a server has {server.nic_ports} NIC ports, wanted an even number"
        raise ConfigError("fabric", [Mistake(path="fabric.dual_homed", text=text)])
    each = server.nic_ports // homes
    if given["leaves"] is not None and given["spines"] is not None:
        return {**_given_shape(given, hosts, (rates_bps[0] * each, rates_bps[1]), homes), "homes": homes}
    derived = "follows from hosts, radix and oversubscription; give both leaves and spines, or neither"
    mistakes = [
        Mistake(path=f"fabric.{key}", text=derived)
        for key in ("leaves", "spines", "links_per_pair")
        if given[key] is not None
    ]  # fmt: skip
    if hosts is None:
        mistakes.append(
            Mistake(path="fabric.hosts", text="is needed, unless leaves, spines and hosts_per_leaf are given")
        )
    if mistakes or hosts is None:
        raise ConfigError("fabric", mistakes)
    counts = leaf_spine_counts(
        hosts=hosts,
        radix=_radix(radix, switch),
        oversubscription=1 if given["oversubscription"] is None else given["oversubscription"],
        host_rate_bps=rates_bps[0],
        fabric_rate_bps=rates_bps[1],
        hosts_per_leaf=given["hosts_per_leaf"],
        ports_per_host=each,
        homes=homes,
    )
    return {
        "homes": homes,
        "leaves": counts.leaves,
        "spines": counts.spines,
        "links_per_pair": counts.links_per_pair,
        "hosts_per_leaf": counts.hosts_per_leaf,
        "hosts": hosts,
    }


def _rail_shape(
    given: Mapping[str, Any], hosts: int | None, switch: Switch, rates_bps: tuple[int, int], model: NodeModel
) -> dict[str, Any]:
    """The counts of a rail-optimized fabric, as given or derived."""
    if hosts is None and given["pods"] is not None and given["nodes_per_pod"] is not None:
        hosts = given["pods"] * given["nodes_per_pod"]
    if hosts is None:
        text = "missing: give gpus (or hosts, the servers), or pods and nodes_per_pod"
        raise ConfigError("fabric", [Mistake(path="fabric.gpus", text=text)])
    counts = rail_counts(
        servers=hosts,
        server=model.server,
        rails=default_rails(model.server, model.rails) if given["rails"] is None else given["rails"],
        planes=1 if given["planes"] is None else given["planes"],
        radix=switch.radix,
        host_rate_bps=rates_bps[0],
        fabric_rate_bps=rates_bps[1],
        rail_only=bool(given["rail_only"]),
        **{
            key: given[key]
            for key in ("oversubscription", "pods", "nodes_per_pod", "spines", "links_per_pair", "tiers")
        },
    )
    return {"counts": counts}


def _given_shape(given: Mapping[str, Any], hosts: int | None, rates_bps: tuple[int, int], homes: int) -> dict[str, Any]:
    """A shape given by its counts; an oversubscription given besides must be what the counts make."""
    leaves, spines, per_leaf = given["leaves"], given["spines"], given["hosts_per_leaf"]
    if per_leaf is None and hosts is None:
        text = "is needed with leaves and spines, unless hosts is given"
        raise ConfigError("fabric", [Mistake(path="fabric.hosts_per_leaf", text=text)])
    if per_leaf is None and hosts is not None:
        per_leaf = -(-hosts * homes // max(leaves, 1))
    per_pair = 1 if given["links_per_pair"] is None else given["links_per_pair"]
    ratio, up_bps = given["oversubscription"], spines * per_pair * rates_bps[1]
    if ratio is not None and up_bps > 0 and abs(per_leaf * rates_bps[0] / up_bps - ratio) > ratio / 1000:
        text = f"found {ratio:g}, but the counts make {per_leaf * rates_bps[0] / up_bps:g}; leave it out"
        raise ConfigError("fabric", [Mistake(path="fabric.oversubscription", text=text)])
    return {"leaves": leaves, "spines": spines, "links_per_pair": per_pair, "hosts_per_leaf": per_leaf, "hosts": hosts}


def _overload(fabric: Fabric) -> list[Mistake]:
    """Find links that together are faster than the switch; mixed rates can pass the count of ports and fail here."""
    rows = [catalogue.SWITCHES.get(switch.name) for switch in fabric.switches]
    figures = [row.figures.get("capacity_bps") if row is not None else None for row in rows]
    limit = np.array([figure.value if figure is not None else NO_LIMIT for figure in figures] or [NO_LIMIT], np.int64)
    is_switch = fabric.node_kind == SWITCH
    capacity = np.where(is_switch, limit[np.where(is_switch, fabric.node_device, 0)], NO_LIMIT)
    total = np.zeros(len(fabric.node_names), np.int64)
    np.add.at(total, fabric.ports.node, fabric.links["rate_bps"][fabric.ports.link])
    over = np.flatnonzero(total > capacity)
    if not len(over):
        return []
    node = int(over[0])
    text = (
        f"links of {format_quantity(RATE, int(total[node]))} together, but "
        f"'{fabric.switches[fabric.node_device[node]].name}' switches {format_quantity(RATE, int(capacity[node]))}"
    )
    return [Mistake(path=f"nodes.{fabric.node_names[node]}", text=text)]
