"""The time series that a run records.

Names of the scenario become ports and queue pairs of the engine.

Leaves out: queue pairs that a program would only make if it took another branch; programs have no branches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.fix import ItemValue
from weftwork.base.nearest import nearest
from weftwork.engine.programs import walk
from weftwork.spec.fidelities import FIDELITIES
from weftwork.spec.job import Arrivals, Send
from weftwork.spec.peers import peers_of
from weftwork.study.prepare.lowered import folds
from weftwork.study.prepare.recorded_state import recorded_state
from weftwork.topology.port_names import port_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weftwork.base.findings import Findings
    from weftwork.engine.packet import Series
    from weftwork.policies.load import LoadedPolicy
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Job
    from weftwork.spec.scenario.scenario import Scenario

__all__ = ["PATH_SAMPLE", "TIMELINE_BINS", "queue_pairs", "recording"]

TIMELINE_BINS: Final = 240  # chosen: columns of a heat map on a page
LEAST_BINS: Final = 32  # chosen: fewer show no course of things
TIMELINE_ROWS: Final = 4_000_000  # chosen: 256 MB where every port of the fabric is busy all the time
PATH_SAMPLE: Final = 8  # chosen: the first packet of every message of up to eight, and enough of long ones for a mean


def queue_pairs(job: Job) -> list[tuple[int, int, int]]:
    """Source, destination and channel of every queue pair of a job.

    The place in the list is the number of the flow.
    """
    found: set[tuple[int, int, int]] = set()
    members = [np.flatnonzero(job.rank_program == index) for index in range(len(job.programs))]
    for index, operation, count in walk(job):
        ranks = members[index]
        if isinstance(operation, Arrivals):
            ends = zip(operation.peer.tolist(), operation.channel.tolist(), strict=True)
            found.update((source, *pair) for pair in set(ends) for source in ranks.tolist())
        if not isinstance(operation, Send):
            continue
        turns = 1 if operation.peer.step == 0 else count
        if operation.peer.rule == "shift" and operation.peer.group is not None:
            turns = min(turns, operation.peer.group.size)
        for counter in range(turns):
            peers = peers_of(operation.peer, ranks, counter).tolist()
            pairs = zip(ranks.tolist(), peers, strict=True)
            found.update((source, peer, operation.channel) for source, peer in pairs if peer >= 0)
    return sorted(found)


def recording(
    scenario: Scenario, fabric: Fabric, job: Job, policies: Mapping[str, LoadedPolicy], findings: Findings
) -> Series | None:
    """The records of the packet engine.

    A timeline and paths are always recorded; the scenario may ask for series.

    The flow engine keeps the timeline alone, and nothing where it folds ranks; the reference engine records nothing
    over time.

    Parameters
    ----------
    scenario : its engine, and what it asks to record
    fabric, job : whose ports and flows
    policies : by kind, whose states
    findings : take a mistake for every flow, port or field that is not there, or cannot be recorded

    Returns
    -------
    what is recorded, None for nothing
    """
    from weftwork.engine.packet import Series

    wanted, fidelity = scenario.engine.record, FIDELITIES[scenario.engine.fidelity]
    state = recorded_state(wanted.state, policies, findings) if wanted.state else ()
    if wanted.state is not None and wanted.flows == "none":
        text = "found fields but no flows to record; give engine.record.flows, a list of numbers or all"
        findings.wrong("engine.record.state", text)
    if wanted.flows == "none" and wanted.ports == "none":
        if not fidelity.has_timeline or folds(scenario):
            return None
        return Series(timeline_bins=_bins(fabric), path_sample=PATH_SAMPLE)
    if not fidelity.has_series:
        text = f"the {fidelity.name} engine keeps no series of flows and ports; set engine.fidelity: packet"
        findings.wrong("engine.record", text)
    flows: tuple[tuple[int, int, int], ...] | None = None if wanted.flows == "all" else ()
    if not isinstance(wanted.flows, str):
        every = queue_pairs(job)
        for number in wanted.flows:
            if number >= len(every):
                findings.wrong("engine.record.flows", f"found {number}, wanted 0 to {len(every) - 1}")
        flows = tuple(every[number] for number in wanted.flows if number < len(every))
    ports = _ports(wanted.ports, fabric, findings)
    return Series(
        every_ps=wanted.every_ps,
        ports=ports,
        flows=flows,
        state=state,
        timeline_bins=_bins(fabric),
        path_sample=PATH_SAMPLE,
    )


def _bins(fabric: Fabric) -> int:
    """Bins of the timeline.

    A fabric of very many ports has fewer bins, to limit memory.
    """
    return max(LEAST_BINS, min(TIMELINE_BINS, TIMELINE_ROWS // max(1, len(fabric.ports.node))))


def _ports(wanted: str | tuple[str, ...], fabric: Fabric, findings: Findings) -> tuple[int, ...]:
    names = port_names(fabric)
    if isinstance(wanted, str):
        return tuple(range(len(names))) if wanted == "all" else ()
    by_name = {name: index for index, name in enumerate(names)}
    base = fabric.ports.base
    nodes = {name: range(base[index], base[index + 1]) for index, name in enumerate(fabric.node_names)}
    found: set[int] = set()
    for place, name in enumerate(wanted):
        if name in by_name:
            found.add(by_name[name])
        elif name in nodes:
            found.update(nodes[name])
        else:
            text = f"found '{name}', wanted a node or a port such as {names[0]}"
            near = nearest(name, by_name if "->" in name else nodes)
            fix = None if near is None else ItemValue(place, near)
            findings.wrong("engine.record.ports", text, fix)
    return tuple(sorted(found))
