"""The place of a run's culprit in the fabric.

The place is the ports of its links, and its servers or its switch.

Reads the ids of the culprit in `summary.json`, and the table `links` of a run's folder. Leaves out: culprits that have
no place, such as a setting or a job, and folders of earlier versions, which have no ids; and of several links or
devices that are alike all but the first, which alone has its name in the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from weftwork.store.runs import Run

__all__ = ["CulpritPlace", "culprit_place"]

_DEVICES: Final = frozenset({"nic", "server", "switch"})  # kinds of culprits whose links are outlined with them
_INSIDE: Final = frozenset({"gpu", "stage"})  # kinds of culprits that are inside servers


@dataclass(frozen=True, kw_only=True, slots=True)
class CulpritPlace:
    """The place of the culprit in the fabric.

    Attributes
    ----------
    name : as in the answer
    ports : numbers of the ports at both ends of its links
    nodes : numbers of the servers and switches that are to blame, or have the NIC, the GPU or the stage
    """

    name: str
    ports: frozenset[int]
    nodes: frozenset[int]


def culprit_place(run: Run) -> CulpritPlace | None:
    """The place of the culprit of a run of one seed.

    None if the culprit has no place.
    """
    if run.seeds:
        return None
    culprit = run.answer.culprit
    ids = culprit.ids
    if ids is None:
        return None
    ports: frozenset[int] = frozenset()
    nodes: frozenset[int] = frozenset()
    if culprit.kind == "link":
        ports = frozenset(ids.ports[:2])
    elif culprit.kind in _DEVICES and ids.nodes:
        nodes = frozenset(ids.nodes[:1])
        ends = run.query("select port, node, peer from links").to_pylist()
        its_ports = {row["port"] for row in ends if not nodes.isdisjoint((row["node"], row["peer"]))}
        ports = frozenset(ids.ports) & its_ports
    elif culprit.kind in _INSIDE:
        nodes = frozenset(ids.nodes)
    if not ports and not nodes:
        return None
    return CulpritPlace(name=culprit.name, ports=ports, nodes=nodes)
