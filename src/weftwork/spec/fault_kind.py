"""The offer of a file in `weftwork.spec.faults`: a kind of fault.

A kind of fault is one file that offers one such record. Its name is that of the file, and what it is stands in the
first line of the file's docstring. Whoever reads, simulates or words a fault asks the record.
Leaves out: the keys that every fault has, and the list of all kinds (`weftwork.spec.scenario.faults`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from weftwork.spec.device import Record
from weftwork.spec.fault_changes import PLACES
from weftwork.spec.scenario.choice import Offer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weftwork.spec.fault_changes import ChangeName, PlaceName
    from weftwork.spec.scenario.choice import KeyFindings

__all__ = ["Change", "Detours", "FaultKind", "ReadFault", "WholeFabric", "Wiring"]

K = TypeVar("K", bound=Record)


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A change of the place of a fault.

    Parameters
    ----------
    name : of `weftwork.spec.fault_changes.CHANGES`; a change that a NIC port does not have is one of its link
    after_ps : time from the beginning of the fault
    fraction, rate_bps : remaining rate, as a share of the rate without faults or by itself; of changes of a rate
    loss : probability that a packet is lost; of changes of the loss
    """

    name: ChangeName
    after_ps: int = 0
    fraction: float | None = None
    rate_bps: int | None = None
    loss: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Wiring:
    """Another wiring of the optical switches.

    Attributes
    ----------
    sides : chips along each dimension; None for those of the fabric
    is_twisted : whether the rings of short sides also shift
    lasts_ps : time from the instant at which circuits go dark until the new ones are up
    """

    sides: tuple[int, ...] | None
    is_twisted: bool
    lasts_ps: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Detours:
    """Delays after which traffic avoids a failed part.

    Attributes
    ----------
    reconvergence_ps : until routes know
    failover_ps : until NICs use another port
    """

    reconvergence_ps: int
    failover_ps: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadFault(Generic[K]):
    """A fault of a scenario while it is read.

    Attributes
    ----------
    at_ps : instant of the fault
    keys : keys of its kind
    findings : take its mistakes
    """

    at_ps: int
    keys: K
    findings: KeyFindings


@dataclass(frozen=True, kw_only=True, slots=True)
class WholeFabric(Generic[K]):
    """A fault of the whole fabric, which has no place and happens once.

    Parameters
    ----------
    noun : one such fault, such as ``a rewiring``
    name : what it happens to
    does : what it does, after the name of the kind, in a sentence about all kinds
    no_place : why it takes no place, after ``means nothing for 'kind', which``
    once : why it takes no repetition, after the same words
    wiring : makes the new wiring of the optical switches from the keys of the kind
    """

    noun: str
    name: str
    does: str
    no_place: str
    once: str
    wiring: Callable[[K], Wiring]


def _no_check(*_: object) -> None:
    """Check nothing."""


def _no_changes(_: object) -> tuple[Change, ...]:
    """Change no place."""
    return ()


def _to_the_end(*_: object) -> None:
    """Delay the run until its end."""


@dataclass(frozen=True, kw_only=True)
class FaultKind(Offer[K]):
    """The constant ``FAULT`` of a file: a kind of fault.

    It has either places, where it begins with changes, or it is of the whole fabric. A fault that ends sets back
    each state that its changes set.

    Parameters
    ----------
    order : its turn in lists of kinds; kinds with the same number stand in the order of their names
    places : at which it can happen, keys of `weftwork.spec.fault_changes.PLACES`; empty for the whole fabric
    whole : what it does to the whole fabric; None where it has places
    words : what happened to the place, such as ``is down``, from the keys of the kind
    words_repeated : the same in one word where it happens several times, such as ``flaps``; empty for ``words``
    begins : makes the changes with which it begins from the keys of the kind
    check : notes what is wrong with the keys of the kind at a place; called when a scenario is read
    check_fidelity : by the name of a fidelity that cannot simulate some faults of this kind: notes what it cannot
    check_together : notes what is wrong with all faults of this kind together, in the order of the scenario
    undoes : the kind that it ends, which takes ``for`` in its place; empty where it ends none
    delays_ps : time for which one occurrence without ``for`` delays a run; None for the rest of it
    """

    order: int = 1_000  # chosen: behind the kinds that have a turn
    places: tuple[PlaceName, ...] = ()
    whole: WholeFabric[K] | None = None
    words: Callable[[K], str]
    words_repeated: str = ""
    begins: Callable[[K], tuple[Change, ...]] = _no_changes
    check: Callable[[K, PlaceName, KeyFindings], None] = _no_check
    check_fidelity: Mapping[str, Callable[[K, KeyFindings], None]] = field(default_factory=dict)
    check_together: Callable[[Sequence[ReadFault[K]]], None] = _no_check
    undoes: str = ""
    delays_ps: Callable[[K, Detours], int | None] = _to_the_end

    def __post_init__(self) -> None:
        """Refuse mistakes of a file.

        Raises
        ------
        TypeError : those of `weftwork.spec.scenario.choice.Offer`; an unknown place; neither places nor the whole
            fabric, or both
        """
        super().__post_init__()
        unknown = [place for place in self.places if place not in PLACES]
        if unknown:
            raise TypeError(f"places has {', '.join(map(repr, unknown))}, wanted some of {', '.join(PLACES)}")
        if bool(self.places) == (self.whole is not None):
            raise TypeError("wanted either places or whole, since a fault has a place or is of the whole fabric")
