"""Rail-optimized fabrics by their keys, and the leaf at the end of every NIC port."""

from __future__ import annotations

import numpy as np

from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of


def rail_fabric(**keys: object) -> Fabric:
    return fabric_of(**{"topology": "rail-optimized", "node": "dgx-h100", **keys})  # type: ignore[arg-type]


def leaves_of(fabric: Fabric) -> np.ndarray[tuple[int, int], np.dtype[np.int32]]:
    """The node at the other end of every NIC port; shape (hosts, NIC ports)."""
    ports = fabric.ports
    end = int(ports.base[len(fabric.hosts)])
    return ports.node[ports.peer[:end]].reshape(len(fabric.hosts), -1)
