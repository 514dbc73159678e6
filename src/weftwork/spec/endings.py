"""The ways in which a run ends, each with the evidence that it needs.

A run has one ending; `ENDINGS` lists them in the order in which they are asked for. Its evidence is in the tables of
the run, so that whoever reads a folder can check what is said of it (`docs/models/answer.md`, section Endings).
Leaves out: how an engine's output is judged (`weftwork.study.results.ending`), and who is to blame
(`weftwork.study.answer.unfinished`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["ENDINGS", "FAILED_ENDINGS", "STATUSES", "Ending"]


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
    """

    status: str
    evidence: str
    headline: str = ""
    predicate: str = ""
    notice: str = ""
    has_failed: bool = False


_ENDINGS: Final = (
    Ending(
        status="interrupted",
        evidence="the user stopped the engine, or the signal of a shell did",
        headline="PARTIAL: interrupted at {at} of simulated time; what follows is what was done until then",
        predicate="was interrupted",
        notice="This run was interrupted: this page shows the run up to then.",
    ),
    Ending(
        status="complete",
        evidence="each message was delivered, and each rank ended each iteration",
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
    ),
    Ending(
        status="stopped",
        evidence="engine.until cut the run, and the engine had work left",
        headline="PARTIAL: stopped at engine.until, {at} of simulated time, with work left",
        predicate="was stopped before its end",
        notice="This run was stopped at engine.until with work left: this page shows the run up to then.",
    ),
)
ENDINGS: Final[dict[str, Ending]] = {ending.status: ending for ending in _ENDINGS}
STATUSES: Final[tuple[str, ...]] = tuple(ENDINGS)
FAILED_ENDINGS: Final = frozenset(ending.status for ending in _ENDINGS if ending.has_failed)
