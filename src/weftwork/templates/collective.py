"""Two-way ring: half of the channels go up the ranks, half down.

A collective algorithm turns a call (operation, ranks, bytes) into programs of sends and receives, one for all ranks
that do the same. docs/howto/own-collective.md explains every part.

    weftwork run collective.yaml    times an all-reduce of eight GPUs
    weftwork test collective.py     runs the programs on symbols: every rank must end with the right pieces

Source: Patarasuk and Yuan, JPDC 69(2), 2009, doi:10.1016/j.jpdc.2008.09.002 (the ring); two ways: chosen, since where
ranks are linked in a ring, one way alone leaves half of each link unused.
Leaves out: other operations, and cutting parts into pieces, by which steps would overlap.
"""

from __future__ import annotations

from weftwork.spec.job import Await, Digit, Group, Loop, Operation, Peer
from weftwork.spec.plug_in import Flag, Record, row
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
from weftwork.workload.collectives.streams import Lane, Streams


class Keys(Record):
    """Keys of a scenario besides ``algorithm``.

    A call has the values as ``options``.
    """

    both_ways: bool = row(
        "both_ways",
        Flag(),
        default=True,
        text="Whether every second channel goes down the ranks.",
        source="chosen: links of a ring then carry data in both directions",
    )


def direction(call: Call, channel: int) -> int:
    """Return 1 for a channel that goes up the ranks, else -1."""
    return -1 if channel % 2 and getattr(call.options, "both_ways", True) else 1


def rounds(call: Call) -> tuple[int, int]:
    """Number of reducing steps, and number of gathering steps.

    Receives of the first are added to the data here, receives of the second replace it.
    """
    return (call.ranks - 1 if call.operation == "all-reduce" else 0), call.ranks - 1


def shares(call: Call) -> list[Share]:
    """Return the bytes of each channel, cut into a part for each rank."""
    owners = tuple(range(call.ranks))
    return [Share(total_bytes=size, parts=call.ranks, owners=owners) for size in call.channel_bytes()]


def around(call: Call) -> Schedule:
    """Build the programs.

    In step i, rank r passes part r - i on (r + i on channels that go down).
    """
    group, split = Group(size=call.ranks), shares(call)
    adds, stores = rounds(call)

    def pause_ps(rank: int, channel: int) -> int:
        """Latency of a step on a rank.

        Its piece comes over the network or from inside the server.
        """
        source = (rank - direction(call, channel)) % call.ranks
        is_local = source // call.domain == rank // call.domain
        return call.local_step_latency_ps if is_local else call.step_latency_ps

    def streams(rank: int) -> list[tuple[Operation, ...]]:
        found = Streams()
        for channel, share in enumerate(split):
            way = direction(call, channel)
            lane = Lane(
                share=share,
                connection=channel,
                priority=call.priority,
                nic=channel % call.nic_columns,
                pause_ps=pause_ps(rank, channel),
            )
            ahead, behind = (Peer(rule="shift", group=group, shift=sign * way) for sign in (1, -1))
            # Tokens are counters: a stream that awaits one stops until another stream has counted it up.
            go, come, done = found.at_start(), found.token(), found.before_end()
            own, passed_on = Digit(group=group), Digit(group=group, shift=-way, step=-way)
            sends: list[Operation] = [Await(token=go), lane.send(ahead, (own,))]
            if adds + stores > 1:
                onward = (Await(token=come), lane.send(ahead, (passed_on,)))
                sends.append(Loop(count=adds + stores - 1, body=onward))
            receives: list[Operation] = []
            if adds:
                receives.append(Loop(count=adds, body=(lane.receive(behind, reduce=True), *lane.passed(come))))
            if stores > 1:
                receives.append(Loop(count=stores - 1, body=(lane.receive(behind), *lane.passed(come))))
            found.add(sends, [*receives, lane.receive(behind), *lane.passed(done)])
        return found.of_gpu(call)

    def signature(rank: int) -> tuple[int, ...]:
        """Signature of a rank; ranks with equal latencies share a program."""
        return tuple(pause_ps(rank, channel) for channel in range(len(split)))

    return schedule_by_program(call, split, signature, streams)


def traffic(call: Call) -> Traffic:
    """Count the bytes in closed form.

    Each part goes around once less a step, for an all-reduce twice.
    """
    steps = sum(rounds(call))
    edges = []
    for channel, share_bytes in enumerate(call.channel_bytes()):
        for rank in range(call.ranks):
            # As many bytes as belong to this rank's sends; the remainders add up over the ranks.
            sent = steps * share_bytes * (rank + 1) // call.ranks - steps * share_bytes * rank // call.ranks
            edges.append((rank, (rank + direction(call, channel)) % call.ranks, sent))
    return traffic_of(call, edges)


def chain(call: Call) -> list[Hop]:
    """Return the longest chain of dependent messages: one part, all steps."""
    part_bytes = min(share.total_bytes for share in shares(call)) // call.ranks
    steps = sum(rounds(call))
    if call.servers == 1:
        return [Hop(count=steps, size_bytes=part_bytes, is_local=True)]
    crossings = steps // call.domain  # at least one step of `domain` in a row crosses servers
    return [
        Hop(count=steps - crossings, size_bytes=part_bytes, is_local=True),
        Hop(count=crossings, size_bytes=part_bytes),
    ]


ALGORITHM = Algorithm(
    name="collective",
    keys=Keys,
    operations={"all-reduce": around, "all-gather": around},
    traffic=traffic,
    chain=chain,
    source="doi:10.1016/j.jpdc.2008.09.002",
)
