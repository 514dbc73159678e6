"""The page that compares runs.

It has the verdict, time beside price, differences; then times, links and counters.

What differs is found by the caller, who may import the study that compares; here it is only shown. The page goes to
people without the folders of the runs, so that it names runs and no paths.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.report.answer import details
from weftwork.report.comparison_basis import basis_section
from weftwork.report.comparison_charts import MOST_LINES, difference_charts, overlaid
from weftwork.report.comparison_rows import fabric_tables, run_tables
from weftwork.report.comparison_words import changed_numbers, comparison_verdict, different_keys, joined, short_amount
from weftwork.report.figures.axes import figure
from weftwork.report.figures.distribution import distribution
from weftwork.report.figures.stacked import StackedBar, stacked
from weftwork.report.page import three_lines_list, warnings
from weftwork.report.page_elements import PageSection, notice, paragraphs, port, render, table
from weftwork.report.page_flows import flow_values
from weftwork.report.page_series import series_section
from weftwork.report.page_training import SCRIPTS, job_waterfalls, pipeline_figure
from weftwork.report.pipeline import KINDS, is_training, time_by_kind
from weftwork.report.training_answer import jobs_of
from weftwork.report.words import amount, change, label, sentence, typeset
from weftwork.spec.time_kinds import TIME_KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.spec.comparison import ComparedNumber, RunComparison
    from weftwork.store.runs import Run

__all__ = ["comparison_page"]

_BESIDE: Final = 2  # runs whose pipelines and links are shown beside each other
_MOST_CARDS: Final = 6  # chosen: answers of single runs that are open; more are folded
_MOST_STACKS: Final = 12  # chosen: bars of what time goes to
_MOST_TOLD: Final = 3  # chosen: keys that differ which a sentence tells
_PATH: Final = re.compile(r"(?<![\w.:/>-])(?:~|[A-Za-z]:)?/(?:[^\s'\"/,;:<>{}\[\]]+/)+([^\s'\"/,;:<>{}\[\]]+)")


def comparison_page(runs: Sequence[Run], found: RunComparison) -> str:
    """Make the page.

    Parameters
    ----------
    runs : two or more
    found : what `weftwork.study.results.compare_runs` says of them

    Returns
    -------
    HTML, one file

    Raises
    ------
    ConfigError : a table is damaged
    """
    named = [(row.label, run) for row, run in zip(found.runs, runs, strict=True)]
    trained = [one for one in named if is_training(one[1])]
    sent = [one for one in named if not is_training(one[1])]
    sections = [_answer(named, found), *fabric_tables(found), _differences(found), _each(named)]
    if trained:
        sections += _training(trained)
    if sent:
        sections += _times(sent)
    sections += [
        *_over_time(named, found),
        *_series(named),
        _numbers(found),
        basis_section(named, found),
        _origins(named),
    ]
    scripts = SCRIPTS if len(trained) == _BESIDE == len(named) else ()
    return render(_title(named, found), _told(named, found), sections, scripts=scripts)


def _title(named: Sequence[tuple[str, Run]], found: RunComparison) -> str:
    if len(named) > _BESIDE:
        names = {run.about["name"] for _, run in named}
        lead = f"{min(names)}: " if len(names) == 1 else ""
        return f"{lead}{len(named)} runs compared: {joined([group.name for group in found.groups])}"
    (first, run), (second, other) = named
    name = run.about["name"]
    lead = f"{name}: " if name == other.about["name"] and name not in {first, second} else ""
    return f"{lead}{first} against {second}"


def _told(named: Sequence[tuple[str, Run]], found: RunComparison) -> list[tuple[str, str]]:
    """Descriptions of two runs, or of each workload."""
    if len(named) == _BESIDE:
        words = [(name, [run.about.get(key, "") for key in ("workload", "fabric", "transport")]) for name, run in named]
        return [(name, "; ".join(text for text in texts if text)) for name, texts in words]
    told = []
    for group in found.groups:
        own = [named[place] for place in group.runs]
        work = list(dict.fromkeys(run.about.get("workload", "") for _, run in own))
        more = f", and {plural(len(work) - 1, 'variant')} of it" if len(work) > 1 else ""
        told.append((group.name, f"{plural(len(own), 'run')}: {work[0]}{more}"))
    return told


def _answer(named: Sequence[tuple[str, Run]], found: RunComparison) -> PageSection:
    """The verdict, the chart of the difference and a row for each run."""
    said = comparison_verdict(found)
    if not found.differences:
        said.append("The scenarios are the same.")
    elif len(found.differences) == 1:
        said.append(f"The scenarios differ in {found.differences[0].key} alone.")
    elif len(found.differences) <= _MOST_TOLD and len(named) == _BESIDE:
        first, second = found.runs
        parts = (
            f"{one.key} is {_value(one.values[0])} in {first.label} and {_value(one.values[1])} in {second.label}"
            for one in found.differences
        )
        said.append(f"What differs in the scenario: {'; '.join(parts)}.")
    elif len(named) == _BESIDE:
        said.append(f"The scenarios differ in {plural(len(found.differences), 'key')}.")
    told = [f"{name}: {without_paths(text)}" for name, run in named for text in warnings(run, is_ending_told=False)]
    content = paragraphs(said, "answer") + notice(_merged(told)) + difference_charts(found) + run_tables(found)
    return PageSection(id="answer", short="Answer", title="The answer", content=content)


def _merged(texts: Sequence[str]) -> list[str]:
    """Each text once, after the names of all its runs."""
    of: dict[str, list[str]] = {}
    for text in texts:
        name, _, rest = text.partition(": ")
        of.setdefault(rest, []).append(name)
    return [f"{joined(names)}: {text}" for text, names in of.items()]


def _value(text: str | None) -> str:
    return "not set" if text is None else without_paths(text)


def without_paths(text: str) -> str:
    """A text with file names in place of absolute paths.

    Examples
    --------
    >>> without_paths("pattern: /home/me/work/mine.py, leaf0/spine1")
    'pattern: mine.py, leaf0/spine1'
    """
    return _PATH.sub(r"\1", text)


def _differences(found: RunComparison) -> PageSection:
    """Different keys within a workload by run, then between workloads.

    The latter are by workload.
    """
    inside = {key for group in found.groups for key in group.keys}
    every = different_keys(found)
    own = [one for one in every if one.key in inside]
    between = [one for one in every if one.key not in inside]
    parts = [
        _keys("key of the scenario", [run.label for run in found.runs], [(one.key, one.values) for one in own]),
        _keys(
            "key that distinguishes workloads",
            [group.name for group in found.groups],
            [(one.key, [one.values[group.runs[0]] for group in found.groups]) for one in between],
        ),
    ]
    content = "".join(parts) or notice(["The scenarios are the same."])
    return PageSection(id="scenario", short="Scenarios", title="What differs between the scenarios", content=content)


def _keys(head: str, names: Sequence[str], rows: Sequence[tuple[str, Sequence[str | None]]]) -> str:
    cells = [
        [f"<code>{escape(key)}</code>", *(escape("\u2013" if one is None else without_paths(one)) for one in values)]
        for key, values in rows
    ]
    texts = tuple(range(1, len(names) + 1)) if len(names) <= _BESIDE else ()
    return _many(table((head, *names), cells, texts=texts))


def _many(content: str) -> str:
    """A table with a column for each run and breakable names."""
    return f'<div class="byrun">{content}</div>' if content else ""


def _each(named: Sequence[tuple[str, Run]]) -> PageSection:
    """Time, limit and culprit of each run."""
    cards = "".join(
        figure(name, three_lines_list(run) + paragraphs([without_paths(text) for text in details(run)], "told"))
        for name, run in named
    )
    content = f'<div class="two">{cards}</div>'
    if len(named) > _MOST_CARDS:
        content = (
            f"<details><summary>{plural(len(named), 'run')}, and who is to blame in each</summary>{content}</details>"
        )
    return PageSection(id="runs", short="Runs", title="Each run alone", content=content)


def _training(named: Sequence[tuple[str, Run]]) -> list[PageSection]:
    """Parts of an iteration on one axis.

    Two runs have waterfalls and pipelines too.
    """
    alone = [(name, run) for name, run in named if not run.seeds]
    sections = []
    if chart := _stacks(alone):
        falls = ""
        if len(named) == len(alone) == _BESIDE:
            falls = "".join(f"<h3>{escape(name)}</h3>{job_waterfalls(run)}" for name, run in alone)
        lead = "The parts of an iteration on an average GPU; all runs on one axis."
        sections.append(
            PageSection(id="time", short="Time", title="Where the time goes", lead=lead, content=chart + falls)
        )
    if len(named) == len(alone) == _BESIDE:
        charts = "".join(f"<h3>{escape(name)}</h3>{pipeline_figure(run)}" for name, run in alone)
        sections.append(PageSection(id="pipeline", short="Pipeline", title="The pipelines", content=charts))
    return sections


def _stacks(named: Sequence[tuple[str, Run]]) -> str:
    """A bar for every job of every run."""
    rows = []
    for name, run in named:
        jobs = [job for job in jobs_of(run) if job["iteration_ps"] is not None]
        for job in jobs:
            spent = time_by_kind(run, job["job"])
            shown = name if len(jobs) == 1 else f"{name}, {job['job']}"
            rows.append((shown, spent, amount(job["iteration_ps"], "ps")))
    if not rows:
        return ""
    parts = [(kind.short, f"k{place}") for place, kind in enumerate(TIME_KINDS.values())]
    made = [StackedBar(name=name, lengths=tuple(spent.get(kind, 0.0) for kind in KINDS), note=note)
            for name, spent, note in rows[:_MOST_STACKS]]  # fmt: skip
    note = (
        f"{plural(len(rows) - _MOST_STACKS, 'more bar is', 'more bars are')} not drawn."
        if len(rows) > _MOST_STACKS
        else ""
    )
    return figure("", stacked(parts, made, "ps"), note=note)


def _times(named: Sequence[tuple[str, Run]]) -> list[PageSection]:
    """Distributions of all runs on one axis."""
    drawn = named[:MOST_LINES]
    charts = [
        distribution(title, [(name, flow_values(run, column)) for name, run in drawn], unit)
        for title, column, unit in (
            ("Completion time of flows", "fct_ps", "ps"),
            ("Slowdown of flows", "slowdown", "ratio"),
        )
    ]
    if not any(charts):
        return []
    lead = "A curve shows the share of flows that completed within a time."
    if len(drawn) < len(named):
        lead += (
            f" A chart has room for {MOST_LINES} runs; not drawn: {', '.join(name for name, _ in named[MOST_LINES:])}."
        )
    return [
        PageSection(
            id="times",
            short="Times",
            title="How long it took",
            lead=lead,
            content=f'<div class="two">{"".join(charts)}</div>',
        )
    ]


def _over_time(named: Sequence[tuple[str, Run]], found: RunComparison) -> list[PageSection]:
    """Utilisation and queues of every tier over time.

    Runs of a workload share an axis, with a line for each.
    """
    drawn = [(group.name, overlaid([named[place] for place in group.runs])) for group in found.groups]
    busiest = _busiest(named)
    notes = _merged([text for _, one in drawn for text in one.notes])
    links = _by_workload([(name, one.links + one.rates) for name, one in drawn])
    queues = _by_workload([(name, one.queues) for name, one in drawn])
    lead = "All runs of a workload share the axis of time." if len(drawn) > 1 else drawn[0][1].lead
    sections = []
    if links or busiest or notes:
        content = notice(notes) + busiest + links
        sections.append(
            PageSection(
                id="links", short="Links", title="How busy the links were", lead=lead if links else "", content=content
            )
        )
    if queues:
        said = f"Bytes that wait at the fullest port of each tier. {lead}"
        sections.append(PageSection(id="queues", short="Queues", title="The longest queues", lead=said, content=queues))
    return sections


def _by_workload(parts: Sequence[tuple[str, str]]) -> str:
    """Charts of several workloads below each other, each under its name."""
    shown = [(name, charts) for name, charts in parts if charts]
    if len(parts) == 1 or not shown:
        return "".join(charts for _, charts in shown)
    return "".join(f"<h3>{escape(name)}</h3>{charts}" for name, charts in shown)


def _series(named: Sequence[tuple[str, Run]]) -> list[PageSection]:
    """The series of `engine.record`, all runs on one axis; of several seeds the first one, as the section says."""
    found = series_section(named)
    return [] if found is None else [found]


def _busiest(named: Sequence[tuple[str, Run]]) -> str:
    """The links whose utilisation changed most between two runs."""
    if len(named) != _BESIDE or any(run.seeds for _, run in named):
        return ""
    found = [
        dict(zip(*run.query("select name, utilisation from links").to_pydict().values(), strict=True))
        for _, run in named
    ]
    common = sorted(found[0].keys() & found[1].keys(), key=lambda name: -abs(found[1][name] - found[0][name]))
    rows = [
        [port(name), *(escape(typeset(amount(one[name], "share"))) for one in found),
         escape(typeset(f"{100 * (found[1][name] - found[0][name]):+.1f} points"))]
        for name in common[:5]
        if found[0][name] != found[1][name]
    ]  # fmt: skip
    return table(("links that changed most", *(f"in use, {name}" for name, _ in named), "change"), rows)


def _numbers(found: RunComparison) -> PageSection:
    changed, alone = changed_numbers(found)
    two = len(found.runs) == _BESIDE
    rows = [_number_row(number, is_apart=two) for number in changed]
    same = len(found.numbers) - len(changed) - alone
    heads = ("number", *(run.label for run in found.runs), *(("change",) if two else ()))
    lead = f"{plural(same, 'other number is', 'other numbers are')} equal."
    if not two:
        lead = (
            f"Changes are measured against the first run{' of each workload' if len(found.groups) > 1 else ''}. {lead}"
        )
    if alone:
        lead += f" {sentence(plural(alone, 'number is', 'numbers are'))} of one workload alone."
    content = _many(table(heads, rows))
    return PageSection(id="numbers", short="Numbers", title="The numbers that changed", lead=lead, content=content)


def _number_row(number: ComparedNumber, *, is_apart: bool) -> list[str]:
    """Name and values of a number, with its change.

    The change has its own column, or stands behind the value.
    """
    values = [escape(typeset(short_amount(value, number.unit))) for value in number.values]
    changes = [_change(*pair) for pair in zip(number.changes, number.is_clear, strict=True)]
    if is_apart:
        return [escape(label(number.name)), *values, changes[-1] or "\u2013"]
    told = [
        f"{value} <small>{words}</small>" if share else value
        for value, words, share in zip(values, changes, number.changes, strict=True)
    ]
    return [escape(label(number.name)), *told]


def _change(share: float | None, is_clear: bool | None) -> str:  # noqa: FBT001 - both halves of one pair
    if share is None:
        return ""
    seeds = "" if is_clear is None else " (clear)" if is_clear else " (within the seeds)"
    return escape(typeset(f"{change(share)}{seeds}"))


def _origins(named: Sequence[tuple[str, Run]]) -> PageSection:
    keys = ("weftwork", "engine", "seed", "status", "started", "wall_s", "digest")
    rows = [
        [key.replace("_s", ", s"), *(escape(str(run.provenance.get(key, "\u2013"))) for _, run in named)]
        for key in keys
    ]
    rows.insert(0, ["run", *(escape(run.path.resolve().name) for _, run in named)])
    scenarios = "".join(
        f"<details><summary>{escape(sentence(f'scenario of {name}, resolved'))}</summary>"
        f"<pre>{escape(without_paths(run.scenario))}</pre></details>"
        for name, run in named
    )
    content = _many(table(("", *(name for name, _ in named)), rows)) + scenarios
    return PageSection(id="provenance", short="Provenance", title="Where this comes from", content=content)
