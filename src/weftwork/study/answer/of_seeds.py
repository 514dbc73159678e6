"""The answer of several seeds: mean time, mean shares, commonest culprit.

`docs/models/answer.md` has the rules (section Several seeds). Leaves out: the answer of one run
(`weftwork.study.answer.answer`), and intervals, which the summary has.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from weftwork.spec.answer import NAMELESS, Answer, Culprit, Evidence, Interval, Limit, Resource, Took
from weftwork.study.answer.answer import limit_of_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weftwork.spec.answer import CulpritKind

__all__ = ["answer_of_seeds"]

_LEAST_CLAIM: Final[tuple[CulpritKind, ...]] = ("unknown", "load", "none")


def answer_of_seeds(answers: Sequence[Answer], numbers: Mapping[str, Mapping[str, Any]]) -> Answer:
    """Join the answers of several seeds of one scenario.

    Parameters
    ----------
    answers : of each seed, at least one
    numbers : their means, as `weftwork.study.results.seeds.mean_numbers` makes them
    """
    culprits = [one.culprit for one in answers]
    ((kind, name), _), *_ = Counter((one.kind, one.name) for one in culprits).most_common(1)
    if kind in NAMELESS:  # a better verdict would not be true of every seed
        kind = next(each for each in _LEAST_CLAIM if any(one.kind == each for one in culprits))
        ((name, _), *_) = Counter(one.name for one in culprits if one.kind == kind).most_common(1)
    culprit = _mean([one for one in culprits if (one.kind, one.name) == (kind, name)])
    suspects: dict[tuple[str, str, str], list[Culprit]] = {}
    for answer in answers:
        for one in (answer.culprit, *answer.others):
            if (one.kind, one.name) != (kind, name) and one.kind not in NAMELESS:
                suspects.setdefault((one.kind, one.name, one.of), []).append(one)
    return Answer(
        took=_took([one.took for one in answers]),
        limited_by=_limit([one.limited_by for one in answers], numbers),
        culprit=culprit,
        others=tuple(sorted(map(_mean, suspects.values()), key=lambda one: -(one.cost_share or 0.0))),
        seeds=len(answers),
        evidence=_evidence([one.evidence for one in answers]),
    )


def _evidence(each: Sequence[Evidence | None]) -> Evidence | None:
    """What is true of every seed: the least useful work of a resource, and the most trouble.

    None if a seed did not end. Resources are those that all seeds name, or the busiest of each, without a name.
    """
    known = [one for one in each if one is not None]
    if len(known) < len(each):
        return None
    shares = [{resource.name: resource.useful_share for resource in one.resources} for one in known]
    least = {name: min(of_seed[name] for of_seed in shares) for name in shares[0] if all(name in one for one in shares)}
    if not least:
        firsts = [one.resources[0].useful_share for one in known if one.resources]
        least = {"": min(firsts)} if len(firsts) == len(known) else {}
    slowdowns = [one.slowdown for one in known if one.slowdown is not None]
    return Evidence(
        resources=tuple(
            Resource(name=name, useful_share=share) for name, share in sorted(least.items(), key=lambda one: -one[1])
        ),
        lost_share=max(one.lost_share for one in known),
        resent_share=max(one.resent_share for one in known),
        paused_share=max(one.paused_share for one in known),
        slowdown=max(slowdowns, default=None),
    )


def _took(each: Sequence[Took]) -> Took:
    """The mean time over the seeds.

    None if a seed did not end, since the seeds that end are not a fair sample.
    """
    seconds = [took.seconds for took in each if took.seconds is not None]
    if len(seconds) < len(each):
        return replace(each[0], seconds=None, interval=None)
    return replace(each[0], seconds=fmean(seconds), interval=_interval([took.interval for took in each]))


def _interval(each: Sequence[Interval | None]) -> Interval | None:
    """The mean of the intervals of the seeds, which are of one group of measurements."""
    known = [interval for interval in each if interval is not None]
    if not known:
        return None
    lows = [interval.low for interval in known if interval.low is not None]
    highs = [interval.high for interval in known if interval.high is not None]
    return replace(known[0], low=fmean(lows) if lows else None, high=fmean(highs) if highs else None)


def _limit(each: Sequence[Limit], numbers: Mapping[str, Mapping[str, Any]]) -> Limit:
    """The group of time with the largest mean share.

    Without training, the port that most seeds name.
    """
    found = limit_of_time({name: number["value"] for name, number in numbers.items()})
    if found is not None:
        return replace(found, named_by=sum(one.name == found.name for one in each))
    (name, count), *_ = Counter(one.name for one in each).most_common(1)
    shares = [one.share for one in each if one.name == name and one.share is not None]
    return Limit(name=name, share=fmean(shares) if shares else None, number=each[0].number, named_by=count)


def _mean(same: Sequence[Culprit]) -> Culprit:
    """One suspect of several seeds with its average cost.

    The method is that of the least certain seed.
    """
    costs_s = [one.cost_s for one in same if one.cost_s is not None]
    shares = [one.cost_share for one in same if one.cost_share is not None]
    bound = next((one for one in same if one.how == "bound"), None)
    return replace(
        same[0],
        cost_s=fmean(costs_s) if len(costs_s) == len(same) else None,
        cost_share=fmean(shares) if len(shares) == len(same) else None,
        how=same[0].how if bound is None else bound.how,
        command=same[0].command if bound is None else bound.command,
        named_by=len(same),
    )
