"""Multi-plane fat tree: separate two-tier trees, and servers on all of them.

The NIC ports of servers spread over the trees, which no link joins. With one port for each GPU, a plane carries the
GPUs of one position, as DeepSeek built it; other planes are reached over NVLink or PCIe. With as many ports for each
GPU as planes, every GPU is on every plane, and switches that see each port at its share of the rate have so many times
the ports.
Source: DeepSeek-AI, ISCA 2025, doi:10.1145/3695053.3731412, section 5.1.
Leaves out: a queue pair that sprays over planes out of order; queue pairs take one port each (see queue pairs).
"""

from __future__ import annotations

from typing import Final

from weftwork.base.grammar import plural
from weftwork.spec.device import Record, Server
from weftwork.spec.plug_in import DesignSpace, Findings, Ground, Parts, Whole, row
from weftwork.topology.pgft import Pgft
from weftwork.topology.rails_tree import RailKeys, rail_tree
from weftwork.topology.tree_topology import tree_topology

__all__ = ["TOPOLOGY"]


class Keys(Record):
    """The keys of a multi-plane fat tree."""

    planes: int | None = row(
        "planes",
        Whole(low=1, high=64, unit="planes"),
        absent="the NIC ports of a GPU if it has several, else the NIC ports of a server",
        text="Separate fabrics over which NIC ports are spread: the ports of each GPU if it has enough, else the"
        " ports of the server.",
        source="DeepSeek-AI, ISCA 2025, doi:10.1145/3695053.3731412, section 5.1",
    )


def _ports_of_gpu(server: Server) -> int:
    return max(1, server.nic_ports // server.gpus)


def _mistake(server: Server, planes: int) -> str | None:
    """Why NIC ports do not spread over the planes, or None."""
    each = _ports_of_gpu(server)
    if each % planes == 0 or (each == 1 and server.nic_ports % planes == 0):
        return None
    of = f"a GPU of '{server.name}'" if each > 1 else f"'{server.name}'"
    return f"found {planes}, wanted a divisor of {each if each > 1 else server.nic_ports}, the NIC ports of {of}"


def _planes(keys: Keys, server: Server) -> int:
    each = _ports_of_gpu(server)
    return keys.planes or (each if each > 1 else server.nic_ports)


def _resolve(keys: Keys, ground: Ground, found: Findings) -> tuple[Keys, int | None]:
    if ground.server is None:
        return keys, ground.hosts
    planes = _planes(keys, ground.server)
    if (text := _mistake(ground.server, planes)) is not None:
        found.wrong("planes", text)
    if ground.hosts is None and found.is_sound("hosts", "gpus"):
        found.wrong("gpus", "missing: give gpus (or hosts, the servers)")
    if not ground.has_ports and found.is_sound("radix"):
        found.wrong("radix", "missing, wanted the ports of every switch, or a switch of the catalogue")
    return keys.model_copy(update={"planes": planes}), ground.hosts


def _tree(keys: Keys, parts: Parts) -> Pgft:
    planes = _planes(keys, parts.server)
    if _ports_of_gpu(parts.server) % planes == 0:  # every GPU is on every plane
        return rail_tree(RailKeys(tiers=2, rails=1, planes=planes), parts)
    return rail_tree(RailKeys(tiers=2, rails=planes), parts, rail_only=True)


def _name(tree: Pgft) -> str:
    return f"multi-plane, {plural(tree.networks, 'plane')} of {plural(tree.pods, 'leaf', 'leaves')}"


TOPOLOGY: Final = tree_topology(
    keys=Keys,
    resolve=_resolve,
    tree=_tree,
    name=_name,
    design=DesignSpace(planes=(1, None), order=3),
    source="DeepSeek-AI, ISCA 2025, doi:10.1145/3695053.3731412",
)
