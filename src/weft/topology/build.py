"""From the values of a scenario's ``fabric`` section to a `Fabric`: devices from the catalogue, shape by its builder.

Leaves out: parsing (values have their units in their names here) and everything that a job needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel, ValidationError

from weft.base.errors import ConfigError, Mistake
from weft.base.nearest import nearest
from weft.base.units import PROPAGATION_PS_PER_M, RATE, format_quantity
from weft.hardware import catalogue
from weft.spec.device import Nic, Switch
from weft.spec.fabric import SWITCH, Fabric
from weft.spec.scenario_fabric import FabricSection
from weft.topology.fat_tree import fat_tree
from weft.topology.from_file import read_fabric
from weft.topology.leaf_spine import leaf_spine, leaf_spine_counts

__all__ = ["TOPOLOGIES", "fabric_of", "fabric_of_section"]

TOPOLOGIES = ("fat-tree", "leaf-spine")
DEFAULT_CABLE_M = 20.0  # chosen: a row of racks, as the row fabric.cable_length of the scenario says
NO_LIMIT = 2**62  # above any sum of rates

_R = TypeVar("_R", bound=BaseModel)
Device = str | Mapping[str, Any] | BaseModel


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
    hosts = section.hosts if section.hosts is not None else section.gpus
    keys = ("topology", "tiers", "radix", "leaves", "spines", "hosts_per_leaf", "links_per_pair", "oversubscription",
            "link_rate_bps", "fabric_rate_bps", "link_delay_ps", "cable_length_m", "host_link_delay_ps", "loss",
            "corruption")  # fmt: skip
    values = {key: getattr(section, key) for key in keys}
    return fabric_of(**values, hosts=hosts, switch=section.switch, nic=section.nic)


def fabric_of(  # noqa: PLR0913 - the keys of a section, all by name
    *,
    topology: str | None = None,
    file: str | Path | None = None,
    tiers: int | None = None,
    radix: int | None = None,
    hosts: int | None = None,
    leaves: int | None = None,
    spines: int | None = None,
    hosts_per_leaf: int | None = None,
    links_per_pair: int | None = None,
    oversubscription: float | None = None,
    link_rate_bps: int = 400_000_000_000,
    fabric_rate_bps: int | None = None,
    link_delay_ps: int | None = None,
    cable_length_m: float | None = None,
    host_link_delay_ps: int | None = None,
    switch: Device = "plain",
    nic: Device = "plain",
    loss: float = 0.0,
    corruption: float = 0.0,
) -> Fabric:
    """Build a fabric from plain values, as the ``fabric`` section of a scenario names them.

    Parameters
    ----------
    topology : ``fat-tree`` or ``leaf-spine``; None with ``file``
    file : a fabric file, JSON or GraphML, instead of all other keys
    tiers : of a fat tree, 2 or 3; by default 3
    radix : ports of every switch; by default those of the switch at the links' rate
    hosts : how many; by default as many as fit
    leaves, spines, hosts_per_leaf, links_per_pair : shape of a leaf-spine
    oversubscription : bandwidth of a leaf down divided by up; derives the shape of a leaf-spine from ``hosts``
    link_rate_bps : of the links to hosts
    fabric_rate_bps : of the links between switches; by default ``link_rate_bps``
    link_delay_ps : propagation one way on every link; or ``cable_length_m``, 5 ns a metre; by default 20 m
    host_link_delay_ps : of the links to hosts, where it differs
    switch, nic : a name of the catalogue, a mapping with ``model`` and fields that differ, or the record
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
    fabric_rate = link_rate_bps if fabric_rate_bps is None else fabric_rate_bps
    rates = [rate for rate in (link_rate_bps, fabric_rate) if rate > 0]
    switch_record, switch_facts = _switch(switch, rates)
    if radix is not None:
        if 0 < switch_record.radix < radix:
            text = f"found {radix}, but '{switch_record.name}' has {switch_record.radix} ports for such links"
            raise ConfigError("fabric", [Mistake(path="fabric.radix", text=text)])
        switch_record = switch_record.model_copy(update={"radix": radix})
    nic_record, nic_facts = _nic(nic)
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
        "loss": loss,
        "corruption": corruption,
        "facts": switch_facts | nic_facts,
    }
    given = {"tiers": tiers, "leaves": leaves, "spines": spines, "hosts_per_leaf": hosts_per_leaf,
             "links_per_pair": links_per_pair, "oversubscription": oversubscription}  # fmt: skip
    if topology == "fat-tree":
        _refuse_foreign(topology, given, {"tiers"})
        shape = {"tiers": 3 if tiers is None else tiers, "radix": _radix(radix, switch_record), "hosts": hosts}
        build: Callable[..., Fabric] = fat_tree
    elif topology == "leaf-spine":
        _refuse_foreign(topology, given, set(given) - {"tiers"})
        shape = _leaf_spine_shape(given, hosts, radix, switch_record, (link_rate_bps, fabric_rate))
        build = leaf_spine
    else:
        text = f"found {topology!r}, wanted {' or '.join(TOPOLOGIES)}, or a file"
        mistake = Mistake(path="fabric.topology", text=text, fix=nearest(str(topology), TOPOLOGIES))
        raise ConfigError("fabric", [mistake])
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


def _refuse_foreign(topology: str, given: Mapping[str, Any], known: set[str]) -> None:
    mistakes = [
        Mistake(path=f"fabric.{key}", text=f"means nothing for topology '{topology}'")
        for key, value in given.items()
        if value is not None and key not in known
    ]
    if mistakes:
        raise ConfigError("fabric", mistakes)


def _leaf_spine_shape(
    given: Mapping[str, Any], hosts: int | None, radix: int | None, switch: Switch, rates_bps: tuple[int, int]
) -> dict[str, Any]:
    """Counts as given, or derived from hosts and oversubscription."""
    if given["leaves"] is not None and given["spines"] is not None:
        return _given_shape(given, hosts, rates_bps)
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
    )
    return {
        "leaves": counts.leaves,
        "spines": counts.spines,
        "links_per_pair": counts.links_per_pair,
        "hosts_per_leaf": counts.hosts_per_leaf,
        "hosts": hosts,
    }


def _given_shape(given: Mapping[str, Any], hosts: int | None, rates_bps: tuple[int, int]) -> dict[str, Any]:
    """A shape given by its counts; an oversubscription given besides must be what the counts make."""
    leaves, spines, per_leaf = given["leaves"], given["spines"], given["hosts_per_leaf"]
    if per_leaf is None and hosts is None:
        text = "is needed with leaves and spines, unless hosts is given"
        raise ConfigError("fabric", [Mistake(path="fabric.hosts_per_leaf", text=text)])
    if per_leaf is None and hosts is not None:
        per_leaf = -(-hosts // max(leaves, 1))
    per_pair = 1 if given["links_per_pair"] is None else given["links_per_pair"]
    ratio, up_bps = given["oversubscription"], spines * per_pair * rates_bps[1]
    if ratio is not None and up_bps > 0 and abs(per_leaf * rates_bps[0] / up_bps - ratio) > ratio / 1000:
        text = f"found {ratio:g}, but the counts make {per_leaf * rates_bps[0] / up_bps:g}; leave it out"
        raise ConfigError("fabric", [Mistake(path="fabric.oversubscription", text=text)])
    return {"leaves": leaves, "spines": spines, "links_per_pair": per_pair, "hosts_per_leaf": per_leaf, "hosts": hosts}


def _switch(device: Device, rates_bps: list[int]) -> tuple[Switch, dict[str, str]]:
    """The switch's record, and what is not verified about it."""
    if isinstance(device, Switch):
        return device, catalogue.switch_facts(device.name)
    name, fields = _named(device)
    catalogue.ports_at(name, max(rates_bps, default=None))  # refuses links faster than the fastest port
    base = catalogue.switch(name, port_rate_bps=min(rates_bps, default=None))
    record = _over(base, fields, "fabric.switch")
    return record, _without(catalogue.switch_facts(name), name, fields)


def _nic(device: Device) -> tuple[Nic, dict[str, str]]:
    """The NIC's record, and what is not verified about it."""
    if isinstance(device, Nic):
        return device, catalogue.nic_facts(device.name)
    name, fields = _named(device)
    return _over(catalogue.nic(name), fields, "fabric.nic"), _without(catalogue.nic_facts(name), name, fields)


def _named(device: Device) -> tuple[str, dict[str, Any]]:
    """Name in the catalogue and fields that differ, from the ways in which a device may be given."""
    if isinstance(device, str):
        return device, {}
    fields = dict(device) if isinstance(device, Mapping) else device.model_dump()
    if set(fields) == {"model", "fields"}:  # a device as `weft.spec.scenario_devices` resolves it
        return str(fields["model"]), dict(fields["fields"])
    return str(fields.pop("name", None) or fields.pop("model", None) or "plain"), fields


def _over(base: _R, fields: Mapping[str, Any], path: str) -> _R:
    """``base`` with some fields replaced, nested as the record is."""

    def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
        return {**old, **{key: merged(old[key], value) if isinstance(value, Mapping) and isinstance(old.get(key), dict)
                          else value for key, value in new.items()}}  # fmt: skip

    try:
        return type(base).model_validate(merged(base.model_dump(), fields))
    except ValidationError as wrong:
        known = list(type(base).model_fields)
        mistakes = [
            Mistake(
                path=".".join([path, *(str(part) for part in error["loc"])]),
                text=f"found {error['input']!r}: {error['msg'].lower()}",
                fix=nearest(str(error["loc"][-1]), known) if error["type"] == "extra_forbidden" else None,
            )
            for error in wrong.errors()
        ]
        raise ConfigError("fabric", mistakes) from wrong


def _without(facts: dict[str, str], name: str, fields: Mapping[str, Any]) -> dict[str, str]:
    """Facts about figures that the user has not replaced by their own."""
    own = {f"{name}.{key}" for key in fields} | {f"{name}.ecn_{key}" for key in fields.get("ecn", {})}
    return {key: text for key, text in facts.items() if key not in own}


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
