"""Routing for all engines: number of paths, and pinned paths.

Leaves out: which paths these are (`weftwork.topology.layers`), and how a switch chooses among the ports of one path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["EVERY_CHANNEL", "MOST_PATHS", "SHORTEST", "USUAL_PATHS", "Detour", "Pin", "Routing"]

EVERY_CHANNEL: Final = -1
USUAL_PATHS: Final = 8  # Singla et al., NSDI 2012, Jellyfish, section 5
Detour = Literal["never", "always", "adaptive"]
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
    detour : whether packets first go to an intermediate switch with hosts, drawn at random, and from there on as the
        other keys say: ``never``; ``always``, Valiant's routing; ``adaptive``, where queues say that this is faster
    detour_by_group : the intermediate is a group: a detour ends at the first switch of the group of the switch drawn;
        it is drawn from groups other than those of source and destination, and within a group there is no detour
    pins : paths of some queue pairs; each takes its own whatever ``paths`` says
    plan_at_ps : instants, ascending, at which the next of each pin's later paths takes the place of the one before
    """

    paths: int = 0
    up_down: bool = False
    dimension_order: bool = False
    detour: Detour = "never"
    detour_by_group: bool = False
    pins: tuple[Pin, ...] = ()
    plan_at_ps: tuple[int, ...] = ()

    @property
    def has_layers(self) -> bool:
        """Whether packets may take other paths than the shortest."""
        return self.paths > 0 or bool(self.pins)


SHORTEST: Final = Routing()
