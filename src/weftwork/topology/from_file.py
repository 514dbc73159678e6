"""Read fabrics from JSON and GraphML files.

``docs/models/fabrics.md`` describes the meaning of the attributes.
Leaves out: the formats themselves, which are in `weftwork.topology.fabric_formats`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError

from weftwork.base.caveat import Caveat, caveats_of
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.file_forms import refuse_foreign
from weftwork.base.findings import Findings
from weftwork.base.grammar import plural
from weftwork.base.nearest import nearest, nearest_key
from weftwork.base.plain_file import read_plain
from weftwork.base.units import DURATION, LENGTH, PROPAGATION_PS_PER_M, RATE, QuantityKind, UnitError, parse_quantity
from weftwork.hardware import catalogue
from weftwork.spec.device import Nic, Server, Switch
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.spec.fabric_extras import Extra
from weftwork.topology.assemble import assemble, default_link_names, links_between
from weftwork.topology.direct_rows import LINK_ROWS, NODE_ROWS, direct_of
from weftwork.topology.fabric_formats import Draft, check_directions, read_graphml, read_json
from weftwork.topology.file_gaps import Gaps, missing_fields
from weftwork.topology.file_tiers import MOST_TIERS, NO_TIER, doubt_of_tiers, with_distances

__all__ = ["FABRIC_FILES", "fabric_from", "read_fabric"]

FABRIC_FILES = {".json": read_json, ".graphml": read_graphml}  # what reads a file, by how its name ends
MAX_BYTES = 1_000_000_000  # chosen: ten times the file of 65,536 hosts

PLAIN = "plain"
TIER_SUBJECT = "fabric.file.tier"
WORDS = {"host": HOST, "switch": SWITCH}
NODE_KEYS = ("id", "kind", "tier", "pod", "switch", "nic", "device", "server", *NODE_ROWS)
DEFAULTS = ("rate", "rate_bps", "delay", "delay_ps", "length", "length_m", "loss", "corruption")
LINK_KEYS = ("source", "target", "name", *DEFAULTS, *LINK_ROWS)
GRAPH_KEYS = ("name", "tree", "switches", "nics", "servers", "extras", "caveats", "direct",
              "switch", "nic", "server", *DEFAULTS)  # fmt: skip
# what networkx writes besides; it says nothing about a fabric
IGNORED = {"key", "multigraph"}


def _refuse_unknown(place: Findings, row: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in row:
        if key not in known and key not in IGNORED:
            place.wrong(key, "unknown key", nearest_key(key, known))


def read_fabric(path: Path) -> Fabric:
    """Read a fabric from a ``.json`` or ``.graphml`` file.

    Raises
    ------
    ConfigError : the file cannot be read, is not of its kind, or describes no fabric; all mistakes at once
    """
    source = path.name
    if path.suffix not in FABRIC_FILES:
        text = f"found a file that ends in '{path.suffix}', wanted .json or .graphml"
        raise ConfigError(source, [Mistake(path="fabric.file", text=text)])
    try:
        if path.stat().st_size > MAX_BYTES:
            text = f"the file has {path.stat().st_size:,} bytes, wanted at most {MAX_BYTES:,}"
            raise ConfigError(source, [Mistake(path="fabric.file", text=text)])
        content = read_plain(path)
    except OSError as wrong:
        text = f"cannot read '{path}': {wrong.strerror}"
        raise ConfigError(source, [Mistake(path="fabric.file", text=text)]) from wrong
    refuse_foreign(source, content, "fabric", path="fabric.file")
    return fabric_from(FABRIC_FILES[path.suffix](content, source), source)


class _Devices:
    """The devices of a file.

    Listed devices come first, then those that nodes name from the catalogue, each once.
    """

    def __init__(self, kind: str, listed: list[Any], caveats: dict[str, Caveat]) -> None:
        self.kind = kind
        self.records = listed
        self.listed = len(listed)
        self.caveats = caveats
        self.by_name: dict[str, int] = {}

    def named(self, name: str) -> int:
        if name not in self.by_name:
            record: Switch | Nic | Server
            if self.kind == "switch":
                # links of a file may have any mix of rates; their sum is checked against the capacity
                record = catalogue.switch(name).model_copy(update={"radix": catalogue.max_ports(name)})
                self.caveats.update(catalogue.switch_caveats(name))
            elif self.kind == "server":
                record = catalogue.node(name).server
                self.caveats.update(catalogue.node_caveats(name))
            else:
                record = catalogue.nic(name)
                self.caveats.update(catalogue.nic_caveats(name))
            self.by_name[name] = len(self.records)
            self.records.append(record)
        return self.by_name[name]


def fabric_from(draft: Draft, source: str) -> Fabric:
    """Interpret a draft as a fabric.

    Parameters
    ----------
    draft : attributes as they stand in a file
    source : name of the file, for messages

    Raises
    ------
    ConfigError : with all mistakes of the file
    """
    findings = Findings(source=source)
    graph = draft.graph
    _refuse_unknown(findings.at("graph"), graph, GRAPH_KEYS)
    caveats: dict[str, Caveat] = {}
    try:
        caveats = caveats_of(graph, source)
    except ConfigError as error:
        findings.include(error.mistakes)
    devices = {
        SWITCH: _Devices("switch", _records(graph.get("switches", []), Switch, "switches", findings), caveats),
        HOST: _Devices("nic", _records(graph.get("nics", []), Nic, "nics", findings), caveats),
    }
    servers = _Devices("server", _records(graph.get("servers", []), Server, "servers", findings), caveats)
    extras = _records(graph.get("extras", []), Extra, "extras", findings)
    gaps = Gaps()
    nodes = [
        _node(number, line, row, graph, devices, servers, findings, gaps)
        for number, (line, row) in enumerate(draft.nodes)
    ]
    index = {name: number for number, (name, *_) in enumerate(nodes)}
    rows = []
    for number, (line, row) in enumerate(draft.links):
        place = findings.at(f"links.{row.get('name') or number}", line)
        rows.append(_link(place, graph, row, index))
    check_directions(draft, findings)
    direct = direct_of(draft, [node[1] for node in nodes], [row[0] for row in rows], findings)
    names = [node[0] for node in nodes]
    kinds, tiers, chosen, server, pod = np.array([node[1:] for node in nodes], np.int32).reshape(-1, 5).T
    ends, rates, delays, losses, corruptions = ([row[column] for row in rows] for column in range(5))
    table = np.array(ends, dtype=np.int64).reshape(-1, 2)
    is_derived = bool((tiers == NO_TIER).any())
    if not findings.has_mistakes:
        tiers = with_distances(names, kinds, tiers, table, findings)
    findings.refuse()
    links = links_between(
        table[:, 0], table[:, 1], rate_bps=rates, delay_ps=delays, loss=losses, corruption=corruptions
    )  # fmt: skip
    tier = tiers.astype(np.int8)
    link_names = list(default_link_names(names, tier, links))
    for number, (_, row) in enumerate(draft.links):
        if row.get("name") is not None:
            link_names[number] = str(row["name"])
    fabric = assemble(
        name=str(graph.get("name") or Path(source).stem), node_names=names, node_kind=kinds, node_tier=tier,
        node_device=chosen, links=links, link_names=link_names, switches=devices[SWITCH].records,
        nics=devices[HOST].records, caveats=caveats, servers=servers.records or (Server(),),
        extras=extras, tree=str(graph.get("tree") or ""), direct=direct,
        node_server=server if (server != 0).any() else None, node_pod=pod if (pod >= 0).any() else None, source=source,
    )  # fmt: skip
    gaps.note_links([row for _, row in draft.links], graph)
    gaps.note_direct(draft, fabric)
    for path, record in (("switches", Switch), ("nics", Nic), ("servers", Server)):
        for number, row in enumerate(graph.get(path, [])):
            missing_fields(record, row, gaps, f"{path}.{number}")
    assumed = gaps.caveat(source)
    if is_derived and (doubt := doubt_of_tiers(fabric)):
        text = f"'{source}' leaves out tiers; hops to the nearest host hold instead, but {doubt}; write all tiers"
        assumed[TIER_SUBJECT] = Caveat(subject=TIER_SUBJECT, kind="assumed", text=text)
    return replace(fabric, caveats={**fabric.caveats, **assumed})


def _node(
    number: int, line: int | None, row: Mapping[str, Any], graph: Mapping[str, Any], devices: Mapping[int, _Devices],
    servers: _Devices, findings: Findings, gaps: Gaps,
) -> tuple[str, int, int, int, int, int]:  # fmt: skip
    """Name, kind, tier, device, server and pod of a node."""
    name = str(row["id"]) if row.get("id") is not None else ""
    place = findings.at(f"nodes.{name or number}", line)
    if not name:
        place.wrong("", "has no id")
    _refuse_unknown(place, row, NODE_KEYS)
    word = row.get("kind")
    if not isinstance(word, str) or word not in WORDS:
        fix = nearest(word, WORDS) if isinstance(word, str) else None
        place.wrong("kind", f"found {word!r}, wanted host or switch", fix=fix)
    kind = WORDS.get(word, SWITCH) if isinstance(word, str) else SWITCH
    tier = row.get("tier", 0 if kind == HOST else NO_TIER)
    if "tier" in row and (not isinstance(tier, int) or isinstance(tier, bool) or not 0 <= tier <= MOST_TIERS):
        place.wrong("tier", f"found {tier!r}, wanted a whole number from 0 to {MOST_TIERS}")
        tier = 0
    pod = row.get("pod", -1)
    if not isinstance(pod, int) or isinstance(pod, bool) or not -1 <= pod < 2**31:
        place.wrong("pod", f"found {pod!r}, wanted a whole number, or -1 for none")
        pod = -1
    server, of_server = _server(place, row, graph, servers, gaps) if kind == HOST else (0, "")
    return name, kind, tier, _device(place, row, graph, of_server, devices[kind], gaps), server, pod


def _server(
    place: Findings, row: Mapping[str, Any], graph: Mapping[str, Any], servers: _Devices, gaps: Gaps
) -> tuple[int, str]:
    """Index of a host's server, and the NIC of a named server, or empty.

    A server is given by its number in the list or by name. If the list has one server, it is that of all hosts.
    """
    wanted = row.get("server", graph.get("server"))
    if wanted is None and servers.listed:
        if servers.listed > 1:
            place.wrong("server", _which(servers))
        return 0, ""
    if wanted is None:
        gaps.note("server", "plain: 1 GPU, 1 NIC port", "host")
        return servers.named(PLAIN), ""
    if isinstance(wanted, int) and not isinstance(wanted, bool):
        if 0 <= wanted < servers.listed:
            return wanted, ""
        place.wrong("server", f"found {wanted!r}, wanted a number into the {plural(servers.listed, 'listed server')}")
        return 0, ""
    try:
        name = str(wanted)
        return servers.named(name), catalogue.node(name).nic
    except ConfigError as wrong:
        for mistake in wrong.mistakes:
            place.wrong("server", mistake.text, fix=mistake.fix)
        return 0, ""


def _device(
    place: Findings, row: Mapping[str, Any], graph: Mapping[str, Any], of_server: str, devices: _Devices, gaps: Gaps
) -> int:
    """Index of a node's device.

    A device is given by its number in the list, or by its name in the catalogue. A host without either has the NIC of
    its server; else the only device of a list holds.
    """
    number = row.get("device")
    if number is not None:
        if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < devices.listed:
            return number
        place.wrong("device", f"found {number!r}, wanted a number into the {plural(devices.listed, 'listed device')}")
        return 0
    name = row.get(devices.kind, graph.get(devices.kind))
    if name is None and devices.listed and not of_server:
        if devices.listed > 1:
            place.wrong("device", _which(devices))
        return 0
    if name is None:
        name = of_server or PLAIN
        gaps.note(devices.kind, name, "host" if devices.kind == "nic" else "switch")
    try:
        return devices.named(str(name))
    except ConfigError as wrong:
        for mistake in wrong.mistakes:
            place.wrong(devices.kind, mistake.text, fix=mistake.fix)
        return 0


def _which(devices: _Devices) -> str:
    """What to write where a list has several devices."""
    last = devices.listed - 1
    return f"missing; the file lists {plural(devices.listed, 'device')}, wanted the number of one, 0 to {last}"


def _link(
    place: Findings, graph: Mapping[str, Any], row: Mapping[str, Any], index: Mapping[str, int]
) -> tuple[tuple[int, int], int, int, float, float]:
    """Ends, rate, delay, loss and corruption of a link.

    Values that a link does not give are those of the graph.
    """
    _refuse_unknown(place, row, LINK_KEYS)
    ends = []
    for end in ("source", "target"):
        found = str(row[end]) if row.get(end) is not None else ""
        if found not in index:
            place.wrong(end, f"found {found!r}, wanted the id of a node", fix=nearest(found, index))
        ends.append(index.get(found, 0))
    own = {_family(key) for key in row}
    values = {**{key: graph[key] for key in DEFAULTS if key in graph and _family(key) not in own}, **row}
    rate = _measure(place, values, RATE, ("rate", "rate_bps"))
    if rate is None:
        place.wrong("rate_bps", "has no rate")
    delay = _measure(place, values, DURATION, ("delay", "delay_ps"))
    length = _measure(place, values, LENGTH, ("length", "length_m"))
    if (delay is None) == (length is None):
        both = delay is not None
        place.wrong(
            "delay_ps", "has a delay and a length, wanted one of them" if both else "has no delay and no length"
        )
    if delay is None:
        delay = round((length or 0) * PROPAGATION_PS_PER_M)
    chances = []
    for key in ("loss", "corruption"):
        value = values.get(key, 0.0)
        if isinstance(value, bool) or not isinstance(value, int | float):
            place.wrong(key, f"found {value!r}, wanted a probability from 0 to 1")
            value = 0.0
        chances.append(float(value))
    return (ends[0], ends[1]), int(1 if rate is None else rate), int(delay), chances[0], chances[1]


def _family(key: str) -> str:
    """Keys with the same meaning as a key.

    ``delay``, ``delay_ps``, ``length`` and ``length_m`` all give the travel time of a packet.
    """
    stem = key.partition("_")[0]
    return "delay" if stem == "length" else stem


def _measure(place: Findings, values: Mapping[str, Any], quantity: QuantityKind, keys: tuple[str, str]) -> float | None:
    """A quantity, as text with unit or as a number.

    The first key has the text, the second has the number. None without either.
    """
    text_key, number_key = keys
    if (number := values.get(number_key)) is not None:
        counts = isinstance(number, int | float) and not isinstance(number, bool)
        if counts and abs(number) <= quantity.largest and (number == int(number) or not quantity.whole):
            return float(number) if not quantity.whole else int(number)
        kind = "a whole number" if quantity.whole else "a number"
        place.wrong(number_key, f"found {number!r}, wanted {kind} of at most {quantity.largest}")
        return 1
    if (text := values.get(text_key)) is None:
        return None
    try:
        return parse_quantity(quantity, str(text))
    except UnitError as wrong:
        place.wrong(text_key, wrong.text, fix=wrong.fix)
        return 1


def _records(rows: object, record: type[BaseModel], path: str, findings: Findings) -> list[Any]:
    """Listed devices as records."""
    if not isinstance(rows, list):
        findings.wrong(path, "wanted a list of mappings")
        return []
    made = []
    for number, row in enumerate(rows):
        try:
            made.append(record.model_validate(row))
        except ValidationError as wrong:
            for error in wrong.errors():
                findings.wrong(".".join([f"{path}.{number}", *map(str, error["loc"])]), error["msg"].lower())
    return made
