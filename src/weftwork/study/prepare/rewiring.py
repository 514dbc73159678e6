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

from weftwork.base.errors import Mistake
from weftwork.base.grammar import plural
from weftwork.engine.lower import Fault
from weftwork.topology.optical_circuits import first_wiring, with_wirings
from weftwork.topology.torus_lattice import TorusLattice, shape_text
from weftwork.topology.tpu_slices import chips_word, cubes_of, is_part, slice_lattice, slice_mistake

if TYPE_CHECKING:
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.scenario.faults import FaultSection
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


def rewirings(scenario: Scenario, fabric: Fabric) -> tuple[Fabric, list[Rewiring], list[Mistake]]:
    """Add the circuits of all rewirings of a scenario to its fabric.

    Parameters
    ----------
    scenario : its faults
    fabric : as it is at the start

    Returns
    -------
    the fabric with the links of all wirings; the rewirings in the order of time; and mistakes, with which the fabric
    is unchanged
    """
    fabric = first_wiring(fabric)  # of a run that is prepared again without some of its faults
    asked = [(index, fault) for index, fault in enumerate(scenario.faults) if fault.event == "rewire"]
    if not asked:
        return fabric, [], []
    lattices, mistakes = [], []
    for index, fault in asked:
        lattice, wrong = _lattice(fabric, fault, f"faults.{index}")
        mistakes += wrong
        if lattice is not None:
            lattices.append(lattice)
    if mistakes:
        return fabric, [], mistakes
    order = sorted(range(len(asked)), key=lambda place: asked[place][1].at_ps)
    whole, lit = with_wirings(fabric, [lattices[place] for place in order])
    found = []
    for turn, place in enumerate(order):
        index, fault = asked[place]
        goes, comes = np.flatnonzero(lit[turn] & ~lit[turn + 1]), np.flatnonzero(lit[turn + 1] & ~lit[turn])
        if not len(goes):
            text = "changes no circuit: the slice already has this wiring; wanted another slice, or another twisted"
            mistakes.append(Mistake(path=f"faults.{index}", text=text))
            continue
        up_ps = fault.at_ps + (fault.switching_time_ps or 0) + (fault.bring_up_ps or 0)
        found.append(
            Rewiring(
                index=index,
                where=_words(lattices[place], is_twisted=bool(fault.twisted)),
                goes=tuple(Fault(at_ps=fault.at_ps, event="dark", link=link) for link in goes.tolist()),
                comes=tuple(Fault(at_ps=up_ps, event="lit", link=link) for link in comes.tolist()),
            )
        )
    return (fabric, [], mistakes) if mistakes else (whole, found, [])


def _words(lattice: TorusLattice, *, is_twisted: bool) -> str:
    return f"{'twisted slice' if is_twisted else 'slice'} {shape_text(lattice.sides)}"


def _lattice(fabric: Fabric, fault: FaultSection, path: str) -> tuple[TorusLattice | None, list[Mistake]]:
    """The wiring that a fault asks for, or why it is impossible."""
    direct = fabric.direct
    if direct is None or direct.optical is None:
        text = f"found 'rewire', but '{fabric.name}' has no optical switches; wanted a tpu-pod with whole cubes"
        return None, [Mistake(path=f"{path}.event", text=text)]
    sides = direct.sides if fault.slice is None else fault.slice
    is_twisted = bool(fault.twisted)
    before = math.prod(direct.sides)
    if (wrong := slice_mistake(sides, is_twisted=is_twisted)) is not None:
        key = "twisted" if fault.slice is None else "slice"
        text, near = wrong
        fix = str(list(near)) if key == "slice" and near is not None and math.prod(near) == before else None
        return None, [Mistake(path=f"{path}.{key}", text=text, fix=fix)]
    if math.prod(sides) != before or is_part(sides):
        wanted = plural(math.prod(cubes_of(direct.sides)), "cube")
        text = f"found {chips_word(sides)}, wanted {wanted}, as {chips_word(direct.sides)} has: the cubes stay the same"
        return None, [Mistake(path=f"{path}.slice", text=text)]
    return slice_lattice(tuple(sides), is_twisted=is_twisted, rings=(True,) * 3), []
