"""Twisted torus: a torus with sides K and 2K whose short rings also shift.

The link that closes a short side (K) also shifts by K along every long side (2K). The rings of short sides become as
long as the others, so that every dimension carries the same load and distances are shorter. A step along a dimension
is the same translation everywhere, and so the order of the steps does not matter: dimension order reaches every switch.
Source: Cámara et al., IEEE TPDS 21(12), 2010, doi:10.1109/TPDS.2010.30; Jouppi et al., ISCA 2023, arXiv:2304.01433,
section 2.8, for K x K x 2K and K x 2K x 2K in TPU v4.
Leaves out: sides with other ratios, such as K x 2K x nK.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from weftwork.spec.fabric import Fabric
from weftwork.spec.plug_in import DirectLimits, FabricSize, Findings, Ground, MeasuredNetwork, Parts, Record, Topology
from weftwork.topology.direct_limits import lattice_limits
from weftwork.topology.torus_lattice import (
    hosts_per_switch_row,
    lattice_fabric,
    lattice_hosts,
    lattice_size,
    shape_row,
    twist_mistake,
    twisted,
)

__all__ = ["TOPOLOGY"]

SOURCE: Final = "Cámara et al., IEEE TPDS 21(12), 2010, doi:10.1109/TPDS.2010.30"


class Keys(Record):
    """The keys of a twisted torus."""

    shape: tuple[int, ...] = shape_row(
        "Switches along each dimension: K x K x 2K, K x 2K x 2K or K x 2K, in any order of the sides.",
        SOURCE,
        default=(4, 4, 8),
    )
    hosts_per_switch: int = hosts_per_switch_row()


def _resolve(keys: Keys, ground: Ground, found: Findings) -> tuple[Keys, int | None]:
    if (mistake := twist_mistake(keys.shape)) is not None:
        short = max(2, min(keys.shape))
        found.wrong("shape", mistake, str([short, short, 2 * short]))
        return keys, ground.hosts
    return keys, lattice_hosts(twisted(keys.shape), keys.hosts_per_switch, ground, found)


def _size(keys: Keys, parts: Parts) -> FabricSize:
    return lattice_size(twisted(keys.shape), parts, keys.hosts_per_switch)


def _build(keys: Keys, parts: Parts) -> Fabric:
    return lattice_fabric(twisted(keys.shape), parts, keys.hosts_per_switch, family="twisted-torus")


def _limits(found: MeasuredNetwork) -> DirectLimits:
    """That of a torus, which has the same links without the twist."""
    limits = lattice_limits(found)
    need, cut = limits.facts
    return replace(limits, facts=(need, f"{cut} These are the numbers without the twist."))


TOPOLOGY: Final = Topology(keys=Keys, resolve=_resolve, build=_build, size=_size, limits=_limits, source=SOURCE)
