"""The step that a routing takes at a switch.

Where a network needs virtual channels, or packets make detours, a compiled step of the folder
``weftwork/policies/routing`` is asked at every switch.
Leaves out: the names of routing (`weftwork.spec.routings`); which virtual channels a network needs
(`weftwork.topology.routing_plan`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from weftwork.policies.load import load
from weftwork.spec.routings import ROUTINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weftwork.policies.load import LoadedPolicy

__all__ = ["AMONG", "HASHED", "LEAST_LOADED", "SPRAY", "routing_step"]

HASHED: Final = "ecmp"
SPRAY: Final = "spray"
LEAST_LOADED: Final = "least-loaded"
AMONG: Final = {HASHED: 0, SPRAY: 1, LEAST_LOADED: 2}  # port selections that a step of routing knows by itself


def routing_step(name: str, *, channels: int, parameters: Mapping[str, int | bool], reorders: bool) -> LoadedPolicy:
    """The step of a routing, which takes the place of the port selection.

    Parameters
    ----------
    name : of `ROUTINGS`, one with a step
    channels : virtual channels of a priority
    parameters : of the step
    reorders : whether packets of a queue pair overtake each other
    """
    file = Path(__file__).parent / "routing" / f"{ROUTINGS[name].step}.py"
    step = load("port_selection", file, {**ROUTINGS[name].fixed, **parameters}, path="fabric.routing")
    needs = set(step.plugin.needs)
    if reorders:
        needs.add("reorder-tolerance")
    if parameters.get("among") == AMONG[LEAST_LOADED]:
        needs.add("queue")
    word = "always" if reorders else "never"
    spreads = "evenly" if parameters.get("among") == AMONG[SPRAY] else getattr(step.plugin, "spreads", None)
    return step.offering(
        name,
        virtual_channels=channels, reorders=word, needs=frozenset(needs), spreads=spreads,
    )  # fmt: skip
