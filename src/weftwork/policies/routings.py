"""The names of routing, and the step that each takes at a switch.

A name says which routes packets take, and whether they make detours. Where a network needs virtual channels, or packets
make detours, a compiled step of the folder ``weftwork/policies/routing`` is asked at every switch.
Leaves out: which virtual channels a network needs (`weftwork.topology.routing_plan`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weftwork.policies.load import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weftwork.policies.load import LoadedPolicy
    from weftwork.spec.routing import Detour

__all__ = ["AMONG", "ROUTINGS", "RoutingName", "routing_step"]

AMONG: Final = {"ecmp": 0, "spray": 1, "least-loaded": 2}  # port selections that a step of routing knows by itself


@dataclass(frozen=True, kw_only=True, slots=True)
class RoutingName:
    """A name that ``fabric.routing`` takes.

    Attributes
    ----------
    text : one sentence
    source : paper and section
    step : file of the folder of steps; empty: a port selection chooses among the routes
    fixed : parameters of the step that make it this routing
    detour : whether packets make detours
    channels : virtual channels that it needs, in words
    """

    text: str
    source: str
    step: str = ""
    fixed: Mapping[str, bool] = field(default_factory=dict)
    detour: Detour = "never"
    channels: str


ROUTINGS: Final[Mapping[str, RoutingName]] = {
    "shortest": RoutingName(
        text="All shortest paths; the port selection chooses among them, in one virtual channel.",
        source="chosen: ECMP, as routing protocols of data centres come with it",
        channels="one; enough for trees",
    ),
    "up-down": RoutingName(
        text="Shortest paths that never go down and then up again, also around a fault.",
        source="Schroeder et al., Autonet, IEEE JSAC 9(8), 1991, doi:10.1109/49.105178",
        channels="one",
    ),
    "minimal": RoutingName(
        text="All shortest paths, with the virtual channels of the network.",
        source="Dally and Towles, Principles and Practices of Interconnection Networks, 2004, sections 8.4 and 14.2",
        step="direct",
        channels="dragonfly 2, dragonfly+ 2; else one for each hop: Slim Fly 2, HyperX its dimensions",
    ),
    "dimension-order": RoutingName(
        text="Shortest paths that take the dimensions one after the other, with datelines in rings.",
        source="Dally and Seitz, IEEE Transactions on Computers C-36(5), 1987, doi:10.1109/TC.1987.1676939",
        step="direct",
        channels="torus 2; mesh, HyperX 1",
    ),
    "valiant": RoutingName(
        text="By an intermediate switch, or group, drawn at random.",
        source="Valiant, SIAM Journal on Computing 11(2), 1982, doi:10.1137/0211027",
        step="valiant",
        detour="always",
        channels="dragonfly 3; torus 4; mesh, HyperX 2; else twice the diameter",
    ),
    "ugal": RoutingName(
        text="Minimal, or by an intermediate where the first switch's queues say that this is faster.",
        source="Singh, PhD thesis, Stanford 2005; Kim et al., ISCA 2008, doi:10.1109/ISCA.2008.19, section 4.2",
        step="adaptive",
        detour="adaptive",
        channels="as valiant",
    ),
    "par": RoutingName(
        text="As ugal; a packet may think again at later switches of its first group.",
        source="Jiang, Kim and Dally, ISCA 2009, doi:10.1145/1555754.1555783",
        step="adaptive",
        fixed={"by_group": True, "rethinks": True},
        detour="adaptive",
        channels="dragonfly 4; only networks of groups",
    ),
    "k-shortest": RoutingName(
        text="The shortest `fabric.paths` of all simple paths, longer ones too; the packet's entropy chooses.",
        source="Singla et al., NSDI 2012, Jellyfish, section 5",
        step="direct",
        channels="one for each hop of the longest path; in a tree for each way up",
    ),
}


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
    if parameters.get("among") == AMONG["least-loaded"]:
        needs.add("queue")
    word = "always" if reorders else "never"
    spreads = "evenly" if parameters.get("among") == AMONG["spray"] else getattr(step.plugin, "spreads", None)
    return step.offering(
        name,
        virtual_channels=channels, reorders=word, needs=frozenset(needs), spreads=spreads,
    )  # fmt: skip
