"""Simulated time in the reference engine: the instant, and future calls.

Every part of the engine knows it so.
Source: `docs/models/packet-engine.md`, section Time.
Leaves out: how the calls to come are kept, see `event_heap`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Protocol

__all__ = ["Agenda", "Clock", "Phase"]


class Phase(IntEnum):
    """Order of a node's work at one instant."""

    DEPARTURE = 0
    INSTANT = 1
    FLOW_CONTROL = 2
    PACKET = 3
    AGENDA = 4


class Agenda(IntEnum):
    """Kinds of agenda entries, in their order at one instant."""

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
    """The present instant, and calls at later instants."""

    @property
    def now_ps(self) -> int:
        """The present instant."""

    def at(
        self, at_ps: int, phase: Phase, identity: tuple[int, ...], action: Callable[..., None], *arguments: object
    ) -> None:
        """Call ``action(*arguments)`` at a present or future instant.

        Parameters
        ----------
        at_ps : the instant
        phase, identity : the order of the page among calls of one instant; equal ones keep the order of this method
        action, arguments : what is called
        """
