"""What one key of a scenario means for another: contradictions are mistakes, what follows from other keys is filled in.

Each check is skipped where a key that it reads is itself wrong, so that one mistake is told once.
Leaves out: what only the built fabric knows, such as names of links; the floor that builds it uses `Scenario.locate`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from weft.base.units import DURATION, PROPAGATION_PS_PER_M, format_quantity
from weft.spec.device import Nic, Switch
from weft.spec.scenario_devices import DeviceChoice, device_mistakes
from weft.spec.scenario_fabric import MAX_HOSTS, FabricSection
from weft.spec.scenario_policies import PRESETS, REORDERING, PolicyChoice
from weft.spec.scenario_reader import Reader
from weft.spec.scenario_transport import TransportSection
from weft.spec.scenario_workload import Collective, Traffic

__all__ = ["check_workload", "resolve_fabric", "resolve_transport"]

REORDER_WINDOW_PACKETS = 1024  # chosen: 4 MiB, above the BDP of 400 Gb/s x 50 us
DEFAULT_CABLE_M = 20.0  # as the row fabric.cable_length says


def resolve_fabric(fabric: FabricSection, reader: Reader) -> FabricSection:
    """Check a fabric and fill in what follows from its other keys."""
    if fabric.topology == "file":
        if fabric.file is None and reader.is_sound("fabric.topology", "fabric.file"):
            reader.wrong("fabric.file", "missing, wanted a file that ends in .graphml or .json, since topology is file")
        return fabric
    known: dict[str, Any] = {}
    _resolve_links(fabric, reader, known)
    _resolve_devices(fabric, reader)
    if fabric.file is not None and reader.is_sound("fabric.topology"):
        reader.wrong(
            "fabric.topology", f"found '{fabric.topology}', but fabric.file brings its own; leave topology out"
        )
        return fabric
    known["fabric_rate_bps"] = fabric.fabric_rate_bps or fabric.link_rate_bps
    hosts = fabric.hosts if fabric.hosts is not None else fabric.gpus
    if fabric.gpus is not None and hosts != fabric.gpus:
        reader.wrong(
            "fabric.gpus",
            f"found {fabric.gpus:,}, wanted {hosts:,} as fabric.hosts, since every host has one GPU; give one of them",
        )
    if not reader.is_sound("fabric.topology", "fabric.radix", "fabric.tiers", "fabric.hosts", "fabric.gpus"):
        return fabric.model_copy(update=known)
    if fabric.topology == "fat-tree":
        hosts = _fat_tree_hosts(fabric, reader, hosts)
    else:
        hosts = _leaf_spine_hosts(fabric, reader, hosts, known)
    return fabric.model_copy(update={**known, "hosts": hosts, "gpus": hosts})


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


def _fat_tree_hosts(fabric: FabricSection, reader: Reader, hosts: int | None) -> int | None:
    radix, tiers = fabric.radix, fabric.tiers
    if radix is None or tiers is None:
        if not _has_ports(fabric):
            reader.wrong("fabric.radix", "missing, wanted an even whole number, the ports of every switch, such as 8")
        return hosts
    if radix % 2:
        reader.wrong(
            "fabric.radix",
            f"found {radix}, wanted an even number such as {radix + 1}: half of the ports go down, half up",
        )
        return hosts
    most = radix**2 // 2 if tiers == 2 else radix**3 // 4
    if hosts is not None and hosts > most:
        reader.wrong(
            _which(reader, "fabric.hosts", "fabric.gpus"),
            f"found {hosts:,}, wanted at most {most:,}, the ports of a fat tree of {tiers} tiers and radix {radix}",
        )
    return _full(most, "fabric.radix", reader) if hosts is None else hosts


def _full(places: int, path: str, reader: Reader) -> int:
    """Hosts of a full fabric, which may be more than Weft can number."""
    if places > MAX_HOSTS:
        reader.wrong(path, f"makes {places:,} hosts, wanted at most {MAX_HOSTS:,}; give fabric.hosts to attach fewer")
    return places


def _leaf_spine_hosts(fabric: FabricSection, reader: Reader, hosts: int | None, known: dict[str, Any]) -> int | None:
    shape = {"leaves": fabric.leaves, "spines": fabric.spines, "hosts_per_leaf": fabric.hosts_per_leaf}
    if not reader.is_sound(
        *(f"fabric.{key}" for key in (*shape, "links_per_pair", "oversubscription", "link_rate", "fabric_rate"))
    ):
        return hosts
    if fabric.leaves is None and fabric.spines is None:
        return _derived_leaf_spine(fabric, reader, hosts, known)
    missing = [key for key, value in shape.items() if value is None]
    for key in missing:
        reader.wrong(f"fabric.{key}", "missing: leaves, spines and hosts_per_leaf are given together")
    if fabric.leaves is None or fabric.spines is None or fabric.hosts_per_leaf is None:
        return hosts
    per_pair = fabric.links_per_pair or 1
    known["links_per_pair"] = per_pair
    ports_leaf = fabric.hosts_per_leaf + fabric.spines * per_pair
    ports_spine = fabric.leaves * per_pair
    for what, ports in (("leaf", ports_leaf), ("spine", ports_spine)):
        if fabric.radix is not None and ports > fabric.radix:
            reader.wrong("fabric.radix", f"found {fabric.radix}, but a {what} needs {ports:,} ports")
            break
    ratio = fabric.hosts_per_leaf * _speed(fabric) / (fabric.spines * per_pair)
    asked = fabric.oversubscription
    if asked is not None and abs(Fraction(asked) - ratio) > ratio / 1000:
        reader.wrong(
            "fabric.oversubscription",
            f"found {asked:g}, wanted {float(ratio):g}, which hosts_per_leaf, spines, links_per_pair and the rates"
            " make; leave it out",
        )
    known["oversubscription"] = float(ratio) if asked is None else asked
    places = fabric.leaves * fabric.hosts_per_leaf
    if hosts is not None and hosts > places:
        reader.wrong(
            _which(reader, "fabric.hosts", "fabric.gpus"),
            f"found {hosts:,}, wanted at most {places:,}, leaves {fabric.leaves:,} x hosts_per_leaf"
            f" {fabric.hosts_per_leaf:,}",
        )
    return _full(places, "fabric.leaves", reader) if hosts is None else hosts


def _derived_leaf_spine(fabric: FabricSection, reader: Reader, hosts: int | None, known: dict[str, Any]) -> int | None:
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
    elif fabric.hosts_per_leaf is not None:
        speed = _speed(fabric)
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


def resolve_transport(transport: TransportSection, reader: Reader) -> TransportSection:
    """Check a transport and fill in the policies that its preset names."""
    known: dict[str, PolicyChoice | int] = {}
    keeps = transport.reorder_tolerant or transport.recovery == "selective-repeat"
    if transport.reorder_window_packets is None and keeps:
        known["reorder_window_packets"] = REORDER_WINDOW_PACKETS
    elif (
        transport.reorder_window_packets is not None
        and not keeps
        and reader.is_sound("transport.recovery", "transport.reorder_tolerant", "transport.reorder_window")
    ):
        reader.wrong(
            "transport.reorder_window",
            f"means nothing with reorder_tolerant false and recovery {transport.recovery}, only with true or"
            " selective-repeat",
        )
    preset = PRESETS[transport.load_balancing]
    for kind, name in zip(("path_selection", "port_selection"), preset, strict=True):
        chosen = getattr(transport, kind)
        if chosen is None:
            chosen = PolicyChoice(name=name)
            if name not in reader.known.get(kind, ()) and reader.is_sound("transport.load_balancing"):
                reader.wrong(
                    "transport.load_balancing",
                    f"found '{transport.load_balancing}', but the {kind} '{name}' is not installed",
                )
        known[kind] = chosen
        path = f"transport.{kind}" if f"transport.{kind}" in reader.places.lines else "transport.load_balancing"
        is_wrong = chosen.name in REORDERING[kind] and not (transport.reorder_tolerant or transport.force)
        if (
            is_wrong
            and transport.recovery == "go-back-n"
            and reader.is_sound(path, "transport.recovery", "transport.reorder_tolerant")
        ):
            reader.wrong(
                path,
                f"'{chosen.name}' brings packets out of order, which go-back-n takes for losses; set"
                " transport.reorder_tolerant: true, or transport.force: true to see the collapse",
            )
    data, control = transport.data_priority, transport.control_priority
    if data == control and reader.is_sound("transport.data_priority", "transport.control_priority"):
        reader.wrong(
            _which(reader, "transport.control_priority", "transport.data_priority"),
            f"data and control have the same priority, {data}; ACKs would wait behind the data that they release",
        )
    return transport.model_copy(update=known)


def check_workload(
    workload: Collective | Traffic, fabric: FabricSection, transport: TransportSection, reader: Reader
) -> Collective | Traffic:
    """Check a workload against the fabric and fill in what follows from it."""
    hosts = (
        fabric.hosts
        if reader.is_sound("fabric.hosts", "fabric.gpus", "fabric.topology", "fabric.radix", "fabric.leaves")
        else None
    )
    if isinstance(workload, Collective):
        gpus = workload.gpus if workload.gpus is not None else hosts
        if gpus is not None and hosts is not None and gpus > hosts:
            reader.wrong("collective.gpus", f"found {gpus:,}, wanted at most {hosts:,}, the hosts of the fabric")
        elif gpus == 1:
            reader.wrong("collective.gpus", "one GPU has nobody to talk to; wanted a fabric of at least two hosts")
        least = (gpus or 2) * workload.channels
        if workload.size_bytes < least and reader.is_sound("collective.size", "collective.channels", "collective.gpus"):
            reader.wrong(
                "collective.size",
                f"found {workload.size_bytes:,} B, wanted at least {least:,} B: one for each GPU and channel",
            )
        return workload.model_copy(update={"gpus": gpus})
    if workload.priority == transport.control_priority and reader.is_sound(
        "traffic.priority", "transport.control_priority"
    ):
        reader.wrong(
            "traffic.priority",
            f"found {workload.priority}, which is transport.control_priority; ACKs would wait behind the data",
        )
    if hosts == 1:
        reader.wrong("traffic", "one host has nobody to talk to; wanted a fabric of at least two")
        return workload
    if workload.pattern != "incast" or hosts is None:
        return workload
    if workload.receiver is not None and workload.receiver >= hosts:
        reader.wrong("traffic.receiver", f"found {workload.receiver:,}, wanted a host from 0 to {hosts - 1:,}")
    if workload.senders is not None and workload.senders >= hosts:
        reader.wrong(
            "traffic.senders",
            f"found {workload.senders:,}, wanted at most {hosts - 1:,}, the hosts of the fabric without the receiver",
        )
    return workload.model_copy(update={"senders": workload.senders if workload.senders is not None else hosts - 1})


def _which(reader: Reader, first: str, second: str) -> str:
    """Return the key that the user wrote: the first of the two, unless only the second is there."""
    return second if first not in reader.places.lines and second in reader.places.lines else first
