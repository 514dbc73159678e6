"""Begin and end of each repetition of a collective.

They follow from the milestones of its ranks.

Bus bandwidth is that of nccl-tests, doc/PERFORMANCE.md.
Leaves out: the NVLink switches that take part in some algorithms; they pass no milestones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.spec.result import TABLES
from weftwork.workload.collectives.call import bus_bandwidth_factor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.engine.outcome import Outcome
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["collective_times"]

START, END = 0, 1  # indices of Job.milestone_names


def collective_times(prepared: Prepared, outcome: Outcome) -> dict[str, list[Any]]:
    """Columns of the table ``collectives``, see `weftwork.spec.result`.

    Parameters
    ----------
    prepared : what was run, a collective
    outcome : its milestones
    """
    rows: dict[str, list[Any]] = {column.name: [] for column in TABLES["collectives"]}
    section = prepared.scenario.collective_section
    moves_data = section.operation != "barrier"
    ranks = prepared.job.gpus
    factor = float(bus_bandwidth_factor(section.operation, ranks)) if moves_data else 0.0
    _, begun_ps = _by_repetition(outcome.milestones, START)
    rank, ended_ps = _by_repetition(outcome.milestones, END)
    for repetition, starts in enumerate(begun_ps):
        ends = ended_ps[repetition] if repetition < len(ended_ps) else np.empty(0, np.int64)
        done = len(ends) == ranks
        duration = int(ends.max() - starts.min()) if done else None
        algorithm = section.size_bytes * 8 * SECOND_PS / duration if duration and moves_data else None
        row: dict[str, Any] = {
            "operation": section.operation,
            "repetition": repetition,
            "ranks": ranks,
            "size_bytes": section.size_bytes,
            "start_ps": int(starts.min()),
            "end_ps": int(ends.max()) if done else None,
            "duration_ps": duration,
            "first_end_ps": int(ends.min()) if len(ends) else None,
            "last_rank": int(rank[repetition][ends.argmax()]) if done else None,
            "algorithm_bandwidth_bps": algorithm,
            "bus_bandwidth_bps": None if algorithm is None else algorithm * factor,
        }
        for name, column in rows.items():
            column.append(row[name])
    return rows


def _by_repetition(milestones: NDArray[np.void], name: int) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """Ranks that reached a milestone, with the instant, for each repetition.

    `milestones` are sorted by rank and instant.
    """
    own = milestones[milestones["name"] == name]
    _, first, count = np.unique(own["rank"], return_index=True, return_counts=True)
    repetition = np.arange(len(own)) - np.repeat(first, count)
    which = [np.flatnonzero(repetition == index) for index in range(int(count.max(initial=0)))]
    return [own["rank"][rows] for rows in which], [own["at_ps"][rows] for rows in which]
