"""Routing for all engines: number of paths, and pinned paths.

Leaves out: which paths these are (`weftwork.topology.layers`), and how a switch chooses among the ports of one path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["EVERY_CHANNEL", "MOST_PATHS", "SHORTEST", "USUAL_PATHS", "ChannelScheme", "Detour", "Pin", "Routing"]

EVERY_CHANNEL: Final = -1
USUAL_PATHS: Final = 8  # Singla et al., NSDI 2012, Jellyfish, section 5
Detour = Literal["never", "always", "adaptive"]
ChannelScheme = Literal[
    "one",  # a packet keeps its virtual channel
    "hops",  # the next one at each switch
    "global-hops",  # the next one behind each link between groups, and at a turn
    "dateline",  # two for each part of the way: the second one from the link on that closes a ring of the dimension
    "turns",  # the next one at a turn
    "valleys",  # in a tree, the next one where a packet that has come down goes up again
]
MOST_PATHS: Final = 64  # chosen: eight times what Singla et al. need, NSDI 2012, Jellyfish


@dataclass(frozen=True, kw_only=True, slots=True)
class Pin:
    """The path of the queue pairs between some NIC ports.

    Parameters
    ----------
    sources, destinations : global ids of NIC ports; those of either end hang on one switch
    ports : global ids of the ports by which the path leaves its switches, in order, that to the receiver left out;
        empty where both ends hang on one switch
    channel : the one that is pinned; -1: every channel
    queue_pairs : source rank, destination rank and channel (-1: every one) of those that are pinned, in place of
        ``channel``; empty: all of the NIC ports
    later : ports of the path after each instant of `Routing.plan_at_ps`; empty ports: the shortest paths hold
    """

    sources: tuple[int, ...]
    destinations: tuple[int, ...]
    ports: tuple[int, ...]
    channel: int = EVERY_CHANNEL
    queue_pairs: tuple[tuple[int, int, int], ...] = ()
    later: tuple[tuple[int, ...], ...] = ()

    def ports_of(self, plan: int) -> tuple[int, ...]:
        """The path under a plan.

        Plan 0 is the first; plan 1 begins at the first instant of `Routing.plan_at_ps`.
        """
        return self.ports if plan == 0 else self.later[plan - 1]


@dataclass(frozen=True, kw_only=True, slots=True)
class Routing:
    """Permitted paths of packets.

    Parameters
    ----------
    paths : shortest simple paths between two switches with hosts, among which the entropy chooses, 1 to `MOST_PATHS`;
        0: all shortest paths, among which switches choose
    up_down : in place of all shortest paths, those that never go down and then up again by the tiers of the switches
    dimension_order : of the shortest paths, those that take the dimensions of a direct network one after the other:
        a switch sends by the lowest dimension (`weftwork.spec.fabric_direct.DirectNetwork`) that a shortest path takes
    fewest_global_hops : in place of all shortest paths, those of the fewest links between groups, and of these those of
        the fewest links: local, global, local in a dragonfly, where two global links in a row may be shorter
    detour : whether packets first go to an intermediate switch with hosts, drawn at random from all but the source's,
        and from there on as the other keys say: ``never``; ``always``, Valiant's routing; ``adaptive``, where queues
        say that this is faster. Where the destination's switch is drawn, and within a switch, there is no detour
    detour_by_group : the intermediate is a group: a detour ends at the first switch of the group of the switch drawn;
        it is drawn from groups other than those of source and destination, and within a group there is no detour
    scheme : how a packet takes virtual channels, see `weftwork.topology.virtual_channels`
    pins : paths of some queue pairs; each takes its own whatever ``paths`` says
    plan_at_ps : instants, ascending, at which the next of each pin's later paths takes the place of the one before
    """

    paths: int = 0
    up_down: bool = False
    dimension_order: bool = False
    fewest_global_hops: bool = False
    detour: Detour = "never"
    detour_by_group: bool = False
    scheme: ChannelScheme = "one"
    pins: tuple[Pin, ...] = ()
    plan_at_ps: tuple[int, ...] = ()

    @property
    def has_layers(self) -> bool:
        """Whether packets may take other paths than the shortest."""
        return self.paths > 0 or bool(self.pins)


SHORTEST: Final = Routing()
