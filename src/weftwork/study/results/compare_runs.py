"""Several runs compared.

It has groups of one workload, times, fabrics, prices, and different keys.

Leaves out: the words (`weftwork.report.comparison_words`).
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from weftwork.base.errors import UsageError
from weftwork.hardware.prices import price_book
from weftwork.spec.comparison import (
    ComparedFabric,
    ComparedKey,
    ComparedNumber,
    ComparedRun,
    RunComparison,
    WorkloadGroup,
)
from weftwork.spec.numbers import HEADLINES, numbers_shown
from weftwork.spec.time_kinds import TIME_KINDS
from weftwork.spec.workloads import WORKLOADS
from weftwork.store.runs import finished
from weftwork.study.results.compared_fabric import FabricsOfRuns
from weftwork.study.results.run_labels import distinct, labels_of_group
from weftwork.study.results.scenario_keys import flat_keys, tell_files_apart
from weftwork.study.results.seeds import is_difference_clear

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weftwork.store.runs import Run

__all__ = ["compare_runs"]

_SPEEDS: Final = numbers_shown("speed")  # what is told beside the time, the first that there is


def compare_runs(runs: Sequence[Run], *, prices: str | None = None) -> RunComparison:
    """Compare runs.

    Parameters
    ----------
    runs : that were written, two at least; others of a workload are measured against its first run with a time
    prices : price book by name or path; None: the default of `weftwork.hardware.prices`

    Raises
    ------
    UsageError : fewer than two runs
    ConfigError : there is no such price book
    """
    if len(runs) < 2:
        raise UsageError(f"a comparison needs two runs or more, found {len(runs)}")
    book = price_book(prices)
    fabrics = FabricsOfRuns(book)
    scenarios = [yaml.safe_load(run.scenario) for run in runs]
    keys = [flat_keys(one) for one in scenarios]
    tell_files_apart(keys, runs)
    groups, members = _groups(scenarios, keys)
    built = [fabrics.of(run, scenario) for run, scenario in zip(runs, scenarios, strict=True)]
    shorts = _shorts(runs, keys, groups, members, built)
    labels = _labels(shorts, groups, members)
    group_of = {place: number for number, group in enumerate(groups) for place in members[number]}
    values = [_time(run) for run in runs]
    firsts = [next((place for place in own if values[place][1] is not None), None) for own in members]
    rows = tuple(
        _row(
            run,
            label=labels[place],
            short=shorts[place],
            group=group_of[place],
            first=None if firsts[group_of[place]] in {None, place} else runs[firsts[group_of[place]] or 0],
            fabric=built[place],
        )
        for place, run in enumerate(runs)
    )
    counted = Counter(run.path.resolve() for run in runs)
    digests = {run.provenance.get("digest") for run in runs}
    return RunComparison(
        runs=rows,
        groups=tuple(
            WorkloadGroup(
                name=name,
                runs=tuple(own),
                first=first,
                keys=tuple(_differing([keys[place] for place in own])),
                work_keys=tuple(key for key in _differing([keys[place] for place in own]) if _is_work(key)),
            )
            for name, own, first in zip(groups, members, firsts, strict=True)
        ),
        differences=tuple(ComparedKey(key=key, values=tuple(one.get(key) for one in keys)) for key in _differing(keys)),
        numbers=_numbers(runs, members),
        is_same_result=len(digests) == 1 and None not in digests,
        given_twice=tuple(path.name for path, count in counted.items() if count > 1),
        prices=book.name if any(isinstance(one, ComparedFabric) for one in built) else "",
    )


def _groups(
    scenarios: Sequence[Mapping[str, Any]], keys: Sequence[Mapping[str, str]]
) -> tuple[list[str], list[list[int]]]:
    """Names of the workloads and the places of their runs."""
    found: dict[tuple[str, str], list[int]] = {}
    for place, (scenario, flat) in enumerate(zip(scenarios, keys, strict=True)):
        found.setdefault(_workload(scenario, flat), []).append(place)
    return [name for _, name in found], list(found.values())


def _workload(scenario: Mapping[str, Any], flat: Mapping[str, str]) -> tuple[str, str]:
    """Kind of a workload, and its name for people."""
    kind = next((kind for name, kind in WORKLOADS.items() if scenario.get(name)), None)
    if kind is None:
        return "", "no workload"
    if kind.is_list:
        begin, end = f"{kind.name}.", f".{kind.name_key}"
        names = [_plain(text) for key, text in flat.items() if key.startswith(begin) and key.endswith(end)]
        return kind.name, " and ".join(names) or kind.name
    name = _plain(str(scenario[kind.name].get(kind.name_key, "")))
    return kind.name, kind.title.format(name=name) if name else kind.name


def _plain(name: str) -> str:
    """A name of the catalogue, or of a user's file."""
    return Path(name).stem if name.endswith((".py", ".json")) else name


def _is_work(key: str) -> bool:
    section, _, rest = key.partition(".")
    kind = WORKLOADS.get(section)
    if kind is None:
        return False
    name = rest.rpartition(".")[2] if kind.is_list else rest
    return not kind.work_keys or name in kind.work_keys


def _differing(keys: Sequence[Mapping[str, str]]) -> list[str]:
    """Keys with different values, in the order of the scenarios."""
    every = dict.fromkeys(key for one in keys for key in one)
    return [key for key in every if len({one.get(key) for one in keys}) > 1]


def _shorts(
    runs: Sequence[Run],
    keys: Sequence[Mapping[str, str]],
    groups: Sequence[str],
    members: Sequence[Sequence[int]],
    built: Sequence[ComparedFabric | str],
) -> list[str]:
    """A unique short name for each run of a group."""
    found = [""] * len(runs)
    for _, own in zip(groups, members, strict=True):
        differing = [key for key in _differing([keys[place] for place in own]) if key != "name"]
        values = [{key: _text(key, keys[place].get(key), built[place]) for key in differing} for place in own]
        names = labels_of_group(
            [runs[place].about["name"] for place in own], [runs[place].path.resolve().name for place in own], values
        )
        for place, name in zip(own, names, strict=True):
            found[place] = name
    return found


def _text(key: str, value: str | None, fabric: ComparedFabric | str) -> str:
    """A value in a name.

    An oversubscription is the ratio of the built fabric, without the tiers that have none.
    """
    if key == "fabric.oversubscription" and isinstance(fabric, ComparedFabric) and fabric.oversubscription:
        tiers = fabric.oversubscription.split(", ")
        return ", ".join(one for one in tiers if not one.endswith(" 1:1")) or fabric.oversubscription
    return "not set" if value is None else _plain(value)


def _labels(shorts: Sequence[str], groups: Sequence[str], members: Sequence[Sequence[int]]) -> tuple[str, ...]:
    """Unique names of all runs.

    The workload comes first if groups share names.
    """
    counts = Counter(shorts)
    found = list(shorts)
    for group, own in zip(groups, members, strict=True):
        for place in own:
            if counts[shorts[place]] > 1:
                found[place] = f"{group}, {shorts[place]}"
    return distinct(found)


def _time(run: Run) -> tuple[str, float | None]:
    """Name and value of the main number.

    No value if a run that counts is incomplete.
    """
    known = run.summary
    name = next((one for one in HEADLINES if known.get(one, {}).get("value") is not None), "")
    if not name or not _is_whole(run):
        return name, None
    return name, known[name]["value"]


def _is_whole(run: Run) -> bool:
    done, counted = finished(run)
    return done == counted


def _row(
    run: Run, *, label: str, short: str, group: int, first: Run | None, fabric: ComparedFabric | str
) -> ComparedRun:
    number, value = _time(run)
    known = run.summary.get(number, {})
    low, high = (known.get(end) if value is not None else None for end in ("low", "high"))
    before = None if first is None else first.summary.get(number)
    change, is_clear = (None, None)
    if value is not None and first is not None:
        change, is_clear = _change(before, known, are_paired=_are_paired(run, first))
    speed = next((each for each in _SPEEDS if run.summary.get(each.name, {}).get("value") is not None), None)
    culprit = run.answer.culprit
    return ComparedRun(
        folder=run.path.resolve().name,
        label=label,
        short=short,
        group=group,
        status=run.status,
        is_whole=_is_whole(run),
        seeds=int(known.get("seeds", 1)),
        number=number,
        value_ps=value,
        low_ps=low,
        high_ps=high,
        change=change,
        is_clear=is_clear,
        speed=run.value(speed.name) if speed else None,
        speed_name=speed.short if speed else "",
        speed_unit=speed.unit if speed else "",
        exposed_share=run.summary.get("exposed_share", {}).get("value"),
        culprit=culprit.name,
        culprit_share=culprit.cost_share,
        culprit_how="" if culprit.cost_share is None else culprit.how,
        time_parts=_time_parts(run),
        troubles=_troubles(run),
        fabric=None if isinstance(fabric, str) else fabric,
        no_fabric=fabric if isinstance(fabric, str) else "",
    )


def _time_parts(run: Run) -> dict[str, float]:
    """Time of an average rank of the first job by what it went to."""
    parts = {}
    for kind in TIME_KINDS.values():
        value = run.summary.get(f"{kind.number}_ps", {}).get("value")
        if value is not None:
            parts[kind.text] = float(value)
    return parts


def _troubles(run: Run) -> dict[str, float]:
    evidence = run.answer.evidence
    if evidence is None:
        return {}
    return {name: getattr(evidence, name) for name in ("lost_share", "resent_share", "paused_share")}


def _change(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, *, are_paired: bool
) -> tuple[float | None, bool | None]:
    """A value over another, minus 1, and whether that is more than noise."""
    if before is None or after is None or not before["value"] or after["value"] is None:
        return None, None
    return after["value"] / before["value"] - 1, is_difference_clear(after, before, are_paired=are_paired)


def _are_paired(run: Run, other: Run) -> bool:
    """Whether two runs have the same seeds, in the same order."""
    return bool(run.seeds) and run.provenance.get("seeds") == other.provenance.get("seeds")


def _numbers(runs: Sequence[Run], members: Sequence[Sequence[int]]) -> tuple[ComparedNumber, ...]:
    """All numbers of all runs, against the first run of each group."""
    summaries = [run.summary for run in runs]
    first_of = {place: own[0] for own in members for place in own}
    found = []
    for name in dict.fromkeys(name for one in summaries for name in one):
        own = [one.get(name) for one in summaries]
        pairs = [
            (None, None)
            if first_of[place] == place
            else _change(own[first_of[place]], number, are_paired=_are_paired(runs[place], runs[first_of[place]]))
            for place, number in enumerate(own)
        ]
        found.append(
            ComparedNumber(
                name=name,
                unit=next(one["unit"] for one in own if one is not None),
                values=tuple(None if one is None else one["value"] for one in own),
                changes=tuple(change for change, _ in pairs),
                is_clear=tuple(is_clear for _, is_clear in pairs),
            )
        )
    return tuple(found)
