"""Links of one dimension of a direct network, of which some were busy.

A switch has few of them for all of its hosts. A balanced network carries uniform traffic. Neighbours in rank are
neighbours in the network, and want the few links between two switches all at a time. What a setting mends asks for no
other network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.grammar import plural
from weftwork.base.units import RATE, format_quantity
from weftwork.spec.answer import CulpritIds
from weftwork.study.answer.suspect import BUSY, Suspect, changed
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.answer.suspicions._switch_links import ports_between_switches
from weftwork.study.prepare import what_if
from weftwork.topology.port_names import port_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from weftwork.study.prepare.prepared import Prepared

__all__ = ["SUSPICION"]


def _thin_links(records: RunRecords) -> Iterator[Suspect]:
    prepared, use, direct = records.prepared, records.use, records.prepared.fabric.direct
    fabric, ports = prepared.fabric, prepared.fabric.ports
    between = ports_between_switches(fabric)
    if direct is None or not len(between):
        return
    worst = int(between[np.argmax(use[between])])
    dimension = int(direct.link_dimension[ports.link[worst]])
    if use[worst] <= BUSY or dimension < 0:
        return
    name = direct.dimensions[dimension]
    same = direct.link_dimension == dimension
    ends = {int(ports.node[worst]), int(ports.node[ports.peer[worst]])}
    links = fabric.links
    beside = [link for link in np.flatnonzero(same).tolist() if {int(links["a"][link]), int(links["b"][link])} == ends]
    rate = format_quantity(RATE, int(links["rate_bps"][ports.link[worst]]))
    (port,) = port_names(fabric, np.array([worst]))
    yield Suspect(
        ids=CulpritIds(ports=(worst,)),
        kind="setting",
        name=f"thin {name} links",
        key="fabric.topology",
        text=f"are {plural(len(beside), 'link')} of {rate} between two switches; {port} was in use"
        f" {100 * use[worst]:.0f} % of the time",
        change=changed(_with_wide_links, tuple(np.flatnonzero(same).tolist())),
    )


def _with_wide_links(prepared: Prepared, wide: Sequence[int]) -> Prepared:
    """The run with some links so fast that they hold nobody up."""
    rate_bps = prepared.fabric.links["rate_bps"].copy()
    places = np.array(wide, np.int64)
    rate_bps[places] = what_if.fast_bps(rate_bps[places])
    return what_if.with_rates(prepared, rate_bps)


SUSPICION: Final = Suspicion(
    rank=200,
    key="fabric.topology",
    standing="wrong",
    needs=frozenset({"direct network"}),
    unless=("minimal-routing",),
    suspects=_thin_links,
)
