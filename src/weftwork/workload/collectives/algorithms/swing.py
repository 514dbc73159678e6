"""Swing: partners alternately left and right, at distances 1, 1, 3, 5, 11, on a torus.

In step s rank r exchanges with r + rho(s), or r - rho(s) if r is odd, with rho(s) = (1 - (-2)^(s + 1)) / 3. This is a
third less far than in recursive doubling, so that fewer messages share a link. On a torus of D axes the steps take the
axes in turn, and 2 D parts of the bytes begin on another axis or in the mirrored direction, so that all links carry
bytes. Version ``bandwidth`` halves what it sends from step to step, and doubles it on the way back; ``latency`` sends
everything in each step, in half as many steps.
Source: De Sensi, Bonato, Saam and Hoefler, Swing: Short-cutting Rings for Higher Bandwidth Allreduce, NSDI 2024,
arXiv:2401.09356.
Leaves out: sides that are no powers of two; pieces, since partners of one step exchange once.
"""

from __future__ import annotations

from typing import Final, Literal

from weftwork.base.errors import Mistake
from weftwork.base.grammar import plural
from weftwork.spec.job import Await, Digit, Group, Notify, Operation, Peer
from weftwork.spec.plug_in import Choice, Record, row
from weftwork.workload.collectives.algorithm import Algorithm, Hop, Schedule, Traffic, schedule_by_program
from weftwork.workload.collectives.call import Call
from weftwork.workload.collectives.domains import Pair
from weftwork.workload.collectives.lattice import Lattice, axis_loads
from weftwork.workload.collectives.lattice_form import LatticeForm, LatticeSteps
from weftwork.workload.collectives.lattice_lanes import swing_lanes
from weftwork.workload.collectives.lattice_streams import (
    LOOPS,
    gathered_traffic,
    in_phases,
    lane_of,
    lattice_mistakes,
    lattice_of_call,
    lattice_shares,
    whole_traffic,
)

__all__ = ["ALGORITHM", "Keys", "swing_factor"]

VERSIONS: Final = ("bandwidth", "latency")


class Keys(Record):
    """The keys of the algorithm."""

    version: Literal["bandwidth", "latency"] = row(
        "version",
        Choice(options=VERSIONS),
        default="bandwidth",
        text="Fewest bytes in 2 log2(n) steps, or all bytes in each of log2(n) steps; `latency` is for an all-reduce.",
        source="De Sensi et al., NSDI 2024, arXiv:2401.09356",
    )


def _is_whole(call: Call) -> bool:
    return isinstance(call.options, Keys) and call.options.version == "latency"


def _in_label_order(labels: tuple[int, ...]) -> tuple[int, ...]:
    """Rank of each label."""
    return tuple(sorted(range(len(labels)), key=labels.__getitem__))


def _build(call: Call) -> Schedule:
    return _exchange_whole(call) if _is_whole(call) else _halve_and_double(call)


def _halve_and_double(call: Call) -> Schedule:
    lanes = swing_lanes(lattice_of_call(call))
    owners = [_in_label_order(lane.labels()) for lane in lanes]
    shares = lattice_shares(call, owners, has_pieces=False)
    groups = [Group(size=call.ranks, members=own) for own in owners]
    peers = [[Peer(rule="table", table=lane.partners(step)) for step in range(len(lane.steps))] for lane in lanes]
    steps = range(len(lanes[0].steps))
    halves = [(step, True) for step in steps if call.operation != "all-gather"]
    halves += [(step, False) for step in reversed(steps) if call.operation != "reduce-scatter"]

    def pair(index: int, phase: int, tokens: tuple[int, int, int]) -> Pair:
        (step, reduces), number = halves[phase], index % len(lanes)
        go, _, done = tokens
        lane, peer, apart = lane_of(call, shares[index], index), peers[number][step], 1 << step
        # Parts whose labels have the partner's bits, or the own ones, up to that of the step.
        block = Digit(group=groups[number], rule="xor", shift=apart if reduces else 0)
        send = lane.send(peer, (block,), span=call.ranks // (2 * apart), stride=2 * apart)
        return [Await(token=go), send], [lane.receive(peer, reduce=reduces), *lane.passed(done)]

    def streams(_: int) -> list[tuple[Operation, ...]]:
        return in_phases(call, len(shares), len(halves), pair)

    return schedule_by_program(call, shares, lambda _: 0, streams)


def _exchange_whole(call: Call) -> Schedule:
    lanes = swing_lanes(lattice_of_call(call))
    shares = lattice_shares(call, [()] * len(lanes), is_whole=True)
    peers = [[Peer(rule="table", table=lane.partners(step)) for step in range(len(lane.steps))] for lane in lanes]

    def pair(index: int, phase: int, tokens: tuple[int, int, int]) -> Pair:
        go, posted, done = tokens
        lane, peer = lane_of(call, shares[index], index), peers[index % len(lanes)][phase]
        # The partner's sum is added only after the own one is on its way.
        receiving = [Await(token=posted), lane.receive(peer, reduce=True), *lane.passed(done)]
        return [Await(token=go), lane.send(peer), Notify(token=posted)], receiving

    def streams(_: int) -> list[tuple[Operation, ...]]:
        return in_phases(call, len(shares), len(lanes[0].steps), pair)

    return schedule_by_program(call, shares, lambda _: 0, streams)


def _traffic(call: Call) -> Traffic:
    if _is_whole(call):
        return whole_traffic(call, (call.ranks - 1).bit_length())
    return gathered_traffic(call)


def _chain(call: Call) -> list[Hop]:
    count = 2 * len(lattice_of_call(call).axes)
    share_bytes = min(call.channel_bytes(count))
    steps = (call.ranks - 1).bit_length()
    if _is_whole(call):
        return [Hop(count=steps, size_bytes=share_bytes)]
    part_bytes = share_bytes // call.ranks
    return [Hop(count=LOOPS[call.operation], size_bytes=part_bytes << step) for step in range(steps)]


def _mistakes(call: Call) -> list[Mistake]:
    found = lattice_mistakes(call, "swing")
    if found:
        return found
    lattice = lattice_of_call(call)
    if _is_whole(call) and call.operation != "all-reduce":
        text = f"found 'latency', wanted bandwidth: {call.operation} has no version that sends everything in each step"
        found.append(Mistake(path="collective.version", text=text, fix="bandwidth"))
    odd = [axis for axis in lattice.axes if axis.size & (axis.size - 1)]
    if odd:
        words = ", ".join(f"{axis.size} along {axis.name}" for axis in odd)
        text = (
            f"found {plural(call.ranks, 'GPU')} in a box of {lattice.words}, wanted sides of powers of two for swing: "
        )
        text += f"its partners meet only then, but there are {words}; bucket takes any side"
        found.append(Mistake(path="collective.algorithm", text=text, fix="bucket"))
    return found


def _lattice_ways(operation: str, lattice: Lattice) -> tuple[str, ...]:
    """Sides of powers of two alone; one that sends everything in each step for an all-reduce alone."""
    if any(side & (side - 1) for side in lattice.sides):
        return ()
    return ("bandwidth", "latency") if operation == "all-reduce" else ("bandwidth",)


def _lattice_phases(version: str, lattice: Lattice, wire_bytes: float, columns: int) -> list[list[LatticeSteps]]:
    """Phases of a reduce-scatter, or of the whole all-reduce where each step sends everything."""
    lanes = swing_lanes(lattice)
    share, ports = wire_bytes / len(lanes), -(-len(lanes) // columns)
    phases = []
    for step in range(len(lanes[0].steps)):
        message = share if version == "latency" else share / (2 << step)
        moves: dict[int, list[tuple[int, int]]] = {}
        for lane in lanes:
            moves.setdefault(lane.steps[step][0], []).append(lane.move(step))
        phase = []
        for axis, own in moves.items():
            load, links = axis_loads(lattice.axes[axis], tuple(own))
            phase.append(
                LatticeSteps(
                    count=1, links=links, message_bytes=message, link_bytes=load * message, port_bytes=ports * message
                )
            )
        phases.append(phase)
    return phases


def swing_factor(lattice: Lattice) -> float:
    """Bytes on the busiest link by Swing over the least there can be on a torus with all its links.

    Examples
    --------
    >>> from weftwork.workload.collectives.lattice import Axis
    >>> axes = [Axis(name=name, size=256) for name in "xyz"]
    >>> [round(swing_factor(Lattice(axes=tuple(axes[:count]))), 3) for count in (2, 3)]
    [1.196, 1.037]
    """
    link_bytes = sum(max(one.link_bytes for one in phase) for phase in _lattice_phases("bandwidth", lattice, 1.0, 1))
    least = (lattice.size - 1) / lattice.size / (2 * len(lattice.axes))
    return link_bytes / least


ALGORITHM: Final = Algorithm(
    name="swing",
    keys=Keys,
    operations=dict.fromkeys(LOOPS, _build),
    traffic=_traffic,
    chain=_chain,
    source="De Sensi et al., NSDI 2024, arXiv:2401.09356",
    mistakes=_mistakes,
    needs_lattice=True,
    on_lattice=LatticeForm(key="version", ways=_lattice_ways, phases=_lattice_phases, whole=frozenset({"latency"})),
)
