"""Tiers of switches for which a fabric file gives none.

The tier of a switch is its distance to the nearest host, over switches. That decides where every link between switches
joins two neighbouring tiers and every switch at the top is on a shortest path between hosts, as in a folded Clos.
Elsewhere the distance is an assumption, which `Caveat` of kind ``assumed`` says.
Leaves out: what a tier changes (hashes, ``up-down``, digits of destinations, suspects of an answer).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.findings import Findings
from weftwork.base.grammar import plural
from weftwork.spec.fabric import HOST
from weftwork.topology.routing import attachments, switch_distances

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weftwork.spec.fabric import Fabric

__all__ = ["NO_TIER", "doubt_of_tiers", "with_distances"]

NO_TIER: Final = -1
MOST_TIERS: Final = 100  # chosen: as a file may give; far above any fabric, within int8
_SHOWN: Final = 5  # chosen: mistakes of one kind


def with_distances(
    names: Sequence[str],
    kinds: NDArray[np.int32],
    tiers: NDArray[np.int32],
    ends: NDArray[np.int64],
    findings: Findings,
) -> NDArray[np.int32]:
    """Fill missing tiers with the distance to the nearest host.

    Parameters
    ----------
    names : of the nodes
    kinds : shape (nodes,), `HOST` or `SWITCH`
    tiers : shape (nodes,), `NO_TIER` where the file gives none
    ends : shape (links, 2), nodes
    findings : take missing tiers that the given ones contradict, and distances beyond the largest tier

    Returns
    -------
    shape (nodes,); given tiers stay
    """
    missing = tiers == NO_TIER
    if not missing.any():
        return tiers
    distance = _distances(kinds, ends)
    odd = np.flatnonzero(~missing & (kinds != HOST) & (distance > 0) & (tiers != distance))
    far = np.flatnonzero(missing & (distance > MOST_TIERS))
    if len(odd):
        node = int(odd[0])
        why = (
            f"missing, and does not follow from hops to the nearest host: '{names[node]}' has tier {tiers[node]} and"
            f" {plural(int(distance[node]), 'hop')}; wanted a tier for every switch, or for none"
        )
        _note_few(names, np.flatnonzero(missing), why, findings)
    text = f"missing, and more than {MOST_TIERS} hops to the nearest host; wanted a tier"
    _note_few(names, far, text, findings)
    return np.where(missing, np.clip(distance, 1, MOST_TIERS), tiers)


def _note_few(names: Sequence[str], nodes: NDArray[np.intp], text: str, findings: Findings) -> None:
    for node in nodes[:_SHOWN].tolist():
        findings.wrong(f"nodes.{names[node]}.tier", text)
    if len(nodes) > _SHOWN:
        findings.wrong("nodes", f"and {len(nodes) - _SHOWN:,} more of the same")


def _distances(kinds: NDArray[np.int32], ends: NDArray[np.int64]) -> NDArray[np.int32]:
    """Hops from every node to the nearest host; hosts do not forward, -1: no host is reached."""
    distance = np.where(kinds == HOST, 0, -1).astype(np.int32)
    pairs = np.concatenate([ends, ends[:, ::-1]])
    hops = 0
    while True:
        far = pairs[distance[pairs[:, 0]] == hops, 1]
        fresh = far[distance[far] < 0]
        if not len(fresh):
            return distance
        hops += 1
        distance[fresh] = hops


def doubt_of_tiers(fabric: Fabric) -> str:
    """Say why distances to hosts need not be the tiers of a fabric.

    Parameters
    ----------
    fabric : whose tiers are these distances

    Returns
    -------
    empty where they are unambiguous
    """
    links, tier, names = fabric.links, fabric.node_tier, fabric.node_names
    if fabric.hosts_forward:
        return "its hosts forward, so that all switches are next to hosts"
    between = (fabric.node_kind[links["a"]] != HOST) & (fabric.node_kind[links["b"]] != HOST)
    level = np.flatnonzero(between & (tier[links["a"]] == tier[links["b"]]))
    if len(level):
        a, b = (int(links[end][level[0]]) for end in ("a", "b"))
        return f"{plural(len(level), 'link')} such as '{names[a]}-{names[b]}' would join switches of one tier"
    idle = _idle_top(fabric, between)
    return "" if idle is None else f"no shortest path between hosts passes '{names[idle]}'"


def _idle_top(fabric: Fabric, between: NDArray[np.bool_]) -> int | None:
    """A switch with no tier above it that no shortest path between two attachments passes."""
    links, tier = fabric.links[between], fabric.node_tier.astype(np.int64)
    low, high = np.minimum(tier[links["a"]], tier[links["b"]]), np.maximum(tier[links["a"]], tier[links["b"]])
    below = np.where(tier[links["a"]] == low, links["a"], links["b"])
    is_top = (fabric.node_kind != HOST) & (tier > 1)
    is_top[below[low < high]] = False
    tops = np.flatnonzero(is_top)
    if not len(tops):
        return None
    attach_node, _ = attachments(fabric)
    distance = switch_distances(fabric, fabric.links_at_start, attach_node)
    for top in tops.tolist():
        climb = int(tier[top]) - 1
        nearest = np.flatnonzero(distance[top] == climb)
        # in a tree the first of them has a partner; only a switch that nobody needs is compared with all
        if not any((distance[attach_node[nearest], one] == 2 * climb).any() for one in nearest.tolist()):
            return int(top)
    return None
