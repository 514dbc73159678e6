"""Ring: every rank sends only to the next rank.

n - 1 steps reduce and scatter, n - 1 steps gather. In step i rank r of n sends the part r - i (mod n) of n. Broadcast
and reduce are a chain along the ring, in pieces. With `Call.round_bytes` so much of each part goes around first, then
the next: the rounds of NCCL, whose buffers hold no more. Over several servers each channel passes all GPUs of a server
before it crosses to the next, as in NCCL. Channel c enters a server at GPU c mod D of D and crosses on that GPU's rail
at both ends. NCCL's rings keep to one NIC where a server has one for each rail (search in src/graph/search.cc;
NCCL_CROSS_NIC in its user guide lets them change).
Source: Patarasuk and Yuan, JPDC 69(2), 2009, doi:10.1016/j.jpdc.2008.09.002.
Leaves out: NCCL's search for rings by the topology of PCIe and NVLink; here GPUs follow in rank order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, Literal

from weftwork.spec.job import Await, Digit, Group, Loop, Notify, Operation, Peer, Wait
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
from weftwork.workload.collectives.methods.ring import METHOD
from weftwork.workload.collectives.streams import Cut, Lane, Streams, counter, ring

__all__ = ["ALGORITHM"]

_LOOPS: Final = {"all-reduce": 2, "reduce-scatter": 1, "all-gather": 1, "barrier": 1}  # times around, less a step each
_CHAINS: Final = ("broadcast", "reduce")


def _entering(call: Call, channel: int) -> int:
    """Index in its server of the GPU at which a channel enters."""
    return channel % call.domain if call.servers > 1 else 0


def _order(call: Call, channel: int) -> tuple[int, ...]:
    """Ranks along the ring of a channel."""
    size, first = call.domain, _entering(call, channel)
    return tuple(rank - rank % size + (rank + first) % size for rank in range(call.ranks))


def _place(call: Call, channel: int, rank: int) -> int:
    """Position of a rank in the ring of a channel."""
    return rank - rank % call.domain + (rank - _entering(call, channel)) % call.domain


def _group(call: Call, channel: int) -> Group:
    is_plain = _entering(call, channel) == 0
    return Group(size=call.ranks, members=None if is_plain else _order(call, channel))


def _shares(call: Call) -> list[Share]:
    shares = []
    for channel, size_bytes in enumerate(call.channel_bytes()):
        if call.operation == "barrier":
            shares.append(Share(total_bytes=0, parts=0))
        elif call.operation in _CHAINS:
            shares.append(Share(total_bytes=size_bytes, parts=call.pieces(size_bytes)))
        else:
            rounds, pieces = _cut(call, size_bytes)
            shares.append(
                Share(total_bytes=size_bytes, parts=call.ranks * rounds * pieces, owners=_order(call, channel))
            )
    return shares


def _cut(call: Call, share_bytes: int) -> tuple[int, int]:
    """Rounds of a share, and pieces per part that follow each other."""
    part = share_bytes // call.ranks
    rounds = call.rounds(part)
    return rounds, call.pieces(part // rounds)


def _lane(call: Call, share: Share, channel: int, rank: int) -> Lane:
    """The lane of a channel on a rank.

    The rank receives over the network if the channel enters its server there.
    """
    is_remote = call.servers > 1 and rank % call.domain == _entering(call, channel)
    rail: Literal["own", "peer"] = "peer" if call.domain > 1 else "own"
    return Lane(
        share=share,
        connection=channel,
        priority=call.priority,
        nic=call.nic(channel),
        rail=rail,
        pause_ps=call.step_latency_ps if is_remote else call.local_step_latency_ps,
    )


def _round(call: Call) -> Schedule:
    """Parts that go around the ring.

    It is for all operations except broadcast and reduce.
    """
    shares = _shares(call)
    steps = call.ranks - 1
    reduces = steps if call.operation in {"all-reduce", "reduce-scatter"} else 0
    stores = 0 if call.operation == "reduce-scatter" else steps
    first = -1 if call.operation == "reduce-scatter" else 0

    def streams(rank: int) -> list[tuple[Operation, ...]]:
        found = Streams()
        for channel, share in enumerate(shares):
            rounds, pieces = _cut(call, share.total_bytes) if share.parts else (1, 1)
            group = _group(call, channel)
            lane, moving = _lane(call, share, channel, rank), Digit(group=group, weight=rounds * pieces)
            go, data, end = found.at_start(), found.token(), found.before_end()
            sending: list[Operation] = []
            receiving: list[Operation] = []
            for index in range(rounds):
                done = found.token() if index < rounds - 1 else end
                cut = Cut(offsets=range(index * pieces, (index + 1) * pieces))
                pair = ring(
                    lane, group, moving, cut, first=first, reduces=reduces, stores=stores, tokens=(go, data, done)
                )
                sending += pair[0]
                receiving += pair[1]
                go = done
            found.add(sending, receiving)
        return found.of_gpu(call)

    return _schedule(call, shares, streams, lambda _: ())


def _chained(call: Call) -> Schedule:
    """Broadcast and reduce: pieces go along a chain to or from the root."""
    shares = _shares(call)
    head = 0 if call.operation == "broadcast" else 1  # steps along the ring from the root to the first of the chain

    def place(rank: int, channel: int) -> int:
        """Position of a rank in the chain of a channel."""
        return (_place(call, channel, rank) - _place(call, channel, call.root) - head) % call.ranks

    def roles(rank: int) -> tuple[bool | None, ...]:
        last = call.ranks - 1
        return tuple({0: True, last: False}.get(place(rank, channel)) for channel in range(len(shares)))

    def streams(rank: int) -> list[tuple[Operation, ...]]:
        found = Streams()
        for channel, share in enumerate(shares):
            lane, where = _lane(call, share, channel, rank), place(rank, channel)
            group = _group(call, channel)
            go, data, done = found.at_start(), found.token(), found.before_end()
            is_first, is_last = where == 0, where == call.ranks - 1
            if not is_last:
                wait: tuple[Operation, ...] = () if is_first else (Await(token=data),)
                send = lane.send(Peer(rule="shift", group=group, shift=1), (counter(call.ranks, share.parts),))
                body = Loop(count=share.parts, body=(*wait, send))
                found.add((Await(token=go), body, Wait(), Notify(token=done)))
            if not is_first:
                receive = lane.receive(Peer(rule="shift", group=group, shift=-1), reduce=call.operation == "reduce")
                if is_last:
                    body = Loop(count=share.parts, body=(receive, Wait()))
                    found.add((Await(token=go), body, *lane.passed(done)))
                else:
                    found.add((Loop(count=share.parts, body=(receive, *lane.passed(data))),))
        return found.of_gpu(call)

    return _schedule(call, shares, streams, roles)


def _schedule(
    call: Call,
    shares: Sequence[Share],
    streams: Callable[[int], list[tuple[Operation, ...]]],
    roles: Callable[[int], tuple[bool | None, ...]],
) -> Schedule:
    def signature(rank: int) -> tuple[object, ...]:
        lanes = (_lane(call, share, channel, rank) for channel, share in enumerate(shares))
        return (roles(rank), tuple(lane.pause_ps for lane in lanes))

    return schedule_by_program(call, shares, signature, streams)


def _traffic(call: Call) -> Traffic:
    """Bytes of each GPU: 2 (n - 1) / n of the total for an all-reduce.

    Its two halves have half of that each; a chain has all bytes.
    """
    wire, ranks = call.wire_bytes, call.ranks
    is_far = call.servers > 1
    if call.operation in _CHAINS:
        head = 0 if call.operation == "broadcast" else 1
        edges = []
        for channel, share_bytes in enumerate(call.channel_bytes()):
            order = _order(call, channel)
            first = order.index(call.root) + head
            chain = [order[(first + step) % ranks] for step in range(ranks)]
            edges += [(source, to, share_bytes) for source, to in pairwise(chain)]
        return traffic_of(call, edges)
    rails = [0] * call.domain
    for channel, share_bytes in enumerate(call.channel_bytes()):
        rails[_entering(call, channel)] += share_bytes
    passes = _LOOPS[call.operation] * (ranks - 1)

    def share_of(total_bytes: int) -> int:
        return -(-passes * total_bytes // ranks)

    busiest, quietest = (max(rails), min(rails)) if is_far else (0, 0)
    return Traffic(
        total_bytes=passes * wire,
        network_bytes=call.servers * passes * wire // ranks if is_far else 0,
        sent_bytes=share_of(wire),
        received_bytes=share_of(wire),
        network_sent_bytes=share_of(busiest),
        network_received_bytes=share_of(busiest),
        local_sent_bytes=share_of(wire - quietest),
        local_received_bytes=share_of(wire - quietest),
    )


def _chain(call: Call) -> list[Hop]:
    piece_bytes = min(share.total_bytes // max(1, share.parts) for share in _shares(call))
    size, servers = call.domain, call.servers if call.servers > 1 else 0
    if call.operation in _CHAINS:
        cut = call.root % size if call.operation == "broadcast" else (call.root + 1) % size
        steps, crossings = call.ranks - 1, servers - (servers > 0 and cut == 0)  # of channel 0, which enters at GPU 0
    else:
        loops = _LOOPS[call.operation]
        steps = loops * (call.ranks - 1)
        rounds = min(_cut(call, share.total_bytes)[0] if share.parts else 1 for share in _shares(call))
        # A piece takes all edges of the ring but `loops` neighbours; with few GPUs a server one of those has to cross.
        crossings = servers * loops - max(0, loops - size + 1) if servers else 0
        steps, crossings = rounds * steps, rounds * crossings
    return [
        Hop(count=crossings, size_bytes=piece_bytes),
        Hop(count=steps - crossings, size_bytes=piece_bytes, is_local=True),
    ]


ALGORITHM: Final = Algorithm(
    name="ring",
    operations={
        "all-reduce": _round,
        "reduce-scatter": _round,
        "all-gather": _round,
        "broadcast": _chained,
        "reduce": _chained,
        "barrier": _round,
    },
    traffic=_traffic,
    chain=_chain,
    source="Patarasuk and Yuan, JPDC 69(2), 2009, doi:10.1016/j.jpdc.2008.09.002",
    method=METHOD,
)
