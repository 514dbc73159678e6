"""The names of routing: rows with all that others ask of one.

A name says which routes packets take, and whether they make detours.
Leaves out: which virtual channels a network needs (`weftwork.topology.routing_plan`); the step that is asked at every
switch (`weftwork.policies.routings`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weftwork.spec.routing import Detour

__all__ = ["ROUTINGS", "PathSet", "RoutingName"]

PathSet = Literal["every shortest", "several", "up then down", "by network"]


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
    paths : which paths packets take: all shortest ones; several, longer ones too, among which the entropy chooses;
        those that go up and then down; or those of the network, which may be ordered and need virtual channels
    in_order : whether it goes through the dimensions one after the other
    rethinks : whether a packet may think again at later switches
    is_plain_in_trees : whether it is all shortest paths where these never go down and then up
    words : in the description of a run, with ``{paths}`` for the number of paths; empty: not worth a word
    place : among the values of the key
    proposal : its turn where another routing is proposed in place of one that cannot be; 0: never
    """

    text: str
    source: str
    step: str = ""
    fixed: Mapping[str, bool] = field(default_factory=dict)
    detour: Detour = "never"
    channels: str
    paths: PathSet = "by network"
    in_order: bool = False
    rethinks: bool = False
    is_plain_in_trees: bool = False
    words: str = ""
    place: int
    proposal: int = 0


ROUTINGS: Final[Mapping[str, RoutingName]] = {
    "shortest": RoutingName(
        text="All shortest paths; the port selection chooses among them, in one virtual channel.",
        source="chosen: ECMP, as routing protocols of data centres come with it",
        channels="one; enough for trees",
        paths="every shortest",
        place=1,
        proposal=4,
    ),
    "up-down": RoutingName(
        text="Shortest paths that never go down and then up again, also around a fault.",
        source="Schroeder et al., Autonet, IEEE JSAC 9(8), 1991, doi:10.1109/49.105178",
        channels="one",
        paths="up then down",
        words="routes up and then down",
        place=3,
        proposal=3,
    ),
    "minimal": RoutingName(
        text="All shortest paths, with the virtual channels of the network.",
        source="Dally and Towles, Principles and Practices of Interconnection Networks, 2004, sections 8.4 and 14.2",
        step="direct",
        channels="dragonfly 2, dragonfly+ 2; else one for each hop: Slim Fly 2, HyperX its dimensions",
        is_plain_in_trees=True,
        place=4,
        proposal=1,
    ),
    "dimension-order": RoutingName(
        text="Shortest paths that take the dimensions one after the other, with datelines in rings.",
        source="Dally and Seitz, IEEE Transactions on Computers C-36(5), 1987, doi:10.1109/TC.1987.1676939",
        step="direct",
        channels="torus 2; mesh, HyperX 1",
        in_order=True,
        place=5,
        proposal=2,
    ),
    "valiant": RoutingName(
        text="By an intermediate switch, or group, drawn at random.",
        source="Valiant, SIAM Journal on Computing 11(2), 1982, doi:10.1137/0211027",
        step="valiant",
        detour="always",
        channels="dragonfly 3; torus 4; mesh, HyperX 2; else twice the diameter",
        place=6,
    ),
    "ugal": RoutingName(
        text="Minimal, or by an intermediate where the first switch's queues say that this is faster.",
        source="Singh, PhD thesis, Stanford 2005; Kim et al., ISCA 2008, doi:10.1109/ISCA.2008.19, section 4.2",
        step="adaptive",
        detour="adaptive",
        channels="as valiant",
        place=7,
    ),
    "par": RoutingName(
        text="As ugal; a packet may think again at later switches of its first group.",
        source="Jiang, Kim and Dally, ISCA 2009, doi:10.1145/1555754.1555783",
        step="adaptive",
        fixed={"by_group": True, "rethinks": True},
        detour="adaptive",
        channels="dragonfly 4; only networks of groups",
        rethinks=True,
        place=8,
    ),
    "k-shortest": RoutingName(
        text="The shortest `fabric.paths` of all simple paths, longer ones too; the packet's entropy chooses.",
        source="Singla et al., NSDI 2012, Jellyfish, section 5",
        step="direct",
        channels="one for each hop of the longest path; in a tree for each way up",
        paths="several",
        words="{paths} a pair",
        place=2,
        proposal=5,
    ),
}
