"""The ways in which a run ends, each with the evidence that it needs.

A run has one ending; `ENDINGS` lists them in the order in which they are asked for. Its evidence is in the tables of
the run, so that whoever reads a folder can check what is said of it (`docs/models/answer.md`, section Endings).
Leaves out: how an engine's output is judged (`weftwork.study.run.ending`), and who is to blame
(`weftwork.study.answer.unfinished`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

__all__ = [
    "CUT_BY_HAND",
    "ENDINGS",
    "ENDINGS_AS_ASKED",
    "FAILED_ENDINGS",
    "STATUSES",
    "WHOLE",
    "Ending",
    "ending_of_all",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """One way in which a run ends.

    Attributes
    ----------
    status : its name, the status of a run
    evidence : the records that show it
    headline : the line of an answer in place of its time, with ``{at}`` for the simulated time; empty if it has a time
    predicate : what is said of the run in a comparison, behind its name; empty if it has a time
    notice : the sentence at the head of its page; empty if it has a time
    has_failed : whether more time would not have helped, so that the command reports a failure
    is_as_asked : whether the run went as far as its scenario asks
    is_whole : whether all work was done
    is_by_hand : whether a person or a signal ended it, so that it is no result of its scenario
    is_at_limit : whether engine.until cut it
    is_out_of_work : whether the engine had nothing left to do, and nothing that the run has recorded says why
    """

    status: str
    evidence: str
    headline: str = ""
    predicate: str = ""
    notice: str = ""
    has_failed: bool = False
    is_as_asked: bool = False
    is_whole: bool = False
    is_by_hand: bool = False
    is_at_limit: bool = False
    is_out_of_work: bool = False


_ENDINGS: Final = (
    Ending(
        status="interrupted",
        evidence="the user stopped the engine, or the signal of a shell did",
        headline="PARTIAL: interrupted at {at} of simulated time; what follows is what was done until then",
        predicate="was interrupted",
        notice="This run was interrupted: this page shows the run up to then.",
        is_by_hand=True,
    ),
    Ending(
        status="complete",
        evidence="each message was delivered, and each rank ended each iteration",
        is_as_asked=True,
        is_whole=True,
    ),
    Ending(
        status="deadlocked",
        evidence="the table deadlock has the circle of ports that hold each other back",
        headline="NOT FINISHED: a deadlock by {at} of simulated time; packets hold each other back in a circle",
        predicate="is deadlocked",
        notice="This run did not finish: packets hold each other back in a circle.",
        has_failed=True,
    ),
    Ending(
        status="gave-up",
        evidence="queue_pair_errors is above 0: a queue pair used up its retries, and its messages never arrive",
        headline="NOT FINISHED: a queue pair gave up by {at} of simulated time, and its messages did not arrive",
        predicate="lost a connection",
        notice="This run did not finish: a queue pair gave up, and its messages did not arrive.",
        has_failed=True,
    ),
    Ending(
        status="stuck",
        evidence="the engine had nothing left to do, and the tables deadlock and queue_pair_errors are empty",
        headline="NOT FINISHED: nothing was left to do at {at} of simulated time, and some flows had not arrived",
        predicate="is stuck",
        notice="This run did not finish: nothing was left to do, and some flows had not arrived.",
        has_failed=True,
        is_out_of_work=True,
    ),
    Ending(
        status="stopped",
        evidence="engine.until cut the run, and the engine had work left",
        headline="PARTIAL: stopped at engine.until, {at} of simulated time, with work left",
        predicate="was stopped before its end",
        notice="This run was stopped at engine.until with work left: this page shows the run up to then.",
        is_as_asked=True,
        is_at_limit=True,
    ),
)
ENDINGS: Final[dict[str, Ending]] = {ending.status: ending for ending in _ENDINGS}
STATUSES: Final[tuple[str, ...]] = tuple(ENDINGS)
FAILED_ENDINGS: Final = frozenset(ending.status for ending in _ENDINGS if ending.has_failed)
ENDINGS_AS_ASKED: Final = frozenset(ending.status for ending in _ENDINGS if ending.is_as_asked)
WHOLE: Final = next(ending.status for ending in _ENDINGS if ending.is_whole)
CUT_BY_HAND: Final = next(ending.status for ending in _ENDINGS if ending.is_by_hand)


def ending_of_all(statuses: Iterable[str]) -> str:
    """The status of several runs as one: that of the first run that is not whole.

    Parameters
    ----------
    statuses : of the runs, in their order

    Examples
    --------
    >>> ending_of_all(["complete", "stopped", "stuck"]), ending_of_all([])
    ('stopped', 'complete')
    """
    return next((status for status in statuses if not ENDINGS[status].is_whole), WHOLE)
