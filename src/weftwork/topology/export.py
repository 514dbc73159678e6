"""Export fabrics to JSON, GraphML and DOT.

`weftwork.topology.from_file` reads JSON and GraphML back unchanged; DOT is for Graphviz.
Source: GraphML primer, graphml.graphdrawing.org; the DOT language, graphviz.org/doc/info/lang.html.
Leaves out: positions; `weftwork.topology.draw` draws.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from weftwork.base.caveat import caveats_to_json
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.units import RATE, format_quantity
from weftwork.base.whole_file import write_whole
from weftwork.spec.fabric import HOST, LINK_DTYPE, Fabric
from weftwork.topology.direct_rows import LINK_ROWS, NODE_ROWS, graph_row, link_rows, node_rows

__all__ = ["EXPORTS", "export", "to_dot", "to_graphml", "to_json"]


def _nodes(fabric: Fabric) -> Iterator[dict[str, Any]]:
    """Nodes with their attributes.

    Pods and servers are written if they are not all alike.
    """
    more = {
        key: values.tolist()
        for key, values in (("server", fabric.node_server), ("pod", fabric.node_pod))
        if values is not None
    }
    places = [{}] * len(fabric.node_names) if fabric.direct is None else node_rows(fabric.direct)
    columns = zip(
        fabric.node_names,
        fabric.node_kind.tolist(),
        fabric.node_tier.tolist(),
        fabric.node_device.tolist(),
        strict=True,
    )
    for index, (name, kind, tier, device) in enumerate(columns):
        node = {"id": name, "kind": "host" if kind == HOST else "switch", "tier": tier, "device": device}
        own = {key: values[index] for key, values in more.items() if kind == HOST or key == "pod"}
        yield {**node, **own, **places[index]}


def _links(fabric: Fabric) -> Iterator[dict[str, Any]]:
    direct = ({} for _ in fabric.link_names) if fabric.direct is None else link_rows(fabric.direct, fabric.links)
    for name, row, more in zip(fabric.link_names, fabric.links.tolist(), direct, strict=True):
        values = dict(zip(LINK_DTYPE.names or (), row, strict=True))
        source, target = fabric.node_names[values.pop("a")], fabric.node_names[values.pop("b")]
        yield {"source": source, "target": target, "name": name, **values, **more}


def _graph(fabric: Fabric) -> dict[str, Any]:
    return {
        "name": fabric.name,
        **({"tree": fabric.tree} if fabric.tree else {}),
        "switches": [switch.model_dump() for switch in fabric.switches],
        "nics": [nic.model_dump() for nic in fabric.nics],
        "servers": [server.model_dump() for server in fabric.servers],
        **({"extras": [extra.model_dump() for extra in fabric.extras]} if fabric.extras else {}),
        **({} if fabric.direct is None else {"direct": graph_row(fabric.direct)}),
        "caveats": caveats_to_json(fabric.caveats),
    }


def to_json(fabric: Fabric) -> str:
    """The fabric in node-link form, with one node or link per line."""
    parts = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in _graph(fabric).items()]
    for key, rows in (("nodes", _nodes(fabric)), ("links", _links(fabric))):
        parts.append(f'"{key}": [\n' + ",\n".join("  " + json.dumps(row) for row in rows) + "\n]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def to_graphml(fabric: Fabric) -> str:
    """The fabric as GraphML.

    Lists of devices are JSON text, since GraphML has no lists.
    """
    graph = {key: value if isinstance(value, str) else json.dumps(value) for key, value in _graph(fabric).items()}
    types = {
        "tier": "int",
        "device": "int",
        "server": "int",
        "pod": "int",
        "rate_bps": "long",
        "delay_ps": "long",
        "loss": "double",
        "corruption": "double",
        "wraps": "boolean",
    }
    of_node, of_link = (NODE_ROWS, LINK_ROWS) if fabric.direct is not None else ((), ())
    owners = {"graph": tuple(graph), "node": ("kind", "tier", "device", "server", "pod", *of_node),
              "edge": ("name", "rate_bps", "delay_ps", "loss", "corruption", *of_link)}  # fmt: skip
    from xml.sax.saxutils import escape, quoteattr  # which imports what speaks HTTP

    lines = ['<?xml version="1.0" encoding="utf-8"?>', '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">']
    for owner, keys in owners.items():
        lines += [
            f'  <key id="{owner}_{key}" for="{owner}" attr.name="{key}" attr.type="{types.get(key, "string")}"/>'
            for key in keys
        ]
    lines.append('  <graph edgedefault="undirected">')
    lines += [f'    <data key="graph_{key}">{escape(value)}</data>' for key, value in graph.items()]
    for node in _nodes(fabric):
        data = "".join(f'<data key="node_{key}">{node[key]}</data>' for key in owners["node"] if key in node)
        lines.append(f"    <node id={quoteattr(node['id'])}>{data}</node>")
    for link in _links(fabric):
        ends = f"source={quoteattr(link['source'])} target={quoteattr(link['target'])}"
        data = "".join(
            f'<data key="edge_{key}">{escape(_word(link[key]))}</data>' for key in owners["edge"] if key in link
        )
        lines.append(f"    <edge {ends}>{data}</edge>")
    return "\n".join([*lines, "  </graph>", "</graphml>", ""])


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def to_dot(fabric: Fabric) -> str:
    """The fabric for Graphviz, spines above and hosts below."""
    lines = [f"graph {_quoted(fabric.name)} {{", "  rankdir=BT;", "  node [shape=box];"]
    tiers: dict[int, list[str]] = {}
    for node in _nodes(fabric):
        tiers.setdefault(node["tier"], []).append(node["id"])
        if node["kind"] == "host":
            lines.append(f"  {_quoted(node['id'])} [shape=ellipse];")
    lines += [f"  {{ rank=same; {'; '.join(map(_quoted, names))}; }}" for _, names in sorted(tiers.items())]
    for link in _links(fabric):
        label = format_quantity(RATE, link["rate_bps"])
        lines.append(f"  {_quoted(link['source'])} -- {_quoted(link['target'])} [label={_quoted(label)}];")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


EXPORTS: dict[str, Callable[[Fabric], str]] = {".json": to_json, ".graphml": to_graphml, ".dot": to_dot}


def export(fabric: Fabric, path: Path) -> None:
    """Write the fabric in the format of the file's ending.

    Raises
    ------
    ConfigError : another ending, or the file cannot be written
    """
    if path.suffix not in EXPORTS:
        text = f"found a file that ends in '{path.suffix}', wanted {', '.join(EXPORTS)}"
        raise ConfigError("--export", [Mistake(path="--export", text=text)])
    try:
        write_whole(path, EXPORTS[path.suffix](fabric))
    except OSError as wrong:
        text = f"cannot write '{path}': {wrong.strerror}"
        raise ConfigError("--export", [Mistake(path="--export", text=text)]) from wrong
