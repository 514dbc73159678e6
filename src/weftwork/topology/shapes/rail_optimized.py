"""Rail-optimized fabric: pods with one leaf per rail, joined by spines.

NIC port r of every server of a pod hangs on leaf r, so that GPUs of one position are one switch apart. Spines join all
leaves of a plane; with none, rails meet in the servers alone. A third tier joins blocks of pods.
Source: docs.nvidia.com/networking, InfiniBand Cluster Bring-up Procedure v1.0; docs.nvidia.com, Enterprise Reference
Architectures, HGX AI Factory (rail-optimized leaf-spine); Qian et al., SIGCOMM 2024, doi:10.1145/3651890.3672265
(planes).
Leaves out: pods of different sizes, except that the last may be filled in part where nobody asks for a ratio.
"""

from __future__ import annotations

from typing import Final

from weftwork.spec.plug_in import DesignSpace
from weftwork.topology.rails_tree import RailKeys, rail_name, rail_tree, resolve_rails
from weftwork.topology.tree_topology import tree_topology

__all__ = ["TOPOLOGY"]


TOPOLOGY: Final = tree_topology(
    keys=RailKeys,
    resolve=resolve_rails,
    tree=rail_tree,
    name=rail_name,
    design=DesignSpace(ratio_tiers=("leaf", "spine"), planes=(1, None), order=1),
    source="docs.nvidia.com/networking, InfiniBand Cluster Bring-up Procedure v1.0; Qian et al., SIGCOMM 2024,"
    " doi:10.1145/3651890.3672265",
)
