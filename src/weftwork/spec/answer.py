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
    "HEADLINES",
    "HOW",
    "NAMELESS",
    "TIME_GROUPS",
    "TROUBLED_SHARE",
    "Answer",
    "Culprit",
    "CulpritKind",
    "Evidence",
    "How",
    "Limit",
    "Resource",
    "Took",
]

CulpritKind = Literal[
    "none", "load", "link", "nic", "gpu", "server", "switch", "stage", "policy", "fault", "job", "setting", "part",
    "unknown",
]  # fmt: skip
CULPRIT_KINDS: Final[tuple[str, ...]] = typing.get_args(CulpritKind)
NAMELESS: Final = frozenset({"none", "load", "unknown"})  # verdicts without a culprit
# recorded: it follows from what the run wrote down; simulated: run again without the suspect; bound: it cannot be more
How = Literal["recorded", "simulated", "bound"]
HOW: Final[tuple[str, ...]] = typing.get_args(How)
FULL_SHARE: Final = 0.9  # chosen: of the time; a resource that carried useful bytes for longer explains a run
TROUBLED_SHARE: Final = 0.01  # chosen: of packets lost or sent again, or of time paused; less is no trouble
# groups of the time of an iteration, one of which limits it: numbers of the summary, and what people call them
HEADLINES: Final = ("iteration_ps", "collective_duration_ps", "completion_ps")  # what a run took: the first it has
TIME_GROUPS: Final = {
    "computing_share": "computing",
    "exposed_share": "exposed communication",
    "bubble_share": "the bubble",
    "waiting_share": "waiting for other ranks",
    "spent_checkpoint_share": "checkpoints",
    "spent_loading_share": "loading data",
    "spent_other_share": "other things",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Took:
    """Duration of a run.

    Attributes
    ----------
    what : of what it is the time: ``an iteration``, ``the collective``, ``all messages``
    seconds : the time; None where it did not end
    number : name of the number in the summary
    """

    what: str
    seconds: float | None
    number: str


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
                took=Took(**document["took"]),
                limited_by=Limit(**document["limited_by"]),
                culprit=Culprit(**document["culprit"]),
                others=tuple(Culprit(**one) for one in document["others"]),
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


def _evidence_of(document: Mapping[str, Any] | None) -> Evidence | None:
    """Read the evidence of a file; None where it has none."""
    if document is None:
        return None
    return Evidence(**{**document, "resources": tuple(Resource(**each) for each in document["resources"])})
