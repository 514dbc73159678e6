"""Concurrent network flows of a training run: number, size and entropy.

Reads the table `activities`. The flows of one operation are alike, and each has the rate size over time of its
operation. Entropy is that of how the rate of all together is spread over them: with S the sum of the rates r of n
flows each, log2 S - sum(n r log2 r) / S, so that n equal flows have log2 n.
Leaves out: flows inside servers; and that a flow has not one rate over its time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.store.runs import Run

__all__ = ["NetworkFlows", "network_flows"]


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkFlows:
    """Flows over time.

    Attributes
    ----------
    flows : shape (bins,), mean number under way
    entropy : shape (bins,), bit, mean by bytes; 0 where there are none
    mean_flows, mean_entropy : while there are any, by time and by bytes
    mean_size_bytes : of a flow, by bytes: the size of the flow that an average byte belongs to
    """

    flows: NDArray[np.float64]
    entropy: NDArray[np.float64]
    mean_flows: float
    mean_entropy: float
    mean_size_bytes: float


def network_flows(run: Run, edges_ps: NDArray[np.int64]) -> NetworkFlows | None:
    """Count the flows of a run.

    None if nothing crossed the network.

    Parameters
    ----------
    run : of training jobs, one seed
    edges_ps : shape (bins + 1,)
    """
    table = run.query(
        "select start_ps, end_ps, flows * instances as flows, size_bytes::double / (end_ps - start_ps) as rate, "
        "size_bytes::double as size from activities where flows > 0 and end_ps > start_ps and size_bytes > 0"
    )
    if table.num_rows == 0:
        return None
    start, end, flows, rate, size = (table[name].to_numpy() for name in ("start_ps", "end_ps", "flows", "rate", "size"))
    at = np.concatenate([start, end])
    order = np.argsort(at, kind="stable")
    at = at[order]
    sign = np.concatenate([np.ones(len(start)), -np.ones(len(end))])[order]

    def under_way(each: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.cumsum(np.tile(each, 2)[order] * sign)[:-1]

    count = np.rint(under_way(flows.astype(np.float64)))
    is_busy = count > 0  # sums of rates do not come back to exactly 0
    together = np.where(is_busy, under_way(flows * rate), 0.0)
    spread = under_way(flows * rate * np.log2(rate))
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = np.where(is_busy, np.maximum(np.log2(together) - spread / together, 0.0), 0.0)
    length = np.diff(at).astype(np.float64)

    def by_bin(value: NDArray[np.float64]) -> NDArray[np.float64]:
        summed = np.concatenate([[0.0], np.cumsum(value * length)])
        return np.diff(np.interp(edges_ps, at, summed))

    carried = by_bin(together)
    total = float((together * length).sum())
    moved = flows * size
    return NetworkFlows(
        flows=by_bin(count) / np.maximum(np.diff(edges_ps), 1),
        entropy=np.divide(by_bin(entropy * together), carried, out=np.zeros_like(carried), where=carried > 0),
        mean_flows=float((count * length).sum() / max(float(length[is_busy].sum()), 1.0)),
        mean_entropy=float((entropy * together * length).sum() / total),
        mean_size_bytes=float((moved * size).sum() / moved.sum()),
    )
