"""Double binary tree: two trees with half of the bytes each.

Inner ranks of one tree are leaves of the other tree. Pieces are added on the way up to the root and sent on the way
down. Trees are over servers: inside an NVLink domain a chain hangs on the GPU that talks to other servers, GPU c mod D
of D for channel c. Wants many chunks: the bytes of a tree are one part, and with one piece each level waits for the
whole of it.
Broadcast and reduce have both trees over all servers but the root's, which is above the roots of both.
Source: Sanders, Speck and Traff, Parallel Computing 35(12), 2009, doi:10.1016/j.parco.2009.09.001; the shape of the
trees is NCCL's (src/graph/trees.cc), with all traffic of a server on one GPU, the pattern that NCCL calls TREE.
Leaves out: the patterns BALANCED_TREE and SPLIT_TREE of NCCL, which spread a server's traffic over two GPUs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final, Literal

from weftwork.spec.job import Await, Loop, Notify, Operation, Peer, Receive, Send, Wait
from weftwork.workload.collectives.algorithm import (
    Algorithm,
    Hop,
    Schedule,
    Share,
    Traffic,
    schedule_by_program,
    traffic_of,
)
from weftwork.workload.collectives.call import Call
from weftwork.workload.collectives.methods.tree import METHOD
from weftwork.workload.collectives.streams import Lane, Streams, counter

__all__ = ["ALGORITHM"]

_UP: Final = ("all-reduce", "reduce", "barrier")
_DOWN: Final = ("all-reduce", "broadcast", "barrier")


def _binary_parent(nodes: int, node: int) -> int:
    """Parent of a node in a binary tree of NCCL.

    Every odd node is a leaf. The root, node 0, has -1.
    """
    if node == 0:
        return -1
    bit = node & -node
    parent = node ^ bit | bit << 1
    return parent if parent < nodes else node ^ bit


def _parent(nodes: int, node: int, tree: int) -> int:
    """Parent in one of two trees.

    The second tree mirrors the first. For an odd number of nodes it is shifted by one.
    """
    if tree == 0:
        return _binary_parent(nodes, node)
    if nodes % 2:
        parent = _binary_parent(nodes, (node - 1) % nodes)
        return -1 if parent < 0 else (parent + 1) % nodes
    parent = _binary_parent(nodes, nodes - 1 - node)
    return -1 if parent < 0 else nodes - 1 - parent


@dataclass(frozen=True, kw_only=True, slots=True)
class _Tree:
    """One tree over all ranks.

    It has the parent of each rank, -1 for the root, and the children.
    """

    parents: tuple[int, ...]
    children: tuple[tuple[int, ...], ...]


def _tree(call: Call, head: int, tree: int) -> _Tree:
    """One of the two trees.

    GPU ``head`` of each server talks to other servers.
    """
    size, servers = call.domain, call.servers
    root = call.root if call.operation in {"broadcast", "reduce"} else -1  # of the others, any will do
    top = root // size if root >= 0 else -1
    others = [server for server in range(servers) if server != top]
    heads = [(root if server == top else head) % size for server in range(servers)]
    parents: list[int] = []
    children: list[list[int]] = [[] for _ in range(call.ranks)]
    for rank in range(call.ranks):
        server, above = rank // size, -1
        place = (rank - heads[server]) % size
        if place:  # inside, a chain
            above = server * size + (heads[server] + place - 1) % size
        elif server != top:
            node = _parent(len(others), server - (0 <= top < server), tree)
            over = top if node < 0 else others[node]
            above = over * size + heads[over] if over >= 0 else -1
        parents.append(above)
        if above >= 0:
            children[above].append(rank)
    return _Tree(parents=tuple(parents), children=tuple(tuple(found) for found in children))


def _trees(call: Call) -> list[_Tree]:
    """The tree of each share.

    Channels with the same GPU at the head share their trees.
    """
    made: dict[tuple[int, int], _Tree] = {}
    found = []
    for index in range(len(_shares(call))):
        channel, tree = divmod(index, 2)
        key = (channel % call.domain, tree)
        if key not in made:
            made[key] = _tree(call, *key)
        found.append(made[key])
    return found


class _Peers:
    """Peers of a tree as tables: the parent, and each child.

    They are made once for all programs.
    """

    def __init__(self, tree: _Tree) -> None:
        self.parent = Peer(rule="table", table=tree.parents)
        columns = zip_longest(*tree.children, fillvalue=-1)
        self.children = [Peer(rule="table", table=tuple(column)) for column in columns]


def _shares(call: Call) -> list[Share]:
    if call.operation == "barrier":
        return [Share(total_bytes=0, parts=0)]
    return [Share(total_bytes=size, parts=call.pieces(size)) for size in call.channel_bytes(each=2)]


def _pauses(call: Call, tree: _Tree, rank: int) -> tuple[int, int]:
    """Latency of a step up and of a step down on a rank.

    It is that of the network if any awaited message comes over the network.
    """

    def pause_ps(sources: Sequence[int]) -> int:
        if not sources:
            return 0
        is_remote = any(source // call.domain != rank // call.domain for source in sources)
        return call.step_latency_ps if is_remote else call.local_step_latency_ps

    above = () if tree.parents[rank] < 0 else (tree.parents[rank],)
    return pause_ps(tree.children[rank]), pause_ps(above)


def _build(call: Call) -> Schedule:
    shares, trees = _shares(call), _trees(call)
    peers = {id(tree): _Peers(tree) for tree in trees}

    def streams(rank: int) -> list[tuple[Operation, ...]]:
        found = Streams()
        for index, (share, tree) in enumerate(zip(shares, trees, strict=True)):
            _climb(call, found, _lane(call, share, index), peers[id(tree)], _pauses(call, tree, rank))
        return found.of_gpu(call)

    def signature(rank: int) -> tuple[tuple[int, int], ...]:
        return tuple(_pauses(call, tree, rank) for tree in trees)

    return schedule_by_program(call, shares, signature, streams)


def _lane(call: Call, share: Share, index: int) -> Lane:
    rail: Literal["own", "peer"] = "peer" if call.domain > 1 else "own"
    return Lane(share=share, connection=index, priority=call.priority, nic=call.nic(index // 2), rail=rail)


def _climb(call: Call, found: Streams, lane: Lane, peers: _Peers, pauses: tuple[int, int]) -> None:
    """Add the streams of one tree, upwards and downwards.

    They receive from below, send up, receive from above and send down.
    """
    up, down = (replace(lane, pause_ps=pause_ps) for pause_ps in pauses)
    parent, children = peers.parent, peers.children
    count = max(1, lane.share.parts)
    digits = (counter(call.ranks, count),)
    go, below, risen, above = found.at_start(), found.token(), found.token(), found.token()
    done = found.before_end()
    goes_up, goes_down = call.operation in _UP, call.operation in _DOWN

    def loop(*body: Operation) -> Loop:
        return Loop(count=count, body=body)

    if goes_up:
        arriving: list[Receive] = [up.receive(child, reduce=True) for child in children]
        found.add((loop(*arriving, *up.passed(below)),))
        rising = (Await(token=below), up.send(parent, digits))
        found.add(
            (Await(token=go), loop(*rising, Notify(token=risen)))
            if goes_down
            else (Await(token=go), loop(*rising), Wait(), Notify(token=done))
        )
    if goes_down:
        turned = (Await(token=risen),) if goes_up else ()
        found.add((loop(*turned, down.receive(parent), *down.passed(above)),))
        falling: list[Send] = [down.send(child, digits) for child in children]
        found.add(
            (loop(Await(token=above), *falling), Notify(token=done))
            if goes_up
            else (Await(token=go), loop(Await(token=above), *falling), Wait(), Notify(token=done))
        )


def _traffic(call: Call) -> Traffic:
    """Bytes of each tree edge: one share per direction of the operation."""
    edges = []
    for share, tree in zip(_shares(call), _trees(call), strict=True):
        pairs = [(child, parent) for child, parent in enumerate(tree.parents) if parent >= 0]
        if call.operation in _UP:
            edges += [(child, parent, share.total_bytes) for child, parent in pairs]
        if call.operation in _DOWN:
            edges += [(parent, child, share.total_bytes) for child, parent in pairs]
    return traffic_of(call, edges)


def _chain(call: Call) -> list[Hop]:
    """Steps from the deepest leaf of a tree to its root, and back."""
    piece_bytes = min(share.total_bytes // max(1, share.parts) for share in _shares(call))
    parents = _tree(call, 0, 0).parents

    def path(rank: int) -> tuple[int, int]:
        remote = local = 0
        while parents[rank] >= 0:
            if parents[rank] // call.domain == rank // call.domain:
                local += 1
            else:
                remote += 1
            rank = parents[rank]
        return remote, local

    remote, local = max(path(rank) for rank in range(call.ranks))
    directions = (call.operation in _UP) + (call.operation in _DOWN)
    return [
        Hop(count=directions * remote, size_bytes=piece_bytes),
        Hop(count=directions * local, size_bytes=piece_bytes, is_local=True),
    ]


ALGORITHM: Final = Algorithm(
    name="tree",
    operations={"all-reduce": _build, "broadcast": _build, "reduce": _build, "barrier": _build},
    traffic=_traffic,
    chain=_chain,
    source="Sanders, Speck and Traff, Parallel Computing 35(12), 2009, doi:10.1016/j.parco.2009.09.001",
    method=METHOD,
)
