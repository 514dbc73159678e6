"""Slow switches: switches that forward a packet later than a switch that cuts through.

A kind of suspect looks at a run that has ended, and says without what the run can be simulated again. The answer has a
line with its cost. docs/howto/own-suspect.md explains every part.

    weftwork run suspect.yaml --suspect suspect.py    simulates an incast, and the incast without slow switches
    weftwork test suspect.py                          asks the file about small runs and checks its bound

Source: chosen, as an example.
Leaves out: delays of cables and NICs.
"""

from __future__ import annotations

from collections.abc import Iterator

from weftwork.base.units import DURATION, format_quantity
from weftwork.study.answer.suspicion import RunRecords, Suspect, Suspicion, changed
from weftwork.study.prepare import what_if

FAST_PS = 300_000  # chosen: 300 ns, a round figure for a switch that cuts through


def suspects(records: RunRecords) -> Iterator[Suspect]:
    """All switches that take longer, as one suspect.

    ``records.prepared`` is what was run, and ``records.execution`` what came of it. Change copies, never the run.
    """
    fabric = records.prepared.fabric
    slowest_ps = max((switch.forwarding_latency_ps for switch in fabric.switches), default=0)
    if slowest_ps <= FAST_PS:
        return  # nothing to suspect
    fast = tuple(
        switch.model_copy(update={"forwarding_latency_ps": min(switch.forwarding_latency_ps, FAST_PS)})
        for switch in fabric.switches
    )
    yield Suspect(
        kind="setting",  # which sort of thing it is
        name="slow switches",
        key="fabric.switch.forwarding_latency",  # what changes it
        text=f"forward a packet only after {format_quantity(DURATION, slowest_ps)}",  # goes on behind the name
        change=changed(what_if.on_fabric, switches=fast),  # the run without it
        bound_share=1 - FAST_PS / slowest_ps,  # no more of the time: all of it may be forwarding
    )


SUSPICION = Suspicion(suspects=suspects, key="fabric.switch.forwarding_latency")
