"""Simulated time as every part of the reference engine knows it: what time it is, and a call at an instant.

Source: `docs/models/packet-engine.md`, section Time.
Leaves out: how the calls to come are kept, see `event_heap`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Protocol

__all__ = ["Agenda", "Clock", "Phase"]


class Phase(IntEnum):
    """What a node handles first at one instant."""

    DEPARTURE = 0
    INSTANT = 1
    FLOW_CONTROL = 2
    PACKET = 3
    AGENDA = 4


class Agenda(IntEnum):
    """Kinds of the agenda, in their order at one instant."""

    JOB = 0
    HOST_INTERFACE = 1
    RETRANSMISSION = 2
    CONGESTION_CONTROL = 3
    RECEIVER = 4
    REFRESH = 5
    DELIVERY = 6
    EGRESS = 7
    SIGNAL = 8


class Clock(Protocol):
    """What time it is, and a call at an instant."""

    @property
    def now_ps(self) -> int:
        """The present instant."""

    def at(
        self, at_ps: int, phase: Phase, identity: tuple[int, ...], action: Callable[..., None], *arguments: object
    ) -> None:
        """Call ``action(*arguments)`` at an instant that is not past.

        Parameters
        ----------
        at_ps : the instant
        phase, identity : the order of the page among calls of one instant; equal ones keep the order of this method
        action, arguments : what is called
        """
