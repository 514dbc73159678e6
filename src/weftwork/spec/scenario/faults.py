"""The keys of ``faults``, and their checks against each other.

A rewiring of optical switches stands among the faults, since it takes links away for a time.
Leaves out: whether the fabric has what is named; the floor that builds it uses `Scenario.locate`.
"""

from __future__ import annotations

from itertools import pairwise

from weftwork.base.units import DURATION, RATE, format_quantity
from weftwork.spec.device import Record
from weftwork.spec.scenario.kinds import Choice, Flag, Listing, Measure, Number, Text, Whole
from weftwork.spec.scenario.reader import Reader
from weftwork.spec.scenario.rows import REQUIRED, row
from weftwork.spec.scenario.workload import EngineSection

__all__ = ["FaultSection", "check_faults"]

_PLACES = ("link", "switch", "nic")
_REWIRE = ("event", ("rewire",))
_ONCE = ("for_ps", "every_ps", "times")
# What can happen to each.
_EVENTS = {
    "link": ("down", "up", "degrade", "lossy"),
    "switch": ("down", "up"),
    "nic": ("down", "up", "slow"),
}


class FaultSection(Record):
    """A fault of a link, switch or NIC, once or repeated, or a rewiring of the optical switches."""

    at_ps: int = row(
        "at",
        Measure(quantity=DURATION),
        default=REQUIRED,
        text="Simulated instant.",
        source="chosen: the user does",
    )
    link: str | None = row(
        "link",
        Text(),
        absent="the fault is a switch's or a NIC's, or a rewiring",
        text="Name of a link, such as leaf3-spine1.",
        source="chosen: none",
    )
    switch: str | None = row(
        "switch",
        Text(),
        absent="the fault is a link's or a NIC's, or a rewiring",
        text="Name of a switch, such as spine1; of a TPU pod also an optical switch (ocs12) or a cube (cube3).",
        source="chosen: none",
    )
    nic: str | None = row(
        "nic",
        Text(),
        absent="the fault is a link's or a switch's, or a rewiring",
        text="NIC port of a host, such as host3/nic1; host3 for all of its ports.",
        source="chosen: none",
    )
    event: str = row(
        "event",
        Choice(options=("down", "up", "degrade", "lossy", "slow", "rewire")),
        default=REQUIRED,
        text="Kind of fault: degrade and lossy are for links, slow is for NICs, down and up are for all. rewire gives"
        " the slice of a TPU pod other circuits between the same cubes.",
        source="chosen: the user does",
    )
    fraction: float | None = row(
        "fraction",
        Number(above=0, high=1),
        only=("event", ("degrade", "slow")),
        absent="rate is given",
        text="Remaining share of the rate of the link, or of the PCIe behind the NIC.",
        source="chosen: none",
    )
    rate_bps: int | None = row(
        "rate",
        Measure(quantity=RATE, low=1_000_000),
        only=("event", ("degrade", "slow")),
        absent="fraction is given",
        text="Remaining rate of the link, or of the PCIe behind the NIC.",
        source="chosen: none",
    )
    loss: float | None = row(
        "loss",
        Number(low=0, high=1, unit="probability"),
        only=("event", ("lossy",)),
        absent="missing if the event is lossy",
        text="Probability that a packet vanishes on the link, in each direction.",
        source="chosen: none",
    )
    for_ps: int | None = row(
        "for",
        Measure(quantity=DURATION, low=1),
        absent="for ever",
        text="Time after which it is as before.",
        source="chosen: none",
    )
    every_ps: int | None = row(
        "every",
        Measure(quantity=DURATION, low=1),
        absent="it happens once",
        text="Time from one occurrence to the next; with `for` and `times` a link flaps.",
        source="chosen: none",
    )
    times: int | None = row(
        "times",
        Whole(low=1, high=100_000, unit="times"),
        absent="it happens once",
        text="Number of occurrences.",
        source="chosen: none",
    )
    slice: tuple[int, ...] | None = row(
        "slice",
        Listing(item=Whole(low=4, high=4_096, unit="chips"), length=3),
        only=_REWIRE,
        absent="that of the fabric",
        text="Chips along each dimension after the rewiring, such as [4, 8, 16]; as many cubes as before.",
        source="chosen: the user does",
    )
    twisted: bool | None = row(
        "twisted",
        Flag(),
        only=_REWIRE,
        default=False,
        text="Whether the rings of short sides also shift after the rewiring.",
        source="chosen: a regular torus",
    )
    switching_time_ps: int | None = row(
        "switching_time",
        Measure(quantity=DURATION),
        only=_REWIRE,
        default="10ms",
        text="Time in which the optical switches turn their mirrors; changed circuits are dark from its start on.",
        source="chosen: optical switches with mirrors take milliseconds; a published figure is unverified",
    )
    bring_up_ps: int | None = row(
        "bring_up",
        Measure(quantity=DURATION),
        only=_REWIRE,
        default="2s",
        text="Time from the end of switching until the links of the new circuits are up.",
        source="chosen: optical links take seconds to come up",
    )


def check_faults(faults: tuple[FaultSection, ...], engine: EngineSection, reader: Reader) -> None:
    """Check each fault by itself and against the end of the run."""
    for index, fault in enumerate(faults):
        path = f"faults.{index}"
        if not reader.is_sound(path):
            continue
        if reader.is_sound(f"{path}.event") and fault.event == "rewire":
            _check_rewiring(fault, path, reader)
            _check_end(fault, path, engine, reader)
            continue
        place = _place(fault, path, reader)
        if place is not None and reader.is_sound(f"{path}.event"):
            _check_event(fault, place, path, reader)
        _check_repetition(fault, path, reader)
        _check_end(fault, path, engine, reader)
    _check_order(faults, reader)


def _check_end(fault: FaultSection, path: str, engine: EngineSection, reader: Reader) -> None:
    if not reader.is_sound(f"{path}.at", "engine.until") or engine.until_ps is None:
        return
    if fault.at_ps >= engine.until_ps:
        reader.wrong(f"{path}.at", "lies at or after engine.until, so it would never happen")


def _check_rewiring(fault: FaultSection, path: str, reader: Reader) -> None:
    """Refuse places and repetition of a rewiring, which is of the whole slice and happens once."""
    for name in _PLACES:
        if getattr(fault, name) is not None:
            reader.wrong(f"{path}.{name}", "means nothing for 'rewire', which changes circuits of the whole slice")
    for name in _ONCE:
        if getattr(fault, name) is not None:
            key = name.removesuffix("_ps")
            reader.wrong(f"{path}.{key}", "means nothing for 'rewire', which happens once; write another one back")


def _check_order(faults: tuple[FaultSection, ...], reader: Reader) -> None:
    """Refuse a rewiring that begins before another one has ended."""
    times = ("at", "switching_time", "bring_up")
    found = [
        (fault.at_ps, fault.at_ps + (fault.switching_time_ps or 0) + (fault.bring_up_ps or 0), index)
        for index, fault in enumerate(faults)
        if fault.event == "rewire" and reader.is_sound(*(f"faults.{index}.{key}" for key in times))
    ]
    found.sort()
    for (_, end_ps, _), (at_ps, _, index) in pairwise(found):
        if at_ps < end_ps:
            text = f"begins before the rewiring that ends at {format_quantity(DURATION, end_ps)}"
            reader.wrong(f"faults.{index}.at", text, format_quantity(DURATION, end_ps))


def _place(fault: FaultSection, path: str, reader: Reader) -> str | None:
    """The place that a fault names; None if it is not clear."""
    if not reader.is_sound(*(f"{path}.{key}" for key in _PLACES)):
        return None
    named = [key for key in _PLACES if getattr(fault, key) is not None]
    if len(named) == 1:
        return named[0]
    reader.wrong(path, f"found {' and '.join(named) or 'none'}, wanted exactly one of link, switch and nic")
    return None


def _check_event(fault: FaultSection, place: str, path: str, reader: Reader) -> None:
    allowed = _EVENTS[place]
    if fault.event not in allowed:
        kind = {"link": "a link", "switch": "a switch", "nic": "a NIC"}[place]
        words = f"{', '.join(allowed[:-1])} or {allowed[-1]}"
        reader.wrong(f"{path}.event", f"found '{fault.event}' for {kind}, wanted {words}")
    elif fault.event in {"degrade", "slow"} and reader.is_sound(f"{path}.fraction", f"{path}.rate"):
        if (fault.fraction is None) == (fault.rate_bps is None):
            found = "neither" if fault.fraction is None else "both"
            reader.wrong(
                path, f"found {found} of fraction and rate, wanted exactly one: the remaining rate of the {place}"
            )
    elif fault.event == "lossy" and fault.loss is None and reader.is_sound(f"{path}.loss"):
        reader.wrong(f"{path}.loss", "missing, wanted the probability that a packet vanishes, such as 0.001")


def _check_repetition(fault: FaultSection, path: str, reader: Reader) -> None:
    if not reader.is_sound(f"{path}.event", f"{path}.for", f"{path}.every", f"{path}.times"):
        return
    if fault.event == "up" and fault.for_ps is not None:
        reader.wrong(f"{path}.for", "means nothing for 'up'; give it to the fault that is 'down'")
    if (fault.every_ps is None) != (fault.times is None):
        given, missing = ("every", "times") if fault.times is None else ("times", "every")
        reader.wrong(
            f"{path}.{missing}", f"missing, wanted with {given}: flapping needs an interval and a number of times"
        )
    elif fault.every_ps is not None and fault.event != "up":
        if fault.for_ps is None:
            reader.wrong(f"{path}.for", "missing, wanted with every and times: the duration of each fault")
        elif fault.for_ps >= fault.every_ps:
            reader.wrong(f"{path}.for", "is not shorter than every, so the fault would never end in between")
