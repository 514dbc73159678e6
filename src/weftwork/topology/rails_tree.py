"""Keys of rail fabrics, and their tree.

In each pod of servers there is one leaf for each rail, with spines above. `weftwork.topology.shapes` gives the names
that people use for them: rail-optimized, rail-only and others.
Source: docs.nvidia.com/networking, InfiniBand Cluster Bring-up Procedure v1.0; Wang et al., Hot Interconnects 2024,
arXiv:2307.12169; Qian et al., SIGCOMM 2024, doi:10.1145/3651890.3672265.
Leaves out: the counts (`weftwork.topology.rail_counts`), and nodes and links (`weftwork.topology.pgft`).
"""

from __future__ import annotations

from weftwork.base.grammar import plural
from weftwork.spec.plug_in import MAX_HOSTS, Findings, Ground, Parts, Record, Whole, row
from weftwork.spec.rails import default_rails, rail_mistakes
from weftwork.spec.scenario.topology import full
from weftwork.topology import tree_rows
from weftwork.topology.pgft import Pgft, Tier
from weftwork.topology.rail_counts import RailCounts, rail_counts, wrong_pods

__all__ = ["RailKeys", "counts_of", "rail_name", "rail_tree", "resolve_rails"]


class RailKeys(Record):
    """The keys of a rail fabric: its counts, or their inputs."""

    tiers: int | None = row(
        "tiers",
        Whole(low=2, high=3, unit="tiers"),
        absent="2 if they suffice, else 3",
        text="Tiers of switches: leaves and spines, or with cores above them.",
        source="chosen: as few as suffice",
    )
    pods: int | None = row(
        "pods",
        Whole(low=1, high=65_536, unit="pods"),
        absent="follows from the servers and nodes_per_pod",
        text="Groups of servers that share one leaf for each rail (scalable units).",
        source="chosen: derived",
    )
    nodes_per_pod: int | None = row(
        "nodes_per_pod",
        Whole(low=1, high=MAX_HOSTS, unit="servers"),
        absent="as many as a leaf has ports for at the wanted oversubscription, or as pods say",
        text="Servers of a pod.",
        source="chosen: derived",
    )
    rails: int | None = row(
        "rails",
        Whole(low=1, high=1_024, unit="rails"),
        absent="one for each GPU of a server, or as the catalogue says of the node",
        text="Leaves of a pod and plane. The ports of GPU g of every server are on leaf g mod rails.",
        source="docs.nvidia.com/networking, InfiniBand Cluster Bring-up Procedure: each GPU rail on its own leaf",
    )
    planes: int = row(
        "planes",
        Whole(low=1, high=64, unit="planes"),
        default=1,
        text="Separate fabrics over which the NIC ports of each GPU are spread; 2 is a dual-plane fabric.",
        source="Qian et al., SIGCOMM 2024, doi:10.1145/3651890.3672265, section 6",
    )
    spines: int | None = row(
        "spines",
        Whole(low=0, high=65_536, unit="switches"),
        absent="follows from the uplinks of a leaf",
        text="Spine switches of a plane (of a rail if rails are not joined; of a block with three tiers). 0 if no"
        " spine joins the leaves.",
        source="chosen: derived",
    )
    links_per_pair: int | None = tree_rows.links_per_pair()
    oversubscription: float | dict[str, float] | None = tree_rows.oversubscription()
    uplink_rate_bps: dict[str, int] | None = tree_rows.uplink_rate(("leaf", "spine"))


def resolve_rails(keys: RailKeys, ground: Ground, found: Findings) -> tuple[RailKeys, int | None]:
    """Check the keys, fill in the rails, and return the servers."""
    server = ground.server
    if server is None:
        return keys, ground.hosts
    rails = default_rails(server, ground.rails) if keys.rails is None else keys.rails
    keys = keys.model_copy(update={"rails": rails})
    for key, text, fix in rail_mistakes(server, rails=rails, planes=keys.planes):
        found.wrong(key, text, fix)
    if not found.is_sound("radix", "hosts", "gpus"):
        return keys, ground.hosts
    hosts, pods, per_pod = ground.hosts, keys.pods, keys.nodes_per_pod
    if pods is None or per_pod is None:
        if hosts is None:
            found.wrong("gpus", "missing: give gpus (or hosts, the servers), or pods and nodes_per_pod")
        return keys, hosts
    if hosts is None:
        return keys, full(pods * per_pod, "pods", found)
    if (wanted := -(-hosts // per_pod)) != pods:
        found.wrong("pods", *wrong_pods(pods, hosts, per_pod, wanted))
    return keys, hosts


def counts_of(keys: RailKeys, parts: Parts, *, rail_only: bool) -> RailCounts:
    """Counts of the tree, from keys and parts.

    Raises
    ------
    ConfigError : see `weftwork.topology.rail_counts.rail_counts`
    """
    rates = keys.uplink_rate_bps or {}
    leaf_bps = rates.get("leaf", parts.fabric_rate_bps)
    return rail_counts(
        servers=parts.hosts or 0,
        server=parts.server,
        rails=default_rails(parts.server, parts.rails) if keys.rails is None else keys.rails,
        planes=keys.planes,
        radix=parts.ports,
        oversubscription=keys.oversubscription,
        host_rate_bps=parts.host_rate_bps,
        fabric_rate_bps=leaf_bps,
        core_rate_bps=rates.get("spine", parts.fabric_rate_bps),
        pods=keys.pods,
        nodes_per_pod=keys.nodes_per_pod,
        spines=keys.spines,
        links_per_pair=keys.links_per_pair,
        rail_only=rail_only,
        tiers=keys.tiers,
    )


def rail_tree(keys: RailKeys, parts: Parts, *, rail_only: bool = False) -> Pgft:
    """The tree of keys and parts.

    Parameters
    ----------
    keys, parts : what the user gave, and what the fabric is built with
    rail_only : every rail is a network of its own

    Raises
    ------
    ConfigError : see `weftwork.topology.rail_counts.rail_counts`
    """
    shape, rates = counts_of(keys, parts, rail_only=rail_only), keys.uplink_rate_bps or {}
    leaves_of_pod = 1 if shape.rail_only else shape.rails
    tiers = []
    if shape.spines:
        tiers.append(
            Tier(
                word="spine",
                children=shape.pods_per_block * leaves_of_pod,
                parents=shape.spines,
                cables=shape.links_per_pair,
                rate_bps=rates.get("leaf", parts.fabric_rate_bps),
            )
        )
    if shape.cores:
        tiers.append(
            Tier(
                word="core",
                children=shape.blocks,
                parents=shape.cores,
                cables=shape.links_per_core,
                rate_bps=rates.get("spine", parts.fabric_rate_bps),
            )
        )
    return Pgft(
        servers=shape.servers,
        server=parts.server,
        per_leaf=shape.nodes_per_pod,
        pods=shape.pods,
        rails=shape.rails,
        planes=shape.planes,
        is_joined=not shape.rail_only,
        tiers=tuple(tiers),
        host_rate_bps=parts.host_rate_bps,
    )


def rail_name(tree: Pgft) -> str:
    """Description of a tree, such as ``rail-optimized, 4 pods x 8 rails``.

    It has kind, pods, rails and planes.
    """
    kind = "rail-optimized" if tree.is_joined else "rail-only"
    counts = [(tree.pods, "pod"), (tree.rails, "rail"), (tree.planes, "plane")]
    return f"{kind}, " + " x ".join(plural(count, word) for count, word in counts if count > 1 or word != "plane")
