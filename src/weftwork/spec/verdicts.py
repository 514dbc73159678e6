"""Verdicts that find nothing wrong: the sentence of each, and what it looked at.

A sentence that reassures is true only of what was read. `VERDICTS` lists all of them, so that one test can hand each
command an empty, a foreign and a half-unreadable input, and see that it does not reassure
(`tests/kits/test_verdicts.py`).
Leaves out: verdicts with a finding, which their own modules word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["VERDICTS", "NothingFound", "verdict_text"]


@dataclass(frozen=True, kw_only=True, slots=True)
class NothingFound:
    """A verdict that finds nothing.

    Attributes
    ----------
    name : command and finding, such as ``runs.none``
    sentence : in words, with ``{names}`` for what was looked at
    looked_at : what it speaks of; where the sentence does not count it, the output that does
    """

    name: str
    sentence: str
    looked_at: str


_VERDICTS: Final = (
    NothingFound(
        name="run.healthy",
        sentence="its own size alone limits it",
        looked_at="the use of each resource and all losses, in the same line",
    ),
    NothingFound(
        name="run.no-losses", sentence="Nothing was lost.", looked_at="all packets of the run, or of its counted seeds"
    ),
    NothingFound(
        name="run.no-marks", sentence="nothing was marked", looked_at="all queues of the run, or of its counted seeds"
    ),
    NothingFound(
        name="run.no-network-traffic",
        sentence="Nothing crossed the network.",
        looked_at="all links between servers over all iterations",
    ),
    NothingFound(
        name="compare.equal",
        sentence="The results{of_all} are equal to the bit.",
        looked_at="the digests of all runs: every completion time and counter",
    ),
    NothingFound(
        name="decode.clean",
        sentence="Nothing stands out{in_what_was_checked}: {checks}.",
        looked_at="ICRCs, PSNs, answers and PFC frames, which the sentence counts; frames that were cut or passed over",
    ),
    NothingFound(
        name="runs.none",
        sentence="No runs in {folder}: {looked_at}.",
        looked_at="the entries of the folder, which the sentence counts",
    ),
    NothingFound(
        name="runs.nothing-to-delete",
        sentence="Nothing to delete in {folder}: {looked_at}.",
        looked_at="the folders of runs, which the sentence counts",
    ),
    NothingFound(
        name="topology.all-joined",
        sentence="All hosts that reached each other still do.",
        looked_at="all pairs of hosts of the fabric, which the table counts",
    ),
    NothingFound(
        name="tune.none-better",
        sentence="None of {trials} is better than the values of the file, by {objective}.",
        looked_at="the trials, which the sentence counts",
    ),
    NothingFound(
        name="cross.base-is-best",
        sentence="Nothing beats {base}, which switches and NICs ship with.",
        looked_at="contenders with a result in every setting, which the table lists",
    ),
    NothingFound(
        name="sweep.all-equal",
        sentence="All points are equal: {objective}.",
        looked_at="points whose runs finished; the others are counted beside it",
    ),
    NothingFound(
        name="test.all-passed",
        sentence="all {checks} passed",
        looked_at="the checks of the kind of file, which the sentence counts",
    ),
)
VERDICTS: Final[dict[str, NothingFound]] = {each.name: each for each in _VERDICTS}


def verdict_text(name: str, **looked_at: str) -> str:
    """Word a verdict.

    Parameters
    ----------
    name : of `VERDICTS`
    looked_at : by the names in its sentence

    Examples
    --------
    >>> verdict_text("runs.none", folder="runs", looked_at="0 entries were looked at")
    'No runs in runs: 0 entries were looked at.'
    """
    return VERDICTS[name].sentence.format(**looked_at)
