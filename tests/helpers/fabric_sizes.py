"""Size of a fabric before and after it is built.

Leaves out: whether the size is right, which each test says.
"""

from __future__ import annotations

from typing import Any

import yaml

from weftwork.hardware.catalogue import nodes
from weftwork.spec.fabric import Fabric
from weftwork.spec.scenario.scenario import loads
from weftwork.spec.scenario.topology import FabricSize
from weftwork.study.prepare.prepare import known_names
from weftwork.topology.build import fabric_size
from weftwork.topology.routing import attachments

__all__ = ["size_before", "size_of"]


def size_before(**fabric: Any) -> FabricSize:
    """Size that a topology states before its fabric is built, from keys as in a file."""
    document = {"schema": 3, "fabric": {"link_rate": "400Gbps", **fabric}, "traffic": {"pattern": "incast"}}
    size = fabric_size(loads(yaml.safe_dump(document), known=known_names(), nodes=nodes()).fabric)
    assert size is not None
    return size


def size_of(fabric: Fabric) -> FabricSize:
    """Size of a built fabric."""
    hosts = len(fabric.hosts)
    switches = len(fabric.node_names) - hosts
    return FabricSize(hosts=hosts, switches=switches, links=len(fabric.links), leaves=len(attachments(fabric)[0]))
