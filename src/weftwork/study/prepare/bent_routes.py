"""Notes about shortest routes that bend around faults.

Such a route goes down and up again.

Where flow control keeps packets from being lost such a valley can close a circle of buffers that wait for each other.
Source: docs/models/fabrics.md, sections Routes and Valleys.
Leaves out: whether a circle closes in this run, which the packet engine says; faults of NIC ports, which bend nothing;
most states of links of a fabric of 10^5 hosts with many faults, for the time they take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.base.units import DURATION, format_quantity
from weftwork.engine.instants import lower_faults
from weftwork.engine.rows.fabric import Instant
from weftwork.spec.fabric import HOST
from weftwork.spec.fault_changes import ChangedState
from weftwork.spec.routings import ROUTINGS
from weftwork.topology.valleys import is_tiered, leaves_below, leaves_left, valleys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from weftwork.base.findings import Findings
    from weftwork.engine.instants import Fault
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.transport import Transport
    from weftwork.study.prepare.faults import Occurrence
    from weftwork.topology.valleys import Valleys

__all__ = ["note_bent_routes"]

MOST_WORK: Final = 1 << 23  # chosen: ports x words of 64 leaves of all searches together, some seconds


def note_bent_routes(
    scenario: Scenario, fabric: Fabric, transport: Transport, occurrences: Sequence[Occurrence], findings: Findings
) -> None:
    """Note leaves whose shortest routes have a valley after faults.

    Routes know of the faults then. There is no note where nothing can wait in a circle, routes are not all shortest
    paths, no link between switches goes down, or no route has a valley.

    Parameters
    ----------
    scenario : its key ``fabric.routing``
    fabric : as it is without faults
    transport : whose classes lose nothing to full buffers, or may
    occurrences : what happens
    findings : take the note
    """
    is_lossless = bool(transport.lossless_priorities) or transport.link_credits
    has_all = ROUTINGS[scenario.fabric.routing].paths == "every shortest"
    if not is_lossless or not has_all or not is_tiered(fabric):
        return
    happened = [fault for occurrence in occurrences for fault in occurrence.faults]
    faults = [fault for fault in happened if fault.change.sets is ChangedState.WORKS]
    if not faults:
        return
    found = list(_bent(fabric, faults))
    if not found:
        return
    at_ps, worst = max(found, key=lambda one: (one[1].pairs_bent, -one[0]))
    text = f"after the fault at {format_quantity(DURATION, at_ps)}, {_words(worst)}"
    findings.note("fabric.routing", "note", text)


def _bent(fabric: Fabric, faults: Sequence[Fault]) -> Iterator[tuple[int, Valleys]]:
    """Yield the instants and valleys of failures that bend routes.

    States with the most links down come first.
    """
    is_host = fabric.node_kind == HOST
    between = ~is_host[fabric.links["a"]] & ~is_host[fabric.links["b"]]

    def links(over: Fabric, link_up: NDArray[np.bool_], plan: int) -> NDArray[np.bool_]:
        del over, plan
        return link_up

    instants, states = lower_faults(fabric, faults, reconvergence_delay_ps=0, table=links)
    changes = instants[instants["code"] == Instant.ROUTES]
    spent = 0
    for number in sorted(range(1, len(states)), key=lambda one: int(states[one].sum())):
        lost = between & ~states[number]
        leaves = leaves_left(fabric, states[number])
        sources = leaves_below(fabric, lost, leaves)
        spent += 2 * int(between.sum()) * -(-len(sources) // 64)
        if spent > MOST_WORK:
            return
        found = valleys(fabric, states[number], leaves, sources) if len(sources) else None
        if found is not None and found.pairs_bent:
            yield int(changes["at_ps"][changes["value"] == number][0]), found


def _words(found: Valleys) -> str:
    pairs = f"{plural(found.pairs_bent, 'pair')} of leaves"
    none = found.pairs_joined - found.pairs_legal
    rest = f", and {plural(none, 'pair then has', 'pairs then have')} no route" if none else ""
    return (
        f"shortest routes of {pairs} go down and up again, such as {' - '.join(found.example)}; such routes can"
        f" deadlock unless they have a class of their own; fabric.routing: up-down forbids them{rest}"
    )
