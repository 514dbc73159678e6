"""Use of links, measured by their rates at the time.

A fault that slows a link or takes it down counts.

Leaves out: which of them is to blame (`weftwork.study.answer`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.spec.fault_changes import ChangedState

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.spec.fault_changes import ChangeRow
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.run.execute import Execution

__all__ = ["link_use", "mean_rates_bps", "rate_rows", "rate_steps", "sent_bytes", "siblings_use", "up_use"]

# What decides at which rate a link sends
_RATE_STATES: Final = frozenset({ChangedState.WORKS, ChangedState.CIRCUIT, ChangedState.RATE})


def sent_bytes(prepared: Prepared, execution: Execution) -> NDArray[np.float64]:
    """Bytes that each port sent, headers and gaps included; shape (ports,)."""
    if execution.flows is not None:
        return execution.flows.link_bytes
    ports = execution.outcome.ports
    return np.asarray(ports["bytes"] + ports["frames"] * prepared.transport.interframe_bytes, np.float64)


def rate_steps(prepared: Prepared, end_ps: int) -> dict[int, list[tuple[int, int]]]:
    """Instants and rates of links that faults changed.

    The rate is 0 while a link is down.

    Parameters
    ----------
    prepared : its faults
    end_ps : of the run; what comes later did not happen

    Returns
    -------
    of each link that changed: instants and rates in b/s from then on, by time; the first is what it has at 0
    """
    links = prepared.fabric.links
    changes: dict[int, list[tuple[int, ChangeRow, int]]] = {}
    for occurrence in prepared.faults:
        for fault in occurrence.faults:
            if fault.change.sets not in _RATE_STATES or fault.at_ps > end_ps:
                continue
            affected = [] if fault.link < 0 else [fault.link]
            if fault.switch >= 0:
                affected = np.flatnonzero((links["a"] == fault.switch) | (links["b"] == fault.switch)).tolist()
            for link in affected:
                changes.setdefault(link, []).append((fault.at_ps, fault.change, fault.rate_bps))
    at_start = prepared.fabric.links_at_start
    for link in np.flatnonzero(~at_start).tolist():
        changes.setdefault(link, [])
    steps: dict[int, list[tuple[int, int]]] = {}
    for link, happened in changes.items():
        nominal_bps = rate_bps = int(links["rate_bps"][link])
        is_up, is_lit = True, bool(at_start[link])
        steps[link] = [(0, nominal_bps if is_lit else 0)]
        for at_ps, change, new_bps in sorted(happened, key=lambda one: one[0]):
            is_up = bool(change.passes) if change.sets is ChangedState.WORKS else is_up
            is_lit = bool(change.passes) if change.sets is ChangedState.CIRCUIT else is_lit
            rate_bps = new_bps or nominal_bps if change.sets is ChangedState.RATE else rate_bps
            steps[link].append((at_ps, rate_bps if is_up and is_lit else 0))
    return steps


def rate_rows(prepared: Prepared, execution: Execution, kept: NDArray[np.int64]) -> dict[str, list[int]]:
    """Columns of the table ``rates``, with a row for each changed rate.

    Parameters
    ----------
    prepared : its faults
    execution : the run
    kept : ports that have a row in the table ``links``
    """
    steps = rate_steps(prepared, _end_ps(execution))
    link = prepared.fabric.ports.link
    own = kept[np.isin(link[kept], list(steps))].tolist()
    rows = [(port, at_ps, rate_bps) for port in own for at_ps, rate_bps in steps[int(link[port])]]
    return {name: [row[place] for row in rows] for place, name in enumerate(("port", "at_ps", "rate_bps"))}


def mean_rates_bps(prepared: Prepared, execution: Execution) -> NDArray[np.float64]:
    """Mean rate of each link over the run, faults counted; shape (links,).

    Parameters
    ----------
    prepared : its faults
    execution : the run
    """
    end_ps = _end_ps(execution)
    mean = prepared.fabric.links["rate_bps"].astype(np.float64)
    if end_ps <= 0:
        return mean
    for link, steps in rate_steps(prepared, end_ps).items():
        until = [at_ps for at_ps, _ in steps[1:]] + [end_ps]
        carried = sum((end - at_ps) * float(rate_bps) for (at_ps, rate_bps), end in zip(steps, until, strict=True))
        mean[link] = carried / end_ps
    return mean


def link_use(prepared: Prepared, execution: Execution) -> NDArray[np.float64]:
    """Share of the time in which each port sent; shape (ports,).

    The share is measured at the rate of its link.
    """
    mean_bps = mean_rates_bps(prepared, execution)[prepared.fabric.ports.link]
    carried = sent_bytes(prepared, execution) * 8.0
    could = mean_bps * (_end_ps(execution) / SECOND_PS)
    return np.divide(carried, could, out=np.zeros(len(carried)), where=could > 0)


def _end_ps(execution: Execution) -> int:
    """The instant up to which links are counted.

    Flows in flight carry bytes long after the last arrival, so that theirs count until where the run was stopped.
    """
    outcome = execution.outcome
    return outcome.counters["end_ps"] if execution.flows is None else outcome.simulated_ps


def _up_ports(prepared: Prepared) -> NDArray[np.int64]:
    """Ports of switches towards the tier above."""
    ports, tier = prepared.fabric.ports, prepared.fabric.node_tier
    own, other = tier[ports.node], tier[ports.node[ports.peer]]
    return np.flatnonzero((own > 0) & (other > own))


def up_use(prepared: Prepared, use: NDArray[np.float64], tier: int) -> float:
    """Use of the busiest port between a tier and the next.

    Ports up and down count; ``use`` is of `link_use`.
    """
    up = _up_ports(prepared)
    ports = prepared.fabric.ports
    up = up[prepared.fabric.node_tier[ports.node[up]] == tier]
    return float(max(np.max(use[up], initial=0.0), np.max(use[ports.peer[up]], initial=0.0)))


def siblings_use(prepared: Prepared, execution: Execution, use: NDArray[np.float64]) -> tuple[float, int, float]:
    """The port up with the most traffic against its switch's equal ports.

    Parameters
    ----------
    prepared : what was run
    execution : of it
    use : of `link_use`

    Returns
    -------
    how many times the mean it carried, its number, and the share of the time for which it sent; 1, -1 and 0 where no
    switch has two ports up
    """
    up = _up_ports(prepared)
    fabric = prepared.fabric
    carried = sent_bytes(prepared, execution)
    node = fabric.ports.node[up]
    count = np.bincount(node, minlength=len(fabric.node_tier))
    total = np.bincount(node, carried[up], minlength=len(fabric.node_tier))
    several = up[(count[node] > 1) & (total[node] > 0)]
    if not len(several):
        return 1.0, -1, 0.0
    worst = int(several[np.argmax(use[several])])  # the busiest, which others waited for
    own = fabric.ports.node[worst]
    return float(carried[worst] * count[own] / total[own]), worst, float(use[worst])
