"""Named checks of a topology's contract.

They hold for the catalogue and for a user's own file.
Leaves out: whether the shape is a good one; `weftwork topology` shows its bisection and its paths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from weftwork.base.errors import CodeError, ConfigError
from weftwork.base.grammar import plural
from weftwork.spec.scenario.choices import TOPOLOGIES
from weftwork.spec.scenario.fabric import FabricSection
from weftwork.spec.scenario.migrations import SCHEMA
from weftwork.spec.scenario.topology import FabricSize
from weftwork.testing.choices import key_findings, offer_findings, read
from weftwork.topology.build import fabric_of_section, fabric_size
from weftwork.topology.reach import reach
from weftwork.topology.routing import attachments

__all__ = ["built_findings", "check_topology"]


def check_topology(topology: str | Path, keys: Mapping[str, object]) -> list[str]:
    """Read, build and check one fabric.

    Parameters
    ----------
    topology : a name of the catalogue, or the path of your file
    keys : of the section ``fabric`` besides, as a scenario has them, such as ``{"radix": 4}``

    Returns
    -------
    what is wrong, a sentence each; empty if nothing is
    """
    label = str(topology)
    document = {"schema": SCHEMA, "fabric": {"topology": label, **keys}, "traffic": {"pattern": "permutation"}}
    findings = list(offer_findings(TOPOLOGIES, label, FabricSection))
    findings = findings or list(key_findings(TOPOLOGIES, label, "fabric", document))
    return findings or list(built_findings(document))


def built_findings(document: Mapping[str, object]) -> Iterator[str]:
    """Yield mistakes in the fabric of a scenario."""
    section = read(document).fabric
    try:
        fabric, again = (fabric_of_section(section, directory=Path.cwd()) for _ in range(2))
    except (CodeError, ConfigError) as wrong:
        yield f"the example does not build: {wrong}"
        return
    if not np.array_equal(fabric.links, again.links) or list(fabric.node_names) != list(again.node_names):
        yield "built twice, the fabrics differ"
    hosts = len(fabric.hosts)
    if section.hosts is not None and section.hosts != hosts:
        yield f"resolve says {plural(section.hosts, 'host')}, and build makes {hosts:,}"
    told = fabric_size(section)
    made = FabricSize(
        hosts=hosts,
        switches=len(fabric.node_kind) - hosts,
        links=len(fabric.links),
        leaves=len(attachments(fabric)[0]),
    )
    if told is not None and told != made:
        yield f"size says {told}, and build makes {made}"
    if fabric.direct is not None and fabric.direct.hosts_forward:
        return  # `weftwork.topology.assemble` has joined all nodes, over hosts too
    found = reach(fabric)
    if found.host_pairs_joined < found.host_pairs:
        apart = plural(found.host_pairs - found.host_pairs_joined, "pair of hosts is", "pairs of hosts are")
        yield f"{apart} not joined, of {found.host_pairs:,} in all"
