"""Folding of a job: cells of ranks, links and activities.

The flow engine runs each cell once. The work is done in `native/flow/fold.hpp`; `docs/models/flow-engine-folding.md`
says what comes out. The flow engine calls that itself; this is for whoever wants to see it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from weftwork.engine import _native
from weftwork.engine.flow.flow_input import FOLDING
from weftwork.engine.flow.paths import raw_layers
from weftwork.engine.rows.flow_run import FLOW_FABRIC, FLOW_FOLD, FLOW_JOB, ROUTE_RULE
from weftwork.spec.fabric import HOST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weftwork.engine.flow.flow_input import FlowInput

__all__ = ["CELL_LIMIT", "CORE_FEW", "CORE_SLOTS", "FlowFolding", "Folding"]

Folding = Literal["auto", "never", "exact", "core"]  # weftwork.engine.flow.flow_input.FOLDING
CELL_LIMIT: Final = 20_000  # chosen: cells of activities that the executor runs in seconds
CORE_SLOTS: Final = 16_384  # chosen: 21 replicas of TP 8 and PP 16
CORE_FEW: Final = 256  # chosen: the rings of data parallelism of a stage


class FlowFolding:
    """A folded job."""

    def __init__(
        self,
        engine_input: FlowInput,
        folding: Folding = "auto",
        *,
        cell_limit: int = CELL_LIMIT,
        core_slots: int = CORE_SLOTS,
        core_few: int = CORE_FEW,
        link_fate: Sequence[int] = (),
    ) -> None:
        """Fold the job of an engine input.

        Parameters
        ----------
        engine_input : of the flow engine
        folding : ``auto`` as the engine does, ``never``, ``exact`` with any number of cells, or the critical ``core``
        cell_limit : cells of activities above which ``auto`` takes the core
        core_slots : operations of all ranks of the replicas that run in a core
        core_few : kinds of no more activities are kept whole
        link_fate : a number for each link, equal where capacities change alike over the run; empty: none changes
        """
        transport = engine_input.transport
        per_packet = transport.data_overhead_bytes + transport.telemetry_bytes + transport.interframe_bytes
        others = {
            "wire_factor": (transport.mtu_bytes + per_packet) / transport.mtu_bytes,
            "host_rate_bps": _host_rates_bps(engine_input),
            "folding": FOLDING.index(folding),
            "cell_limit": cell_limit,
            "core_slots": core_slots,
            "core_few": core_few,
            "link_fate": np.array(link_fate, np.uint64),
        }
        raw = FLOW_FABRIC.values(engine_input) | FLOW_JOB.values(engine_input) | FLOW_FOLD.values(engine_input, others)
        raw |= raw_layers(
            engine_input.layers,
            engine_input.node_attachment,
            spreads_ways=engine_input.spreads_ways,
        )
        raw |= ROUTE_RULE.values(engine_input.rule)
        self._core = _native.FlowFold(raw)

    @property
    def facts(self) -> dict[str, int]:
        """Numbers of ranks, links and activities, before and after folding."""
        return self._core.facts()

    @property
    def network(self) -> dict[str, Any]:
        """The folded network as arrays.

        They have the names of `Network` in native/flow/network.hpp.
        """
        return self._core.network()

    @property
    def bracket(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The fastest and the slowest network that a core may stand for."""
        return self._core.fastest(), self._core.slowest()

    @property
    def graph(self) -> dict[str, Any]:
        """The job before folding, and the cell of every item."""
        return self._core.graph()

    @property
    def capacity(self) -> NDArray[np.float64]:
        """Capacity of every link, bytes per ps."""
        return self._core.capacity()

    def carried(self, amount: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bytes on every link.

        Parameters
        ----------
        amount : shape (cells of activities), what each activity of a cell has got done; of a core, by kind
        """
        return self._core.carried(amount.tolist())


def _host_rates_bps(engine_input: FlowInput) -> NDArray[np.int64]:
    """Host interface rates behind each NIC port.

    They are 0 elsewhere, and for a NIC without host interface.
    """
    rates: NDArray[np.int64] = np.zeros(len(engine_input.port_node), np.int64)
    own = engine_input.node_kind[engine_input.port_node] == HOST
    rates[own] = engine_input.nics["pcie_rate_bps"][engine_input.node_device[engine_input.port_node[own]]]
    return rates
