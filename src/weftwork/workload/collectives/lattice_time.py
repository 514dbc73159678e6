"""Closed-form time of a collective on a torus or mesh that has the links to itself.

``launch + sum over phases of steps x (latency + bytes of the busiest link / rate)``: all lanes of a GPU go through a
phase in step, so a phase lasts as long as its slowest lane. On a torus of equal sides d with 2 D ports of rate b this
is 2 (n - 1) / n V / (2 D b) and 2 D (d - 1) latencies for `bucket`, and for `swing` a sum of |rho(s)| / 2^(s + 1).
Exact where axes are closed and data is in one piece. All-to-all goes to all at once: max(d) / 8 of the bytes per link.
Source: the files of the algorithms; Jain and Sabharwal, ICS 2010; De Sensi et al., NSDI 2024, arXiv:2401.09356.
Leaves out: all other traffic; on an axis that is open, messages that are out of step share links for less time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weftwork.base.clock import SECOND_PS
from weftwork.workload.collectives.closed_form import Method, latencies
from weftwork.workload.collectives.lattice import Axis, Lattice, axis_loads
from weftwork.workload.collectives.lattice_lanes import bucket_lanes, swing_lanes
from weftwork.workload.collectives.protocols import software

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.workload.collectives.closed_form import GroupShape
    from weftwork.workload.collectives.fabric_lattice import LatticeRates
    from weftwork.workload.collectives.figures import CollectiveFigures

__all__ = ["LatticeMethod", "all_to_all_ps", "chosen_on_lattice", "lattice_methods", "lattice_time_ps", "swing_factor"]

_LOOPS: Final = {"all-reduce": 2, "reduce-scatter": 1, "all-gather": 1}


@dataclass(frozen=True, kw_only=True, slots=True)
class LatticeMethod:
    """An algorithm on a lattice with its key, and an NCCL protocol.

    Attributes
    ----------
    algorithm : ``bucket`` or ``swing``
    key : ``rings`` of a bucket, ``version`` of Swing
    protocol : of NCCL, or ``none``
    """

    algorithm: str
    key: str
    protocol: str = "simple"

    @property
    def options(self) -> dict[str, str]:
        """Keys of the scenario."""
        return {"rings" if self.algorithm == "bucket" else "version": self.key}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Steps:
    """Steps of a phase that wait for each other.

    Attributes
    ----------
    count : how many
    links : of the path of a message
    message_bytes : of each
    link_bytes : on the busiest link in one direction, in a step
    port_bytes : of the busiest NIC port, in a step
    closing_links : of the path that closes a ring on an open axis; 0 where links close it
    """

    count: int
    links: int
    message_bytes: float
    link_bytes: float
    port_bytes: float
    closing_links: int = 0

    def time_ps(self, rates: LatticeRates, step_latency_ps: float) -> float:
        """Time of all steps."""
        busy_ps = 8 * SECOND_PS * max(self.link_bytes / rates.link_bps, self.port_bytes / rates.port_bps)
        usual_ps = rates.latency_ps(self.links, self.message_bytes)
        found = self.count * (usual_ps + step_latency_ps + busy_ps)
        if self.closing_links:
            found += rates.latency_ps(self.closing_links, self.message_bytes) - usual_ps
        return found


def lattice_methods(operation: str, lattice: Lattice, protocols: Sequence[str] = ("simple",)) -> list[LatticeMethod]:
    """Methods for an operation, the one with the fewest bytes first.

    Parameters
    ----------
    operation : all-reduce, reduce-scatter or all-gather
    lattice : of the GPUs
    protocols : among which to choose
    """
    keys = [("bucket", rings) for rings in ("all", "both", "one")]
    if all(side & (side - 1) == 0 for side in lattice.sides):
        keys += [("swing", version) for version in ("bandwidth", "latency")[: 2 if operation == "all-reduce" else 1]]
    return [
        LatticeMethod(algorithm=algorithm, key=key, protocol=protocol)
        for algorithm, key in keys
        for protocol in protocols
    ]


def lattice_time_ps(
    operation: str,
    method: LatticeMethod,
    lattice: Lattice,
    wire_bytes: float,
    rates: LatticeRates,
    *,
    step_latency_ps: float = 0.0,
    base_latency_ps: float = 0.0,
) -> float:
    """Time of an operation by one method.

    Parameters
    ----------
    operation : all-reduce, reduce-scatter or all-gather
    method : one of `lattice_methods`
    lattice, rates : of the GPUs
    wire_bytes : of the buffer as the protocol sends it
    step_latency_ps, base_latency_ps : of the software
    """
    steps = _bucket if method.algorithm == "bucket" else _swing
    phases = steps(method.key, lattice, wire_bytes, rates.columns)
    whole = _LOOPS[operation] if method.key != "latency" else 1
    return base_latency_ps + whole * sum(max(one.time_ps(rates, step_latency_ps) for one in phase) for phase in phases)


def chosen_on_lattice(
    operation: str,
    lattice: Lattice,
    size_bytes: int,
    rates: LatticeRates,
    group: GroupShape,
    figures: CollectiveFigures,
    *,
    protocols: Sequence[str],
    latency_scale: float = 1.0,
) -> tuple[LatticeMethod, float]:
    """The fastest method on a lattice by the closed form, and its time.

    Of equal methods it is the first of `lattice_methods`.

    Parameters
    ----------
    operation : all-reduce, reduce-scatter or all-gather
    lattice, rates : of the GPUs
    size_bytes : as nccl-tests counts it
    group, figures : as for `closed_form.alone`, for the latencies of software
    protocols : of NCCL, or ``none`` for a network without software
    latency_scale : of all latencies of software
    """
    found = []
    for method in lattice_methods(operation, lattice, protocols):
        if method.protocol == "none":
            wire_bytes, step_ps, base_ps = float(size_bytes), 0.0, 0.0
        else:
            own = Method(algorithm=method.algorithm, protocol=method.protocol)
            taken = latencies(own, operation, group, size_bytes, figures)
            step_ps, base_ps = latency_scale * taken.step_latency_ps, latency_scale * taken.base_latency_ps
            wire_bytes = size_bytes / software(method.protocol, method.algorithm).protocol_efficiency
        time_ps = lattice_time_ps(
            operation, method, lattice, wire_bytes, rates, step_latency_ps=step_ps, base_latency_ps=base_ps
        )
        found.append((method, time_ps))
    return min(found, key=lambda one: one[1])


def all_to_all_ps(lattice: Lattice, size_bytes: float, rates: LatticeRates) -> float:
    """Time of the bytes of an all-to-all, without latencies.

    All GPUs send to all others at once on shortest paths; where two are equal, half of the bytes takes each.

    Parameters
    ----------
    lattice : of the GPUs
    size_bytes : send buffer of each GPU, the part for the GPU itself included
    rates : of the links
    """
    each = size_bytes / lattice.size
    link_bytes = max(_crossings(axis) * lattice.size // axis.size * each / axis.links for axis in lattice.axes)
    port_bytes = (lattice.size - 1) * each / rates.columns
    return 8 * SECOND_PS * max(link_bytes / rates.link_bps, port_bytes / rates.port_bps)


def swing_factor(lattice: Lattice) -> float:
    """Bytes on the busiest link by Swing over the least there can be on a torus with all its links.

    Examples
    --------
    >>> axes = [Axis(name=name, size=256) for name in "xyz"]
    >>> [round(swing_factor(Lattice(axes=tuple(axes[:count]))), 3) for count in (2, 3)]
    [1.196, 1.037]
    """
    link_bytes = sum(max(one.link_bytes for one in phase) for phase in _swing("bandwidth", lattice, 1.0, 1))
    least = (lattice.size - 1) / lattice.size / (2 * len(lattice.axes))
    return link_bytes / least


def _crossings(axis: Axis) -> float:
    """Messages on the busiest link of an axis if each place sends one to each other, equal paths sharing."""
    size = axis.size
    if not axis.is_closed:
        return float(size // 2 * ((size + 1) // 2))
    distances = [min(step, size - step) for step in range(size)]
    return sum(distances) / (2 if size > 2 or axis.links > 1 else 1)


def _bucket(rings: str, lattice: Lattice, wire_bytes: float, columns: int) -> list[list[_Steps]]:
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
                _Steps(
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


def _swing(version: str, lattice: Lattice, wire_bytes: float, columns: int) -> list[list[_Steps]]:
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
                _Steps(
                    count=1, links=links, message_bytes=message, link_bytes=load * message, port_bytes=ports * message
                )
            )
        phases.append(phase)
    return phases
