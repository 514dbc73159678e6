"""Nodes and links of a tree by tier."""

from __future__ import annotations

import numpy as np

from weftwork.spec.fabric import Fabric

DGX = {"gpus": 8, "nic_ports": 8}


def by_tier(fabric: Fabric) -> list[int]:
    """Nodes of every tier, hosts first."""
    return np.bincount(fabric.node_tier).tolist()


def links_below(fabric: Fabric) -> list[int]:
    """Links below every tier, those to hosts first."""
    low = np.minimum(fabric.node_tier[fabric.links["a"]], fabric.node_tier[fabric.links["b"]])
    return np.bincount(low).tolist()
