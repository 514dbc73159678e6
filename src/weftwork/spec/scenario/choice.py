"""The offer of a catalogue file: keys, checks, and how to build.

A scenario chooses the file. A topology, a traffic pattern, a collective algorithm and a transport are each one file
that offers one such record. Its name is that of the file, and what it is stands in the first line of the file's
docstring.
Leaves out: collective algorithms, whose record lives with what it makes (`weftwork.workload.collectives.algorithm`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from weftwork.base.grammar import plural
from weftwork.spec.device import Record
from weftwork.spec.scenario.rows import rows_of

if TYPE_CHECKING:
    from weftwork.base.fix import Fix
    from weftwork.spec.engineering import PathProblem, Planned
    from weftwork.spec.job import Job
    from weftwork.spec.scenario.transport import TransportSection
    from weftwork.spec.transport import Transport
    from weftwork.spec.wire_format import WireFormat

__all__ = [
    "LONELY",
    "KeyFindings",
    "NoKeys",
    "Offer",
    "PathScheme",
    "Pattern",
    "PatternInput",
    "TrafficSize",
    "TransportKind",
]


LONELY: Final = "one host has nobody to talk to; wanted a fabric of at least two"


class NoKeys(Record):
    """The keys of a choice without keys."""


K = TypeVar("K", bound=Record)


class KeyFindings(Protocol):
    """Collects the mistakes of a check.

    It is the part of `weftwork.base.findings.Findings` that a plug-in needs, and tells which keys were written.
    Keys are those of the section, such as ``senders``.
    """

    def wrong(self, key: str, text: str, fix: Fix | None = None) -> None:
        """Note a mistake at a key: found value, allowed values, nearest fix."""

    def is_sound(self, *keys: str) -> bool:
        """Whether no mistake was found at these keys so far."""

    def which(self, first: str, second: str) -> str:
        """Return the key that the user wrote.

        The answer is the first key, unless only the second was written.
        """


@dataclass(frozen=True, kw_only=True)
class Offer(Generic[K]):
    """The common part of every choice.

    Parameters
    ----------
    source : where it is described
    keys : the keys of the scenario that belong to this choice, a record of rows (`weftwork.spec.scenario.rows.row`)
    defaults : keys of the section around it, with the values that they have under this choice where a scenario does
        not set them, as they would stand there: ``{"recovery": "selective-repeat", "mtu": "2KiB"}``; of a transport and
        of a topology
    """

    source: str
    keys: type[K] = NoKeys  # type: ignore[assignment]  # K is NoKeys then
    defaults: Mapping[str, str | int | bool | Mapping[str, str | int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse mistakes of a file that was written by hand.

        Raises
        ------
        TypeError : the keys are no record of rows, the source is no text, or the defaults are no mapping of keys
        """
        defaults: object = self.defaults
        if not (isinstance(defaults, dict) and all(isinstance(key, str) for key in defaults)):
            raise TypeError(f"defaults is {defaults!r}, wanted a mapping such as {{'recovery': 'selective-repeat'}}")
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
        """Return the keys with these values, and defaults for the rest.

        Values are given by the names of their fields.
        """
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
    wire : how its packets look in a capture; None: a run with it cannot be captured
    """

    build: Callable[[TransportSection, K], Transport]
    check: Callable[[TransportSection, K, KeyFindings], None] = _nothing
    wire: WireFormat | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PatternInput:
    """Input of a traffic pattern besides its keys.

    Attributes
    ----------
    hosts : of the fabric, at least two; host i is rank i
    host_rate_bps : of the first NIC ports of all hosts together
    seed : from which everything random follows
    priority : of the data, -1 for the transport's
    queue_pairs : of each flow, used in turn by message
    """

    hosts: int
    host_rate_bps: int
    seed: int
    priority: int
    queue_pairs: int


@dataclass(frozen=True, kw_only=True, slots=True)
class TrafficSize:
    """Amount of a pattern's traffic: messages, queue pairs and total bytes.

    The messages travel on the queue pairs.
    """

    messages: int
    queue_pairs: int
    payload_bytes: int


def _as_they_are(keys: K, *_: object) -> K:
    """Resolve nothing."""
    return keys


def _name_and_hosts(_: object, job: Job) -> str:
    return f"{job.name} among {plural(job.ranks, 'host')}"


@dataclass(frozen=True, kw_only=True)
class Pattern(Offer[K]):
    """The constant ``PATTERN`` of a file: flows between hosts.

    Parameters
    ----------
    job : makes the job from these keys
    words : the job in a few words, for people; by default its name and the number of its hosts
    size : says how much the job will send, so that what no memory holds is refused before it is made; without it a job
        is made first and counted then. ``queue_pairs`` may be the most there can be, ``payload_bytes`` a mean
    resolve : notes what is wrong with the keys on a fabric of so many hosts (None where that is not known yet), and
        fills in what follows; called when a scenario is read
    """

    job: Callable[[K, PatternInput], Job]
    resolve: Callable[[K, int | None, KeyFindings], K] = _as_they_are
    words: Callable[[K, Job], str] = _name_and_hosts
    size: Callable[[K, PatternInput], TrafficSize] | None = None


@dataclass(frozen=True, kw_only=True)
class PathScheme(Offer[K]):
    """The constant ``SCHEME`` of a file: central traffic engineering.

    It lays down paths.

    Parameters
    ----------
    place : chooses a path for each pair from these keys and the problem; equal arguments have equal answers, unless a
        limit of time ends the search, which the answer then says
    """

    place: Callable[[K, PathProblem], Planned]
