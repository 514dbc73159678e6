"""The evidence of an answer in words: what a run recorded that supports the verdict, and what was tried.

A verdict without a culprit is printed with what it looked at and with its limits (`docs/models/answer.md`, section
Evidence). Leaves out: the verdict itself (`weftwork.study.answer.verdict`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.report.words import amount
from weftwork.spec.answer import FULL_SHARE, LISTED, NAMELESS, TROUBLED_SHARE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.spec.answer import Answer, Culprit, Evidence

__all__ = ["untried_words", "verdict_words"]

_NAMED: Final = 3  # chosen: suspects in a sentence; the answer lists all of them
_SLOW: Final = 1.1  # chosen: times the time alone; less is not worth a word
_LEAST: Final = 0.01  # of the time; a bound below it is no suspicion
_UNEXPLAINED: Final = 0.25  # chosen: of the time; with less, no second reason is looked for


def verdict_words(answer: Answer, said: str = "") -> str:
    """What stands behind the verdict of an answer; empty where a culprit needs nothing behind it.

    Parameters
    ----------
    answer : of one seed or of several
    said : what the lines above say; a share in it is not printed again
    """
    evidence, culprit = answer.evidence, answer.culprit
    if evidence is None:
        return ""
    if culprit.kind == "none":
        return f"{_busy(evidence, said)}, and at most {_limit(TROUBLED_SHARE)} was lost, sent again or paused"
    if culprit.kind == "load":
        share = _share(evidence.resources[0].useful_share, said)
        busy = f"useful work took {share} of its time (at least {_limit(FULL_SHARE)})"
        return f"{busy}, though with trouble: {_troubles(evidence)}"
    if culprit.kind == "part":
        grave = [one for one in _untried(answer) if one.key is None or one.key.startswith(LISTED)]
        return _not_simulated(grave)
    if culprit.kind in NAMELESS:
        parts = [_not_simulated(_untried(answer)), *_recorded(evidence, said), _tried(answer)]
        return "; ".join(part for part in parts if part)
    unused = 1 - max((resource.useful_share for resource in evidence.resources), default=0.0)
    is_explained = unused - (culprit.cost_share or 0.0) < _UNEXPLAINED
    if evidence.is_full or is_explained or answer.took.number == "iteration_ps":
        return ""
    return f"the rest is not explained: {'; '.join(_recorded(evidence, said))}"


def untried_words(answer: Answer) -> str:
    """Suspects of which only a bound of their cost is known, and what simulates them; empty without any.

    Parameters
    ----------
    answer : of one seed or of several
    """
    return _not_simulated(_untried(answer))


def _recorded(evidence: Evidence, said: str) -> list[str]:
    """What a run recorded about its health."""
    words = []
    if evidence.resources:
        first = evidence.resources[0]
        share = _share(first.useful_share, said)
        name = f", {first.name}," if first.name else " of each seed"
        words.append(
            f"the busiest resource{name} did useful work for {share} of the time ({_limit(FULL_SHARE)} would"
            " explain it)"
        )
    if evidence.is_troubled:
        words.append(_troubles(evidence))
    if evidence.slowdown is not None and evidence.slowdown > _SLOW:
        words.append(f"the slowest message took {amount(evidence.slowdown, 'ratio')} times as long as alone")
    return words


def _busy(evidence: Evidence, said: str) -> str:
    first = evidence.resources[0]
    share = _share(first.useful_share, said)
    name = first.name or "the busiest resource of each seed"
    return f"{name} did useful work for {share} of the time (at least {_limit(FULL_SHARE)})"


def _share(share: float, said: str) -> str:
    """A share, or words for it if the lines above have the same number."""
    text = amount(share, "share")
    return "the same share" if text in said else text


def _limit(share: float) -> str:
    return f"{100 * share:g} %"


def _troubles(evidence: Evidence) -> str:
    """Shares beyond the limit."""
    shares = (
        (evidence.lost_share, "of the packets were lost"),
        (evidence.resent_share, "of the packets were sent again"),
        (evidence.paused_share, "of the time a port was paused"),
    )
    limit = f"(more than {_limit(TROUBLED_SHARE)})"
    told = ", ".join(f"{amount(share, 'share')} {words}" for share, words in shares if share > TROUBLED_SHARE)
    return f"{told} {limit}"


def _untried(answer: Answer) -> list[Culprit]:
    return [one for one in answer.others if one.how == "bound" and (one.cost_share or 0.0) >= _LEAST]


def _not_simulated(suspects: Sequence[Culprit]) -> str:
    if not suspects:
        return ""
    bounds = ", ".join(_names_and_bound(share, same) for share, same in _by_bound(suspects[:_NAMED]).items())
    more = f" and {len(suspects) - _NAMED:,} more" if len(suspects) > _NAMED else ""
    command = next((one.command for one in suspects if one.command), None)
    how = f"; {command} does it" if command else ""
    return f"{plural(len(suspects), 'suspect was', 'suspects were')} not simulated: {bounds}{more}{how}"


def _by_bound(suspects: Sequence[Culprit]) -> dict[str, list[str]]:
    """Names of suspects by the written bound of their cost: two may have the same, which is then written once."""
    names: dict[str, list[str]] = {}
    for suspect in suspects:
        names.setdefault(amount(suspect.cost_share, "share"), []).append(suspect.name)
    return names


def _names_and_bound(share: str, names: Sequence[str]) -> str:
    return f"{', '.join(names)} ({'each ' if len(names) > 1 else ''}at most {share})"


def _tried(answer: Answer) -> str:
    names = [one.name for one in answer.others if one.how == "simulated"]
    if not names:
        return "no other suspect was in reach"
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"not the cause, since tried in vain: {', '.join(names[:_NAMED])}{more}"
