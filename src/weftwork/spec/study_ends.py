"""The ways in which a study of many runs ends, and how each is told.

A sweep, a tuning, a crossing and a design end alike: with a result, by Ctrl-C, or since the disk is full.
Leaves out: how a single run ends (`weftwork.spec.endings`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["STUDY_ENDS", "StudyEnd", "StudyEndName"]

StudyEndName = Literal["done", "interrupted", "full"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyEnd:
    """One way in which a study ends.

    Attributes
    ----------
    name : of the end
    why : why there is no result, with ``{study}`` for its kind, such as ``sweep``; empty where there is one
    cause : the same as a clause about a study of before; empty where there is a result
    then : what to do before the command that continues the study; empty where there is a result
    is_done : whether all that was asked for is there
    is_by_hand : whether a person or a signal ended it
    """

    name: StudyEndName
    why: str = ""
    cause: str = ""
    then: str = ""
    is_done: bool = False
    is_by_hand: bool = False


_ENDS: Final = (
    StudyEnd(name="done", is_done=True),
    StudyEnd(
        name="interrupted",
        why="the {study} was interrupted",
        cause="it was interrupted",
        then="continue with",
        is_by_hand=True,
    ),
    StudyEnd(
        name="full",
        why="the disk is full",
        cause="the disk was full",
        then="free some space, then continue with",
    ),
)
STUDY_ENDS: Final[dict[str, StudyEnd]] = {end.name: end for end in _ENDS}
