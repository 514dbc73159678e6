"""Rewirings of the optical switches of a TPU pod: other circuits between the same cubes while the job runs.

From the instant of a rewiring on, the circuits that change are dark. The new circuits come up after the switching time
and the time to bring up their links. Circuits that both wirings have stay up all the time.
Leaves out: how the job is told; packets on dark circuits share the fate of packets on links that fail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weftwork.base.grammar import plural
from weftwork.engine.lower import Fault
from weftwork.topology.optical_circuits import first_wiring, with_wirings
from weftwork.topology.torus_lattice import TorusLattice, shape_text
from weftwork.topology.tpu_slices import chips_word, cubes_of, is_part, slice_lattice, slice_mistake

if TYPE_CHECKING:
    from weftwork.base.findings import Findings
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.fault_kind import Wiring
    from weftwork.spec.scenario.scenario import Scenario

__all__ = ["Rewiring", "rewirings"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewiring:
    """One rewiring, as faults of links.

    Attributes
    ----------
    index : of the scenario's fault
    where : the new wiring in words
    goes, comes : circuits that go dark, and circuits that come up
    """

    index: int
    where: str
    goes: tuple[Fault, ...]
    comes: tuple[Fault, ...]


def rewirings(scenario: Scenario, fabric: Fabric, findings: Findings) -> tuple[Fabric, list[Rewiring]]:
    """Add the circuits of all rewirings of a scenario to its fabric.

    Parameters
    ----------
    scenario : its faults
    fabric : as it is at the start
    findings : of these rewirings alone

    Returns
    -------
    the fabric with the links of all wirings, and the rewirings in the order of time; with a mistake, the fabric as it
    is, and none
    """
    fabric = first_wiring(fabric)  # of a run that is prepared again without some of its faults
    asked = [
        (index, fault, of_fabric.wiring(fault.kind_keys))
        for index, fault in enumerate(scenario.faults)
        if (of_fabric := fault.kind.whole) is not None
    ]
    if not asked:
        return fabric, []
    lattices = []
    for index, fault, wiring in asked:
        lattice = _lattice(fabric, fault.event, wiring, findings.reserved(f"faults.{index}"))
        if lattice is not None:
            lattices.append(lattice)
    if findings.has_mistakes:
        return fabric, []
    order = sorted(range(len(asked)), key=lambda place: asked[place][1].at_ps)
    whole, lit = with_wirings(fabric, [lattices[place] for place in order])
    found = []
    for turn, place in enumerate(order):
        index, fault, wiring = asked[place]
        goes, comes = np.flatnonzero(lit[turn] & ~lit[turn + 1]), np.flatnonzero(lit[turn + 1] & ~lit[turn])
        if not len(goes):
            text = "changes no circuit: the slice already has this wiring; wanted another slice, or another twisted"
            findings.wrong(f"faults.{index}", text)
            continue
        up_ps = fault.at_ps + wiring.lasts_ps
        found.append(
            Rewiring(
                index=index,
                where=_words(lattices[place], is_twisted=wiring.is_twisted),
                goes=tuple(Fault(at_ps=fault.at_ps, event="dark", link=link) for link in goes.tolist()),
                comes=tuple(Fault(at_ps=up_ps, event="lit", link=link) for link in comes.tolist()),
            )
        )
    return (whole, found) if len(found) == len(asked) else (fabric, [])


def _words(lattice: TorusLattice, *, is_twisted: bool) -> str:
    return f"{'twisted slice' if is_twisted else 'slice'} {shape_text(lattice.sides)}"


def _lattice(fabric: Fabric, event: str, wiring: Wiring, findings: Findings) -> TorusLattice | None:
    """The wiring that a fault asks for, or None where it is impossible."""
    direct = fabric.direct
    if direct is None or direct.optical is None:
        text = f"found '{event}', but '{fabric.name}' has no optical switches; wanted a tpu-pod with whole cubes"
        findings.wrong("event", text)
        return None
    sides = direct.sides if wiring.sides is None else wiring.sides
    is_twisted = wiring.is_twisted
    before = math.prod(direct.sides)
    if (wrong := slice_mistake(sides, is_twisted=is_twisted)) is not None:
        key = "twisted" if wiring.sides is None else "slice"
        text, near = wrong
        fix = str(list(near)) if key == "slice" and near is not None and math.prod(near) == before else None
        findings.wrong(key, text, fix)
        return None
    if math.prod(sides) != before or is_part(sides):
        wanted = plural(math.prod(cubes_of(direct.sides)), "cube")
        text = f"found {chips_word(sides)}, wanted {wanted}, as {chips_word(direct.sides)} has: the cubes stay the same"
        findings.wrong("slice", text)
        return None
    return slice_lattice(tuple(sides), is_twisted=is_twisted, rings=(True,) * 3)
