"""HPN 7.0 of Alibaba: two planes, and pods of 15 segments.

Every NIC port pair is on two ToR switches; a segment has 128 servers. Port q of the NIC of rail r hangs on ToR (plane
q, segment, rail r). Each ToR has one link to each of the 60 aggregation switches of its plane. Several pods are joined
by cores, plane by plane, with few links: 15:1.
Source: Qian et al., SIGCOMM 2024, doi:10.1145/3651890.3672265, sections 5 to 7.
Leaves out: the 8 backup ports of a ToR and its 64 spare GPUs (`weftwork topology --limits` counts the ports), the
frontend network, and the hash of a core by its ingress port (`fabric.hash` sets it: fields: [in_port]).
"""

from __future__ import annotations

from typing import Final

from weftwork.base.grammar import plural
from weftwork.base.units import format_quantity
from weftwork.spec.device import Record
from weftwork.spec.plug_in import RATE, DesignSpace, Findings, Ground, Parts, ServersAndSwitch, Whole, row
from weftwork.spec.rails import rail_mistakes
from weftwork.topology.oversubscription import most_cables
from weftwork.topology.pgft import Pgft, Tier
from weftwork.topology.tree_topology import tree_topology

__all__ = ["TOPOLOGY"]

SOURCE: Final = "Qian et al., SIGCOMM 2024, doi:10.1145/3651890.3672265"
PLANES: Final = 2  # section 6
RAILS: Final = 8  # section 5: one ToR pair for each of the 8 NICs of a server


class Keys(Record):
    """The keys of an HPN fabric."""

    segments: int | None = row(
        "segments",
        Whole(low=1, high=65_536, unit="segments"),
        absent="follows from the servers; segments_per_pod without servers",
        text="Groups of servers below the same ToR switches.",
        source=f"{SOURCE}, section 5",
    )
    nodes_per_segment: int = row(
        "nodes_per_segment",
        Whole(low=1, high=1_024, unit="servers"),
        default=128,
        text="Servers of a segment.",
        source=f"{SOURCE}, section 5",
    )
    segments_per_pod: int = row(
        "segments_per_pod",
        Whole(low=1, high=1_024, unit="segments"),
        default=15,
        text="Segments below the same aggregation switches.",
        source=f"{SOURCE}, section 6",
    )
    aggregations: int = row(
        "aggregations",
        Whole(low=1, high=1_024, unit="switches"),
        default=60,
        text="Aggregation switches of a pod and plane; a ToR has one link to each of them.",
        source=f"{SOURCE}, section 6",
    )
    core_uplinks: int = row(
        "core_uplinks",
        Whole(low=1, high=1_024, unit="links"),
        default=8,
        text="Links of an aggregation switch to cores, with several pods.",
        source=f"{SOURCE}, section 7",
    )


def _resolve(keys: Keys, ground: Ground, found: Findings) -> tuple[Keys, int | None]:
    if ground.server is None:
        return keys, ground.hosts
    for key, text, _ in rail_mistakes(ground.server, rails=RAILS, planes=PLANES):
        found.wrong("node", f"HPN has {RAILS} rails and {PLANES} planes; of the {key}: {text}")
    hosts, segments = ground.hosts, keys.segments
    if hosts is None:
        segments = keys.segments_per_pod if segments is None else segments
        hosts = segments * keys.nodes_per_segment
    wanted = -(-hosts // keys.nodes_per_segment)
    if segments is not None and segments < wanted:
        text = (
            f"found {segments:,}, but {plural(hosts, 'server')} in segments of {keys.nodes_per_segment} take {wanted:,}"
        )
        found.wrong("segments", text, str(wanted))
    return keys.model_copy(update={"segments": wanted if segments is None else segments}), hosts


def _tree(keys: Keys, parts: Parts) -> Pgft:
    servers = parts.hosts or 0
    segments = keys.segments or -(-servers // keys.nodes_per_segment)
    pods = -(-segments // keys.segments_per_pod)
    rate_bps = parts.fabric_rate_bps
    tiers = [
        Tier(
            word="agg",
            children=RAILS * min(segments, keys.segments_per_pod),
            parents=keys.aggregations,
            cables=1,
            rate_bps=rate_bps,
        )
    ]
    if pods > 1:
        up = keys.core_uplinks
        ports = parts.ports * min(parts.host_rate_bps, rate_bps) // rate_bps  # of a switch, at the rate of these links
        cables = most_cables(up, pods, ports) or 1
        tiers.append(Tier(word="core", children=pods, parents=up // cables, cables=cables, rate_bps=rate_bps))
    return Pgft(
        servers=servers,
        server=parts.server,
        per_leaf=keys.nodes_per_segment,
        pods=segments,
        rails=RAILS,
        planes=PLANES,
        leaf_word="tor",
        tiers=tuple(tiers),
        host_rate_bps=parts.host_rate_bps,
    )


def _name(tree: Pgft) -> str:
    return f"hpn, {plural(tree.pods, 'segment')} of {plural(tree.per_leaf, 'server')}"


def _shape_for(asked: ServersAndSwitch) -> dict[str, str]:
    """Links between switches have the rate of both ports of a GPU."""
    return {"fabric_rate": format_quantity(RATE, asked.gpu_rate_bps)}


TOPOLOGY: Final = tree_topology(
    keys=Keys,
    resolve=_resolve,
    tree=_tree,
    name=_name,
    defaults={
        "node": {"model": "hgx-h800", "nic_ports": 16},
        "link_rate": "200Gbps",
        "fabric_rate": "400Gbps",
        "switch": "tomahawk-5",
    },
    design=DesignSpace(shape=_shape_for, planes=(2, 2), order=8),
    source=SOURCE,
)
