"""Build a `Fabric` from the ``fabric`` section of a scenario.

Devices come from the catalogue, the shape from the topology.
Leaves out: parsing (values have their units in their names here), the topologies (`weftwork.topology.shapes`), and
everything that a job needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from weftwork.base.caveat import Caveat
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.folder import is_path
from weftwork.base.grammar import plural
from weftwork.base.nearest import nearest, nearest_key
from weftwork.base.units import PROPAGATION_PS_PER_M, RATE, format_quantity, parse_quantity
from weftwork.hardware import catalogue
from weftwork.spec.device import Record, Switch
from weftwork.spec.fabric import SWITCH, Fabric
from weftwork.spec.scenario.choice import Offer
from weftwork.spec.scenario.choices import TOPOLOGIES
from weftwork.spec.scenario.chosen import clash, means_nothing
from weftwork.spec.scenario.fabric import FabricSection
from weftwork.spec.scenario.fabric_checks import DEFAULT_CABLE_M, resolved_keys, servers_asked
from weftwork.spec.scenario.findings import Collected
from weftwork.spec.scenario.floor_plan import FloorPlanSection
from weftwork.spec.scenario.hashes import HashSection
from weftwork.spec.scenario.kinds import Whole
from weftwork.spec.scenario.rows import outside, rows_of
from weftwork.spec.scenario.topology import FabricSize, Ground, Parts, Topology
from weftwork.topology.assemble import check
from weftwork.topology.devices import Device, nic_of, node_of, switch_of, unfed_links, with_fields
from weftwork.topology.floor_plan import with_floor_plan
from weftwork.topology.hashes import with_hashes
from weftwork.topology.pgft import Pgft
from weftwork.topology.room import refuse_size
from weftwork.topology.tree_topology import TreeTopology

__all__ = [
    "changed_fabric", "counting_keys", "fabric_of", "fabric_of_section", "fabric_size", "overload_mistakes", "tree_of",
    "tree_of_section",
]  # fmt: skip

NO_LIMIT = 2**62  # above any sum of rates


def fabric_of_section(section: FabricSection, *, directory: Path) -> Fabric:
    """Build the fabric of a scenario.

    Parameters
    ----------
    section : ``fabric`` of a scenario, resolved
    directory : of the scenario, to which ``fabric.file`` is relative

    Raises
    ------
    ConfigError : with all reasons; `Scenario.locate` gives them their lines
    CodeError : a topology of the user's own is wrong; with file and line
    """
    if section.file is not None:
        return fabric_of(
            file=directory / section.file, switch=section.switch, nic=section.nic, node=section.node, hash=section.hash
        )
    return fabric_of(**_plain_values(section), hash=section.hash, floor_plan=section.floor_plan)


def fabric_size(section: FabricSection) -> FabricSize | None:
    """Size of a scenario's future fabric.

    None for a fabric file, and for a topology that does not state its size.

    Raises
    ------
    ConfigError, CodeError : as `fabric_of_section`
    """
    return None if section.file is not None else _asked(**_plain_values(section)).size()


def counting_keys(section: FabricSection) -> list[str]:
    """Keys of a section that set the fabric's size, the largest count first.

    A fabric file has none.

    Raises
    ------
    ConfigError, CodeError : as `fabric_of_section`
    """
    return [] if section.file is not None else _asked(**_plain_values(section)).counting_keys()


def tree_of_section(section: FabricSection) -> Pgft | None:
    """The tree of a scenario's fabric.

    None for a file, and for a topology that is no tree of the one generator.

    Raises
    ------
    ConfigError, CodeError : as `fabric_of_section`
    """
    return None if section.file is not None else _asked(**_plain_values(section)).tree()


def tree_of(**keys: Any) -> Pgft | None:  # noqa: ANN401 - as `fabric_of`
    """The tree that `fabric_of` builds from these keys.

    None if the topology is no tree.

    Raises
    ------
    ConfigError, CodeError : as `fabric_of`
    """
    return _asked(**keys).tree()


def _plain_values(section: FabricSection) -> dict[str, Any]:
    keys = ("topology", "radix", "hosts", "gpus", "link_rate_bps", "fabric_rate_bps", "link_delay_ps", "cable_length_m",
            "host_link_delay_ps", "loss", "corruption", "switch", "nic", "node")  # fmt: skip
    own = {name: getattr(section.options, name) for name in type(section.options).model_fields}
    return {**{key: getattr(section, key) for key in keys}, **own}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """A topology with checked keys and parts, not built yet."""

    label: str
    offer: Topology[Record]
    keys: Record
    parts: Parts

    def size(self) -> FabricSize | None:
        if self.offer.size is None:
            return None
        with TOPOLOGIES.blaming(self.label):
            return TOPOLOGIES.want(self.label, self.offer.size(self.keys, self.parts), FabricSize, "size")

    def counting_keys(self) -> list[str]:
        """Keys that set the fabric's size, the largest count first."""
        own = [(getattr(self.keys, name), row.key) for name, row in rows_of(type(self.keys)).items()
               if isinstance(row.kind, Whole)]  # fmt: skip
        common = [(self.parts.hosts, "hosts"), (self.parts.server.nic_ports, "node.nic_ports")]
        counts = [(count, key) for count, key in (*own, *common) if count is not None and count > 1]
        return [key for _, key in sorted(counts, key=lambda one: -one[0])]

    def tree(self) -> Pgft | None:
        """The tree that the keys make; None if the topology is no tree."""
        return self.offer.tree(self.keys, self.parts) if isinstance(self.offer, TreeTopology) else None

    def build(self) -> Fabric:
        with TOPOLOGIES.blaming(self.label):
            return TOPOLOGIES.want(self.label, self.offer.build(self.keys, self.parts), Fabric, "build")


def fabric_of(  # noqa: PLR0913 - the common keys of a section, all by name
    *,
    topology: str | None = None,
    file: str | Path | None = None,
    radix: int | None = None,
    hosts: int | None = None,
    gpus: int | None = None,
    node: Device | None = None,
    link_rate_bps: int | None = None,
    fabric_rate_bps: int | None = None,
    link_delay_ps: int | None = None,
    cable_length_m: float | None = None,
    host_link_delay_ps: int | None = None,
    switch: Device | None = None,
    nic: Device | None = None,
    floor_plan: FloorPlanSection | None = None,
    hash: Sequence[HashSection] = (),  # noqa: A002 - the key's name
    loss: float = 0.0,
    corruption: float = 0.0,
    **options: Any,  # noqa: ANN401 - whatever the keys of the topology are
) -> Fabric:
    """Build a fabric from plain values, as named in the ``fabric`` section.

    Parameters
    ----------
    topology : a name that ``weftwork list topology`` prints, or the path of a file of your own; None with ``file``
    file : a fabric file, JSON or GraphML, instead of all other keys but ``hash``; ``switch``, ``nic`` and ``node`` are
        then mappings of fields that change in every device
    radix : ports of every switch; by default those of the switch at the links' rate
    hosts, gpus : servers, or the GPUs of all together; by default as many as fit
    node : the server, which brings its NIC and the rate of its ports
    link_rate_bps : of the links to hosts; by default that of the node's NIC
    fabric_rate_bps : of the links between switches; by default ``link_rate_bps``
    link_delay_ps : propagation one way on every link; or ``cable_length_m``, 5 ns a metre; by default 20 m
    host_link_delay_ps : of the links to hosts, where it differs
    switch, nic, node : a name of the catalogue, a mapping with ``model`` and fields that differ, or the record; by
        default plain ones, or those of the topology, and the node's NIC
    floor_plan : where racks stand, which makes all delays
    hash : how some switches hash; by default as ``switch`` says, and what that leaves open by tier
    loss, corruption : probability per packet, on every link
    options : keys of the topology's own, such as ``tiers`` or ``leaves``; None for what is not given

    Raises
    ------
    ConfigError : with all reasons
    CodeError : a topology of the user's own is wrong; with file and line
    """
    if file is not None:
        others = {"topology": topology, "radix": radix, "hosts": hosts, "gpus": gpus, "link_rate_bps": link_rate_bps,
                  "fabric_rate_bps": fabric_rate_bps, "link_delay_ps": link_delay_ps, "floor_plan": floor_plan,
                  "cable_length_m": cable_length_m, "host_link_delay_ps": host_link_delay_ps, "loss": loss or None,
                  "corruption": corruption or None, **options}  # fmt: skip
        if odd := [name for name, value in others.items() if value is not None]:
            text = f"means nothing with a file, which brings its own; leave it out, or change '{Path(file).name}'"
            raise ConfigError("fabric", [Mistake(path=f"fabric.{name}", text=text) for name in odd])
        from weftwork.topology.from_file import read_fabric

        fabric = read_fabric(Path(file))
        if overload := overload_mistakes(fabric):
            raise ConfigError(str(file), overload)
        return _changed(fabric, {"switch": switch, "nic": nic, "node": node}, hash)
    asked = _asked(
        topology=topology, radix=radix, hosts=hosts, gpus=gpus, node=node, link_rate_bps=link_rate_bps,
        fabric_rate_bps=fabric_rate_bps, link_delay_ps=link_delay_ps, cable_length_m=cable_length_m,
        host_link_delay_ps=host_link_delay_ps, switch=switch, nic=nic, loss=loss, corruption=corruption, **options,
    )  # fmt: skip
    try:
        refuse_size(asked.size(), asked.counting_keys())
        fabric = asked.build()
    except ConfigError as wrong:
        raise ConfigError("fabric", [_by_key(mistake, "fabric.switch.radix") for mistake in wrong.mistakes]) from wrong
    if overload := overload_mistakes(fabric):
        raise ConfigError("fabric", [_by_key(mistake, "fabric.switch") for mistake in overload])
    return with_hashes(fabric if floor_plan is None else with_floor_plan(fabric, floor_plan), hash)


def changed_fabric(fabric: Fabric, section: FabricSection) -> Fabric:
    """Change the devices of a fabric from a file, or from Python, as a scenario says.

    Parameters
    ----------
    fabric : with its devices
    section : ``fabric`` of a scenario with a file; fields of devices and hashes count

    Raises
    ------
    ConfigError : as `fabric_of_section`
    """
    return _changed(fabric, {"switch": section.switch, "nic": section.nic, "node": section.node}, section.hash)


def _changed(fabric: Fabric, devices: Mapping[str, Device | None], hashes: Sequence[HashSection]) -> Fabric:
    """Set fields in all devices of a kind, then hashes; what then no longer fits is a mistake at their key."""
    for key, device in devices.items():
        if device is None:
            continue
        fabric = with_fields(fabric, **{key: device})
        try:
            check(fabric)
        except ConfigError as wrong:
            path = "fabric.switch.radix" if key == "switch" else f"fabric.{key}"
            raise ConfigError("fabric", [_by_key(mistake, path) for mistake in wrong.mistakes]) from wrong
    return with_hashes(fabric, hashes)


def _asked(  # noqa: PLR0913 - as `fabric_of`
    *,
    topology: str | None = None,
    radix: int | None = None,
    hosts: int | None = None,
    gpus: int | None = None,
    node: Device | None = None,
    link_rate_bps: int | None = None,
    fabric_rate_bps: int | None = None,
    link_delay_ps: int | None = None,
    cable_length_m: float | None = None,
    host_link_delay_ps: int | None = None,
    switch: Device | None = None,
    nic: Device | None = None,
    loss: float = 0.0,
    corruption: float = 0.0,
    **options: Any,  # noqa: ANN401 - as `fabric_of`
) -> _Asked:
    """Check plain values, find the named devices, and derive other values."""
    label, offer = _topology(topology)
    keys = _keys(label, offer, {name: value for name, value in options.items() if value is not None})
    usual = _usual(label, offer)
    model, node_caveats = node_of(usual.get("node", "plain") if node is None else node)
    server = model.server
    switch = usual.get("switch", "plain") if switch is None else switch
    if model.pod_link_rate_bps is not None:  # a chip of a pod has rates of its own, whatever the topology's are
        usual = {**usual, "link_rate": model.nic_port_rate_bps, "fabric_rate": model.pod_link_rate_bps}
    link_rate_bps = usual.get("link_rate") if link_rate_bps is None else link_rate_bps
    fabric_rate_bps = usual.get("fabric_rate") if fabric_rate_bps is None else fabric_rate_bps
    link_rate_bps = model.nic_port_rate_bps if link_rate_bps is None else link_rate_bps
    fabric_rate = link_rate_bps if fabric_rate_bps is None else fabric_rate_bps
    switch_record, switch_caveats = _switch(switch, [rate for rate in (link_rate_bps, fabric_rate) if rate > 0], radix)
    nic_record, nic_caveats = nic_of(model.nic if nic is None else nic)
    if link_delay_ps is None:
        length_m = DEFAULT_CABLE_M if cable_length_m is None else cable_length_m
        link_delay_ps = round(length_m * PROPAGATION_PS_PER_M)
    given = {"hosts": hosts, "gpus": gpus}
    found = Collected(section="fabric", given=frozenset(key for key, value in given.items() if value is not None))
    ground = Ground(
        hosts=servers_asked(hosts, gpus, server, found),
        radix=radix,
        has_ports=bool(radix or switch_record.radix),
        server=server,
        rails=model.rails,
        host_rate_bps=link_rate_bps if link_rate_bps > 0 else None,
        fabric_rate_bps=fabric_rate if fabric_rate > 0 else None,
    )
    with TOPOLOGIES.blaming(label):
        keys, servers = resolved_keys(label, offer, keys, ground, found)
    found.refuse()
    parts = Parts(
        hosts=servers,
        ports=switch_record.radix,
        server=server,
        rails=model.rails,
        switch=switch_record,
        nic=nic_record,
        host_rate_bps=link_rate_bps,
        fabric_rate_bps=fabric_rate,
        host_delay_ps=link_delay_ps if host_link_delay_ps is None else host_link_delay_ps,
        fabric_delay_ps=link_delay_ps,
        loss=loss,
        corruption=corruption,
        caveats=switch_caveats | nic_caveats | node_caveats | unfed_links(link_rate_bps, nic_record, server.name),
    )
    return _Asked(label=label, offer=offer, keys=keys, parts=parts)


def _topology(topology: str | None) -> tuple[str, Any]:
    """The topology of a name or path."""
    label = "" if topology is None else str(topology)
    if label not in TOPOLOGIES and not is_path(label):
        text = f"found {topology!r}, wanted {', '.join(TOPOLOGIES)}, a file such as ./mine.py, or a fabric file"
        mistake = Mistake(path="fabric.topology", text=text, fix=nearest(label, TOPOLOGIES.names))
        raise ConfigError("fabric", [mistake])
    offer = TOPOLOGIES.load(label)
    if (key := clash(offer, FabricSection)) is not None:
        raise TOPOLOGIES.wrong(label, f"brings a key '{key}', which every fabric has already; give it another name")
    return label, offer


def _usual(label: str, offer: Offer[Record]) -> dict[str, Any]:
    """Defaults of a topology for the common keys.

    Rates are in bits per second, devices stand as they are.
    """
    known = {"node", "switch", "link_rate", "fabric_rate"}
    if odd := sorted(offer.defaults.keys() - known):
        raise TOPOLOGIES.wrong(label, f"its defaults name '{odd[0]}', wanted {', '.join(sorted(known))}")
    return {
        key: parse_quantity(RATE, str(value)) if key.endswith("rate") else value
        for key, value in offer.defaults.items()
    }


def _keys(label: str, offer: Offer[Record], given: dict[str, Any]) -> Record:
    """The keys of a topology from plain values; unknown keys are refused."""
    known = list(offer.keys.model_fields)
    unknown = [name for name in given if name not in known]  # where there is none, no other topology is imported
    others = {name: [one for one, other in TOPOLOGIES.items() if name in other.keys.model_fields] for name in unknown}
    mistakes = []
    for name in unknown:
        if others[name]:
            text = means_nothing("topology", label, tuple(others[name]))
            mistakes.append(Mistake(path=f"fabric.{name}", text=text))
        else:
            mistakes.append(Mistake(path=f"fabric.{name}", text="unknown key", fix=nearest_key(name, known)))
    if mistakes:
        raise ConfigError("fabric", mistakes)
    try:
        keys = offer.options(**given)
    except ValidationError as wrong:
        mistakes = [
            Mistake(
                path=f"fabric.{'.'.join(str(part) for part in error['loc'])}",
                text=f"found {error['input']!r}: {error['msg'].lower()}",
            )
            for error in wrong.errors()
        ]
        raise ConfigError("fabric", mistakes) from wrong
    rows = rows_of(offer.keys)
    for name in given:
        if (told := outside(rows[name], getattr(keys, name))) is not None:
            mistakes.append(Mistake(path=f"fabric.{name}", text=told.text, fix=told.fix))
    if mistakes:
        raise ConfigError("fabric", mistakes)
    return keys


def _switch(device: Device, rates_bps: list[int], radix: int | None) -> tuple[Switch, dict[str, Caveat]]:
    """The switch, with fewer ports if the radix is smaller."""
    switch, caveats = switch_of(device, rates_bps)
    if radix is None:
        return switch, caveats
    if 0 < switch.radix < radix:
        text = f"found {radix}, but '{switch.name}' has {plural(switch.radix, 'port')} for such links"
        raise ConfigError("fabric", [Mistake(path="fabric.radix", text=text)])
    return switch.model_copy(update={"radix": radix}), caveats


def _by_key(mistake: Mistake, key: str) -> Mistake:
    """Name the key that is to blame for a node or link.

    The user has not written down the nodes and links of such a fabric.
    """
    part, _, name = mistake.path.partition(".")
    if part not in {"nodes", "links"}:
        return mistake
    text = f"{name}: {mistake.text}" if name else mistake.text
    return Mistake(path=key if part == "nodes" else "fabric", text=text, fix=mistake.fix)


def overload_mistakes(fabric: Fabric) -> list[Mistake]:
    """Find links that together exceed the capacity of their switch.

    Mixed rates can pass the count of ports and fail here.
    """
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
