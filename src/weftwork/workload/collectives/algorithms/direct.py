"""Direct: every rank sends to all others at once.

It is one step, or two for an all-reduce. Rank r sends to r + 1, r + 2 and so on, so that no receiver is everybody's
first. This is how NCCL does all-to-all
(a group of sends and receives), and what a library does with small messages, where steps cost more than bytes.
A send-receive is one message from rank i to rank i + n / 2, or to another distance; nccl-tests takes 1.
Source: Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521, sections 4.2 and 4.4.
Leaves out: limits on how many messages a library has under way, and PXN, which `hierarchical` has.
"""

from __future__ import annotations

from typing import Final

from weftwork.spec.job import Await, Digit, Group, Loop, Notify, Operation, Peer, Wait
from weftwork.workload.collectives.algorithm import Algorithm, Hop, Schedule, Share, Traffic, schedule_by_program
from weftwork.workload.collectives.call import Call
from weftwork.workload.collectives.methods.direct import METHOD
from weftwork.workload.collectives.streams import Cut, Lane, Streams, exchange

__all__ = ["ALGORITHM"]

_BY_PARTS: Final = ("all-reduce", "reduce-scatter", "all-gather", "all-to-all")


def _shares(call: Call) -> list[Share]:
    shares = []
    for size_bytes in call.channel_bytes():
        if call.operation == "barrier":
            shares.append(Share(total_bytes=0, parts=0))
        elif call.operation in _BY_PARTS:
            pieces = call.pieces(size_bytes // call.ranks)
            shares.append(Share(total_bytes=size_bytes, parts=call.ranks * pieces, owners=tuple(range(call.ranks))))
        else:
            shares.append(Share(total_bytes=size_bytes, parts=call.pieces(size_bytes)))
    return shares


def _lane(call: Call, share: Share, channel: int) -> Lane:
    """The lane of a step.

    The last message comes over the network, if there is one.
    """
    return Lane(
        share=share,
        connection=channel,
        priority=call.priority,
        nic=channel % call.nic_columns,
        pause_ps=call.step_latency_ps if call.servers > 1 else call.local_step_latency_ps,
    )


def _everybody(call: Call) -> Schedule:
    """Every rank sends to all others."""
    shares = _shares(call)
    group = Group(size=call.ranks)

    def streams(_: int) -> list[tuple[Operation, ...]]:
        found = Streams()
        for channel, share in enumerate(shares):
            lane = _lane(call, share, channel)
            cut = Cut(offsets=range(max(1, share.parts // call.ranks)))
            theirs = Digit(group=group, shift=1, step=1, weight=len(cut.offsets))
            own = Digit(group=group, weight=len(cut.offsets))
            go, done = found.at_start(), found.before_end()
            if call.operation == "all-reduce":
                middle = found.token()
                first = exchange(lane, group, theirs, cut, reduce=True, go=go, done=middle)
                second = exchange(lane, group, own, cut, reduce=False, go=middle, done=done)
                found.add(first[0] + second[0], first[1] + second[1])
            else:
                moving = own if call.operation == "all-gather" else theirs
                reduce = call.operation == "reduce-scatter"
                found.add(*exchange(lane, group, moving, cut, reduce=reduce, go=go, done=done))
        return found.of_gpu(call)

    return schedule_by_program(call, shares, lambda _: 0, streams)


def _rooted(call: Call) -> Schedule:
    """The root sends to all others, or all others to it."""
    shares = _shares(call)
    group = Group(size=call.ranks)
    others = call.ranks - 1
    root = Peer(rule="rank", shift=call.root)
    next_ones = Peer(rule="shift", group=group, shift=1, step=1)

    def streams(rank: int) -> list[tuple[Operation, ...]]:
        found = Streams()
        for channel, share in enumerate(shares):
            lane = _lane(call, share, channel)
            go, done = found.at_start(), found.before_end()
            is_sender = (rank == call.root) == (call.operation == "broadcast")
            peer, count = (next_ones, others) if rank == call.root else (root, 1)
            if is_sender:
                sends = tuple(lane.send(peer, offset=piece) for piece in range(share.parts))
                found.add((Await(token=go), Loop(count=count, body=sends), Wait(), Notify(token=done)))
            else:
                receives = (lane.receive(peer, reduce=call.operation == "reduce"),) * share.parts
                found.add((Await(token=go), Loop(count=count, body=receives), *lane.passed(done)))
        return found.of_gpu(call)

    return schedule_by_program(call, shares, lambda rank: rank == call.root, streams)


def _pairs(call: Call) -> Schedule:
    """Every rank sends to one and receives from one."""
    shares = _shares(call)
    group = Group(size=call.ranks)

    def streams(_: int) -> list[tuple[Operation, ...]]:
        found = Streams()
        for channel, share in enumerate(shares):
            lane = _lane(call, share, channel)
            to = Peer(rule="shift", group=group, shift=call.distance)
            by = Peer(rule="shift", group=group, shift=-call.distance)
            go, done = found.at_start(), found.before_end()
            found.add(
                (Await(token=go), *(lane.send(to, offset=piece) for piece in range(share.parts))),
                (*(lane.receive(by),) * share.parts, *lane.passed(done)),
            )
        return found.of_gpu(call)

    return schedule_by_program(call, shares, lambda _: 0, streams)


def _traffic(call: Call) -> Traffic:
    """Bytes of each GPU and step: (n - 1) / n of the total.

    The root of a broadcast or reduce has (n - 1) times the bytes.
    """
    wire, ranks, others, outside = call.wire_bytes, call.ranks, call.ranks - 1, call.ranks - call.domain
    if call.operation == "send-receive":
        distance = call.distance
        crossing = [rank for rank in range(ranks) if rank // call.domain != (rank + distance) % ranks // call.domain]
        remote, local = wire if crossing else 0, wire if len(crossing) < ranks else 0
        return Traffic(
            total_bytes=ranks * wire,
            network_bytes=len(crossing) * wire,
            sent_bytes=wire,
            received_bytes=wire,
            network_sent_bytes=remote,
            network_received_bytes=remote,
            local_sent_bytes=local,
            local_received_bytes=local,
        )
    if call.operation in {"broadcast", "reduce"}:
        from_root = call.operation == "broadcast"
        inside = call.domain - 1
        many = (others * wire, outside * wire, inside * wire)
        one = (wire, wire if outside else 0, wire if inside else 0)
        sent, received = (many, one) if from_root else (one, many)
        return Traffic(
            total_bytes=others * wire,
            network_bytes=outside * wire,
            sent_bytes=sent[0],
            received_bytes=received[0],
            network_sent_bytes=sent[1],
            network_received_bytes=received[1],
            local_sent_bytes=sent[2],
            local_received_bytes=received[2],
        )
    steps = 2 if call.operation == "all-reduce" else 1
    each, remote = (-(-steps * peers * wire // ranks) for peers in (others, outside))
    return Traffic(
        total_bytes=steps * others * wire,
        network_bytes=steps * outside * wire,
        sent_bytes=each,
        received_bytes=each,
        network_sent_bytes=remote,
        network_received_bytes=remote,
        local_sent_bytes=each - remote,
        local_received_bytes=each - remote,
    )


def _chain(call: Call) -> list[Hop]:
    piece_bytes = min(share.total_bytes // max(1, share.parts) for share in _shares(call))
    steps = 2 if call.operation == "all-reduce" else 1
    is_local = _traffic(call).network_bytes == 0 if call.operation == "send-receive" else call.servers == 1
    return [Hop(count=steps, size_bytes=piece_bytes, is_local=is_local)]


ALGORITHM: Final = Algorithm(
    name="direct",
    operations={
        "all-reduce": _everybody,
        "reduce-scatter": _everybody,
        "all-gather": _everybody,
        "all-to-all": _everybody,
        "broadcast": _rooted,
        "reduce": _rooted,
        "send-receive": _pairs,
        "barrier": _everybody,
    },
    traffic=_traffic,
    chain=_chain,
    source="Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521",
    method=METHOD,
)
