"""What one key of ``fabric`` means for another: contradictions are mistakes, what follows is filled in.

Leaves out: what needs the ports of a switch of the catalogue; `weftwork.topology.build` derives and refuses that.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from weftwork.base.units import DURATION, PROPAGATION_PS_PER_M, format_quantity
from weftwork.spec.device import Nic, Server, Switch
from weftwork.spec.limits import MAX_HOSTS
from weftwork.spec.rails import default_rails, rail_mistakes
from weftwork.spec.scenario.devices import DeviceChoice, NodeModel, device_mistakes
from weftwork.spec.scenario.fabric import FabricSection
from weftwork.spec.scenario.reader import Reader

__all__ = ["resolve_fabric"]

DEFAULT_CABLE_M = 20.0  # as the row fabric.cable_length says


def resolve_fabric(fabric: FabricSection, reader: Reader) -> FabricSection:
    """Check a fabric and fill in what follows from its other keys."""
    if fabric.topology == "file":
        if fabric.file is None and reader.is_sound("fabric.topology", "fabric.file"):
            reader.wrong("fabric.file", "missing, wanted a file that ends in .graphml or .json, since topology is file")
        return fabric
    known: dict[str, Any] = {}
    _resolve_links(fabric, reader, known)
    model = _node_model(fabric, reader)
    if model is not None:
        _take_from_node(fabric, model, reader, known)
        fabric = fabric.model_copy(update=known)
    _resolve_devices(fabric, reader)
    if fabric.file is not None and reader.is_sound("fabric.topology"):
        reader.wrong(
            "fabric.topology", f"found '{fabric.topology}', but fabric.file brings its own; leave topology out"
        )
        return fabric
    known["fabric_rate_bps"] = fabric.fabric_rate_bps or fabric.link_rate_bps
    server = None if model is None else _server(fabric, model, reader)
    hosts = fabric.hosts if server is None else _hosts(fabric, server, reader)
    if fabric.topology == "rail-optimized" and server is not None and model is not None:
        _resolve_rails(fabric, reader, known, server, model)
    if not reader.is_sound("fabric.topology", "fabric.radix", "fabric.tiers", "fabric.hosts", "fabric.gpus"):
        return fabric.model_copy(update=known)
    if fabric.topology == "fat-tree":
        hosts = _fat_tree_hosts(fabric, reader, hosts, known, server)
    elif fabric.topology == "leaf-spine":
        hosts = _leaf_spine_hosts(fabric, reader, hosts, known, server)
    elif server is not None:
        hosts = _rail_hosts(fabric, reader, hosts)
    gpus = fabric.gpus if hosts is None or server is None else hosts * server.gpus
    return fabric.model_copy(update={**known, "hosts": hosts, "gpus": gpus})


def _node_model(fabric: FabricSection, reader: Reader) -> NodeModel | None:
    """The node in the catalogue; None where the catalogue is not known here or the name is wrong."""
    if fabric.node.model == "plain":
        return NodeModel()
    return reader.nodes.get(fabric.node.model)


def _take_from_node(fabric: FabricSection, model: NodeModel, reader: Reader, known: dict[str, Any]) -> None:
    """Rate of the links and the NIC, where the user says nothing of them."""
    if fabric.link_rate_bps is None and reader.is_sound("fabric.link_rate"):
        known["link_rate_bps"] = model.nic_port_rate_bps
    lines = reader.places.lines
    if "fabric.nic" not in lines or (fabric.nic.fields and "fabric.nic.model" not in lines):
        known["nic"] = fabric.nic.model_copy(update={"model": model.nic})


def _server(fabric: FabricSection, model: NodeModel, reader: Reader) -> Server | None:
    """The server with the user's fields; None where a field is wrong."""
    if not reader.is_sound("fabric.node") or any(bad.startswith("fabric.node.") for bad in reader.bad):
        return None
    server = fabric.node.on(model.server)
    mistakes = device_mistakes(server)
    for key, text in mistakes:
        reader.wrong(f"fabric.node.{key}", text)
    return None if mistakes else server


def _hosts(fabric: FabricSection, server: Server, reader: Reader) -> int | None:
    """Servers that are asked for, by themselves or by their GPUs."""
    hosts, gpus, each = fabric.hosts, fabric.gpus, server.gpus
    if gpus is None:
        return hosts
    if hosts is not None and gpus != hosts * each:
        of = f"{hosts:,} hosts of {each} GPUs each" if each > 1 else "as fabric.hosts, since every host has one GPU"
        reader.wrong("fabric.gpus", f"found {gpus:,}, wanted {hosts * each:,}, {of}; give one of them")
    elif gpus % each:
        below, above = gpus // each * each, (gpus // each + 1) * each
        near = above if above - gpus <= gpus - below or not below else below
        wanted = f"{below:,} or {above:,}" if below else f"{above:,}"
        text = f"found {gpus:,}, wanted a multiple of {each}, the GPUs of '{server.name}', such as {wanted}"
        reader.wrong("fabric.gpus", text, str(near))
    return gpus // each if hosts is None else hosts


def _resolve_rails(
    fabric: FabricSection, reader: Reader, known: dict[str, Any], server: Server, model: NodeModel
) -> None:
    """Rails and planes, which have to divide the NIC ports of a server."""
    if not reader.is_sound("fabric.topology", "fabric.rails", "fabric.planes"):
        return
    planes = 1 if fabric.planes is None else fabric.planes
    rails = default_rails(server, model.rails) if fabric.rails is None else fabric.rails
    known["rails"], known["planes"] = rails, planes
    for key, text, fix in rail_mistakes(server, rails=rails, planes=planes):
        reader.wrong(f"fabric.{key}", text, fix)


def _rail_hosts(fabric: FabricSection, reader: Reader, hosts: int | None) -> int | None:
    """Servers of a rail-optimized fabric, as asked for or of all its pods."""
    if not reader.is_sound("fabric.pods", "fabric.nodes_per_pod"):
        return hosts
    if hosts is None and (fabric.pods is None or fabric.nodes_per_pod is None):
        reader.wrong("fabric.gpus", "missing: give gpus (or hosts, the servers), or pods and nodes_per_pod")
        return None
    if fabric.pods is None or fabric.nodes_per_pod is None:
        return hosts
    places = fabric.pods * fabric.nodes_per_pod
    if hosts is None:
        return _full(places, "fabric.pods", reader)
    if -(-hosts // fabric.nodes_per_pod) != fabric.pods:
        wanted = -(-hosts // fabric.nodes_per_pod)
        text = f"found {fabric.pods:,}, but {hosts:,} servers in pods of {fabric.nodes_per_pod:,} make {wanted:,}"
        reader.wrong("fabric.pods", text, str(wanted))
    return hosts


def _resolve_links(fabric: FabricSection, reader: Reader, known: dict[str, Any]) -> None:
    delay_ps, length_m = fabric.link_delay_ps, fabric.cable_length_m
    if not reader.is_sound("fabric.link_delay", "fabric.cable_length"):
        return
    if delay_ps is None and length_m is None:
        length_m = DEFAULT_CABLE_M
    if length_m is not None:
        from_length_ps = round(Fraction(repr(length_m)) * PROPAGATION_PS_PER_M)
        if delay_ps is not None and delay_ps != from_length_ps:
            reader.wrong(
                "fabric.link_delay",
                f"found {format_quantity(DURATION, delay_ps)}, but fabric.cable_length makes"
                f" {format_quantity(DURATION, from_length_ps)} (5 ns per metre); give one of them",
            )
        elif not 1_000 <= from_length_ps <= 10**12:
            reader.wrong(
                "fabric.cable_length",
                f"found {length_m:g}m, wanted from 20cm to 200000km, since the engines need a delay of 1 ns to 1 s",
            )
        delay_ps = from_length_ps
    known["link_delay_ps"], known["cable_length_m"] = delay_ps, length_m
    known["host_link_delay_ps"] = delay_ps if fabric.host_link_delay_ps is None else fabric.host_link_delay_ps


def _has_ports(fabric: FabricSection) -> bool:
    """Whether the switch itself says how many ports it has; how many, the floor with the catalogue knows."""
    return fabric.switch.model != "plain" or bool(fabric.switch.fields.get("radix"))


def _speed(fabric: FabricSection) -> Fraction:
    """Rate of a host's link over that of an uplink."""
    if fabric.link_rate_bps is None or fabric.fabric_rate_bps is None:
        return Fraction(1)
    return Fraction(fabric.link_rate_bps, fabric.fabric_rate_bps)


def _resolve_devices(fabric: FabricSection, reader: Reader) -> None:
    devices: list[tuple[str, DeviceChoice, Switch | Nic]] = [
        ("fabric.switch", fabric.switch, Switch()),
        ("fabric.nic", fabric.nic, Nic()),
    ]
    for path, choice, plain in devices:
        # Against a model of the catalogue the same test runs where the catalogue is known.
        if choice.model == "plain" and not any(bad.startswith(f"{path}.") for bad in reader.bad):
            for key, text in device_mistakes(choice.on(plain)):
                reader.wrong(f"{path}.{key}", text)


def _fat_tree_hosts(
    fabric: FabricSection, reader: Reader, hosts: int | None, known: dict[str, Any], server: Server | None
) -> int | None:
    radix = fabric.radix
    tiers = known["tiers"] = 3 if fabric.tiers is None else fabric.tiers
    if radix is None:
        if not _has_ports(fabric):
            reader.wrong("fabric.radix", "missing, wanted an even whole number, the ports of every switch, such as 8")
        return hosts
    if radix % 2:
        reader.wrong(
            "fabric.radix",
            f"found {radix}, wanted an even number such as {radix + 1}: half of the ports go down, half up",
        )
        return hosts
    if server is None:
        return hosts
    half, each = radix // 2, server.nic_ports
    if each > half:
        text = f"found {radix}, but a leaf needs {each} ports down for one server, so wanted at least {2 * each}"
        reader.wrong("fabric.radix", text, str(2 * each))
        return hosts
    most = (radix if tiers == 2 else radix * half) * (half // each)
    if hosts is not None and hosts > most:
        path = reader.which("fabric.hosts", "fabric.gpus")
        found, wanted = (hosts, most) if path == "fabric.hosts" else (hosts * server.gpus, most * server.gpus)
        ports = "" if each == 1 else f" where a server takes {each} ports"
        reader.wrong(
            path,
            f"found {found:,}, wanted at most {wanted:,}, the ports of a fat tree of {tiers} tiers and radix"
            f" {radix}{ports}",
        )
    return _full(most, "fabric.radix", reader) if hosts is None else hosts


def _full(places: int, path: str, reader: Reader) -> int:
    """Hosts of a full fabric, which may be more than Weftwork can number."""
    if places > MAX_HOSTS:
        reader.wrong(path, f"makes {places:,} hosts, wanted at most {MAX_HOSTS:,}; give fabric.hosts to attach fewer")
    return places


def _ports_on_leaf(fabric: FabricSection, server: Server | None, reader: Reader) -> tuple[int, int] | None:
    """Ports of a server on one leaf, and the leaves that it hangs on; None where that is not known or wrong."""
    if server is None or not reader.is_sound("fabric.dual_homed"):
        return None
    homes = 2 if fabric.dual_homed else 1
    if server.nic_ports % homes:
        text = (
            f"found true, but '{server.name}' has {server.nic_ports} NIC port{'s' * (server.nic_ports > 1)}, wanted an"
            f" even number: node: {{model: {server.name}, nic_ports: {2 * server.nic_ports}}}"
        )
        reader.wrong("fabric.dual_homed", text)
        return None
    return server.nic_ports // homes, homes


def _leaf_spine_hosts(
    fabric: FabricSection, reader: Reader, hosts: int | None, known: dict[str, Any], server: Server | None
) -> int | None:
    shape = {"leaves": fabric.leaves, "spines": fabric.spines, "hosts_per_leaf": fabric.hosts_per_leaf}
    if not reader.is_sound(
        *(f"fabric.{key}" for key in (*shape, "links_per_pair", "oversubscription", "link_rate", "fabric_rate"))
    ):
        return hosts
    if fabric.leaves is None and fabric.spines is None:
        return _derived_leaf_spine(fabric, reader, hosts, known, _ports_on_leaf(fabric, server, reader))
    if fabric.spines == 0:
        reader.wrong(
            "fabric.spines", "found 0, wanted at least 1: the spines of a leaf-spine fabric join its leaves", "1"
        )
        return hosts
    missing = [key for key, value in shape.items() if value is None]
    for key in missing:
        reader.wrong(f"fabric.{key}", "missing: leaves, spines and hosts_per_leaf are given together")
    if fabric.leaves is None or fabric.spines is None or fabric.hosts_per_leaf is None:
        return hosts
    per_pair = fabric.links_per_pair or 1
    known["links_per_pair"] = per_pair
    wiring = _ports_on_leaf(fabric, server, reader)
    if wiring is None:
        return hosts
    each, homes = wiring
    if fabric.leaves % homes:
        text = f"found {fabric.leaves}, wanted an even number, since the leaves of dual-homed servers come in pairs"
        reader.wrong("fabric.leaves", text, str(fabric.leaves + 1))
        return hosts
    ports_leaf = fabric.hosts_per_leaf * each + fabric.spines * per_pair
    ports_spine = fabric.leaves * per_pair
    for what, ports in (("leaf", ports_leaf), ("spine", ports_spine)):
        if fabric.radix is not None and ports > fabric.radix:
            reader.wrong("fabric.radix", f"found {fabric.radix}, but a {what} needs {ports:,} ports")
            break
    ratio = fabric.hosts_per_leaf * each * _speed(fabric) / (fabric.spines * per_pair)
    asked = fabric.oversubscription
    if asked is not None and abs(Fraction(asked) - ratio) > ratio / 1000:
        reader.wrong(
            "fabric.oversubscription",
            f"found {asked:g}, wanted {float(ratio):g}, which hosts_per_leaf, spines, links_per_pair and the rates"
            " make; leave it out",
        )
    known["oversubscription"] = float(ratio) if asked is None else asked
    places = fabric.leaves // homes * fabric.hosts_per_leaf
    if hosts is not None and hosts > places:
        reader.wrong(
            reader.which("fabric.hosts", "fabric.gpus"),
            f"found {hosts:,}, wanted at most {places:,}, leaves {fabric.leaves:,} x hosts_per_leaf"
            f" {fabric.hosts_per_leaf:,}" + (" / 2" if homes == 2 else ""),
        )
    return _full(places, "fabric.leaves", reader) if hosts is None else hosts


def _derived_leaf_spine(
    fabric: FabricSection, reader: Reader, hosts: int | None, known: dict[str, Any], wiring: tuple[int, int] | None
) -> int | None:
    if hosts is None:
        reader.wrong("fabric.hosts", "missing: give hosts and radix, or leaves, spines and hosts_per_leaf")
    if fabric.radix is None and not _has_ports(fabric):
        reader.wrong("fabric.radix", "missing: give hosts and radix, or leaves, spines and hosts_per_leaf")
    if fabric.links_per_pair is not None:
        reader.wrong(
            "fabric.links_per_pair",
            "follows from hosts, radix and oversubscription; give it together with leaves and spines",
        )
    ratio = 1.0 if fabric.oversubscription is None else fabric.oversubscription
    known["oversubscription"] = ratio
    if not 0.01 <= ratio <= 1_000:
        reader.wrong(
            "fabric.oversubscription", f"found {ratio:g}, wanted from 0.01 to 1000 where the shape follows from it"
        )
    elif fabric.hosts_per_leaf is not None and wiring is not None:
        speed = _speed(fabric) * wiring[0]
        uplinks = fabric.hosts_per_leaf * speed / Fraction(ratio).limit_denominator(1000)
        if uplinks.denominator != 1:
            below = fabric.hosts_per_leaf * speed / max(1, int(uplinks) + 1)
            above = fabric.hosts_per_leaf * speed / max(1, int(uplinks))
            reader.wrong(
                "fabric.oversubscription",
                f"found {ratio:g}, which gives a leaf of {fabric.hosts_per_leaf} hosts {float(uplinks):g} uplinks;"
                f" a whole number of them makes {float(below):g} or {float(above):g}",
            )
    return hosts
