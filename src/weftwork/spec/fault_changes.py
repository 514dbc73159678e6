"""Changes of links, switches and NIC ports, as kinds of faults name them and engines make them.

A change sets one state of one place. A kind of fault (`weftwork.spec.fault_kind`) begins with one change or several.
Leaves out: the values, which a fault carries, and the instants of an engine (`weftwork.engine.instants`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CHANGES", "PLACES", "ChangeName", "ChangeRow", "ChangedState", "PlaceName"]

PlaceName = Literal["link", "switch", "nic"]
ChangeName = Literal["down", "up", "degrade", "lossy", "slow", "dark", "lit"]

# Each place of a fault, a key of ``faults``, with the words for one and for several.
PLACES: Final[Mapping[PlaceName, tuple[str, str]]] = MappingProxyType(
    {"link": ("a link", "links"), "switch": ("a switch", "switches"), "nic": ("a NIC", "NICs")}
)


class ChangedState(Enum):
    """A state of a place that a fault can set."""

    WORKS = "a link or a switch works"
    CIRCUIT = "optical switches join the ends of a link"
    RATE = "rate of a link"
    LOSS = "probability that a link loses a packet"
    HOST_RATE = "rate between a NIC port and its host"


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeRow:
    """A change of one state.

    Parameters
    ----------
    sets : the state
    places : places that have this state
    passes : whether packets pass afterwards; None where the change does not decide that
    words : the place afterwards, in a word
    """

    sets: ChangedState
    places: tuple[PlaceName, ...]
    passes: bool | None = None
    words: str


CHANGES: Final[Mapping[ChangeName, ChangeRow]] = MappingProxyType(
    {
        "down": ChangeRow(sets=ChangedState.WORKS, places=("link", "switch"), passes=False, words="down"),
        "up": ChangeRow(sets=ChangedState.WORKS, places=("link", "switch"), passes=True, words="up"),
        "degrade": ChangeRow(sets=ChangedState.RATE, places=("link",), words="degraded"),
        "lossy": ChangeRow(sets=ChangedState.LOSS, places=("link",), words="lossy"),
        "slow": ChangeRow(sets=ChangedState.HOST_RATE, places=("nic",), words="slow"),
        "dark": ChangeRow(sets=ChangedState.CIRCUIT, places=("link",), passes=False, words="dark"),
        "lit": ChangeRow(sets=ChangedState.CIRCUIT, places=("link",), passes=True, words="lit"),
    }
)
