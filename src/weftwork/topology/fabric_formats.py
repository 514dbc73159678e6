"""The two formats of fabric files, JSON and GraphML, to a `Draft`.

A draft has the attributes as they stand, with their lines.
Source: GraphML primer, graphml.graphdrawing.org; networkx, readwrite/json_graph/node_link.py (names of the keys).
GraphML is read by the expat parser of the standard library; document types are refused, so that no entity can expand.
Leaves out: hyperedges, ports and nested graphs of GraphML (refused), and one-way links (a link has two directions).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from xml.parsers import expat

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.findings import Findings

__all__ = ["Draft", "check_directions", "read_graphml", "read_json"]

_SHOWN: Final = 5  # chosen: mistakes of one kind


@dataclass(kw_only=True, slots=True)
class Draft:
    """A file as read, before interpretation.

    It has the attributes of the graph, the nodes and the links, with their lines. ``directed``: the file calls its
    links directed.
    """

    directed: bool = False
    graph: dict[str, Any] = field(default_factory=dict)
    nodes: list[tuple[int | None, dict[str, Any]]] = field(default_factory=list)
    links: list[tuple[int | None, dict[str, Any]]] = field(default_factory=list)


def read_json(content: bytes, source: str) -> Draft:
    """Read JSON in node-link form; ConfigError for other content."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as wrong:
        line = wrong.lineno if isinstance(wrong, json.JSONDecodeError) else None
        text = f"is not JSON: {wrong.msg if isinstance(wrong, json.JSONDecodeError) else wrong}"
        raise ConfigError(source, [Mistake(path="file", text=text, line=line)]) from wrong
    links_key = "edges" if isinstance(data, dict) and "edges" in data else "links"
    mistakes: list[Mistake] = []
    if not isinstance(data, dict):
        raise ConfigError(source, [Mistake(path="file", text="found no mapping, wanted {nodes: [...], links: [...]}")])
    for key in ("nodes", links_key):
        rows = data.get(key)
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            mistakes.append(Mistake(path=key, text="wanted a list of mappings"))
    if mistakes:
        raise ConfigError(source, mistakes)
    graph = {key: value for key, value in data.items() if key not in {"nodes", links_key, "graph"}}
    if isinstance(data.get("graph"), dict):  # where networkx keeps attributes of the graph
        graph |= data["graph"]
    draft = Draft(
        directed=graph.pop("directed", False) is True,
        graph=graph,
        nodes=[(None, row) for row in data["nodes"]],
        links=[(None, row) for row in data[links_key]],
    )
    # where networkx keeps the defaults of a GraphML file that it has read
    draft.nodes = _with_defaults(draft.nodes, graph.pop("node_default", {}), "node_default", source)
    draft.links = _with_defaults(draft.links, graph.pop("edge_default", {}), "edge_default", source)
    return draft


_Rows = list[tuple[int | None, dict[str, Any]]]


def _with_defaults(rows: _Rows, defaults: object, path: str, source: str) -> _Rows:
    """Rows with the values of attributes that they leave out."""
    if not isinstance(defaults, dict):
        raise ConfigError(source, [Mistake(path=path, text=f"found {defaults!r}, wanted a mapping")])
    return [(line, {**defaults, **row}) for line, row in rows] if defaults else rows


def check_directions(draft: Draft, findings: Findings) -> None:
    """Find links that a directed graph lists once for each direction.

    Each of them would be a cable of its own.
    """
    if not draft.directed:
        return
    pairs = [(str(row.get("source")), str(row.get("target"))) for _, row in draft.links]
    known = Counter(pairs)
    twice = [
        (number, pair) for number, pair in enumerate(pairs) if pair < pair[::-1] and known[pair[::-1]] > 0
    ]  # fmt: skip
    for number, (a, b) in twice[:_SHOWN]:
        line, row = draft.links[number]
        text = (
            f"the graph is directed and has '{a}' to '{b}' and '{b}' to '{a}'; a link has both directions:"
            " wanted each cable once"
        )
        findings.wrong(f"links.{row.get('name') or number}", text, line=line)
    if len(twice) > _SHOWN:
        findings.wrong("links", f"and {len(twice) - _SHOWN:,} more of the same")


class _GraphmlReader:
    """Collects nodes and edges from expat's events.

    Invariant: the last of ``owners`` is the innermost open element.
    """

    CASTS: Mapping[str, Any] = {"int": int, "long": int, "float": float, "double": float, "string": str, "boolean": str}

    def __init__(self, source: str) -> None:
        self.source = source
        self.draft = Draft()
        self.keys: dict[str, tuple[str, str]] = {}  # id -> (attribute name, type)
        self.key: tuple[str, str] = ("", "")  # the last key: its id, and what it is for
        self.defaults: dict[str, dict[str, Any]] = {"graph": {}, "node": {}, "edge": {}}
        self.owners: list[dict[str, Any]] = []
        self.data_key: str | None = None
        self.text: list[str] = []
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters

    def read(self, content: bytes) -> Draft:
        try:
            self.parser.Parse(content, True)  # noqa: FBT003 - expat names no parameters
        except expat.ExpatError as wrong:
            text = f"is not XML: {expat.errors.messages[wrong.code]}"
            raise self._wrong("file", text, wrong.lineno) from wrong
        draft = self.draft
        draft.graph = {**self.defaults["graph"], **draft.graph}
        draft.nodes = _with_defaults(draft.nodes, self.defaults["node"], "key", self.source)
        draft.links = _with_defaults(draft.links, self.defaults["edge"], "key", self.source)
        return draft

    def _wrong(self, path: str, text: str, line: int | None = None) -> ConfigError:
        where = self.parser.CurrentLineNumber if line is None else line
        return ConfigError(self.source, [Mistake(path=path, text=text, line=where)])

    def _doctype(self, *_: object) -> None:
        raise self._wrong(
            "file", "has a document type (DOCTYPE), which a fabric does not need; refused, since it may hold entities"
        )

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        line = self.parser.CurrentLineNumber
        if name == "key":
            self.keys[attributes.get("id", "")] = (
                attributes.get("attr.name", ""),
                attributes.get("attr.type", "string"),
            )
            self.key = (attributes.get("id", ""), attributes.get("for", "all"))
        elif name == "default":
            self.data_key, self.text = self.key[0], []
        elif name == "graph":
            if self.owners:
                raise self._wrong("graph", "is nested in another graph, wanted one flat graph")
            self.draft.directed = attributes.get("edgedefault") == "directed"
            self.owners.append(self.draft.graph)
        elif name == "node":
            self.draft.nodes.append((line, {"id": attributes.get("id")}))
            self.owners.append(self.draft.nodes[-1][1])
        elif name == "edge":
            ends = {"source": attributes.get("source"), "target": attributes.get("target")}
            self.draft.links.append((line, ends))
            self.draft.directed |= attributes.get("directed") == "true"
            self.owners.append(self.draft.links[-1][1])
        elif name == "data":
            self.data_key, self.text = attributes.get("key"), []
        elif name in {"hyperedge", "port"}:
            raise self._wrong(name, "is not supported, wanted nodes and edges")

    def _end(self, tag: str) -> None:
        name = tag.rpartition(" ")[2]
        if name in {"graph", "node", "edge"}:
            self.owners.pop()
        elif name == "default":
            attribute, value = self._value()
            for owner in self.defaults if self.key[1] == "all" else (self.key[1],):
                self.defaults.setdefault(owner, {})[attribute] = value
        elif name == "data" and self.owners:
            attribute, value = self._value()
            self.owners[-1][attribute] = value

    def _value(self) -> tuple[str, Any]:
        """Name and value of the attribute whose text has ended."""
        key, self.data_key = self.data_key, None
        if key is None or key not in self.keys:
            raise self._wrong("data", f"found key '{key}', wanted one that a <key> declares")
        attribute, kind = self.keys[key]
        text = "".join(self.text).strip()
        try:
            return attribute, self.CASTS.get(kind, str)(text)
        except ValueError as wrong:
            raise self._wrong(attribute, f"found '{text}', wanted the type {kind}") from wrong

    def _characters(self, text: str) -> None:
        if self.data_key is not None:
            self.text.append(text)


def read_graphml(content: bytes, source: str) -> Draft:
    """Read GraphML; ConfigError for other content.

    Elements that a fabric does not have are refused too.
    """
    draft = _GraphmlReader(source).read(content)
    for key in (
        "switches",
        "nics",
        "servers",
        "extras",
        "caveats",
        "direct",
    ):  # GraphML has no lists: JSON text
        _from_text(draft.graph, key, key, None, source)
    for line, node in draft.nodes:
        _from_text(node, "at", f"nodes.{node['id']}.at", line, source)
    return draft


def _from_text(row: dict[str, Any], key: str, path: str, line: int | None, source: str) -> None:
    """Put the value of JSON text in its place."""
    if isinstance(row.get(key), str):
        try:
            row[key] = json.loads(row[key])
        except ValueError as wrong:
            raise ConfigError(source, [Mistake(path=path, text=f"is not JSON: {wrong}", line=line)]) from wrong
