"""Bucket: rings along the axes of a torus, one axis after the other.

Reduce-scatter goes along each axis in turn, with a part of the bytes that shrinks by the side of the axis; all-gather
goes back in reverse. With ``rings: all`` the bytes are cut into 2 D parts on a torus of D axes: a part for each first
axis and direction, so that all links of a GPU carry bytes at all times. ``both`` has two directions along one axis at a
time, ``one`` a single direction. On equal sides ``all`` is optimal, 2 (n - 1) / n of the bytes over the rate of all
links; on unequal sides each phase waits for the longest ring.
Source: Jain and Sabharwal, Optimal bucket algorithms for large MPI collectives on torus interconnects, ICS 2010,
charm.cs.uiuc.edu/papers/10-42.
Leaves out: rings that leave their axis, which use all links of a side that is not closed.
"""

from __future__ import annotations

from math import prod
from typing import Final, Literal

from weftwork.base.errors import Mistake
from weftwork.spec.job import Digit, Group, Operation
from weftwork.spec.plug_in import Choice, Record, row
from weftwork.workload.collectives.algorithm import Algorithm, Hop, Schedule, schedule_by_program
from weftwork.workload.collectives.call import Call
from weftwork.workload.collectives.domains import Pair
from weftwork.workload.collectives.lattice import Lattice, axis_loads
from weftwork.workload.collectives.lattice_form import LatticeForm, LatticeSteps
from weftwork.workload.collectives.lattice_lanes import BucketLane, bucket_lanes
from weftwork.workload.collectives.lattice_streams import (
    LOOPS,
    gathered_traffic,
    in_phases,
    lane_of,
    lattice_mistakes,
    lattice_of_call,
    lattice_shares,
)
from weftwork.workload.collectives.streams import Cut, ring

__all__ = ["ALGORITHM", "Keys"]

RINGS: Final = ("all", "both", "one")


class Keys(Record):
    """The keys of the algorithm."""

    rings: Literal["all", "both", "one"] = row(
        "rings",
        Choice(options=RINGS),
        default="all",
        text="Rings that share the bytes: along all axes at a time, in both directions along one axis, or one.",
        source="Jain and Sabharwal, ICS 2010, charm.cs.uiuc.edu/papers/10-42",
    )


def _lanes(call: Call) -> list[BucketLane]:
    rings = call.options.rings if isinstance(call.options, Keys) else Keys().rings
    return bucket_lanes(lattice_of_call(call), rings)


def _owners(lattice: Lattice, lane: BucketLane) -> tuple[int, ...]:
    """Owner of each part: the last axis of the lane changes fastest."""
    ranks = [0]
    for axis in lane.order:
        ranks = [rank + step * lattice.stride(axis) for rank in ranks for step in range(lattice.axes[axis].size)]
    return tuple(ranks)


def _build(call: Call) -> Schedule:
    lattice, lanes = lattice_of_call(call), _lanes(call)
    shares = lattice_shares(call, [_owners(lattice, lane) for lane in lanes])
    axes = range(len(lattice.axes))
    halves = [(place, True) for place in axes if call.operation != "all-gather"]
    halves += [(place, False) for place in reversed(axes) if call.operation != "reduce-scatter"]

    def pair(index: int, phase: int, tokens: tuple[int, int, int]) -> Pair:
        share, lane = shares[index], lanes[index % len(lanes)]
        place, reduces = halves[phase]
        pieces = share.parts // call.ranks
        digits = [
            Digit(
                group=Group(stride=lattice.stride(axis), size=lattice.axes[axis].size),
                weight=pieces * prod(lattice.axes[later].size for later in lane.order[number + 1 :]),
            )
            for number, axis in enumerate(lane.order)
        ]
        moving = digits[place]
        cut = Cut(offsets=range(pieces), fixed=tuple(digits[:place]), span=moving.weight // pieces, stride=pieces)
        steps = moving.group.size - 1
        first, adds, stores = (-1, steps, 0) if reduces else (0, 0, steps)
        return ring(
            lane_of(call, share, index), moving.group, moving, cut,
            first=first, reduces=adds, stores=stores, tokens=tokens, direction=lane.direction,
        )  # fmt: skip

    def streams(_: int) -> list[tuple[Operation, ...]]:
        return in_phases(call, len(shares), len(halves), pair)

    return schedule_by_program(call, shares, lambda _: 0, streams)


def _chain(call: Call) -> list[Hop]:
    """The steps of the lane whose first axis is the first."""
    lattice, lane = lattice_of_call(call), _lanes(call)[0]
    owners = [_owners(lattice, lane) for lane in _lanes(call)]
    piece_bytes = min(share.total_bytes // share.parts for share in lattice_shares(call, owners))
    hops, span = [], call.ranks
    for axis in lane.order:
        size = lattice.axes[axis].size
        span //= size
        hops.append(Hop(count=LOOPS[call.operation] * (size - 1), size_bytes=span * piece_bytes))
    return hops


def _mistakes(call: Call) -> list[Mistake]:
    return lattice_mistakes(call, "bucket")


def _lattice_ways(operation: str, lattice: Lattice) -> tuple[str, ...]:  # noqa: ARG001 - as of any algorithm
    return RINGS


def _lattice_phases(rings: str, lattice: Lattice, wire_bytes: float, columns: int) -> list[list[LatticeSteps]]:
    """Phases of a reduce-scatter, with the steps of each lane."""
    lanes = bucket_lanes(lattice, rings)
    share, directions = wire_bytes / len(lanes), 1 if rings == "one" else 2
    left = [share] * len(lanes)
    phases = []
    for place in range(len(lattice.axes)):
        phase = []
        for number, lane in enumerate(lanes):
            axis = lattice.axes[lane.order[place]]
            piece = left[number] / axis.size
            moves = tuple((step, step) for step in (1, -1)[:directions])
            load, _ = axis_loads(axis, moves)
            closing = axis.size - 1 if not axis.is_closed and axis.size > 2 else 0
            port_bytes = -(-len(lanes) // columns) * piece
            phase.append(
                LatticeSteps(
                    count=axis.size - 1,
                    links=1,
                    message_bytes=piece,
                    link_bytes=load * piece,
                    port_bytes=port_bytes,
                    closing_links=closing,
                )
            )
            left[number] = piece
        phases.append(phase)
    return phases


ALGORITHM: Final = Algorithm(
    name="bucket",
    keys=Keys,
    operations=dict.fromkeys(LOOPS, _build),
    traffic=gathered_traffic,
    chain=_chain,
    source="Jain and Sabharwal, ICS 2010, charm.cs.uiuc.edu/papers/10-42",
    mistakes=_mistakes,
    needs_lattice=True,
    on_lattice=LatticeForm(key="rings", ways=_lattice_ways, phases=_lattice_phases),
)
