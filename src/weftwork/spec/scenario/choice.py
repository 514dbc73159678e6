"""What a file of a catalogue offers a scenario: the keys that belong to the choice, its checks, and how to build it.

A topology, a traffic pattern, a collective algorithm and a transport are each one file that offers one such record. Its
name is that of the file, and what it is stands in the first line of the file's docstring.
Leaves out: collective algorithms, whose record lives with what it makes (`weftwork.workload.collectives.algorithm`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from weftwork.spec.device import Record
from weftwork.spec.scenario.rows import rows_of

if TYPE_CHECKING:
    from weftwork.spec.scenario.transport import TransportSection
    from weftwork.spec.transport import Transport

__all__ = ["Findings", "NoKeys", "Offer", "TransportKind"]


class NoKeys(Record):
    """The keys of a choice that has none of its own."""


K = TypeVar("K", bound=Record)


class Findings(Protocol):
    """Where a check puts the mistakes that it finds. Keys are those of the section, such as ``senders``."""

    def wrong(self, key: str, text: str, fix: str | None = None) -> None:
        """Note a mistake at a key: what was found and what is allowed, and the nearest right value."""

    def is_sound(self, *keys: str) -> bool:
        """Whether nothing wrong was found at these keys so far."""

    def which(self, first: str, second: str) -> str:
        """Return the key that the user wrote: the first of the two, unless only the second is there."""


@dataclass(frozen=True, kw_only=True)
class Offer(Generic[K]):
    """What every choice has.

    Parameters
    ----------
    source : where it is described
    keys : the keys of the scenario that belong to this choice, a record of rows (`weftwork.spec.scenario.rows.row`)
    """

    source: str
    keys: type[K] = NoKeys  # type: ignore[assignment]  # K is NoKeys then

    def __post_init__(self) -> None:
        """Refuse what a file written by hand can get wrong.

        Raises
        ------
        TypeError : the keys are no record of rows, or the source is no text
        """
        source: object = self.source  # a file written by hand; Python itself checks no types
        keys: object = self.keys
        if not isinstance(source, str):
            raise TypeError(f"source is {source!r}, wanted text")
        if not (isinstance(keys, type) and issubclass(keys, Record)):
            name = getattr(keys, "__name__", repr(keys))
            raise TypeError(f"keys is {name}, wanted a class that inherits from Record")
        described = rows_of(self.keys)
        for name in self.keys.model_fields:
            if name not in described:
                raise TypeError(f"{self.keys.__name__}.{name} has no row; wanted {name}: ... = row(...)")

    def options(self, **given: Any) -> K:  # noqa: ANN401 - values of any keys
        """Return the keys with these values, by the names of their fields, and defaults for the rest."""
        return self.keys(**given)


def _nothing(*_: object) -> None:
    """Check nothing."""


@dataclass(frozen=True, kw_only=True)
class TransportKind(Offer[K]):
    """The constant ``TRANSPORT`` of a file: packet formats and rules of the connection.

    Parameters
    ----------
    build : makes the engines' record from the checked section ``transport`` and the keys of this choice
    check : notes what is wrong with the section or these keys; called when a scenario is read
    """

    build: Callable[[TransportSection, K], Transport]
    check: Callable[[TransportSection, K, Findings], None] = _nothing
