"""Optional keys that a fabric file leaves out although results depend on them.

One sentence lists them with the values that hold instead, so that no default changes a result without a word. The table
in ``docs/models/fabrics.md`` lists every optional key.
Leaves out: tiers, which `weftwork.topology.file_tiers` derives.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pydantic import BaseModel

from weftwork.base.caveat import Caveat
from weftwork.base.grammar import plural
from weftwork.spec.fabric_direct import GLOBAL
from weftwork.topology.connected import connected_parts
from weftwork.topology.routing import attachments
from weftwork.topology.valleys import is_tiered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from weftwork.spec.fabric import Fabric
    from weftwork.spec.fabric_direct import DirectNetwork
    from weftwork.topology.fabric_formats import Draft

__all__ = ["Gaps", "missing_fields"]

SUBJECT: Final = "fabric.file"
_SHOWN: Final = 4  # chosen: names of fields in a sentence


@dataclass(kw_only=True, slots=True)
class Gaps:
    """Keys that are absent, with the value that holds and the number of places.

    Attributes
    ----------
    counts : by key, value and noun of the place, in the order of the file
    """

    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def note(self, key: str, value: str, noun: str = "") -> None:
        """Count one place without a key."""
        self.counts[key, value, noun] += 1

    def note_links(self, rows: Sequence[Mapping[str, Any]], graph: Mapping[str, Any]) -> None:
        """Count links without loss and corruption."""
        for key in ("loss", "corruption"):
            if key not in graph and (count := sum(key not in row for row in rows)):
                self.counts[key, "0", "link"] += count

    def note_direct(self, draft: Draft, fabric: Fabric) -> None:
        """Note keys of a direct network."""
        direct = fabric.direct
        if direct is None:
            if not is_tiered(fabric):
                self.note("dimension", "none: routes count hops alone")
            return
        listed = draft.graph.get("direct")
        head = listed if isinstance(listed, dict) else {}
        if not head.get("dimensions") and len(direct.dimensions) > 1:
            self.note("direct.dimensions", ", ".join(direct.dimensions))
        if "is_ordered" not in head:
            self.note("direct.is_ordered", "false")
        if direct.is_ordered and (rings := _open_rings(fabric, direct, [row for _, row in draft.links])):
            self.counts["wraps", "false", "ring"] += rings
        bare = _without_place(fabric, [row for _, row in draft.nodes])
        if bare and head.get("axes") != []:
            self.counts["at", "none", "node"] += bare
        if direct.sides and not head.get("sides"):
            self.note("direct.sides", " x ".join(map(str, direct.sides)))
        if GLOBAL in direct.dimensions and (count := sum("pod" not in row for _, row in draft.nodes)):
            self.counts["pod", "none", "node"] += count

    def caveat(self, source: str) -> dict[str, Caveat]:
        """The sentence as a caveat; empty without gaps.

        Parameters
        ----------
        source : name of the file
        """
        if not self.counts:
            return {}
        keys: dict[tuple[str, str, int], list[str]] = {}
        for (key, value, noun), count in self.counts.items():
            keys.setdefault((value, noun, count), []).append(key)
        told = []
        for (value, noun, count), alike in keys.items():
            place = f" of {plural(count, noun, _MANY.get(noun))}" if noun else ""
            told.append(f"{' and '.join(alike)}{place} ({value})")
        text = f"'{source}' leaves out, with what holds instead: {', '.join(told)}"
        return {SUBJECT: Caveat(subject=SUBJECT, kind="assumed", text=text)}


def _without_place(fabric: Fabric, rows: Sequence[Mapping[str, Any]]) -> int:
    """Number of hosts, and of switches with hosts, that have no coordinates."""
    if fabric.hosts_forward:
        return 0
    attach_node, _ = attachments(fabric)
    return sum("at" not in rows[node] for node in {*fabric.hosts.tolist(), *attach_node.tolist()})


def _open_rings(fabric: Fabric, direct: DirectNetwork, rows: Sequence[Mapping[str, Any]]) -> int:
    """Number of rings along a dimension of which no link closes the ring, or only one of parallel links does.

    A line has no ring, and nor do switches that are all joined with each other. Two parallel links are a ring unless
    both say that they close none.
    """
    count = 0
    says = np.array(["wraps" in row for row in rows], np.bool_)
    for dimension in range(len(direct.dimensions)):
        links = np.flatnonzero(direct.link_dimension == dimension)
        a, b = (fabric.links[end][links].astype(np.int64) for end in ("a", "b"))
        size = len(fabric.node_names)
        part = connected_parts(a, b, size)[a]
        for ring in np.unique(part).tolist():
            mine = part == ring
            closes = direct.link_wraps[links][mine]
            pair, of_pair = np.unique(np.minimum(a, b)[mine] * size + np.maximum(a, b)[mine], return_inverse=True)
            switches = len(np.unique([a[mine], b[mine]]))
            closing = np.bincount(of_pair, closes)
            is_mixed = bool(((closing > 0) & (closing < np.bincount(of_pair))).any())
            if switches == 2:
                count += len(closes) > 1 and not closes.any() and not says[links][mine].all()
            elif switches <= len(pair) < switches * (switches - 1) // 2:
                count += is_mixed or not closes.any()
    return count


_MANY: Final = {"switch": "switches"}


def missing_fields(record: type[BaseModel], row: Mapping[str, Any], gaps: Gaps, place: str) -> None:
    """Note fields that a listed device leaves to the plain one.

    Parameters
    ----------
    record : of the device
    row : as it stands in the file, valid
    gaps : takes them
    place : of the device in the file, such as ``switches.0``
    """
    names = list(_missing(record, row))
    if names:
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        gaps.note(f"{place}: {', '.join(names[:_SHOWN])}{more}", f"as a plain {record.__name__.lower()}")


def _missing(record: type[BaseModel], row: Mapping[str, Any]) -> Iterator[str]:
    for name, info in record.model_fields.items():
        value, kind = row.get(name), info.annotation
        if name != "name" and name not in row:
            yield name
        elif isinstance(value, dict) and isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from (f"{name}.{inner}" for inner in _missing(kind, value))
