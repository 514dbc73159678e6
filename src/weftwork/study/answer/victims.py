"""Victims of pauses, and the port where the pauses began.

A victim is a message that took longer than its own NICs explain, over ports that were paused, and that does not use
the port where the pauses begin. From the port of its path that was paused longest the pauses are followed: a port is
paused by the node at its other end, which was full since its longest queue did not drain. Where the port of that queue
was paused itself, the next node is to blame, and so on to a port that was not: the root.
Needs paths and pauses, which packets alone have. Leaves out: victims of queues without pauses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.engine.packet_input import PacketInput
from weftwork.spec.answer import Culprit
from weftwork.spec.fabric import HOST
from weftwork.study.results.fabric_tables import wire_bytes
from weftwork.study.results.ideal import ideal_times_ps, nic_ports
from weftwork.study.results.intra_server import PACKETS, carriers
from weftwork.study.results.path_taken import queue_pair_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.engine.outcome import Outcome
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.run.execute import Execution

__all__ = ["worst_victim"]

_LEAST: Final = 0.5  # chosen: of its time that a victim lost to others


def worst_victim(prepared: Prepared, execution: Execution) -> Culprit | None:
    """The root of the pauses that slowed a flow most.

    The flow lost the largest share of its time. None if no flow lost half of its time.

    Parameters
    ----------
    prepared : what was run
    execution : of it
    """
    outcome = execution.outcome
    engine_input = prepared.engine_input
    if not isinstance(engine_input, PacketInput) or not outcome.ports["paused_ps"].any() or not len(outcome.paths):
        return None
    if prepared.jobs or prepared.scenario.collective is not None:
        return None  # its messages wait for each other
    messages = outcome.messages
    own = (messages["delivered_at_ps"] >= 0) & (
        carriers(engine_input, messages["source"], messages["destination"]) == PACKETS
    )
    messages = messages[own]
    if not len(messages):
        return None
    took_ps = (messages["delivered_at_ps"] - messages["posted_at_ps"]).astype(np.float64)
    ideal_ps = ideal_times_ps(engine_input, *nic_ports(engine_input, messages), messages["size_bytes"])
    lost = 1 - _needed_ps(prepared, messages, ideal_ps) / np.maximum(took_ps, 1)
    paused = _paused_port(outcome, own)
    ends = np.stack(nic_ports(engine_input, messages))
    for worst in np.argsort(-lost, kind="stable").tolist():
        if lost[worst] < _LEAST:
            return None
        if paused[worst] < 0:
            continue
        root, chain = _root(prepared, outcome, int(paused[worst]))
        ports = prepared.fabric.ports
        if not np.isin(ends[:, worst], (root, int(ports.peer[root]))).any():
            took, alone = float(took_ps[worst]), int(ideal_ps[worst])
            return _told(prepared, messages[worst], root, chain, took_ps=took, alone_ps=alone)
    return None


def _needed_ps(prepared: Prepared, messages: NDArray[np.void], ideal_ps: NDArray[np.int64]) -> NDArray[np.float64]:
    """Least time of each message beside all traffic of its own NICs."""
    size = wire_bytes(prepared.transport, messages["size_bytes"]).astype(np.float64)
    needed = ideal_ps.astype(np.float64)
    links, ports = prepared.fabric.links["rate_bps"], prepared.fabric.ports
    for ends in nic_ports(prepared.engine_input, messages):
        load = np.bincount(ends, size, minlength=len(ports.link)) * 8.0 * SECOND_PS / links[ports.link]
        needed = np.maximum(needed, load[ends])
    return needed


def _paused_port(outcome: Outcome, own: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The longest paused port on the path of each message; -1 for none."""
    pair = queue_pair_of(outcome.messages)
    paths = outcome.paths
    paused_ps = outcome.ports["paused_ps"][paths["port"]]
    order = np.argsort(paused_ps, kind="stable")  # the longest last, which stays
    found = np.full(int(pair.max(initial=-1)) + 1, -1, np.int64)
    there = order[paused_ps[order] > 0]
    found[paths["queue_pair"][there]] = paths["port"][there]
    return found[pair[own]]


def _root(prepared: Prepared, outcome: Outcome, port: int) -> tuple[int, list[int]]:
    """The port at which the pauses begin, and the paused ports before it."""
    ports, kind = prepared.fabric.ports, prepared.fabric.node_kind
    chain = [port]
    while True:
        node = int(ports.node[ports.peer[port]])
        if kind[node] == HOST:  # it asked for the pause itself: it takes packets slower than its link brings them
            return port, chain
        own = np.arange(int(ports.base[node]), int(ports.base[node + 1]))
        port = int(own[np.argmax(outcome.ports["max_queue_bytes"][own])])
        if port in chain or not outcome.ports["paused_ps"][port]:
            return port, chain
        chain.append(port)


def _told(
    prepared: Prepared, message: np.void, root: int, chain: list[int], *, took_ps: float, alone_ps: int
) -> Culprit:
    fabric = prepared.fabric
    ports, names = fabric.ports, fabric.node_names
    end = int(ports.node[ports.peer[root]])
    hosts = [names[int(fabric.hosts[prepared.job.placement.host[message[key]]])] for key in ("source", "destination")]
    is_host = root in chain
    first = chain[0]
    victim = f"{names[int(ports.node[first])]}->{names[int(ports.node[ports.peer[first]])]}"
    if is_host:
        text = f"takes packets too slowly and pauses {names[int(ports.node[root])]}"
    else:
        text = f"was full, so that {names[int(ports.node[ports.peer[first]])]} paused {victim}"
    return Culprit(
        kind="nic" if is_host else "link",
        name=names[end] if is_host else fabric.link_names[int(ports.link[root])],
        key=None,
        text=text,
        cost_s=(took_ps - alone_ps) / SECOND_PS,
        cost_share=1 - alone_ps / took_ps,
        how="recorded",
        of=f"the flow {hosts[0]}->{hosts[1]}, a victim of the pauses",
    )
