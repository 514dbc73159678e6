"""Checks between keys of ``fabric``.

Contradictions are mistakes; values that follow from other keys are filled in.
Leaves out: the keys of one topology, which its file checks; what needs the ports of a switch of the catalogue, which
`weftwork.topology.build` derives and refuses.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from weftwork.base.clock import NS_PS
from weftwork.base.grammar import plural
from weftwork.base.units import DURATION, PROPAGATION_PS_PER_M, format_quantity
from weftwork.spec.device import Nic, Record, Server, Switch
from weftwork.spec.scenario.choice import KeyFindings
from weftwork.spec.scenario.choices import TOPOLOGIES
from weftwork.spec.scenario.devices import DeviceChoice, NodeModel, device_mistakes
from weftwork.spec.scenario.fabric import FabricSection
from weftwork.spec.scenario.findings import Read, asked
from weftwork.spec.scenario.floor_plan import FloorPlanSection
from weftwork.spec.scenario.hashes import check_hashes
from weftwork.spec.scenario.pins import check_pins
from weftwork.spec.scenario.reader import Reader
from weftwork.spec.scenario.topology import Ground, Topology

__all__ = ["DEFAULT_CABLE_M", "resolve_fabric", "resolved_keys", "servers_asked"]

SHORTEST_PS = NS_PS  # as `weftwork.topology.assemble` refuses shorter delays
# devices beside a fabric file, each with a field that a scenario may change
_EXAMPLES = {"switch": "buffer: 32MB", "nic": "pcie_rate: 200Gbps", "node": "nvlink_latency: 1us"}
DEFAULT_CABLE_M = 20.0  # chosen: a row of racks, as the row fabric.cable_length says


def resolve_fabric(fabric: FabricSection, reader: Reader) -> FabricSection:
    """Check a fabric and fill in derived values."""
    check_hashes(fabric.hash, reader)
    check_pins(fabric.pinned, reader)
    if fabric.engineering is not None and fabric.pinned and reader.is_sound("fabric.engineering", "fabric.pinned"):
        reader.wrong(
            "fabric.pinned", "pins paths, but fabric.engineering plans the paths of all pairs; give one of the two"
        )
    if fabric.topology == "file":
        if fabric.file is None and reader.is_sound("fabric.topology", "fabric.file"):
            reader.wrong("fabric.file", "missing, wanted a file that ends in .graphml or .json, since topology is file")
        return _on_file(fabric, reader)
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
    fabric = fabric.model_copy(update=known)
    server = None if model is None else _server(fabric, model, reader)
    found = Read(reader=reader, section="fabric")
    hosts = fabric.hosts if server is None else servers_asked(fabric.hosts, fabric.gpus, server, found)
    if not reader.is_sound("fabric.topology"):
        return fabric
    ground = Ground(
        hosts=hosts,
        radix=fabric.radix,
        has_ports=fabric.radix is not None or _has_ports(fabric),
        server=server,
        rails=0 if model is None else model.rails,
        host_rate_bps=fabric.link_rate_bps,
        fabric_rate_bps=fabric.fabric_rate_bps,
    )
    resolved = asked(
        TOPOLOGIES, fabric.topology, reader, "fabric.topology",
        lambda topology: resolved_keys(fabric.topology, topology, fabric.options, ground, found),
    )  # fmt: skip
    if resolved is None:
        return fabric
    options, hosts = resolved
    gpus = fabric.gpus if hosts is None or server is None else hosts * server.gpus
    return fabric.model_copy(update={"options": options, "hosts": hosts, "gpus": gpus})


def _on_file(fabric: FabricSection, reader: Reader) -> FabricSection:
    """Keep the fields of devices beside a fabric file, and refuse models: its nodes have theirs."""
    lines = reader.places.lines
    choices: dict[str, DeviceChoice] = {}
    for key, field in _EXAMPLES.items():
        path = f"fabric.{key}"
        choice: DeviceChoice = getattr(fabric, key)
        choices[key] = choice.model_copy(update={"model": ""})
        has_model = f"{path}.model" in lines
        has_fields = any(line.startswith(f"{path}.") for line in lines)
        if reader.is_sound(path) and (has_model or (path in lines and not has_fields)):
            word = "server" if key == "node" else key
            text = (
                f"found {choice.model}, but fabric.file says which device each node is; wanted fields that change in"
                f" every {word}, such as {{{field}}}, or the model as key '{word}' in the file"
            )
            reader.wrong(f"{path}.model" if has_model else path, text)
    return fabric.model_copy(update=choices)


def resolved_keys(
    label: str, topology: Topology[Any], options: Record, ground: Ground, found: KeyFindings
) -> tuple[Record, int | None]:
    """Let a topology check and resolve its keys, then check the result.

    Raises
    ------
    CodeError : the topology of a user's own returns something else
    """
    answer: object = topology.resolve(options, ground, found)
    match answer:
        case (Record() as keys, int() | None as hosts) if isinstance(keys, topology.keys):
            return keys, hosts
    raise TOPOLOGIES.wrong(label, f"resolve returned {answer!r}, wanted the keys and the number of hosts or None")


def _node_model(fabric: FabricSection, reader: Reader) -> NodeModel | None:
    """The node in the catalogue.

    None if the catalogue is not known here or the name is wrong.
    """
    if fabric.node.model == "plain":
        return NodeModel()
    return reader.nodes.get(fabric.node.model)


def _take_from_node(fabric: FabricSection, model: NodeModel, reader: Reader, known: dict[str, Any]) -> None:
    """Take link rates and NIC from the node where the user sets none.

    The rates of a chip of a pod go before those of a topology, which are of one generation.
    """
    lines = reader.places.lines
    is_chip = model.pod_link_rate_bps is not None
    if reader.is_sound("fabric.link_rate") and (
        fabric.link_rate_bps is None or (is_chip and "fabric.link_rate" not in lines)
    ):
        known["link_rate_bps"] = model.nic_port_rate_bps
    if is_chip and reader.is_sound("fabric.fabric_rate") and "fabric.fabric_rate" not in lines:
        known["fabric_rate_bps"] = model.pod_link_rate_bps
    if "fabric.nic" not in lines or (fabric.nic.fields and "fabric.nic.model" not in lines):
        known["nic"] = fabric.nic.model_copy(update={"model": model.nic})


def _server(fabric: FabricSection, model: NodeModel, reader: Reader) -> Server | None:
    """The server with the user's fields; None if a field is wrong."""
    if not reader.is_sound("fabric.node") or any(bad.startswith("fabric.node.") for bad in reader.bad):
        return None
    server = fabric.node.on(model.server)
    mistakes = device_mistakes(server)
    for key, text in mistakes:
        reader.wrong(f"fabric.node.{key}", text)
    return None if mistakes else server


def servers_asked(hosts: int | None, gpus: int | None, server: Server, found: KeyFindings) -> int | None:
    """Requested number of servers, directly or by their GPUs.

    None if nothing is requested.
    """
    each = server.gpus
    if gpus is None:
        return hosts
    if hosts is not None and gpus != hosts * each:
        of = (
            f"{plural(hosts, 'host')} of {plural(each, 'GPU')} each"
            if each > 1
            else "as fabric.hosts, since every host has one GPU"
        )
        found.wrong("gpus", f"found {gpus:,}, wanted {hosts * each:,}, {of}; give one of the two keys")
    elif gpus % each:
        below, above = gpus // each * each, (gpus // each + 1) * each
        near = above if above - gpus <= gpus - below or not below else below
        wanted = f"{below:,} or {above:,}" if below else f"{above:,}"
        text = f"found {gpus:,}, wanted a multiple of {each}, the GPUs of '{server.name}', such as {wanted}"
        found.wrong("gpus", text, str(near))
    return gpus // each if hosts is None else hosts


def _resolve_links(fabric: FabricSection, reader: Reader, known: dict[str, Any]) -> None:
    delay_ps, length_m = fabric.link_delay_ps, fabric.cable_length_m
    if not reader.is_sound("fabric.link_delay", "fabric.cable_length", "fabric.floor_plan"):
        return
    if fabric.floor_plan is not None:
        _resolve_floor(fabric, fabric.floor_plan, reader)
        return
    if delay_ps is None and length_m is None:
        length_m = DEFAULT_CABLE_M
    if length_m is not None:
        from_length_ps = round(Fraction(repr(length_m)) * PROPAGATION_PS_PER_M)
        if delay_ps is not None and delay_ps != from_length_ps:
            reader.wrong(
                "fabric.link_delay",
                f"found {format_quantity(DURATION, delay_ps)}, but fabric.cable_length makes"
                f" {format_quantity(DURATION, from_length_ps)} (5 ns per metre); give one of the two keys",
            )
        elif not SHORTEST_PS <= from_length_ps <= 10**12:
            reader.wrong(
                "fabric.cable_length",
                f"found {length_m:g}m, wanted from 20cm to 200000km, since the engines need a delay of 1 ns to 1 s",
            )
        delay_ps = from_length_ps
    known["link_delay_ps"], known["cable_length_m"] = delay_ps, length_m
    known["host_link_delay_ps"] = delay_ps if fabric.host_link_delay_ps is None else fabric.host_link_delay_ps


def _resolve_floor(fabric: FabricSection, plan: FloorPlanSection, reader: Reader) -> None:
    """Refuse delays beside a floor plan, which sets all delays."""
    given = {
        "link_delay": fabric.link_delay_ps,
        "cable_length": fabric.cable_length_m,
        "host_link_delay": fabric.host_link_delay_ps,
    }
    for key, value in given.items():
        if value is not None:
            reader.wrong(f"fabric.{key}", "follows from fabric.floor_plan; give one of the two keys")
    for key, length_m in (("rack_cable", plan.rack_cable_m), ("tray_height", 2 * plan.tray_height_m)):
        if round(length_m * PROPAGATION_PS_PER_M) < SHORTEST_PS and reader.is_sound(f"fabric.floor_plan.{key}"):
            text = f"makes a cable of {length_m:g}m, wanted at least 20cm, since the engines need a delay of 1 ns"
            reader.wrong(f"fabric.floor_plan.{key}", text)


def _has_ports(fabric: FabricSection) -> bool:
    """Whether the switch itself states its number of ports.

    The floor with the catalogue knows the number.
    """
    return fabric.switch.model != "plain" or bool(fabric.switch.fields.get("radix"))


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
