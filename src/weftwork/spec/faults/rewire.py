"""Gives the slice of a TPU pod other circuits between the same cubes.

From its instant on the circuits that change are dark. The new ones come up after the switching time and the time to
bring up their links. A rewiring stands among the faults, since it takes links away for a time.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from weftwork.base.units import DURATION, format_quantity
from weftwork.spec.device import Record
from weftwork.spec.fault_kind import FaultKind, WholeFabric, Wiring
from weftwork.spec.scenario.kinds import Flag, Listing, Measure, Whole
from weftwork.spec.scenario.rows import row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.spec.fault_kind import Detours, ReadFault

__all__ = ["FAULT", "Keys"]


class Keys(Record):
    """The new wiring, and its times."""

    slice: tuple[int, ...] | None = row(
        "slice",
        Listing(item=Whole(low=4, high=4_096, unit="chips"), length=3),
        absent="that of the fabric",
        text="Chips along each dimension after the rewiring, such as [4, 8, 16]; as many cubes as before.",
        source="chosen: the user does",
    )
    twisted: bool | None = row(
        "twisted",
        Flag(),
        default=False,
        text="Whether the rings of short sides also shift after the rewiring.",
        source="chosen: a regular torus",
    )
    switching_time_ps: int | None = row(
        "switching_time",
        Measure(quantity=DURATION),
        default="10ms",
        text="Time in which the optical switches turn their mirrors; changed circuits are dark from its start on.",
        source="chosen: optical switches with mirrors take milliseconds; a published figure is unverified",
    )
    bring_up_ps: int | None = row(
        "bring_up",
        Measure(quantity=DURATION),
        default="2s",
        text="Time from the end of switching until the links of the new circuits are up.",
        source="chosen: optical links take seconds to come up",
    )


def _lasts_ps(keys: Keys) -> int:
    return (keys.switching_time_ps or 0) + (keys.bring_up_ps or 0)


def _wiring(keys: Keys) -> Wiring:
    return Wiring(sides=keys.slice, is_twisted=bool(keys.twisted), lasts_ps=_lasts_ps(keys))


def _words(_: Keys) -> str:
    return "change circuits"


def _delays_ps(keys: Keys, detours: Detours) -> int:
    return _lasts_ps(keys) + detours.reconvergence_ps


def _check_together(faults: Sequence[ReadFault[Keys]]) -> None:
    """Refuse a rewiring that begins before another one has ended."""
    timed = [fault for fault in faults if fault.findings.is_sound("at", "switching_time", "bring_up")]
    timed.sort(key=lambda fault: (fault.at_ps, _lasts_ps(fault.keys)))
    for before, fault in pairwise(timed):
        end_ps = before.at_ps + _lasts_ps(before.keys)
        if fault.at_ps < end_ps:
            end = format_quantity(DURATION, end_ps)
            fault.findings.wrong("at", f"begins before the rewiring that ends at {end}", end)


FAULT: Final = FaultKind(
    source="docs/topologies/tpu-pod.md",
    keys=Keys,
    order=6,
    whole=WholeFabric(
        noun="a rewiring",
        name="optical switches",
        does="gives the slice of a TPU pod other circuits between the same cubes",
        no_place="changes circuits of the whole slice",
        once="happens once; write another one back",
        wiring=_wiring,
    ),
    words=_words,
    delays_ps=_delays_ps,
    check_together=_check_together,
)
