"""Sentences about a comparison: the faster, the cheaper, and doubts.

Takes what `weftwork.study.results.compare_runs` found. Leaves out: tables and charts, see `page_comparison`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.report.design_words import unverified_words
from weftwork.report.difference_words import difference_words
from weftwork.report.money import money_words
from weftwork.report.words import amount, amounts_apart, label, sentence
from weftwork.spec.comparison import ComparedKey
from weftwork.spec.endings import ENDINGS
from weftwork.spec.sweep import SAME
from weftwork.spec.verdicts import verdict_text
from weftwork.spec.workloads import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weftwork.spec.comparison import (
        ComparedFabric,
        ComparedNumber,
        ComparedRun,
        RunComparison,
        WorkloadGroup,
    )

__all__ = [
    "SMALL_LOSS",
    "changed_numbers",
    "compared_text",
    "comparison_verdict",
    "different_fabrics",
    "different_keys",
    "ended_words",
    "fabric_names",
    "has_prices_apart",
    "joined",
    "price_doubts",
    "ratio_words",
    "short_amount",
    "switch_words",
    "time_noun",
]

SMALL_LOSS: Final = 0.02  # chosen: of the time; what a buyer may give away for a cheaper fabric
_MOST_FABRIC_KEYS: Final = 2  # chosen: with more values a name is no name any more
_FEW: Final = 3  # runs of which the fastest is told
_MOST_TOLD: Final = 5  # chosen: sentences about a workload; with more runs the extremes are told
_SCALED: Final = {"ps", "s", "b/s", "B/s", "B"}  # units that `amount` takes a larger step of
_HUGE: Final = 1e12  # chosen: a count with more digits is read as a power of ten
_NO_PRODUCT: Final = "switch without a product"  # as the price books call a plain switch
_NAME: Final = re.compile(r"\S+ (\(\d+\) )?(takes|was|is|has|and) ")  # a name of one word in front of its verb


def comparison_verdict(found: RunComparison) -> list[str]:
    """The verdict in sentences.

    Times and prices of each workload come first, then one fabric for all, then doubts.

    Parameters
    ----------
    found : by `weftwork.study.results.compare_runs`
    """
    doubts = price_doubts(found) if has_prices_apart(found) else []
    said = [f"{name} is given more than once." for name in found.given_twice]
    if found.is_same_result:
        of = "" if len(found.runs) == 2 else f" of all {plural(len(found.runs), 'run')}"
        return [*said, verdict_text("compare.equal", of_all=of), *_saved(found), *doubts]
    alone = [group for group in found.groups if len(group.runs) == 1]
    if len(alone) == len(found.groups) > 1:
        names = "; ".join(group.name for group in found.groups)
        said.append(f"The workloads differ ({names}), so that the times of the runs are not compared.")
        return [*said, *doubts]
    said += _best_fabric(found)
    for group in found.groups:
        said += _of_group(found, group)
    if alone:
        verb, each = ("has", "") if len(alone) == 1 else ("have", " each")
        names = joined([group.name for group in alone])
        said.append(f"{sentence(names)} {verb} one run{each}, which is measured against no other.")
    return [*said, *doubts]


def compared_text(found: RunComparison, place: int, first: int) -> str:
    """One run against another: time, then price; without a full stop.

    Parameters
    ----------
    found : comparison
    place, first : the run, and the run that it is measured against; both have a time
    """
    run, other = found.runs[place], found.runs[first]
    names = (run.short, other.short) if len(found.groups) > 1 else (run.label, other.label)
    return f"{_time_words(run, other, *names)}{_price_words(run.fabric, other.fabric)}"


def _of_group(found: RunComparison, group: WorkloadGroup) -> list[str]:
    if len(group.runs) == 1:
        return []
    lead = f"For {group.name}, " if len(found.groups) > 1 else ""
    timed = [place for place in group.runs if found.runs[place].value_ps is not None]
    said = []
    if group.first is None or len(timed) == 1:
        what = "the times of the runs cannot" if lead else "The completion times cannot"
        why = "since not every run finished" if any(not found.runs[place].is_whole for place in group.runs) else ""
        said.append(f"{lead}{what} be compared{', ' if why else ''}{why}.")
    else:
        others = [place for place in timed if place != group.first]
        said += [f"{lead}{text}." for text in _fastest(found, timed, group.first)]
        told = others if len(others) <= _MOST_TOLD else _extremes(found, others)
        for place in told:
            said.append(f"{lead}{compared_text(found, place, group.first)}.")
            if why := difference_words(found, place, group.first):
                said.append(_sentence(f"{why}."))
        if len(told) < len(others):
            said.append(f"{lead}the other {plural(len(others) - len(told), 'run')} lie between them in time.")
    partial = [found.runs[place] for place in group.runs if not found.runs[place].is_whole]
    if len(timed) > 1:
        said += [f"{run.label} {ended_words(run)}, so that its time is not compared." for run in partial]
    if group.work_keys and timed:
        keys = joined(group.work_keys[:4])
        more = " and more" if len(group.work_keys) > 4 else ""
        said.append(f"{lead}the runs do not carry the same work ({keys}{more}), so that a time is no measure of a"
                    " network alone.")  # fmt: skip
    return [_sentence(text) for text in said]


def _sentence(text: str) -> str:
    """Begin with a capital, unless a name such as ``least-loaded`` comes first."""
    return sentence(text) if text.split(" ", 1)[0].isalpha() and not _NAME.match(text) else text


def _fastest(found: RunComparison, places: Sequence[int], first: int) -> list[str]:
    """The fastest of three runs or more.

    Empty if the first is among them, since other sentences say so.
    """
    times = {place: found.runs[place].value_ps or 0.0 for place in places}
    least = min(times.values())
    best = [place for place in places if times[place] <= least * (1 + SAME)]
    if len(places) < _FEW or first in best:
        return []
    names = joined([found.runs[place].short if len(found.groups) > 1 else found.runs[place].label for place in best])
    return [f"the fastest of {plural(len(places), 'run')} ({amount(least, 'ps')}): {names}"]


def _extremes(found: RunComparison, places: Sequence[int]) -> list[int]:
    """The fastest, cheapest and slowest of many runs, in run order."""
    times = {place: found.runs[place].value_ps or 0.0 for place in places}
    prices = {place: fabric.price_usd.typical for place in places
              if (fabric := found.runs[place].fabric) is not None and fabric.price_usd is not None}  # fmt: skip
    chosen = {min(times, key=lambda one: times[one]), max(times, key=lambda one: times[one])}
    if len(set(prices.values())) > 1:
        chosen.add(min(prices, key=lambda one: (prices[one], times[one])))
    return [place for place in places if place in chosen]


def _time_words(run: ComparedRun, other: ComparedRun, name: str, first: str) -> str:
    before, after = other.value_ps or 0.0, run.value_ps or 0.0
    change = after / before - 1 if before else 0.0
    if abs(change) < SAME:
        return f"{name} takes as long as {first} ({amount(after, 'ps')})"
    times = " against ".join(amounts_apart([after, before], "ps"))
    clear = "" if run.is_clear is None else (
        ", beyond what seeds explain" if run.is_clear else ", within what seeds explain")  # fmt: skip
    if change >= 1:
        return f"{name} takes {amount(1 + change, 'ratio')} times as long as {first} ({times}{clear})"
    direction = "more" if change > 0 else "less"
    return f"{name} takes {amount(abs(change), 'share')} {direction} time than {first} ({times}{clear})"


def _price_words(fabric: ComparedFabric | None, other: ComparedFabric | None) -> str:
    """The saving or extra cost of a fabric.

    Empty if both cost the same or one has no price.
    """
    if fabric is None or other is None or fabric.price_usd is None or other.price_usd is None:
        return ""
    dollars = fabric.price_usd.typical - other.price_usd.typical
    if not dollars:
        return ""
    share = f" ({amount(abs(dollars) / other.price_usd.typical, 'share')})" if other.price_usd.typical else ""
    return (
        f" and saves {money_words(-dollars)}{share}"
        if dollars < 0
        else f" and costs {money_words(dollars)}{share} more"
    )


def _saved(found: RunComparison) -> list[str]:
    """Prices of fabrics that gave the same result to the bit."""
    first = found.runs[0]
    return [
        f"{run.label}{words.removeprefix(' and')} compared with {first.label}."
        for run in found.runs[1:]
        if (words := _price_words(run.fabric, first.fabric))
    ]


def different_fabrics(found: RunComparison) -> dict[int, ComparedFabric]:
    """The fabrics of the runs, each once, by their places."""
    return {run.fabric.place: run.fabric for run in found.runs if run.fabric is not None}


def fabric_names(found: RunComparison) -> dict[int, str]:
    """Name each fabric.

    The name is the one that all its runs share, else the keys in which fabrics differ, else the name of its first run.
    """
    runs = [run for run in found.runs if run.fabric is not None]
    places = list(different_fabrics(found))
    shared = {place: {run.short for run in runs if run.fabric is not None and run.fabric.place == place}
              for place in places}  # fmt: skip
    first = {place: next(index for index, run in enumerate(found.runs)
                         if run.fabric is not None and run.fabric.place == place) for place in places}  # fmt: skip
    candidates = (
        {place: min(names) if len(names) == 1 else "" for place, names in shared.items()},
        {place: _by_keys(found, index) for place, index in first.items()},
    )
    for names in candidates:
        if all(names.values()) and len(set(names.values())) == len(names):
            return names
    return {place: found.runs[index].label for place, index in first.items()}


def _by_keys(found: RunComparison, index: int) -> str:
    """The keys of a run's fabric that differ between runs; empty where they are too many for a name."""
    keys = [one for one in found.differences if one.key.startswith("fabric.")]
    words = (f"{one.key.rpartition('.')[2].replace('_', ' ')} {_asked(one.key, one.values[index])}" for one in keys)
    return ", ".join(words) if len(keys) <= _MOST_FABRIC_KEYS else ""


def _asked(key: str, value: str | None) -> str:
    """A value as the scenario asks for it; a ratio has both its sides."""
    is_ratio = key == "fabric.oversubscription" and value is not None and value.replace(".", "", 1).isdecimal()
    return "not set" if value is None else f"{value}:1" if is_ratio else value


def has_prices_apart(found: RunComparison) -> bool:
    """Whether fabrics have different prices worth printing."""
    prices = {one.price_usd for one in different_fabrics(found).values()}
    return len(prices) > 1


def _best_fabric(found: RunComparison) -> list[str]:
    """The cheapest fabric with a small loss of time.

    The runs of each workload differ only in their fabric. A fabric without a time for one of the workloads is left out.
    """
    by_group: dict[str, dict[int, float]] = {}
    for group in found.groups:
        if len(group.runs) == 1:
            continue
        if not all(key.startswith("fabric.") or key == "name" for key in group.keys) or group.work_keys:
            return []
        by_group[group.name] = {
            run.fabric.place: run.value_ps for place in group.runs
            if (run := found.runs[place]).fabric is not None and run.value_ps is not None}  # fmt: skip
    common = set.intersection(*(set(one) for one in by_group.values())) if by_group else set()
    fabrics = different_fabrics(found)
    prices = {place: price.typical for place in common if (price := fabrics[place].price_usd) is not None}
    if len(prices) < len(common) or len(set(prices.values())) < 2 or (len(by_group) == 1 and len(common) == 2):
        return []
    loss = {place: max(one[place] / min(one.values()) - 1 for one in by_group.values()) for place in common}
    best = min((place for place in common if loss[place] <= SMALL_LOSS), key=lambda place: prices[place], default=None)
    names = fabric_names(found)
    limit = f"at most {amount(SMALL_LOSS, 'share')} slower than the fastest{_for_whom(found, list(by_group))}"
    left_out = _without_a_time(found, by_group, names)
    if best is None:
        return [f"No fabric is {limit}.", *left_out]
    dearest = max(common, key=lambda place: prices[place])
    less = ""
    if best != dearest:
        share = 1 - prices[best] / prices[dearest]
        less = f", {amount(share, 'share')} less than {names[dearest]}"
    lost = (
        "No fabric is faster."
        if loss[best] < SAME
        else f"It takes at most {amount(loss[best], 'share')} more time than the fastest fabric."
    )
    verdict = f"{names[best]} is the cheapest fabric that is {limit}: {money_words(prices[best])}{less}. {lost}"
    return [_sentence(verdict), *left_out]


def _for_whom(found: RunComparison, compared: Sequence[str]) -> str:
    """The workloads of a verdict about fabrics; empty where there is one workload."""
    if len(found.groups) == 1:
        return ""
    return " for every workload" if len(compared) == len(found.groups) else f" for {joined(compared)}"


def _without_a_time(
    found: RunComparison, by_group: Mapping[str, Mapping[int, float]], names: Mapping[int, str]
) -> list[str]:
    """A sentence for each fabric that lacks a time for a workload."""
    said = []
    for place in different_fabrics(found):
        lacking = [name for name, times in by_group.items() if place not in times]
        if not lacking or len(lacking) == len(by_group):
            continue
        verb = "has" if len(lacking) == 1 else "have"
        said.append(_sentence(f"{names[place]} is left out: {joined(lacking)} {verb} no finished run on it."))
    return said


def price_doubts(found: RunComparison) -> list[str]:
    """Basis of the prices, and unpriced items."""
    fabrics = different_fabrics(found)
    names = fabric_names(found)
    said = []
    priced = [one for one in fabrics.values() if one.price_usd is not None]
    if len(fabrics) > 1 or priced:
        said += unverified_words([one.unverified_money_share for one in priced], found.prices)
    lacks: dict[tuple[str, ...], list[str]] = {}
    for place, one in fabrics.items():
        if one.not_priced:
            lacks.setdefault(one.not_priced, []).append(names[place])
    for parts, of in lacks.items():
        whose = "the fabric" if len(fabrics) == 1 else joined(of)
        told = "; ".join(parts[:3]) + (f"; {plural(len(parts) - 3, 'more part')}" if len(parts) > 3 else "")
        said.append(f"Not priced ({found.prices}), so that {whose} has no total: {told}.")
    gone: dict[str, list[str]] = {}
    for run in found.runs:
        if run.no_fabric:
            gone.setdefault(run.no_fabric, []).append(run.label)
    said += [f"The fabric of {joined(of)} was not counted and priced: {why}." for why, of in gone.items()]
    return [_sentence(text) for text in said]


def ended_words(run: ComparedRun) -> str:
    """Ending of an incomplete run in words."""
    if run.seeds > 1 or ENDINGS[run.status].is_whole:
        return "has seeds that did not finish"
    return ENDINGS[run.status].predicate


def time_noun(run: ComparedRun) -> str:
    """Noun of a run's main number, such as ``iteration``."""
    return label(run.number).partition(" ")[0] or "time"


def different_keys(found: RunComparison) -> list[ComparedKey]:
    """Different keys of the scenarios.

    A workload that some runs lack is one row, with the number of its keys.
    """
    lacking: dict[str, ComparedKey] = {}
    shown: list[ComparedKey] = []
    for one in found.differences:
        section = one.key.partition(".")[0]
        own = [key.values for key in found.differences if key.key.partition(".")[0] == section]
        is_there = [any(values[place] is not None for values in own) for place in range(len(found.runs))]
        if section not in WORKLOADS or all(is_there) or len(own) == 1:
            shown.append(one)
        elif section not in lacking:
            counts = tuple(plural(sum(values[place] is not None for values in own), "key") if there else None
                           for place, there in enumerate(is_there))  # fmt: skip
            lacking[section] = ComparedKey(key=section, values=counts)
            shown.append(lacking[section])
    return shown


def changed_numbers(found: RunComparison) -> tuple[list[ComparedNumber], int]:
    """Different numbers, and the count of omitted ones.

    Omitted are numbers that only the runs of one workload have.
    """
    changed = [number for number in found.numbers if not number.is_equal]
    if len(found.groups) == 1:
        return changed, 0
    shared = [
        number
        for number in changed
        if sum(any(number.values[place] is not None for place in group.runs) for group in found.groups) > 1
        or any(len({number.values[place] for place in group.runs}) > 1 for group in found.groups)
    ]
    return shared, len(changed) - len(shared)


def ratio_words(fabric: ComparedFabric) -> str:
    """The realised oversubscription, and the scenario's if it differs."""
    if not fabric.oversubscription:
        return "\u2013"
    asked = f" (asked: {fabric.asked_oversubscription})" if fabric.asked_oversubscription else ""
    return f"{fabric.oversubscription}{asked}"


def switch_words(fabric: ComparedFabric) -> str:
    """Number of switches by tier, with their models.

    Where all are of one model, its name stands behind the tiers.
    """
    tiers = ", ".join(f"{count:,} {name}" for name, count in fabric.switches_by_tier)
    if any(name == _NO_PRODUCT for name, _ in fabric.switch_models):
        return tiers or "none"
    models = ", ".join(name if len(fabric.switch_models) == 1 else f"{count:,} x {name}"
                       for name, count in fabric.switch_models)  # fmt: skip
    return f"{tiers} ({models})" if models and tiers else tiers or models or "none"


def short_amount(value: float | None, unit: str) -> str:
    """A number of a summary for a narrow column.

    A huge count has three digits.

    Examples
    --------
    >>> short_amount(3_150_678, "count"), short_amount(7.5367e18, "count")
    ('3,150,678', '7.54e18')
    """
    if value is not None and unit not in _SCALED and abs(value) >= _HUGE:
        return f"{value:.3g}".replace("e+", "e")
    return amount(value, unit)


def joined(names: Sequence[str]) -> str:
    """Names as a list in a sentence.

    Examples
    --------
    >>> joined(["a"]), joined(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
