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
from weftwork.base.errors import UsageError
from weftwork.spec.scenario.choices import ALGORITHMS
from weftwork.workload.collectives.closed_form import Method, latencies
from weftwork.workload.collectives.lattice import Axis, Lattice
from weftwork.workload.collectives.lattice_form import LatticeForm
from weftwork.workload.collectives.protocols import software

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.workload.collectives.closed_form import GroupShape
    from weftwork.workload.collectives.fabric_lattice import LatticeRates
    from weftwork.workload.collectives.figures import CollectiveFigures

__all__ = ["LatticeMethod", "all_to_all_ps", "chosen_on_lattice", "lattice_methods", "lattice_time_ps"]

_LOOPS: Final = {"all-reduce": 2, "reduce-scatter": 1, "all-gather": 1}


@dataclass(frozen=True, kw_only=True, slots=True)
class LatticeMethod:
    """An algorithm on a lattice with its key, and an NCCL protocol.

    Attributes
    ----------
    algorithm : of the catalogue, such as ``bucket``, or the file of a user's own
    key : value of the key that names the way, such as ``rings`` of a bucket
    protocol : of NCCL, or ``none``
    """

    algorithm: str
    key: str
    protocol: str = "simple"

    @property
    def options(self) -> dict[str, str]:
        """Keys of the scenario."""
        return {_form(self.algorithm).key: self.key}


def _form(algorithm: str) -> LatticeForm:
    """The closed form of an algorithm that has one."""
    form: LatticeForm | None = ALGORITHMS.load(algorithm).on_lattice
    if form is None:
        raise UsageError(f"{algorithm} has no closed form on a torus or mesh")
    return form


def lattice_methods(
    operation: str, lattice: Lattice, protocols: Sequence[str] = ("simple",), own: Sequence[str] = ()
) -> list[LatticeMethod]:
    """Methods for an operation, the one with the fewest bytes first.

    Parameters
    ----------
    operation : all-reduce, reduce-scatter or all-gather
    lattice : of the GPUs
    protocols : among which to choose
    own : files with algorithms of a user's own, which come behind those of the catalogue
    """
    offers = {**ALGORITHMS, **{label: ALGORITHMS.load(label) for label in own}}
    forms = {name: offer.on_lattice for name, offer in offers.items() if offer.on_lattice is not None}
    return [
        LatticeMethod(algorithm=algorithm, key=key, protocol=protocol)
        for algorithm, form in forms.items()
        for key in form.ways(operation, lattice)
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
    form = _form(method.algorithm)
    phases = form.phases(method.key, lattice, wire_bytes, rates.columns)
    whole = 1 if method.key in form.whole else _LOOPS[operation]
    return base_latency_ps + whole * sum(max(one.time_ps(rates, step_latency_ps) for one in phase) for phase in phases)


def chosen_on_lattice(  # noqa: PLR0913 - as `alone`, and who may be chosen, by name
    operation: str,
    lattice: Lattice,
    size_bytes: int,
    rates: LatticeRates,
    group: GroupShape,
    figures: CollectiveFigures,
    *,
    protocols: Sequence[str],
    latency_scale: float = 1.0,
    own: Sequence[str] = (),
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
    own : files with algorithms of a user's own
    """
    found = []
    for method in lattice_methods(operation, lattice, protocols, own):
        if method.protocol == "none":
            wire_bytes, step_ps, base_ps = float(size_bytes), 0.0, 0.0
        else:
            asked = Method(algorithm=method.algorithm, protocol=method.protocol)
            taken = latencies(asked, operation, group, size_bytes, figures)
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


def _crossings(axis: Axis) -> float:
    """Messages on the busiest link of an axis if each place sends one to each other, equal paths sharing."""
    size = axis.size
    if not axis.is_closed:
        return float(size // 2 * ((size + 1) // 2))
    distances = [min(step, size - step) for step in range(size)]
    return sum(distances) / (2 if size > 2 or axis.links > 1 else 1)
