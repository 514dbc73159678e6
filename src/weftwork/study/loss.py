"""Run a scenario's job on the flow engine before and after a loss.

The loss is a list of faults at 0 s that routes and queue pairs know of at once, so that the rules of failover hold
(decision 0012) and the time is that of a job that goes on, not of the second in which something broke.
Leaves out: packets, and so timeouts and what is sent again; how long routes take (`weftwork run` with ``faults``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.errors import ConfigError, Mistake
from weftwork.engine.flow.flow_input import FlowInput
from weftwork.spec.endings import ENDINGS
from weftwork.spec.fabric import HOST, Fabric
from weftwork.spec.numbers import HEADLINES
from weftwork.spec.scenario.faults import FaultSection
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.prepare.what_if import with_section
from weftwork.study.record.road import execute, results
from weftwork.topology.lost_names import find_lost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.record.road import Results
    from weftwork.study.run.execute import Progress

__all__ = ["HOST_LOST", "JobLoss", "job_without"]

HOST_LOST: Final = "host lost"


@dataclass(frozen=True, kw_only=True, slots=True)
class JobLoss:
    """A job with and without a part of its fabric.

    Attributes
    ----------
    quantity : the time that is compared: ``iteration_ps``, ``collective_duration_ps`` or ``completion_ps``
    before_ps, after_ps : that time; None where the run did not end
    slowdown : after / before
    status_before, status_after : how the runs ended, see `weftwork.store.runs.Run.status`; ``host lost`` where a host
        of the job is lost, so that there is nothing to run
    cut_off : GPUs of the job that have no NIC port left, or whose host is lost
    stopped : why the second run did not end, where it was run and did not
    faults_left_out : faults of the scenario, which neither run has
    """

    quantity: str
    before_ps: int | None
    after_ps: int | None
    slowdown: float | None
    status_before: str
    status_after: str
    cut_off: tuple[str, ...]
    stopped: str
    faults_left_out: int


def job_without(
    file: Path,
    names: Sequence[str],
    *,
    overrides: Mapping[str, str] | None = None,
    user_code: bool = True,
    on_progress: Callable[[Progress], None] | None = None,
) -> JobLoss:
    """Run a scenario's job with and without a part of the fabric.

    The faults of the scenario are left out of both runs, since the end of a fault would revive a lost part.

    Parameters
    ----------
    file : a scenario
    names : of what is lost, see `weftwork.topology.lost_names`
    overrides : dotted key to YAML text
    user_code : False refuses every Python file of the user's own that the scenario names
    on_progress : as for `weftwork.study.run.execute.execute`

    Raises
    ------
    ConfigError : names that the fabric does not have; a scenario that the flow engine cannot run
    """
    scenario = read_scenario(file, overrides, user_code=user_code)
    whole = prepare(_on_flows(scenario))
    lost_nodes, lost_links = find_lost(whole.fabric, names)
    before = _ran(whole, on_progress)
    quantity = next((name for name in HEADLINES if name in before.summary), None)
    if quantity is None:
        text = "found a workload without an end time, wanted training, a collective or traffic that ends"
        raise ConfigError(str(file), [Mistake(path="--iteration", text=text)])
    cut_off, is_host_lost = _cut_off(whole, lost_nodes, lost_links)
    stopped, after_ps, status = "", None, HOST_LOST
    if not is_host_lost:
        faults = _faults(whole.fabric, lost_nodes, lost_links)
        after = _ran(with_section(whole, faults=tuple(faults)), on_progress)
        status, after_ps = after.status, _time(after, quantity)
        stopped = "" if ENDINGS[status].is_whole else _why(after)
    before_ps = _time(before, quantity)
    return JobLoss(
        quantity=quantity,
        before_ps=before_ps,
        after_ps=after_ps,
        slowdown=after_ps / before_ps if before_ps and after_ps is not None else None,
        status_before=before.status,
        status_after=status,
        cut_off=cut_off,
        stopped=stopped,
        faults_left_out=len(scenario.faults),
    )


def _on_flows(scenario: Scenario) -> Scenario:
    """The scenario for the flow engine, with immediate knowledge of faults.

    Routes and queue pairs know of a fault at once.
    """
    engine = scenario.engine.model_copy(update={"fidelity": "flow", "record": type(scenario.engine.record)()})
    fabric = scenario.fabric.model_copy(update={"reconvergence_delay_ps": 0, "failover_delay_ps": 0})
    return scenario.model_copy(update={"engine": engine, "fabric": fabric, "faults": (), "reliability": None})


def _ran(prepared: Prepared, on_progress: Callable[[Progress], None] | None) -> Results:
    if not isinstance(prepared.engine_input, FlowInput):
        raise TypeError("the scenario was not prepared for the flow engine")
    prepared = replace(prepared, series=None)
    execution = execute(prepared, on_progress, what_if="none")
    if execution.interrupted:
        raise KeyboardInterrupt
    return results(prepared, execution)


def _time(found: Results, quantity: str) -> int | None:
    """The time of a finished run."""
    value = found.summary[quantity].value
    return None if value is None or not ENDINGS[found.status].is_whole else int(value)


def _faults(fabric: Fabric, lost_nodes: NDArray[np.bool_], lost_links: NDArray[np.bool_]) -> list[FaultSection]:
    """The loss as faults at 0 s, by name."""
    own = lost_links & ~(lost_nodes[fabric.links["a"]] | lost_nodes[fabric.links["b"]])
    kinds = [("nic" if fabric.node_kind[node] == HOST else "switch", fabric.node_names[node])
             for node in np.flatnonzero(lost_nodes).tolist()]  # fmt: skip
    kinds += [("link", fabric.link_names[link]) for link in np.flatnonzero(own).tolist()]
    return [FaultSection.model_validate({"at_ps": 0, "event": "down", kind: name}) for kind, name in kinds]


def _cut_off(
    prepared: Prepared, lost_nodes: NDArray[np.bool_], lost_links: NDArray[np.bool_]
) -> tuple[tuple[str, ...], bool]:
    """GPUs of the job without a NIC port, and host losses.

    The second value says whether one of the job's hosts is lost.
    """
    fabric, placement = prepared.fabric, prepared.job.placement
    node = fabric.hosts[placement.host]
    gone = lost_links[fabric.ports.link[fabric.ports.base[node][:, None] + placement.nics]].all(axis=1)
    is_gpu = np.ones(len(node), np.bool_) if placement.gpu is None else placement.gpu >= 0
    ranks = np.flatnonzero((gone | lost_nodes[node]) & is_gpu).tolist()
    names = [_gpu_name(fabric, prepared, rank) for rank in ranks]
    return tuple(names), bool(lost_nodes[node].any())


def _gpu_name(fabric: Fabric, prepared: Prepared, rank: int) -> str:
    placement = prepared.job.placement
    host = fabric.node_names[fabric.hosts[placement.host[rank]]]
    return f"rank {rank} ({host})" if placement.gpu is None else f"rank {rank} ({host}, GPU {placement.gpu[rank]})"


def _why(found: Results) -> str:
    """The first cause in the table of waits, in words."""
    rows = found.tables["waits"].to_pylist()
    row = next((one for one in rows if one["stopped_by"] is not None), None)
    if row is None:
        return f"the run is {found.status}"
    where = f" {row['place']}" if row["place"] else ""
    to = "" if row["peer"] is None else f" for rank {row['peer']} ({row['peer_host']})"
    return f"rank {row['rank']} ({row['host']}) waits{to}: {row['stopped_by']}{where}"
