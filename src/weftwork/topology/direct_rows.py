"""Write and read what a fabric file says of a direct network.

The graph has the key ``direct``, a node its coordinates ``at``, a link its ``dimension``, ``wraps`` and ``optical``.
A user's own file needs the dimensions of its links alone; the rest follows or may be absent.
Leaves out: the formats (`weftwork.topology.fabric_formats`), and all other keys (`weftwork.topology.from_file`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from weftwork.base.findings import Findings
from weftwork.base.grammar import plural
from weftwork.base.nearest import nearest
from weftwork.spec.fabric import HOST
from weftwork.spec.fabric_direct import TO_HOST, DirectNetwork, OpticalSwitches
from weftwork.spec.plug_in import Record
from weftwork.topology.fabric_formats import Draft

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["LINK_ROWS", "NODE_ROWS", "direct_of", "graph_row", "link_rows", "node_rows"]

NODE_ROWS: Final = ("at",)
LINK_ROWS: Final = ("dimension", "wraps", "optical")
_MOST_DIMENSIONS: Final = 127  # of the type of `DirectNetwork.link_dimension`
_MOST_COORDINATE: Final = 2**31 - 1


class _Optical(Record):
    """Optical switches of a file."""

    names: tuple[str, ...]
    model: str = "plain"
    ports: int = Field(gt=0)


class _Direct(Record):
    """The key ``direct`` of a file."""

    family: str = ""
    dimensions: tuple[str, ...] = ()
    axes: tuple[str, ...] = ()
    sides: tuple[int, ...] = ()
    is_ordered: bool = False
    hosts_forward: bool = False
    optical: _Optical | None = None


# Out


def graph_row(direct: DirectNetwork) -> dict[str, Any]:
    """The key ``direct`` of the graph."""
    row: dict[str, Any] = {
        "family": direct.family,
        "dimensions": list(direct.dimensions),
        "axes": list(direct.axes),
        "sides": list(direct.sides),
        "is_ordered": direct.is_ordered,
    }
    if direct.hosts_forward:
        row["hosts_forward"] = True
    if direct.optical is not None:
        optical = direct.optical
        row["optical"] = {"names": list(optical.names), "model": optical.model, "ports": optical.ports}
    return row


def node_rows(direct: DirectNetwork) -> list[dict[str, Any]]:
    """Keys of every node: its coordinates, if it has some."""
    if not direct.axes:
        return [{}] * len(direct.coordinates)
    return [{"at": at} if min(at) >= 0 else {} for at in direct.coordinates.tolist()]


def link_rows(direct: DirectNetwork, links: NDArray[np.void]) -> Iterator[dict[str, Any]]:
    """Keys of every link; a link to a host has none.

    Of parallel links in an ordered network ``wraps`` is always written: two links are a ring or a wide link.

    Parameters
    ----------
    direct : of the fabric
    links : of the fabric
    """
    ends = np.stack([np.minimum(links["a"], links["b"]), np.maximum(links["a"], links["b"])], axis=1)
    _, of_pair, count = np.unique(ends, axis=0, return_inverse=True, return_counts=True)
    may_wrap = (count[of_pair.ravel()] > 1) & (direct.link_dimension != TO_HOST) & direct.is_ordered
    through = None if direct.optical is None else direct.optical.link_switch.tolist()
    columns = zip(direct.link_dimension.tolist(), direct.link_wraps.tolist(), may_wrap.tolist(), strict=True)
    for link, (dimension, wraps, is_parallel) in enumerate(columns):
        row: dict[str, Any] = {}
        if dimension != TO_HOST:
            row["dimension"] = direct.dimensions[dimension]
        if wraps or is_parallel:
            row["wraps"] = wraps
        if direct.optical is not None and through is not None and through[link] >= 0:
            row["optical"] = direct.optical.names[through[link]]
        yield row


# In


def direct_of(
    draft: Draft, kinds: Sequence[int], ends: Sequence[tuple[int, int]], findings: Findings
) -> DirectNetwork | None:
    """The direct network of a file; None if nothing in it speaks of one.

    Parameters
    ----------
    draft : attributes as they stand in the file
    kinds : of the nodes
    ends : nodes of the links
    findings : take what is wrong
    """
    nodes, links = [row for _, row in draft.nodes], [row for _, row in draft.links]
    is_silent = not any("at" in row for row in nodes) and not any(key in row for row in links for key in LINK_ROWS)
    if "direct" not in draft.graph and is_silent:
        return None
    before = len(findings.mistakes)
    head = _head(draft.graph.get("direct", {}), findings)
    at_host = [kinds[a] == HOST or kinds[b] == HOST for a, b in ends]
    words = head.dimensions or tuple(dict.fromkeys(
        str(row["dimension"]) for row in links if row.get("dimension") is not None
    ))  # fmt: skip
    if len(words) > _MOST_DIMENSIONS:
        findings.wrong("direct.dimensions", f"found {len(words)}, wanted at most {_MOST_DIMENSIONS}")
    optical = () if head.optical is None else head.optical.names
    index = {name: number for number, name in enumerate(words)}
    lights = {name: number for number, name in enumerate(optical)}
    dimension, wraps, through = [], [], []
    for number, ((line, row), is_to_host) in enumerate(zip(draft.links, at_host, strict=True)):
        note = findings.at(f"links.{row.get('name') or number}", line)
        dimension.append(_dimension(row, index, note, is_to_host=is_to_host))
        wraps.append(_wraps(row, note))
        through.append(_through(row, lights, note))
    axes, at = _coordinates(draft, head, words, findings)
    if len(findings.mistakes) > before:
        return None
    return DirectNetwork(
        family=head.family or "file",
        dimensions=words,
        link_dimension=np.array(dimension, np.int8),
        link_wraps=np.array(wraps, np.bool_),
        axes=axes,
        sides=head.sides or tuple((at.max(axis=0, initial=-1) + 1).tolist()),
        coordinates=at,
        is_ordered=head.is_ordered,
        hosts_forward=head.hosts_forward,
        optical=None
        if head.optical is None
        else OpticalSwitches(
            names=optical, model=head.optical.model, ports=head.optical.ports, link_switch=np.array(through, np.int32)
        ),
    )


def _head(row: object, findings: Findings) -> _Direct:
    try:
        head = _Direct.model_validate(row)
    except ValidationError as wrong:
        for error in wrong.errors():
            findings.wrong(".".join(["direct", *map(str, error["loc"])]), error["msg"].lower())
        return _Direct()
    lists = {"dimensions": head.dimensions, "axes": head.axes}
    if head.optical is not None:
        lists["optical.names"] = head.optical.names
    for key, names in lists.items():
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            findings.wrong(f"direct.{key}", f"found '{twice}' twice, wanted different names")
    if head.sides and len(head.sides) != len(head.axes):
        text = f"found {plural(len(head.sides), 'side')}, wanted {len(head.axes)}, one for each axis"
        findings.wrong("direct.sides", text)
    return head


def _dimension(row: Mapping[str, Any], index: Mapping[str, int], note: Findings, *, is_to_host: bool) -> int:
    word = row.get("dimension")
    if is_to_host:
        if word is not None:
            note.wrong("dimension", f"found {word!r} at a link of a host, which has no dimension; leave it out")
        return TO_HOST
    if word is None:
        note.wrong("dimension", "is missing; other links of the file have one")
    elif str(word) not in index:
        note.wrong("dimension", f"found {word!r}, wanted one of {', '.join(index)}", fix=nearest(str(word), index))
    return index.get(str(word), 0)


def _wraps(row: Mapping[str, Any], note: Findings) -> bool:
    found = row.get("wraps", False)
    value = {"true": True, "false": False}.get(str(found).lower())  # GraphML has text
    if value is None:
        note.wrong("wraps", f"found {found!r}, wanted true or false")
    return bool(value)


def _through(row: Mapping[str, Any], lights: Mapping[str, int], note: Findings) -> int:
    name = row.get("optical")
    if name is None:
        return -1
    if str(name) not in lights:
        names = ", ".join(list(lights)[:5]) or "none: list them in direct.optical.names"
        note.wrong("optical", f"found {name!r}, wanted the name of an optical switch ({names})",
                   fix=nearest(str(name), lights))  # fmt: skip
    return lights.get(str(name), -1)


def _coordinates(
    draft: Draft, head: _Direct, words: Sequence[str], findings: Findings
) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Axes, and coordinates of all nodes; -1 where a node has none."""
    given = [row.get("at") for _, row in draft.nodes]
    first = next((at for at in given if isinstance(at, list)), [])
    axes = head.axes or (tuple(words) if len(words) == len(first) else tuple(f"d{axis}" for axis in range(len(first))))
    table = np.full((len(given), len(axes)), -1, np.int32)
    for number, ((line, row), at) in enumerate(zip(draft.nodes, given, strict=True)):
        if at is None:
            continue
        is_list = isinstance(at, list) and len(at) == len(axes)
        if is_list and all(type(value) is int and 0 <= value <= _MOST_COORDINATE for value in at):
            table[number] = at
        else:
            text = f"found {at!r}, wanted {len(axes)} whole numbers from 0, one for each axis"
            findings.wrong(f"nodes.{row.get('id') or number}.at", text, line=line)
    if head.sides and not findings.has_mistakes:
        beyond = np.flatnonzero((table >= np.array(head.sides)).any(axis=1))
        if len(beyond):
            text = f"found {table[beyond[0]].tolist()}, wanted each below its side {list(head.sides)}"
            findings.wrong(f"nodes.{draft.nodes[beyond[0]][1].get('id')}.at", text)
    return axes, table
