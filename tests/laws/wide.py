"""What random plans have beyond plain ones: direct networks, layers of routes, and all that a transport may say.

Leaves out: the policies that use it, see `scenarios.WIDE`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weftwork.engine.headroom import full_frame_bytes
from weftwork.engine.packet_input import PacketInput, RouteTable
from weftwork.engine.rows.fabric import PIN_DTYPE
from weftwork.policies.interface import MOST_CLASSES
from weftwork.spec.transport import Transport

__all__ = ["Wires", "credit_room_bytes", "wide_transport", "wide_wires", "with_layers"]


@dataclass(frozen=True, kw_only=True)
class Wires:
    """Who is linked to whom; hosts come first."""

    hosts: int
    switches: int
    links: tuple[tuple[int, int], ...]


def wide_wires(rng: Random) -> Wires | None:
    """Rings and small dragonflies; None: anything else."""
    match rng.choice(("ring", "ring", "dragonfly", "dragonfly", "other", "other")):
        case "ring":
            switches, per_switch = rng.randint(3, 6), rng.randint(1, 2)
            hosts = switches * per_switch
            down = [(h, hosts + h // per_switch) for h in range(hosts)]
            return Wires(
                hosts=hosts,
                switches=switches,
                links=(*down, *((hosts + i, hosts + (i + 1) % switches) for i in range(switches))),
            )
        case "dragonfly":
            # three groups of two routers, each with a host or two and one link to another group
            per_router = rng.randint(1, 2)
            hosts = 6 * per_router
            down = [(h, hosts + h // per_router) for h in range(hosts)]
            local = [(hosts + 2 * group, hosts + 2 * group + 1) for group in range(3)]
            between = [(hosts, hosts + 2), (hosts + 1, hosts + 4), (hosts + 3, hosts + 5)]
            return Wires(hosts=hosts, switches=6, links=(*down, *local, *between))
    return None


def wide_transport(rng: Random, transport: Transport) -> Transport:
    """Perhaps cut packets or credits between links, an early timeout for few packets, and costs at hosts and NICs."""
    changed: dict[str, Any] = {}
    links = rng.choice(("cut",) * 6 + ("credits",) * 4 + ("as it is",) * 2)
    if links == "cut":
        lossless = rng.choice(((), (), (4,)))  # the data may be cut
        changed |= {"recovery": "selective-repeat", "trim_bytes": rng.choice((64, 90)), "lossless_priorities": lossless}
        changed |= {"trim_priority": rng.choice((None, 5)), "reorder_threshold_packets": rng.choice((0, 4, 40))}
    elif links == "credits":
        quantum = rng.choice((1, 200, full_frame_bytes(transport), 3 * full_frame_bytes(transport)))
        changed |= {"link_credits": True, "lossless_priorities": (), "credit_quantum_bytes": quantum}
    if rng.random() < 0.5:
        changed |= {
            "timeout_low_ps": transport.retransmission_timeout_ps // rng.choice((2, 3)),
            "timeout_low_packets": rng.choice((1, 3)),
        }
    made = transport.model_copy(update=changed)
    if made.recovery == "selective-repeat" or made.reorder_tolerant:
        changed["ordering"] = rng.choice(("connection", "message", "none", "none"))
    if rng.random() < 0.4:
        changed |= {"host_packet_ps": rng.choice((0, 30_000, 333_333)), "host_byte_ps": rng.choice((0, 7_777, 100_000))}
    if rng.random() < 0.3:
        changed["inflight_cap_bytes"] = rng.choice((1, 3, 20)) * transport.mtu_bytes + rng.randrange(2)
    changed["connection_state_bytes"] = rng.choice((0, 0, 375))
    return transport.model_copy(update=changed)


def credit_room_bytes(transport: Transport) -> int:
    """The least buffer of one port that gives each of its lanes, of as many as there may be, credit to go on."""
    return MOST_CLASSES * (2 * full_frame_bytes(transport) + transport.credit_quantum_bytes)


def with_layers(rng: Random, engine_input: PacketInput) -> PacketInput:
    """Layers in which a switch sends by one of its shortest ports or as the shortest paths do, and entropies given."""
    layers, ways = rng.randint(1, 3), rng.randint(1, 4)
    pinned = rng.randint(0, ways)
    ranks = len(engine_input.rank_program)
    pairs = {(rng.randrange(ranks), rng.randrange(ranks), rng.choice((-1, -1, 0, 1))) for _ in range(rng.randint(0, 6))}
    return replace(
        engine_input,
        routes=tuple(_layered(rng, table, layers, ways, pinned) for table in engine_input.routes),
        pins=np.array([(*pair, rng.randrange(pinned + 2)) for pair in sorted(pairs)], PIN_DTYPE),
    )


def _layered(rng: Random, table: RouteTable, layers: int, ways: int, pinned: int) -> RouteTable:
    nodes, edges = table.group_of.shape
    ptr, ports, weights = table.group_ptr.tolist(), table.group_ports.tolist(), table.group_weights.tolist()
    groups = np.full((layers, nodes, edges), -1, np.int32)
    for place in np.ndindex(groups.shape):
        group = int(table.group_of[place[1:]])
        if group < 0 or rng.random() < 0.2:
            continue
        groups[place] = len(ptr) - 1
        ports.append(rng.choice(ports[ptr[group] : ptr[group + 1]]))
        weights.append(1)
        ptr.append(len(ports))
    return replace(
        table,
        group_ptr=np.array(ptr, np.int64),
        group_ports=np.array(ports, np.int32),
        group_weights=np.array(weights, np.int32),
        layer_group=groups,
        layer_of=_numbers(rng, (edges, edges, ways), layers),
        pinned_ways=pinned,
    )


def _numbers(rng: Random, shape: tuple[int, int, int], layers: int) -> NDArray[np.int32]:
    """Layers from -1 on."""
    drawn = [rng.randrange(-1, layers) for _ in range(int(np.prod(shape)))]
    return np.array(drawn, np.int32).reshape(shape)
