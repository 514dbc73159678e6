"""NVLS: the NVLink switch of a domain reduces and multicasts.

It adds the data of all its GPUs, and sends the data of one GPU to all. All-reduce: every GPU sends all parts to the
switch, which adds them up and gives each GPU the one that it owns; the GPU sends that back, and the switch sends it to
all. Per GPU and direction (n + 1) / n of the bytes, where a ring has
2 (n - 1) / n; so bus bandwidth, as nccl-tests counts it, can pass that of the links.
The switch takes part as rank n, with ``Placement.gpu`` -1. Several domains: `hierarchical` with ``inner: nvls``.
Source: NCCL, src/device/all_reduce.h (NVLS); the factor is in nccl-tests, doc/PERFORMANCE.md, in-network reduction.
Leaves out: the time of the additions in the switch, and NVLSTree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weftwork.base.errors import Mistake
from weftwork.base.grammar import plural
from weftwork.spec.job import Await, Loop, Notify, Operation, Peer, Wait
from weftwork.workload.collectives.algorithm import Algorithm, Hop, Schedule, Share, Traffic, schedule_by_program
from weftwork.workload.collectives.call import Call
from weftwork.workload.collectives.domains import Domains, in_order, switch_gathers, switch_reduces
from weftwork.workload.collectives.methods.nvls import METHOD
from weftwork.workload.collectives.streams import Lane, Streams, counter

__all__ = ["ALGORITHM"]

_REDUCES: Final = ("all-reduce", "reduce-scatter")
_GATHERS: Final = ("all-reduce", "all-gather")


def _shares(call: Call) -> list[Share]:
    shares = []
    for size_bytes in call.channel_bytes():
        if call.operation == "barrier":
            shares.append(Share(total_bytes=0, parts=0))
        elif call.operation in {"broadcast", "reduce"}:
            shares.append(Share(total_bytes=size_bytes, parts=call.pieces(size_bytes)))
        else:
            parts = call.ranks * call.pieces(size_bytes // call.ranks)
            shares.append(Share(total_bytes=size_bytes, parts=parts, owners=tuple(range(call.ranks))))
    return shares


def _lane(call: Call, share: Share, connection: int) -> Lane:
    return Lane(share=share, connection=connection, priority=call.priority, pause_ps=call.local_step_latency_ps)


def _schedule(
    call: Call,
    shares: list[Share],
    of_gpu: Callable[[int], Streams],
    of_switch: Callable[[], Streams],
    lanes: int = 1,
) -> Schedule:
    """Programs of the GPUs, the root apart, and of the switch."""

    def streams(rank: int) -> list[tuple[Operation, ...]]:
        return of_switch().of_switch(call) if rank == call.ranks else of_gpu(rank).of_gpu(call)

    def signature(rank: int) -> tuple[bool, bool]:
        return (rank == call.ranks, call.operation in {"broadcast", "reduce"} and rank == call.root)

    return schedule_by_program(call, shares, signature, streams, lanes=lanes, switches=1)


def _by_parts(call: Call) -> Schedule:
    """Reduce-scatter, gather, or both in sequence on separate connections."""
    shares = _shares(call)
    reduces, gathers = call.operation in _REDUCES, call.operation in _GATHERS

    def of_gpu(_: int) -> Streams:
        found = Streams()
        for index, share in enumerate(shares):
            domains = Domains.of(call, share.parts // call.ranks)
            pieces = range(domains.pieces)
            go, done = found.at_start(len(pieces)), found.before_end(len(pieces))
            middle = found.token() if reduces and gathers else done
            if reduces:
                lane = _lane(call, share, 2 * index)
                pairs = (domains.nvls_inside(lane, piece, go, middle, reduces=True) for piece in pieces)
                found.add(*in_order(pairs))
            if gathers:
                lane, begin = _lane(call, share, 2 * index + 1), middle if reduces else go
                pairs = (domains.nvls_inside(lane, piece, begin, done, reduces=False) for piece in pieces)
                found.add(*in_order(pairs))
        return found

    def of_switch() -> Streams:
        found = Streams()
        for index, share in enumerate(shares):
            domains = Domains.of(call, share.parts // call.ranks)
            if reduces:
                switch_reduces(domains, _lane(call, share, 2 * index), found)
            if gathers:
                switch_gathers(domains, _lane(call, share, 2 * index + 1), found)
        return found

    return _schedule(call, shares, of_gpu, of_switch, lanes=2)


def _rooted(call: Call) -> Schedule:
    """Broadcast or reduce, with pieces that go through the switch.

    A broadcast sends the root's pieces to all others; a reduce adds those of all GPUs for the root.
    """
    shares = _shares(call)
    is_broadcast = call.operation == "broadcast"
    switch = Domains.of(call, 1).switch

    def of_gpu(rank: int) -> Streams:
        found = Streams()
        for index, share in enumerate(shares):
            lane = _lane(call, share, index)
            digits = (counter(call.ranks + 1, share.parts),)
            go = found.at_start()
            if rank == call.root or not is_broadcast:
                done = found.before_end()
                sends = Loop(count=share.parts, body=(lane.send(switch, digits),))
                found.add((Await(token=go), sends, Wait(), Notify(token=done)))
            if (rank == call.root) != is_broadcast:
                done, first = found.before_end(), () if rank == call.root else (Await(token=go),)
                receives = Loop(count=share.parts, body=(lane.receive(switch), Wait()))
                found.add((*first, receives, *lane.passed(done)))
        return found

    def of_switch() -> Streams:
        found = Streams()
        gpus = Domains.of(call, 1)
        root, everyone = gpus.gpu(call.root, 0), gpus.gpu(0, 1)
        others = [gpus.gpu(place, 0) for place in range(call.ranks) if place != call.root]
        for index, share in enumerate(shares):
            lane, ready = _lane(call, share, index), found.token()
            digits = (counter(call.ranks + 1, share.parts),)
            arriving: Operation = lane.receive(root)
            if not is_broadcast:
                arriving = Loop(count=call.ranks, body=(lane.receive(everyone, reduce=True),))
            leaving: list[Peer] = others if is_broadcast else [root]
            sends = [lane.send(peer, digits) for peer in leaving]
            found.add(
                (Loop(count=share.parts, body=(arriving, Wait(), Notify(token=ready))),),
                (Loop(count=share.parts, body=(Await(token=ready), *sends)),),
            )
        return found

    return _schedule(call, shares, of_gpu, of_switch)


def _barrier(call: Call) -> Schedule:
    """Every GPU notifies the switch, and the switch notifies every GPU."""
    shares = _shares(call)
    domains = Domains.of(call, 1)
    lane = _lane(call, shares[0], 0)

    def of_gpu(_: int) -> Streams:
        found = Streams()
        go, done = found.at_start(), found.before_end()
        switch = domains.switch
        found.add((Await(token=go), lane.send(switch)), (lane.receive(switch), *lane.passed(done)))
        return found

    def of_switch() -> Streams:
        found = Streams()
        ready, everyone = found.token(), domains.gpu(0, 1)
        found.add(
            (Loop(count=call.ranks, body=(lane.receive(everyone),)), Wait(), Notify(token=ready)),
            (Await(token=ready), Loop(count=call.ranks, body=(lane.send(everyone),))),
        )
        return found

    return _schedule(call, shares, of_gpu, of_switch)


def _mistakes(call: Call) -> list[Mistake]:
    if call.servers == 1 and call.domain > 1:
        return []
    text = (
        f"found {plural(call.ranks, 'GPU')} in NVLink domains of {call.domain}, wanted all in one domain with a switch"
    )
    return [Mistake(path="collective.algorithm", text=f"{text}; hierarchical has nvls inside each of several")]


def _traffic(call: Call) -> Traffic:
    """Bytes up and down.

    Up: all bytes to reduce, an n-th to gather. Down: an n-th, and all bytes.
    """
    wire, ranks = call.wire_bytes, call.ranks
    part = -(-wire // ranks)
    reduces, gathers = call.operation in _REDUCES, call.operation in _GATHERS
    if call.operation in {"broadcast", "reduce"}:
        total, sent, received = ((ranks if call.operation == "broadcast" else ranks + 1) * wire, wire, wire)
    else:
        total = (reduces + gathers) * (ranks + 1) * wire
        sent = reduces * wire + gathers * part
        received = reduces * part + gathers * wire
    return Traffic(
        total_bytes=total,
        network_bytes=0,
        sent_bytes=sent,
        received_bytes=received,
        network_sent_bytes=0,
        network_received_bytes=0,
        local_sent_bytes=sent,
        local_received_bytes=received,
    )


def _chain(call: Call) -> list[Hop]:
    piece_bytes = min(share.total_bytes // max(1, share.parts) for share in _shares(call))
    times = 2 if call.operation == "all-reduce" else 1
    up = Hop(count=times, size_bytes=piece_bytes, is_local=True, is_step=False)
    return [up, Hop(count=times, size_bytes=piece_bytes, is_local=True)]


ALGORITHM: Final = Algorithm(
    name="nvls",
    operations={
        "all-reduce": _by_parts,
        "reduce-scatter": _by_parts,
        "all-gather": _by_parts,
        "broadcast": _rooted,
        "reduce": _rooted,
        "barrier": _barrier,
    },
    traffic=_traffic,
    chain=_chain,
    source="NCCL, src/device/all_reduce.h (NVLS); nccl-tests, doc/PERFORMANCE.md",
    mistakes=_mistakes,
    method=METHOD,
)
