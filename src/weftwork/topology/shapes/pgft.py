"""Any tree, by children, parents and cables of its tiers: PGFT(h; m; w; p).

All other trees are presets of this one: `weftwork topology` prints the numbers of each. The first child count is
servers below a leaf, the first parent count planes, the first cable count the links of a server to one leaf.
Source: Zahavi, J. Parallel Distrib. Comput. 2012, parallel-ports generalised fat trees.
Leaves out: trees whose switches of one tier differ.
"""

from __future__ import annotations

from math import prod
from typing import Final

from weftwork.base.grammar import plural
from weftwork.spec.device import Record, Server
from weftwork.spec.plug_in import Findings, Flag, Ground, Listing, Parts, Whole, row
from weftwork.spec.rails import rail_mistakes
from weftwork.spec.scenario.topology import full
from weftwork.topology import tree_rows
from weftwork.topology.pgft import Pgft, Tier
from weftwork.topology.tree_topology import tree_topology

__all__ = ["TOPOLOGY"]

WORDS: Final = ("spine", "core", "crown")  # of the tiers above the leaves
SOURCE: Final = "Zahavi, J. Parallel Distrib. Comput. 2012"


class Keys(Record):
    """The keys of the generator itself."""

    children: tuple[int, ...] = row(
        "children",
        Listing(item=Whole(low=1, high=1_048_576, unit="nodes")),
        default=(4, 8),
        text="m by tier, the leaves first: servers below a leaf, leaves below a spine, groups of spines below a core.",
        source="chosen: a small tree of two tiers",
    )
    parents: tuple[int, ...] = row(
        "parents",
        Listing(item=Whole(low=1, high=65_536, unit="switches")),
        default=(1, 4),
        text="w by tier: planes, spines that a leaf sees, cores that a spine sees.",
        source="chosen: a small tree of two tiers",
    )
    cables: tuple[int, ...] | None = row(
        "cables",
        Listing(item=Whole(low=1, high=1_024, unit="links")),
        absent="the NIC ports of a server over planes and rails, then 1 for each tier",
        text="p by tier: parallel links between a node and one of its parents.",
        source=SOURCE,
    )
    rails: int = row(
        "rails",
        Whole(low=1, high=1_024, unit="rails"),
        default=1,
        text="Leaves of a pod and plane. The ports of GPU g of every server are on leaf g mod rails.",
        source="chosen: all ports of a server on one leaf of a plane",
    )
    joined: bool = row(
        "joined",
        Flag(),
        default=True,
        text="Whether the tiers above the leaves join the rails; else every rail is a separate network.",
        source="chosen: joined, as most are built",
    )
    uplink_rate_bps: dict[str, int] | None = tree_rows.uplink_rate(("leaf", *WORDS[:-1]))


def _cables(keys: Keys, server: Server) -> tuple[int, ...]:
    """Cables as given, or derived.

    The NIC ports make those to leaves; there are single ones above.
    """
    return keys.cables or (server.nic_ports // (keys.parents[0] * keys.rails), *[1] * (len(keys.children) - 1))


def _most(keys: Keys) -> int:
    """Servers of a full tree."""
    groups = prod(keys.children[1:])
    return keys.children[0] * (groups // keys.rails if keys.joined and len(keys.children) > 1 else groups)


def _resolve(keys: Keys, ground: Ground, found: Findings) -> tuple[Keys, int | None]:
    tiers = len(keys.children)
    if tiers > len(WORDS) + 1:
        found.wrong("children", f"found {plural(tiers, 'tier')}, wanted at most {len(WORDS) + 1}")
    for key, values in (("parents", keys.parents), ("cables", keys.cables)):
        if values is not None and len(values) != tiers:
            found.wrong(key, f"found {plural(len(values), 'number')}, wanted {tiers}, one for each tier of children")
    server = ground.server
    if server is None or not found.is_sound("children", "parents", "cables", "rails"):
        return keys, ground.hosts
    wrong = rail_mistakes(server, rails=keys.rails, planes=keys.parents[0])
    for key, text, fix in wrong:
        found.wrong({"planes": "parents"}.get(key, key), text, fix if key == "rails" else None)
    if wrong:
        return keys, ground.hosts
    each = server.nic_ports // (keys.parents[0] * keys.rails)
    if _cables(keys, server)[0] != each:
        text = f"found {_cables(keys, server)[0]} to a leaf, wanted {each}, the NIC ports of '{server.name}'"
        found.wrong("cables", f"{text} over planes and rails")
    if keys.joined and tiers > 1 and prod(keys.children[1:]) % keys.rails:
        text = (
            f"found {plural(prod(keys.children[1:]), 'leaf', 'leaves')} in all, wanted a multiple of "
            f"{keys.rails}, the rails"
        )
        found.wrong("children", text)
    odd = [tier for tier in keys.uplink_rate_bps or {} if tier not in ("leaf", *WORDS)[: tiers - 1]]
    if odd:
        found.wrong(
            "uplink_rate", f"found a rate of '{odd[0]}', but a tree of {plural(tiers, 'tier')} has nothing above it"
        )
    most = _most(keys)
    if ground.hosts is not None and ground.hosts > most:
        text = f"found {ground.hosts:,}, wanted at most {most:,}, the servers of a full tree"
        found.wrong(found.which("hosts", "gpus"), text)
    return keys, full(most, "children", found) if ground.hosts is None else ground.hosts


def _tree(keys: Keys, parts: Parts) -> Pgft:
    servers = _most(keys) if parts.hosts is None else parts.hosts
    pods = -(-servers // keys.children[0])
    rates = keys.uplink_rate_bps or {}
    cables = _cables(keys, parts.server)
    tiers = tuple(
        Tier(
            word=word,
            children=children,
            parents=parents,
            cables=parallel,
            rate_bps=rates.get(below, parts.fabric_rate_bps),
        )
        for word, below, children, parents, parallel in zip(
            WORDS, ("leaf", *WORDS), keys.children[1:], keys.parents[1:], cables[1:], strict=False
        )
    )
    return Pgft(
        servers=servers,
        server=parts.server,
        per_leaf=keys.children[0],
        pods=pods,
        rails=keys.rails,
        planes=keys.parents[0],
        is_joined=keys.joined,
        tiers=tiers,
        host_rate_bps=parts.host_rate_bps,
    )


TOPOLOGY: Final = tree_topology(keys=Keys, resolve=_resolve, tree=_tree, name=Pgft.notation, source=SOURCE)
