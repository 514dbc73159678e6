"""The answer of a run: its duration, its limit, and the culprit.

The culprit has a cost. `docs/models/answer.md` has the rules by which it is found. Leaves out: how it is found
(`weftwork.study.answer`), and how it is told (`weftwork.report`).
"""

from __future__ import annotations

import typing
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Literal

from weftwork.base.errors import ConfigError, Mistake

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CULPRIT_KINDS",
    "FULL_SHARE",
    "HOW",
    "LISTED",
    "NAMELESS",
    "REACTIONS",
    "TROUBLED_SHARE",
    "Answer",
    "Culprit",
    "CulpritIds",
    "CulpritKind",
    "Evidence",
    "How",
    "Interval",
    "Limit",
    "Resource",
    "Took",
]

CulpritKind = Literal[
    "none", "load", "link", "nic", "gpu", "server", "switch", "stage", "policy", "fault", "job", "setting", "part",
    "unknown",
]  # fmt: skip
CULPRIT_KINDS: Final[tuple[str, ...]] = typing.get_args(CulpritKind)
LISTED: Final = ("faults.", "stragglers.")  # beginnings of keys of what a scenario lists as wrong
# Keys of what answers to others: it yields to its cause, and is tried together with it
REACTIONS: Final = ("transport.timeout", "transport.congestion_control", "transport.recovery")
NAMELESS: Final = frozenset({"none", "load", "unknown"})  # verdicts without a culprit
# recorded: it follows from what the run wrote down; simulated: run again without the suspect; bound: it cannot be more
How = Literal["recorded", "simulated", "bound"]
HOW: Final[tuple[str, ...]] = typing.get_args(How)
FULL_SHARE: Final = 0.9  # chosen: of the time; a resource that carried useful bytes for longer explains a run
TROUBLED_SHARE: Final = 0.01  # chosen: of packets lost or sent again, or of time paused; less is no trouble


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """Between which values a measurement of a predicted time is likely to be.

    Attributes
    ----------
    low, high : in seconds; None where nothing like the time was measured
    basis : the measurements, and what share of them the interval holds, in words
    rows : how many measurements there are
    """

    low: float | None = None
    high: float | None = None
    basis: str
    rows: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Took:
    """Duration of a run.

    Attributes
    ----------
    what : of what it is the time: ``an iteration``, ``the collective``, ``all messages``
    seconds : the time; None where it did not end
    number : name of the number in the summary
    interval : of the time; None where it did not end, and in folders of earlier versions
    """

    what: str
    seconds: float | None
    number: str
    interval: Interval | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Limit:
    """Limit of a run.

    Attributes
    ----------
    name : one of `TIME_GROUPS`, or the port that was busiest
    share : of the time: what went to it, or for which the port was busy; None where the run did not end
    number : name of the number in the summary that is ``share``
    named_by : in how many seeds it is what limited the run
    """

    name: str
    share: float | None
    number: str
    named_by: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class CulpritIds:
    """Numbers by which a culprit is known in the tables of a run and in its scenario.

    Attributes
    ----------
    ports : of the table ``links``: both ends of each link; of several links alike, those of the first come first
    nodes : of the table ``nodes``: servers and switches, or servers that have the NIC, the GPU or the stage
    gpus : counted over all servers, as in ``stragglers``
    ranks : that run on these GPUs
    jobs : places in the scenario and in the table ``jobs``
    stage : of the pipeline of the one job; None: no stage
    faults, stragglers : places in these lists of the scenario
    """

    ports: tuple[int, ...] = ()
    nodes: tuple[int, ...] = ()
    gpus: tuple[int, ...] = ()
    ranks: tuple[int, ...] = ()
    jobs: tuple[int, ...] = ()
    stage: int | None = None
    faults: tuple[int, ...] = ()
    stragglers: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Culprit:
    """The culprit of a run, and its cost.

    Attributes
    ----------
    kind : of thing; ``none`` where nothing but its own size limits the run, which `Evidence` has to show; ``load``
        where a resource is full and yet packets were lost or paused; ``part`` where a part of the time is all that is
        known; ``unknown`` where not even that is
    name : as in the scenario or the fabric
    key : dotted key of the scenario that has it, such as ``faults.0``; None where none has
    text : what is the matter with it, behind its name
    cost_s : what it cost; None where that is not known
    cost_share : the same as a share of what it took
    how : the cost was found
    of : whose time it cost: of the run, of a job, or of one flow
    command : what simulates the run without it, where ``how`` is a bound
    start_s, end_s : when it was at work, for marks on a time line; None: all the time
    named_by : how many seeds name it, of the others tried it; costs are their mean, ``text`` is of the first of them
    members : names of the suspects that were left out together, of which this is the cost; empty for a single suspect
    file : of a user's own that suspects it; None: Weftwork does
    ids : where it is; None where that is not known, and in folders of earlier versions
    """

    kind: CulpritKind
    name: str
    key: str | None
    text: str
    cost_s: float | None
    cost_share: float | None
    how: How
    of: str
    command: str | None = None
    start_s: float | None = None
    end_s: float | None = None
    named_by: int = 1
    members: tuple[str, ...] = ()
    file: str | None = None
    ids: CulpritIds | None = None

    @property
    def is_listed(self) -> bool:
        """Whether the scenario lists it as wrong: a fault or a straggler."""
        return (self.key or "").startswith(LISTED)

    @property
    def is_named_by_user(self) -> bool:
        """Whether an answer has a line for it whatever it costs: the scenario lists it, or a user's own file does."""
        return self.is_listed or self.file is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class Resource:
    """A port or a processor, and how busy it was with useful work.

    Attributes
    ----------
    name : of the port, or what computes; empty for the busiest of each of several seeds, if they differ
    useful_share : of the time of the run, that it carried each byte once, or computed without repeating itself
    """

    name: str
    useful_share: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """The records by which a run is judged healthy or ill.

    Attributes
    ----------
    resources : the busiest of each kind, the busiest first
    lost_share, resent_share : of the packets that were sent
    paused_share : of the time, at the port that was paused longest
    slowdown : time of the slowest message against its time alone; None where no message has one
    """

    resources: tuple[Resource, ...]
    lost_share: float = 0.0
    resent_share: float = 0.0
    paused_share: float = 0.0
    slowdown: float | None = None

    @property
    def is_full(self) -> bool:
        """Whether a resource did useful work for at least `FULL_SHARE` of the time."""
        return any(resource.useful_share >= FULL_SHARE for resource in self.resources)

    @property
    def is_troubled(self) -> bool:
        """Whether more than `TROUBLED_SHARE` was lost, sent again or paused."""
        return max(self.lost_share, self.resent_share, self.paused_share) > TROUBLED_SHARE


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The three parts of an answer: duration, limit and culprit.

    Attributes
    ----------
    took, limited_by, culprit : see there
    others : suspects that were tried beside the culprit, the dearest first
    seeds : of how many runs it is the answer
    evidence : by which the run was judged; None where it did not end; of several seeds what is true of each
    """

    took: Took
    limited_by: Limit
    culprit: Culprit
    others: tuple[Culprit, ...] = ()
    seeds: int = 1
    evidence: Evidence | None = None

    def to_json(self) -> dict[str, Any]:
        """The answer as JSON for files."""
        return asdict(self) | {"others": [asdict(one) for one in self.others]}

    @classmethod
    def of(cls, document: Mapping[str, Any], source: str) -> Answer:
        """Read the answer of a file.

        Raises
        ------
        ConfigError : the file has something else in its place
        """
        try:
            made = cls(
                took=_took_of(document["took"]),
                limited_by=Limit(**document["limited_by"]),
                culprit=_culprit_of(document["culprit"]),
                others=tuple(_culprit_of(one) for one in document["others"]),
                seeds=document.get("seeds", 1),
                evidence=_evidence_of(document.get("evidence")),
            )
        except (KeyError, TypeError, AttributeError) as wrong:
            names = ", ".join(one.name for one in fields(cls))
            text = f"is no answer ({wrong}), wanted a record with {names}"
            raise ConfigError(source, [Mistake(path="answer", text=text)]) from wrong
        if made.culprit.kind not in CULPRIT_KINDS or made.culprit.how not in HOW:
            text = f"found the kind {made.culprit.kind!r} and {made.culprit.how!r}"
            raise ConfigError(source, [Mistake(path="answer.culprit", text=text)])
        return made


def _culprit_of(document: Mapping[str, Any]) -> Culprit:
    """Read a suspect of a file."""
    ids = document.get("ids")
    return Culprit(
        **{**document, "members": tuple(document.get("members", ())), "ids": None if ids is None else _ids_of(ids)}
    )


def _ids_of(document: Mapping[str, Any]) -> CulpritIds:
    """Read the ids of a suspect of a file."""
    numbers: dict[str, Any] = {name: tuple(value) if name != "stage" else value for name, value in document.items()}
    return CulpritIds(**numbers)


def _took_of(document: Mapping[str, Any]) -> Took:
    """Read the duration of a file."""
    interval = document.get("interval")
    return Took(**{**document, "interval": None if interval is None else Interval(**interval)})


def _evidence_of(document: Mapping[str, Any] | None) -> Evidence | None:
    """Read the evidence of a file; None where it has none."""
    if document is None:
        return None
    return Evidence(**{**document, "resources": tuple(Resource(**each) for each in document["resources"])})
