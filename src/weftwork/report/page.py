"""The page of one run.

It has the answer in words, then the figures behind it, its provenance, and the notes.

Reads the run's folder and nothing else. Leaves out: tables that a run does not have; the page says what it lacks.
"""

from __future__ import annotations

import json
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.report.answer import details
from weftwork.report.culprit_places import culprit_place
from weftwork.report.figures.axes import figure
from weftwork.report.figures.fabric import fabric_picture
from weftwork.report.over_time import directions, read_over_time
from weftwork.report.page_elements import (
    PageSection,
    Tile,
    answer_lines,
    notice,
    paragraphs,
    port,
    render,
    table,
    tiles,
)
from weftwork.report.page_flows import completion, slowest
from weftwork.report.page_notes import notes_line, notes_section, without_folders
from weftwork.report.page_over_time import congestion, utilisation
from weftwork.report.page_series import series_section
from weftwork.report.page_training import SCRIPTS, training_sections
from weftwork.report.page_victims import flow_victims
from weftwork.report.pipeline import is_training
from weftwork.report.tables import busiest_links
from weftwork.report.three_lines import (
    cost_texts,
    culprit_text,
    grave_suspects,
    labelled_lines,
    repair_text,
    stopped_what_ifs,
    three_lines,
)
from weftwork.report.words import (
    CLOCK_ENDED,
    FIGURE_KINDS,
    amount,
    assumed_lines,
    doubtful_figures,
    has_clock_ended,
    has_word,
    label,
    sentence,
    typeset,
)
from weftwork.spec.answer import NAMELESS
from weftwork.spec.fidelities import FIDELITIES
from weftwork.spec.numbers import numbers_shown

if TYPE_CHECKING:
    from weftwork.report.over_time import OverTime
    from weftwork.store.runs import Run

__all__ = ["bottleneck", "rests_on", "run_page", "three_lines_list", "warnings", "what_ran"]

_GRAVE: Final = 4  # chosen: suspects beside the culprit at the top of a page; the table below has all


def run_page(run: Run) -> str:
    """Make the page of a run.

    Parameters
    ----------
    run : with one seed or several

    Returns
    -------
    HTML, one file

    Raises
    ------
    ConfigError : a table is damaged
    """
    series = series_section([(run.path.name, run)])
    drawn = [] if series is None else [series]
    sections = [_answer(run)]
    scripts: tuple[str, ...] = ()
    if is_training(run):
        sections += [_seeds(run)] if run.seeds else [*training_sections(run), *drawn, _fabric(run)]
        scripts = SCRIPTS
    else:
        over_time = None if run.seeds else read_over_time(run)
        sections.append(completion(run))
        if run.seeds:
            sections += [_seeds(run), *drawn]
        else:
            sections += [_utilisation(run, over_time), congestion(run, over_time), *drawn]
            sections += [*flow_victims(run), slowest(run, over_time), _fabric(run)]
    sections += [_provenance(run), *notes_section(run)]
    return render(run.about["name"], [("run", run.path.name), *what_ran(run)], sections, scripts=scripts)


def what_ran(run: Run) -> list[tuple[str, str]]:
    """Workload, fabric, transport and assumptions of a run."""
    about = run.about
    return [
        (key, sentence(about[key]) if key == "workload" else about[key])
        for key in ("workload", "fabric", "transport", "assumes", "calibrated")
        if key in about
    ]


def warnings(run: Run, *, is_ending_told: bool) -> list[str]:
    """Warnings that a reader must not overlook.

    They are an incomplete run, assumptions about an input, and notes.

    Parameters
    ----------
    is_ending_told : the words above say already how the run ended
    """
    said = [] if is_ending_told else _ending(run)
    said += assumed_lines(run.caveats)
    said += [str(note) for note in run.provenance["notes"]]
    return said


def rests_on(run: Run) -> str:
    """Unverified and chosen figures, folded, with their number."""
    said = doubtful_figures(run.caveats, where="at the end")
    if not said:
        return ""
    counts = [sum(caveat.kind == kind for caveat in run.caveats) for kind in FIGURE_KINDS]
    words = ("that nobody has verified", "that were chosen")
    told = " and ".join(
        f"{plural(count, 'figure')} {which}" for count, which in zip(counts, words, strict=True) if count
    )
    return f"<details><summary>Rests on {told}</summary>{notice(said)}</details>"


def _ending(run: Run) -> list[str]:
    notice = f"This run did not finish: {CLOCK_ENDED}" if has_clock_ended(run) else run.ending.notice
    said = [notice] if notice else []
    if not run.seeds and (errors := int(run.summary.get("queue_pair_errors", {}).get("value") or 0)):
        said.append(f"{sentence(plural(errors, 'connection'))} failed after too many timeouts.")
    return said


def bottleneck(run: Run) -> str:
    """Name the busiest link, and whether it explains the time."""
    rows = busiest_links(run, 2)
    if not rows or not rows[0]["utilisation"]:
        return ""
    share, name = rows[0]["utilisation"], rows[0]["name"]
    used = amount(share, "share")
    kind = _direction_of(run, name)
    where = f"{name} ({kind})" if kind else name
    if share >= 0.85:
        is_alone = len(rows) > 1 and rows[1]["utilisation"] < 0.75 * share
        next_one = f"{rows[1]['name']} ({amount(rows[1]['utilisation'], 'share')})" if is_alone else ""
        others = f", far more than the next, {next_one}" if is_alone else ""
        return f"The bottleneck was {where}: it was in use {used} of the time{others}."
    if share >= 0.5:
        return f"No link was busy all the time. The busiest link, {where}, was in use {used} of the time."
    if timeouts := int(run.summary.get("timeouts", {}).get("value") or 0):
        return (
            f"No link limited the whole run: the busiest link, {where}, was in use only {used} of the time. Senders "
            f"ran into {plural(timeouts, 'timeout')} while links were idle."
        )
    return (
        f"No link limited the whole run: the busiest link, {where}, was in use only {used} of the time. The "
        "charts show when links were busy, and the list of slow flows shows what delayed flows."
    )


def _utilisation(run: Run, over_time: OverTime | None) -> PageSection:
    """Use of the links, with the busiest first in words."""
    part = utilisation(run, over_time)
    return replace(part, lead=f"{bottleneck(run)} {part.lead}".strip())


def _direction_of(run: Run, name: str) -> str:
    number = run.query("select name, port from links").to_pydict()
    ports = dict(zip(number["name"], number["port"], strict=True))
    return next((one.name for one in directions(run) if ports[name] in one.ports), "")


def _answer(run: Run) -> PageSection:
    shown = []
    said = details(run)
    words_above = "; ".join((*three_lines(run), *said))
    timed = "collective_duration_ps" in run.summary and run.value("collective_duration_ps") is not None
    for tile in numbers_shown("tile"):
        number = run.summary.get(tile.name)
        if number is None or number["value"] is None or (timed and tile.name == "completion_ps"):
            continue
        value, interval = amount(number["value"], number["unit"]), ""
        parts: tuple[str, ...] = (value,)
        if "low" in number and number["low"] is not None:
            low, high = amount(number["low"], number["unit"]), amount(number["high"], number["unit"])
            interval = f"95 %: {low} to {high}"
            parts = (value, low, high)
        if all(has_word(words_above, part) for part in parts) and tile.is_in_words:
            continue
        shown.append(Tile(name=tile.noun, value=value, note=interval))
    stopped = stopped_what_ifs(run)
    lines = three_lines_list(run) + notice([f"What-ifs {stopped}."] if stopped else [])
    content = lines + paragraphs(said, "told") + notes_line(run) + tiles(shown) + _others(run)
    return PageSection(id="answer", short="Answer", title="The answer", content=content)


def three_lines_list(run: Run) -> str:
    """The three lines of the answer with labels and a marked culprit.

    Grave suspects beside it and the order of repairs follow.
    """
    found, seeds = run.answer.culprit, run.answer.seeds
    name = found.name if found.kind not in NAMELESS else ""
    also = [("also", culprit_text(one, seeds=seeds)) for one in grave_suspects(run.answer)[:_GRAVE]]
    if repairs := repair_text(run.answer):
        also.append(("repair", repairs))
    labels, texts = zip(*labelled_lines(run), strict=True)
    return answer_lines(labels, texts, name, also)


def _others(run: Run) -> str:
    """The other suspects and the cost of each."""
    if not run.answer.others:
        return ""
    rows = [
        [
            escape(one.name),
            *(escape(typeset(text)) for text in cost_texts(one)),
            escape(one.text),
        ]
        for one in run.answer.others
    ]
    head = ("also suspected", "cost", "share", "why")
    folded = f"{plural(len(rows), 'other suspect')} with costs"
    return f"<details><summary>{folded}</summary>{table(head, rows, texts=(3,))}</details>"


def _seeds(run: Run) -> PageSection:
    names = [number.name for number in numbers_shown("seeds") if number.name in run.summary]
    rows = [
        [escape(one.path.name), escape(one.status),
         *(escape(typeset(amount(one.value(name), one.summary[name]["unit"]))) for name in names)]
        for one in run.seeds
    ]  # fmt: skip
    lead = f"Each seed has a page: weftwork report {run.path.name}/{run.seeds[0].path.name}"
    return PageSection(
        id="seeds",
        short="Seeds",
        title="The seeds",
        lead=lead,
        content=table(("run", "status", *(label(name) for name in names)), rows),
    )


def _fabric(run: Run) -> PageSection:
    title, short = "The fabric and its hot links", "Fabric"
    links = run.query("select * from links order by port")
    ports = links["port"].to_numpy()
    if len(ports) and int(ports[-1]) >= len(ports):  # a picture of some links would be one of another fabric
        kept = plural(len(ports), "busiest direction")
        text = f"The fabric is too large for a picture: the run kept only the {kept} of its links."
        return PageSection(id="fabric", short=short, title=title, content=notice([text]))
    blamed = culprit_place(run)
    drawing, hot, note = fabric_picture(run.query("select * from nodes order by node"), links, blamed)
    rows = []
    for one in hot:
        row = links.slice(one.row, 1).to_pylist()[0]
        rows.append([
            f'<span class="badge here">{one.badge}</span> {port(row["name"])}',
            *(escape(typeset(amount(row[name], unit))) for name, unit in (
                ("utilisation", "share"), ("mean_rate_bps", "b/s"), ("max_queue_bytes", "B"), ("marks", "count"),
                ("paused_ps", "ps"), ("drops", "count"))),
        ])  # fmt: skip
    head = ("busiest links", "in use", "rate", "longest queue", "marks", "was paused", "drops")
    content = figure("", drawing, note=note) + table(head, rows)
    lead = (
        "The colour and the width of a line show how much its busiest link was in use, on average over the run. "
        "Numbers mark the busiest links." + ("" if blamed is None else " An outline marks the culprit.")
    )
    return PageSection(id="fabric", short=short, title=title, lead=lead, content=content)


def _provenance(run: Run) -> PageSection:
    known = run.provenance
    machine = known["machine"]
    policies = []
    for kind, policy in known["policies"].items():
        own = f", {json.dumps(policy['parameters'])}" if policy["parameters"] else ""
        policies.append(f"{kind}: {policy['name']} ({policy['hash'][:12]}{own})")
    facts = [
        ("run", run.path.name),
        ("status", run.status),
        ("Weftwork", str(known["weftwork"])),
        ("commit", str(known["commit"] or "-")),
        ("engine", str(known["engine"])),
        ("seed", ", ".join(str(seed) for seed in (known["seeds"] if run.seeds else [known["seed"]]))),
        ("started", str(known["started"])),
        ("wall time", f"{known['wall_s']:.3g} s"),
        ("digest", str(known.get("digest", "-"))),
        ("machine", ", ".join(str(text) for text in machine.values())),
        *(("policy", text) for text in policies),
    ]
    about = table(("", ""), [[escape(name), escape(without_folders(text))] for name, text in facts], texts=(1,))
    numbers = [
        [escape(label(name)), escape(typeset(amount(number["value"], number["unit"]))), escape(number["text"])]
        for name, number in run.summary.items()
    ]
    content = (
        about
        + "<details><summary>Every number of the run</summary>"
        + table(("number", "value", "meaning"), numbers, texts=(2,))
        + "</details><details><summary>The scenario, resolved</summary><pre>"
        + escape(without_folders(run.scenario))
        + "</pre></details>"
    )
    return PageSection(
        id="provenance",
        short="Provenance",
        title="Where this comes from",
        lead="What was run, by which program, and every number. "
        f'"{_model_page(known["engine"])}" in the documentation says what the '
        "model leaves out; weftwork explain engine.fidelity names the engines.",
        content=content,
    )


def _model_page(engine: str) -> str:
    """Title of the page about a model; of a folder of another version that of the first one."""
    return FIDELITIES.get(engine, next(iter(FIDELITIES.values()))).model_page
