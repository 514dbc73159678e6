"""The table of victims of pauses: each flow, the port at which it was paused, and the port where the pauses began.

A victim is a message that took longer than its own NICs explain, over ports that were paused, and that does not use
the port where the pauses begin. From the port of its path that was paused longest the pauses are followed: a port is
paused by the node at its other end, which was full since its longest queue did not drain. Where the port of that queue
was paused itself, the next node is to blame, and so on to a port that was not: the root.
Needs paths and pauses, which packets alone have. Leaves out: victims of queues without pauses; messages of training
and of collectives, which wait for each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.engine.packet_input import PacketInput
from weftwork.spec.fabric import HOST
from weftwork.study.results.fabric_tables import wire_bytes
from weftwork.study.results.ideal import nic_ports
from weftwork.study.results.intra_server import PACKETS, carriers
from weftwork.study.results.path_taken import queue_pair_of

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from weftwork.engine.outcome import Outcome
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.run.execute import Execution

__all__ = ["victim_rows"]

LEAST_LOST: Final = 0.5  # chosen: of its time that a victim lost to others


def victim_rows(prepared: Prepared, execution: Execution, flows: pa.Table) -> dict[str, Any] | None:
    """Columns of the table ``victims``, the flow that lost the largest share of its time first; None without pauses.

    Parameters
    ----------
    prepared : what was run
    execution : of it
    flows : table of its messages
    """
    outcome, engine_input = execution.outcome, prepared.engine_input
    if not isinstance(engine_input, PacketInput) or not outcome.ports["paused_ps"].any() or not len(outcome.paths):
        return None
    if prepared.scenario.workload_kind.has_steps or not flows.num_rows:
        return None
    messages = outcome.messages
    is_judged = (messages["delivered_at_ps"] >= 0) & flows["ideal_fct_ps"].is_valid().to_numpy()
    is_judged &= carriers(engine_input, messages["source"], messages["destination"]) == PACKETS
    numbers, messages = np.flatnonzero(is_judged), messages[is_judged]
    took_ps = (messages["delivered_at_ps"] - messages["posted_at_ps"]).astype(np.float64)
    ideal_ps = flows["ideal_fct_ps"].filter(is_judged).to_numpy().astype(np.float64)
    lost = 1 - _needed_ps(prepared, messages, ideal_ps) / np.maximum(took_ps, 1)
    paused = _paused_ports(outcome, is_judged)
    ends = np.stack(nic_ports(engine_input, messages))
    roots = {
        port: _root(prepared, outcome, port) for port in np.unique(paused[(lost >= LEAST_LOST)]).tolist() if port >= 0
    }
    ports = prepared.fabric.ports
    rows = []
    for place in np.argsort(-lost, kind="stable").tolist():
        if lost[place] < LEAST_LOST:
            break
        if paused[place] < 0:
            continue
        root, is_paused = roots[int(paused[place])]
        if not np.isin(ends[:, place], (root, int(ports.peer[root]))).any():
            rows.append((int(numbers[place]), float(lost[place]), int(paused[place]), root, int(is_paused)))
    names = ("flow", "lost_share", "paused_port", "root_port", "is_root_paused")
    return dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else None


def _needed_ps(prepared: Prepared, messages: NDArray[np.void], ideal_ps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Least time of each message beside all traffic of its own NICs."""
    size = wire_bytes(prepared.transport, messages["size_bytes"]).astype(np.float64)
    needed = ideal_ps
    links, ports = prepared.fabric.links["rate_bps"], prepared.fabric.ports
    for ends in nic_ports(prepared.engine_input, messages):
        load = np.bincount(ends, size, minlength=len(ports.link)) * 8.0 * SECOND_PS / links[ports.link]
        needed = np.maximum(needed, load[ends])
    return needed


def _paused_ports(outcome: Outcome, is_judged: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The longest paused port on the path of each message; -1 for none."""
    pair = queue_pair_of(outcome.messages)
    paths = outcome.paths
    paused_ps = outcome.ports["paused_ps"][paths["port"]]
    order = np.argsort(paused_ps, kind="stable")  # the longest last, which stays
    port_of_pair = np.full(int(pair.max(initial=-1)) + 1, -1, np.int64)
    there = order[paused_ps[order] > 0]
    port_of_pair[paths["queue_pair"][there]] = paths["port"][there]
    return port_of_pair[pair[is_judged]]


def _root(prepared: Prepared, outcome: Outcome, port: int) -> tuple[int, bool]:
    """The port at which the pauses begin, and whether it was paused itself."""
    ports, kind = prepared.fabric.ports, prepared.fabric.node_kind
    chain = {port}
    while True:
        node = int(ports.node[ports.peer[port]])
        if kind[node] == HOST:  # it asked for the pause itself: it takes packets slower than its link brings them
            return port, True
        own = np.arange(int(ports.base[node]), int(ports.base[node + 1]))
        port = int(own[np.argmax(outcome.ports["max_queue_bytes"][own])])
        if port in chain:
            return port, True
        if not outcome.ports["paused_ps"][port]:
            return port, False
        chain.add(port)
