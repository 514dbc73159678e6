"""The record of a tree's file: a preset of the one generator.

Its keys make the tree, which is then built.
Leaves out: what the keys mean, which each file of `weftwork.topology.shapes` says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from weftwork.spec.device import Record
from weftwork.spec.fabric import Fabric
from weftwork.spec.fabric_extras import Extra
from weftwork.spec.plug_in import DesignSpace, Findings, Ground, Parts, Topology
from weftwork.spec.scenario.topology import FabricSize
from weftwork.topology.pgft import Pgft, pgft_fabric

__all__ = ["TreeTopology", "tree_topology"]

K = TypeVar("K", bound=Record)


@dataclass(frozen=True, kw_only=True)
class TreeTopology(Topology[K]):
    """A topology that is a preset of the one generator.

    Parameters
    ----------
    tree : the tree that keys and parts make; may raise `ConfigError`
    """

    tree: Callable[[K, Parts], Pgft]


def tree_topology(  # noqa: PLR0913 - the fields of a record, all by name
    *,
    keys: type[K],
    resolve: Callable[[K, Ground, Findings], tuple[K, int | None]],
    tree: Callable[[K, Parts], Pgft],
    name: Callable[[Pgft], str],
    source: str,
    has_pods: bool = True,
    extras: Callable[[K], Sequence[Extra]] | None = None,
    defaults: Mapping[str, str | Mapping[str, str | int]] | None = None,
    design: DesignSpace | None = None,
) -> TreeTopology[K]:
    """Make the topology of a tree.

    Parameters
    ----------
    keys, resolve, source, defaults, design : see `weftwork.spec.scenario.topology.Topology`
    tree : from keys and parts
    name : of the fabric
    has_pods : whether the fabric tells which pod a server is in
    extras : equipment that takes ports and is no host, by the keys
    """

    def build(given: K, parts: Parts) -> Fabric:
        made = tree(given, parts)
        beside = () if extras is None else extras(given)
        return pgft_fabric(made, parts, name=name(made), has_pods=has_pods, extras=beside)

    def size(given: K, parts: Parts) -> FabricSize:
        return tree(given, parts).size()

    return TreeTopology(
        keys=keys,
        resolve=resolve,
        build=build,
        size=size,
        tree=tree,
        source=source,
        defaults=dict(defaults or {}),
        design=design,
    )
