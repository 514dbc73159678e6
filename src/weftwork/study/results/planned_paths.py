"""Planned paths in the run folder.

They are numbers of the summary, and entries of ``fabric.pinned``.

Leaves out: how the paths come about (`weftwork.study.prepare.engineering`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from weftwork.spec.numbers import quantities
from weftwork.spec.result import Quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weftwork.spec.fabric import Fabric
    from weftwork.study.prepare.engineering import Engineering
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["FILE", "planned_origin", "planned_pins", "planned_summary"]

FILE: Final = "planned_paths.yaml"


def planned_summary(prepared: Prepared) -> dict[str, Quantity]:
    """Make the numbers of the first computation of the paths.

    Empty without a controller.
    """
    if prepared.planned is None:
        return {}
    first = prepared.planned.computed[0]
    return {
        **quantities("planned_pairs", first.pairs),
        **quantities("planned_busiest_link", first.busiest_share),
        **quantities("planned_bound", first.planned.bound),
        **quantities("planned_again", len(prepared.planned.computed) - 1),
    }


def planned_origin(prepared: Prepared) -> dict[str, Any]:
    """Provenance of planned paths: the scheme, and each computation."""
    planned = prepared.planned
    if planned is None:
        return {}
    computed = [
        {
            "at_ps": one.at_ps,
            "pairs": one.pairs,
            "busiest_share": one.busiest_share,
            "bound_share": one.planned.bound,
            "overloaded_pairs": one.planned.overloaded,
            "limit": one.planned.limit,
            "took_s": round(one.took_s, 6),
        }
        for one in planned.computed
    ]
    return {"engineering": {"scheme": planned.scheme, "computed": computed, "file": FILE}}


def planned_pins(prepared: Prepared) -> dict[str, list[bytes]]:
    """The file of the first paths as entries of ``fabric.pinned``.

    No file without a controller.
    """
    if prepared.planned is None:
        return {}
    head = "# The paths before any fault, to be pinned in a scenario; pinned paths use the first of parallel links.\n"
    lines = list(_entries(prepared.fabric, prepared.planned))
    body = "fabric:\n  pinned:\n" + "\n".join(lines) + "\n" if lines else "fabric: {pinned: []}\n"
    return {FILE: [head.encode(), body.encode()]}


def _entries(fabric: Fabric, planned: Engineering) -> Iterator[str]:
    ports, names = fabric.ports, fabric.node_names
    for (source, destination), path in planned.first_paths.items():
        switches = [names[ports.node[port]] for port in path] + [names[ports.node[ports.peer[path[-1]]]]]
        ends = [_nic(fabric, port) for port in (source, destination)]
        yield f"    - {{from: {ends[0]}, to: {ends[1]}, path: [{', '.join(switches)}]}}"


def _nic(fabric: Fabric, port: int) -> str:
    """A NIC port as a scenario names it."""
    node = int(fabric.ports.node[port])
    base = int(fabric.ports.base[node])
    alone = int(fabric.ports.base[node + 1]) - base == 1
    return fabric.node_names[node] if alone else f"{fabric.node_names[node]}/nic{port - base}"
