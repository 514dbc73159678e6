"""Rail-only fabric: every rail is a separate network.

GPUs of different rails meet in a server. With as many servers as a switch has ports, each rail is one switch; beyond,
each has spines (and cores) of its own. A transfer between GPUs of different rails and servers goes over NVLink on one
of the two servers.
Source: Wang et al., Hot Interconnects 2024, arXiv:2307.12169.
Leaves out: how a transfer is forwarded inside a server, which the job decides (hierarchical collectives).
"""

from __future__ import annotations

from typing import Final

from weftwork.spec.plug_in import DesignSpace, Parts
from weftwork.topology.pgft import Pgft
from weftwork.topology.rails_tree import RailKeys, rail_name, rail_tree, resolve_rails
from weftwork.topology.tree_topology import tree_topology

__all__ = ["TOPOLOGY"]


def _tree(keys: RailKeys, parts: Parts) -> Pgft:
    return rail_tree(keys, parts, rail_only=True)


TOPOLOGY: Final = tree_topology(
    keys=RailKeys,
    resolve=resolve_rails,
    tree=_tree,
    name=rail_name,
    design=DesignSpace(ratio_tiers=("leaf", "spine"), planes=(1, None), order=2),
    source="Wang et al., Hot Interconnects 2024, arXiv:2307.12169",
)
