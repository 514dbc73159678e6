"""Meta's RoCE cluster of 24,576 GPUs, with pods joined at 7:1.

Racks have 16 GPUs; pods of 192 racks do not block. A rack has one ToR with twice as much bandwidth up as down (1:2).
Cluster switches join the racks of a pod, and aggregation switches join pods with a seventh of a pod's bandwidth.
Source: Grattafiori et al., The Llama 3 Herd of Models, arXiv:2407.21783, section 3.3.1; Gangidi et al., SIGCOMM 2024,
doi:10.1145/3651890.3672233 (1:2 below).
Leaves out: deep buffers with virtual output queues of the cluster switches, which are simulated as shared buffers.
"""

from __future__ import annotations

from typing import Final

from weftwork.base.grammar import plural
from weftwork.spec.device import Record
from weftwork.spec.plug_in import Findings, Ground, Parts, Whole, row
from weftwork.topology.pgft import Pgft, Tier
from weftwork.topology.tree_topology import tree_topology

__all__ = ["TOPOLOGY"]

SOURCE: Final = "Grattafiori et al., arXiv:2407.21783, section 3.3.1"


class Keys(Record):
    """The keys of Meta's cluster."""

    pods: int | None = row(
        "pods",
        Whole(low=1, high=1_024, unit="pods"),
        absent="follows from the servers; 8 without servers",
        text="Groups of racks below the same cluster switches.",
        source=SOURCE,
    )
    racks_per_pod: int = row(
        "racks_per_pod", Whole(low=1, high=4_096, unit="racks"), default=192, text="Racks of a pod.", source=SOURCE
    )
    servers_per_rack: int = row(
        "servers_per_rack",
        Whole(low=1, high=128, unit="servers"),
        default=2,
        text="Servers below one ToR.",
        source=SOURCE,
    )
    cluster_switches: int = row(
        "cluster_switches",
        Whole(low=1, high=1_024, unit="switches"),
        default=16,
        text="Cluster switches of a pod, each linked to every ToR.",
        source="chosen: not published; with two links each, 32 uplinks for 16 GPUs (1:2), and 439 ports of a chassis",
    )
    links_per_pair: int = row(
        "links_per_pair",
        Whole(low=1, high=1_024, unit="links"),
        default=2,
        text="Parallel links between a ToR and a cluster switch.",
        source="chosen: see cluster_switches; Gangidi et al., SIGCOMM 2024: ToR uplinks 1:2 under-subscribed",
    )
    aggregation_links: int = row(
        "aggregation_links",
        Whole(low=1, high=1_024, unit="links"),
        default=55,
        text="Links from a cluster switch to its aggregation switch, with several pods.",
        source=f"{SOURCE}: 7:1; 384 links down over 55 up is 6.98:1, the nearest whole number",
    )


def _resolve(keys: Keys, ground: Ground, found: Findings) -> tuple[Keys, int | None]:
    hosts, pods = ground.hosts, keys.pods
    per_pod = keys.racks_per_pod * keys.servers_per_rack
    if hosts is None:
        pods = 8 if pods is None else pods  # SOURCE: 8 pods of 3,072 GPUs
        hosts = pods * per_pod
    wanted = -(-hosts // per_pod)
    if pods is not None and pods < wanted:
        text = f"found {pods:,}, but {plural(hosts, 'server')} in pods of {per_pod:,} take {wanted:,}"
        found.wrong("pods", text, str(wanted))
    return keys.model_copy(update={"pods": wanted if pods is None else pods}), hosts


def _tree(keys: Keys, parts: Parts) -> Pgft:
    servers = parts.hosts or 0
    racks = -(-servers // keys.servers_per_rack)
    pods = -(-racks // keys.racks_per_pod)
    rate_bps = parts.fabric_rate_bps
    tiers = [
        Tier(
            word="cluster",
            children=min(racks, keys.racks_per_pod),
            parents=keys.cluster_switches,
            cables=keys.links_per_pair,
            rate_bps=rate_bps,
        )
    ]
    if pods > 1:
        tiers.append(Tier(word="agg", children=pods, parents=1, cables=keys.aggregation_links, rate_bps=rate_bps))
    return Pgft(
        servers=servers,
        server=parts.server,
        per_leaf=keys.servers_per_rack,
        pods=racks,
        leaf_word="tor",
        tiers=tuple(tiers),
        host_rate_bps=parts.host_rate_bps,
    )


def _name(tree: Pgft) -> str:
    return f"meta-24k, {plural(tree.pods, 'rack')} of {plural(tree.per_leaf, 'server')}"


TOPOLOGY: Final = tree_topology(
    keys=Keys,
    resolve=_resolve,
    tree=_tree,
    name=_name,
    has_pods=False,
    defaults={"node": "dgx-h100"},
    source=f"{SOURCE}; Gangidi et al., SIGCOMM 2024, doi:10.1145/3651890.3672233",
)
