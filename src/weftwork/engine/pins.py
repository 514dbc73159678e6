"""Pinned paths for the engines: an entropy for each pair of ranks.

Mistakes of pins and rules are found here.
Source: `docs/models/packet-engine.md`, sections Route and Entropy.
Leaves out: the layers that the paths are packed into (`weftwork.topology.layers`).
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from weftwork.base.grammar import plural
from weftwork.engine.programs import walk
from weftwork.engine.rows.fabric import PIN_DTYPE
from weftwork.spec.fabric import HOST
from weftwork.spec.job import Collect, Send
from weftwork.spec.routing import EVERY_CHANNEL, MOST_PATHS
from weftwork.topology.layers import pinned_numbers
from weftwork.topology.valleys import same_tier_link

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weftwork.base.findings import Findings
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Job
    from weftwork.spec.routing import Pin, Routing

__all__ = ["check_pins", "check_routing", "pin_rows"]

_MOST_CHANNEL = 0xFFFF  # a flow's identity keeps 16 bits for it


def check_routing(fabric: Fabric, job: Job | None, routing: Routing, findings: Findings) -> None:
    """Find impossible routing requests.

    Parameters
    ----------
    fabric, routing : whose pins name ports
    job : that runs on it; None where it has no place on the fabric, which is told elsewhere
    findings : take them
    """
    if not 0 <= routing.paths <= MOST_PATHS:
        text = f"found {plural(routing.paths, 'path')}, wanted 1 to {MOST_PATHS}, or 0 for all shortest paths"
        findings.wrong("fabric.paths", text)
    linked = same_tier_link(fabric) if routing.up_down else None
    if linked is not None:
        findings.wrong("fabric.routing", _no_direction(fabric, linked), "shortest")
    plans = {len(pin.later) for pin in routing.pins} - {len(routing.plan_at_ps)}
    if plans or list(routing.plan_at_ps) != sorted(set(routing.plan_at_ps)):
        text = (
            f"found pins with {sorted(plans)} later paths, wanted one for each of "
            f"{plural(len(routing.plan_at_ps), 'instant')}"
        )
        findings.wrong("fabric.engineering", f"{text}, which are to ascend")
        return
    sound: list[tuple[int, Pin]] = []
    for index, pin in enumerate(routing.pins):
        wrong = _way_mistake(fabric, pin)
        if wrong is None and routing.up_down and linked is None:
            wrong = _valley_mistake(fabric, pin)
        if wrong is None:
            sound.append((index, pin))
        else:
            findings.wrong(f"fabric.pinned.{index}", wrong)
    if job is not None:
        check_pins(fabric, job, sound, findings)


def check_pins(fabric: Fabric, job: Job, pins: Sequence[tuple[int, Pin]], findings: Findings) -> None:
    """Find pins without ranks, and two pins of one pair of ranks.

    Parameters
    ----------
    pins : each with its number among those of the scenario, and with a sound path
    findings : take them
    """
    known: dict[tuple[int, int, int], int] = {}
    by_rail = bool(pins) and _sends_by_rail(job)
    rank_node = fabric.hosts[job.placement.host]
    for index, pin in pins:
        path = f"fabric.pinned.{index}"
        absent = False
        for key, ends in (("from", pin.sources), ("to", pin.destinations)):
            if not np.isin(rank_node, fabric.ports.node[list(ends)]).any():
                absent = True
                lone = f"no rank of the job runs on '{fabric.node_names[fabric.ports.node[ends[0]]]}'"
                findings.wrong(f"{path}.{key}", lone)
        pairs = [] if absent else _queue_pairs(fabric, job, pin, by_rail=by_rail)
        if not absent and not pairs:
            names = [fabric.node_names[fabric.ports.node[ends[0]]] for ends in (pin.sources, pin.destinations)]
            lone = f"no rank of '{names[0]}' sends to one of '{names[1]}' by the NIC ports where this path ends"
            findings.wrong(path, lone)
        before = {first for pair in pairs if (first := known.setdefault(pair, index)) != index}
        if before:
            twice = f"pins the same queue pairs as fabric.pinned.{min(before)}; each has one path"
            findings.wrong(path, twice)


def pin_rows(fabric: Fabric, job: Job, routing: Routing) -> NDArray[np.void]:
    """Entropies of the rank pairs that send over pinned paths.

    Parameters
    ----------
    fabric, job, routing : without mistakes

    Returns
    -------
    `PIN_DTYPE`, ordered by source, destination and channel
    """
    by_rail = bool(routing.pins) and _sends_by_rail(job)
    rows = [
        (*pair, number)
        for pin, number in zip(routing.pins, pinned_numbers(fabric, routing), strict=True)
        if number >= 0
        for pair in _queue_pairs(fabric, job, pin, by_rail=by_rail)
    ]
    return np.array(sorted(rows), PIN_DTYPE)


def _sends_by_rail(job: Job) -> bool:
    """Whether any rank sends by the NIC port with its receiver's number."""
    return any(
        (isinstance(operation, Send) and operation.rail == "peer")
        or (isinstance(operation, Collect) and operation.pattern == "all-to-all")
        for _, operation, _ in walk(job)
    )


def _queue_pairs(fabric: Fabric, job: Job, pin: Pin, *, by_rail: bool) -> list[tuple[int, int, int]]:
    """Queue pairs of a pin.

    They are those that the pin names, else those of all ranks that may send over its NIC ports, with its channel.
    """
    if pin.queue_pairs:
        return list(pin.queue_pairs)
    return [(*pair, pin.channel) for pair in _rank_pairs(fabric, job, pin, by_rail=by_rail)]


def _rank_pairs(fabric: Fabric, job: Job, pin: Pin, *, by_rail: bool) -> list[tuple[int, int]]:
    """Ranks that may send over a pin's NIC ports.

    They use their own ports, or the port with the number of the receiver's.
    """
    base, node = fabric.ports.base, fabric.ports.node
    rank_node = fabric.hosts[job.placement.host]
    senders = np.flatnonzero(np.isin(rank_node, node[list(pin.sources)]))
    receivers = np.flatnonzero(np.isin(rank_node, node[list(pin.destinations)]))
    pairs: list[tuple[int, int]] = []
    for source in senders.tolist():
        own = base[rank_node[source]]
        for destination in receivers.tolist():
            if rank_node[source] == rank_node[destination]:
                continue
            rails = job.placement.nics[destination]
            arrives = np.isin(base[rank_node[destination]] + rails, pin.destinations)
            leaves = np.isin(own + job.placement.nics[source], pin.sources)
            if by_rail:
                leaves |= np.isin(own + rails, pin.sources) & (own + rails < base[rank_node[source] + 1])
            if (arrives & leaves).any():
                pairs.append((source, destination))
    return pairs


def _way_mistake(fabric: Fabric, pin: Pin) -> str | None:
    """Mistake of a path that is not in the fabric."""
    ports, kind = fabric.ports, fabric.node_kind
    named = (*pin.sources, *pin.destinations, *pin.ports, *chain.from_iterable(pin.later))
    if not pin.sources or not pin.destinations or min(named) < 0 or max(named) >= len(ports.node):
        return f"wanted NIC ports at both ends, and ports from 0 to {len(ports.node) - 1}"
    if not EVERY_CHANNEL <= pin.channel <= _MOST_CHANNEL:
        return f"found channel {pin.channel}, wanted 0 to {_MOST_CHANNEL}, or {EVERY_CHANNEL} for every one"
    ends: list[int] = []
    for nics in (pin.sources, pin.destinations):
        if (kind[ports.node[list(nics)]] != HOST).any():
            return f"wanted NIC ports at both ends, found one of '{fabric.node_names[_first_switch(fabric, nics)]}'"
        leaves = sorted(set(ports.node[ports.peer[list(nics)]].tolist()))
        if len(leaves) != 1 or kind[leaves[0]] == HOST:
            return f"wanted NIC ports of one switch, found some of {plural(len(leaves), 'node')}"
        ends.append(leaves[0])
    later = (_path_mistake(fabric, path, ends) for path in pin.later if path)
    return _path_mistake(fabric, pin.ports, ends) or next((text for text in later if text is not None), None)


def _path_mistake(fabric: Fabric, path: Sequence[int], ends: Sequence[int]) -> str | None:
    """Mistake of a path that does not join two switches."""
    ports, kind = fabric.ports, fabric.node_kind
    passed = [ends[0]]
    for port in path:
        if ports.node[port] != passed[-1]:
            own, wanted = (fabric.node_names[node] for node in (ports.node[port], passed[-1]))
            return f"port {port} is one of '{own}', wanted one of '{wanted}'"
        passed.append(int(ports.node[ports.peer[port]]))
    if passed[-1] != ends[1]:
        return f"the path ends at '{fabric.node_names[passed[-1]]}', wanted '{fabric.node_names[ends[1]]}'"
    if len(set(passed)) != len(passed) or (kind[passed] == HOST).any():
        return "wanted switches on the path, each of them once"
    return None


def _no_direction(fabric: Fabric, link: int) -> str:
    """Mistake of linked switches in one tier.

    Nothing tells up from down between them.
    """
    a, b = (int(fabric.links[end][link]) for end in ("a", "b"))
    return (
        f"found up-down, but '{fabric.node_names[a]}' and '{fabric.node_names[b]}' are linked and both of tier"
        f" {fabric.node_tier[a]}, so that a hop between them goes neither up nor down; wanted a fabric whose links"
        " between switches all join two tiers, or shortest or k-shortest"
    )


def _valley_mistake(fabric: Fabric, pin: Pin) -> str | None:
    """Mistake of a path with a forbidden valley.

    It goes down and then up.
    """
    ports, tier = fabric.ports, fabric.node_tier
    for path in (pin.ports, *pin.later):
        passed = [int(ports.node[port]) for port in path] + [int(ports.node[ports.peer[port]]) for port in path[-1:]]
        falls = np.diff(tier[passed].astype(np.int64)) < 0
        if (falls[:-1] & ~falls[1:]).any():
            low = int(np.argmax(falls[:-1] & ~falls[1:])) + 1
            name = fabric.node_names[passed[low]]
            return f"the path goes down to '{name}' and up again, which fabric.routing: up-down does not allow"
    return None


def _first_switch(fabric: Fabric, nics: Sequence[int]) -> int:
    owners = fabric.ports.node[list(nics)]
    return int(owners[fabric.node_kind[owners] != HOST][0])
