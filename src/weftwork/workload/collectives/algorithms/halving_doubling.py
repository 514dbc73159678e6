"""Recursive halving and doubling: log2(n) reduce-scatter and log2(n) gather exchanges.

Halving: with a partner n / 2 away each rank exchanges half of the data and keeps the half of its own part, then with
one n / 4 away a quarter, and so on; doubling goes the same way back. As many bytes as a ring in fewer steps, for powers
of two. A barrier is dissemination, for any number of ranks: in step i rank r tells rank r + 2^i.
Source: Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521, sections 4.4 and 4.5; the
barrier: Hensgen, Finkel and Manber, IJPP 17(1), 1988, doi:10.1007/BF01379320.
Leaves out: ranks beyond a power of two, which MPI libraries fold into their neighbours first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from weftwork.base.errors import Mistake
from weftwork.base.grammar import plural
from weftwork.spec.job import Await, Digit, Group, Operation, Peer, Wait
from weftwork.workload.collectives.algorithm import Algorithm, Hop, Schedule, Share, Traffic, schedule_by_program
from weftwork.workload.collectives.call import Call
from weftwork.workload.collectives.streams import Lane, Streams

__all__ = ["ALGORITHM"]


def _distances(call: Call) -> list[int]:
    """Powers of two below the number of ranks, largest first."""
    return [1 << bit for bit in reversed(range((call.ranks - 1).bit_length()))]


def _shares(call: Call) -> list[Share]:
    shares = []
    for size_bytes in call.channel_bytes():
        pieces = call.pieces(size_bytes // call.ranks)
        shares.append(Share(total_bytes=size_bytes, parts=call.ranks * pieces, owners=tuple(range(call.ranks))))
    return shares


def _lane(call: Call, share: Share, channel: int) -> Lane:
    return Lane(share=share, connection=channel, priority=call.priority, nic=channel % call.nic_columns)


def _halve_and_double(call: Call) -> Schedule:
    shares = _shares(call)
    group = Group(size=call.ranks)
    halving = [(distance, True) for distance in _distances(call) if call.operation != "all-gather"]
    doubling = [(distance, False) for distance in reversed(_distances(call)) if call.operation != "reduce-scatter"]
    steps = halving + doubling

    def streams(_: int) -> list[tuple[Operation, ...]]:
        found = Streams()
        for channel, share in enumerate(shares):
            pieces = share.parts // call.ranks
            go, data, done = found.at_start(), found.token(), found.before_end()
            sending: list[Operation] = [Await(token=go)]
            receiving: list[Operation] = []
            for index, (distance, halves) in enumerate(steps):
                pause_ps = call.local_step_latency_ps if distance < call.domain else call.step_latency_ps
                lane = replace(_lane(call, share, channel), pause_ps=pause_ps)
                partner = Peer(rule="xor", group=group, shift=distance)
                # The block of `distance` parts that holds the partner's, or the own one.
                block = Digit(
                    group=Group(stride=distance, size=call.ranks // distance),
                    rule="xor",
                    shift=int(halves),
                    weight=distance * pieces,
                )
                for piece in range(pieces):
                    wait = (Await(token=data),) if index else ()
                    sending += [*wait, lane.send(partner, (block,), offset=piece, span=distance, stride=pieces)]
                    receiving.append(lane.receive(partner, reduce=halves))
                    is_last_step, is_last_piece = index == len(steps) - 1, piece == pieces - 1
                    if is_last_step:
                        receiving += lane.passed(done) if is_last_piece else [Wait()]
                    else:
                        receiving += lane.passed(data)
            found.add(sending, receiving)
        return found.of_gpu(call)

    return schedule_by_program(call, shares, lambda _: 0, streams)


def _disseminate(call: Call) -> Schedule:
    share = Share(total_bytes=0, parts=0)
    group = Group(size=call.ranks)
    distances = _distances(call)[::-1]

    def pauses(rank: int) -> tuple[int, ...]:
        """Latency of each step on a rank, by the message's origin."""
        sources = ((rank - distance) % call.ranks for distance in distances)
        return tuple(
            call.local_step_latency_ps if source // call.domain == rank // call.domain else call.step_latency_ps
            for source in sources
        )

    def streams(rank: int) -> list[tuple[Operation, ...]]:
        found = Streams()
        go, data, done = found.at_start(), found.token(), found.before_end()
        sending: list[Operation] = [Await(token=go)]
        receiving: list[Operation] = []
        for index, (distance, pause_ps) in enumerate(zip(distances, pauses(rank), strict=True)):
            lane = replace(_lane(call, share, 0), pause_ps=pause_ps)
            to, by = (Peer(rule="shift", group=group, shift=sign * distance) for sign in (1, -1))
            sending += [*((Await(token=data),) if index else ()), lane.send(to)]
            is_last = distance == distances[-1]
            receiving += [lane.receive(by), *lane.passed(done if is_last else data)]
        found.add(sending, receiving)
        return found.of_gpu(call)

    return schedule_by_program(call, [share], pauses, streams)


def _mistakes(call: Call) -> list[Mistake]:
    ranks = call.ranks
    if call.operation == "barrier" or ranks & (ranks - 1) == 0:
        return []
    below = 1 << (ranks.bit_length() - 1)
    text = f"found {plural(ranks, 'GPU')}, wanted a power of two for halving-doubling, such as {below:,}"
    return [Mistake(path="collective.gpus", text=text, fix=str(below))]  # the fabric may not have the next larger


def _traffic(call: Call) -> Traffic:
    """Bytes of each GPU and half: (n - 1) / n of the total.

    Of these, (n - D) / n cross domains of D.
    """
    loops = 2 if call.operation == "all-reduce" else 1
    wire, ranks = call.wire_bytes, call.ranks
    each, remote = (-(-loops * parts * wire // ranks) for parts in (ranks - 1, ranks - call.domain))
    return Traffic(
        total_bytes=loops * (ranks - 1) * wire,
        network_bytes=loops * (ranks - call.domain) * wire,
        sent_bytes=each,
        received_bytes=each,
        network_sent_bytes=remote,
        network_received_bytes=remote,
        local_sent_bytes=each - remote,
        local_received_bytes=each - remote,
    )


def _chain(call: Call) -> list[Hop]:
    if call.operation == "barrier":
        # A step that goes round may end where it began, in the own domain: it counts as a local one.
        remote = [call.domain <= distance <= call.ranks - call.domain for distance in _distances(call)]
        return [Hop(count=1, size_bytes=0, is_local=not is_remote) for is_remote in remote]
    piece_bytes = min(share.total_bytes // share.parts for share in _shares(call))
    loops = 2 if call.operation == "all-reduce" else 1
    return [
        Hop(count=loops, size_bytes=distance * piece_bytes, is_local=distance < call.domain)
        for distance in _distances(call)
    ]


ALGORITHM: Final = Algorithm(
    name="halving-doubling",
    operations={
        "all-reduce": _halve_and_double,
        "reduce-scatter": _halve_and_double,
        "all-gather": _halve_and_double,
        "barrier": _disseminate,
    },
    traffic=_traffic,
    chain=_chain,
    source="Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521",
    mistakes=_mistakes,
)
