"""Building blocks of algorithms on a lattice: shares, owners of parts, phases in step.

The bytes are dealt to *lanes*, such as the two directions along each axis. All lanes of a rank go through the same
number of phases; a rank begins a phase when all its lanes are through with the one before, so that a lane that is
through early does not use links that another lane still needs.
Source: Jain and Sabharwal, ICS 2010, charm.cs.uiuc.edu/papers/10-42: all directions at once, phase by phase.
Leaves out: what a phase does, which the algorithm's file says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weftwork.base.errors import Mistake
from weftwork.base.grammar import plural
from weftwork.spec.job import Await, Notify, Operation
from weftwork.workload.collectives.algorithm import Share, Traffic
from weftwork.workload.collectives.call import Call
from weftwork.workload.collectives.domains import Pair
from weftwork.workload.collectives.lattice import Lattice
from weftwork.workload.collectives.streams import Lane, Streams

__all__ = [
    "LOOPS",
    "PhasePair",
    "gathered_traffic",
    "in_phases",
    "lane_of",
    "lattice_mistakes",
    "lattice_of_call",
    "lattice_shares",
    "whole_traffic",
]

LOOPS = {"all-reduce": 2, "reduce-scatter": 1, "all-gather": 1}  # halves of an all-reduce that an operation has
PhasePair = Callable[[int, int, tuple[int, int, int]], Pair]  # share, phase and the tokens of `ring`


def lattice_of_call(call: Call) -> Lattice:
    """The lattice of a call that has been checked."""
    if call.lattice is None:
        raise TypeError("the call has no lattice, which its check refuses")
    return call.lattice


def lattice_mistakes(call: Call, name: str) -> list[Mistake]:
    """Mistakes of a call without a fitting lattice.

    Parameters
    ----------
    call : that is right in general
    name : of the algorithm
    """
    lattice = call.lattice
    if lattice is None:
        text = f"{name} needs GPUs that fill a box of a torus or a mesh, one on each place; wanted such a fabric"
        return [Mistake(path="collective.algorithm", text=text)]
    if lattice.size != call.ranks:
        text = f"found {plural(call.ranks, 'GPU')}, wanted the {lattice.size:,} places of the box of {lattice.words}"
        return [Mistake(path="collective.gpus", text=text, fix=str(lattice.size))]
    if call.domain != 1:
        text = f"{name} needs one GPU on each place, but an NVLink domain has {plural(call.domain, 'GPU')}"
        return [Mistake(path="collective.algorithm", text=text)]
    return []


def lattice_shares(
    call: Call, owners: Sequence[Sequence[int]], *, has_pieces: bool = True, is_whole: bool = False
) -> list[Share]:
    """Shares of all lanes, channel by channel.

    Parameters
    ----------
    call : what is asked
    owners : for each lane, the owner of each part
    has_pieces : whether a part is cut into pieces
    is_whole : whether a share is one part that nobody owns
    """
    shares = []
    for index, size_bytes in enumerate(call.channel_bytes(len(owners))):
        if is_whole:
            shares.append(Share(total_bytes=size_bytes, parts=1))
            continue
        pieces = call.pieces(size_bytes // call.ranks) if has_pieces else 1
        own = tuple(owners[index % len(owners)])
        shares.append(Share(total_bytes=size_bytes, parts=call.ranks * pieces, owners=own))
    return shares


def lane_of(call: Call, share: Share, index: int) -> Lane:
    """Common properties of the messages of a share; shares use the NIC ports alternately."""
    return Lane(
        share=share,
        connection=index,
        priority=call.priority,
        nic=index % call.nic_columns,
        pause_ps=call.step_latency_ps,
    )


def in_phases(call: Call, shares: int, phases: int, build: PhasePair) -> list[tuple[Operation, ...]]:
    """All streams of a GPU whose shares go through phases in step.

    Parameters
    ----------
    call : what is asked
    shares, phases : how many
    build : makes the streams of a share in a phase
    """
    found = Streams()
    go = [[found.at_start() if phase == 0 else found.token() for _ in range(shares)] for phase in range(phases)]
    done = [found.token() for _ in range(phases - 1)] + [found.before_end(shares)]
    for share in range(shares):
        data = found.token()
        sending: list[Operation] = []
        receiving: list[Operation] = []
        for phase in range(phases):
            pair = build(share, phase, (go[phase][share], data, done[phase]))
            sending += pair[0]
            receiving += pair[1]
        found.add(sending, receiving)
    in_step: list[Operation] = []
    for phase in range(phases - 1):
        in_step += [Await(token=done[phase])] * shares
        in_step += [Notify(token=token) for token in go[phase + 1]]
    if in_step:
        found.add(in_step)
    return found.of_gpu(call)


def gathered_traffic(call: Call) -> Traffic:
    """Bytes of each GPU: (n - 1) / n of the total for each half of an all-reduce."""
    loops = LOOPS[call.operation]
    each = -(-loops * (call.ranks - 1) * call.wire_bytes // call.ranks)
    return _all_over_the_network(loops * (call.ranks - 1) * call.wire_bytes, each)


def _all_over_the_network(total_bytes: int, each_bytes: int) -> Traffic:
    return Traffic(
        total_bytes=total_bytes,
        network_bytes=total_bytes,
        sent_bytes=each_bytes,
        received_bytes=each_bytes,
        network_sent_bytes=each_bytes,
        network_received_bytes=each_bytes,
        local_sent_bytes=0,
        local_received_bytes=0,
    )


def whole_traffic(call: Call, steps: int) -> Traffic:
    """Bytes of each GPU that sends the whole buffer in each step."""
    each = steps * call.wire_bytes
    return _all_over_the_network(call.ranks * each, each)
