"""The parts of a page about training.

They are the pipeline, parts of the time, network traffic, and jobs side by side.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weftwork.base.grammar import plural
from weftwork.report.culprit_marks import fault_times, is_culprit_row
from weftwork.report.figures.axes import figure
from weftwork.report.figures.gantt import gantt, row_names
from weftwork.report.figures.lines import Curve, curves
from weftwork.report.figures.waterfall import Step, waterfall
from weftwork.report.network_flows import network_flows
from weftwork.report.page_elements import PageSection, bar, notice, paragraphs, port, table
from weftwork.report.page_over_time import moments, without_words
from weftwork.report.page_victims import training_victims
from weftwork.report.pipeline import KINDS, read_pipeline, time_by_kind
from weftwork.report.pipeline_ranks import row_ranks, stragglers_of
from weftwork.report.training_answer import (
    few_flows_sentence,
    goodput_sentence,
    jobs_of,
    what_if_change,
    what_if_of,
)
from weftwork.report.words import amount, sentence, typeset
from weftwork.spec.numbers import NUMBERS
from weftwork.spec.time_kinds import TIME_KINDS
from weftwork.spec.verdicts import verdict_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from weftwork.report.pipeline import Pipeline
    from weftwork.report.pipeline_ranks import RowRanks
    from weftwork.store.runs import Run

__all__ = ["SCRIPTS", "job_waterfalls", "pipeline_figure", "training_sections"]

SCRIPTS: Final = ("gantt.js",)
_BINS: Final = 240  # of what is counted over time
_MOST_JOBS: Final = 8  # with a waterfall of their own
_MOST_TIERS: Final = 12  # with a chart of their own
_MOST_OPEN: Final = 16  # chosen: rows of a table that need not be folded
_MOST_HIDDEN: Final = 4  # chosen: stragglers that a note names


def training_sections(run: Run) -> list[PageSection]:
    """Make the parts of a run of one seed.

    Raises
    ------
    ConfigError : a table is damaged
    """
    jobs = jobs_of(run)
    found = read_pipeline(run)
    names = [] if found is None else row_names(found)
    parts = [_pipeline(run, found), _time(run), *training_victims(run, found, names), _traffic(run)]
    if len(jobs) > 1:
        parts.insert(1, _side_by_side(run, jobs))
    if "effective_share" in run.summary:
        parts.append(_goodput(run))
    return parts


def pipeline_figure(run: Run, found: Pipeline | None = None, *, has_anchors: bool = False) -> str:
    """The pipeline chart and its rows' meanings, or a notice.

    The chart is that of `weftwork.report.figures.gantt`.

    Parameters
    ----------
    run : of training jobs, one seed
    found : its pipeline, where it was read already
    has_anchors : whether links of the page lead to the rows; of one pipeline on a page
    """
    found = found or read_pipeline(run)
    if found is None:
        return notice(["The activity of the stages was not recorded."])
    totals: dict[str, float] = dict.fromkeys(KINDS, 0.0)
    jobs = jobs_of(run)
    for job in jobs:
        for kind, ps in time_by_kind(run, job["job"]).items():
            totals[kind] += ps * job["gpus"] / sum(one["gpus"] for one in jobs)
    culprit = run.answer.culprit
    faults = fault_times(run)
    blamed = [is_culprit_row(culprit, row, jobs=[job["job"] for job in jobs]) for row in found.rows]
    ranks = row_ranks(run, found)
    drawing = gantt(
        found,
        {kind: ps for kind, ps in totals.items() if ps},
        faults=faults,
        culprits=blamed,
        ranks=ranks,
        has_anchors=has_anchors,
    )
    said = _of_the_chart(found)
    if any(blamed):
        said += " A bar before the name of a row means that the row is to blame."
    said += _stragglers(run, found, ranks)
    if faults:
        said += " A band above the rows is a fault, from its begin to its end."
    return figure("", drawing, note=said) + _rank_table(found, ranks)


def _stragglers(run: Run, found: Pipeline, ranks: Sequence[RowRanks]) -> str:
    """The stragglers with a mark, and those without a row."""
    said = ""
    if any(one.factor != 1 for one in ranks):
        said = " A factor behind the name of a row (\u00d71.25) marks a straggler: it computes so many times as long."
    shown = {row.gpu for row, one in zip(found.rows, ranks, strict=True) if one.factor != 1}
    hidden = [f"GPU {one.gpu} (\u00d7{one.factor:g})" for one in stragglers_of(run) if one.gpu not in shown]
    if hidden:
        listed = ", ".join(hidden[:_MOST_HIDDEN]) + (", ..." if len(hidden) > _MOST_HIDDEN else "")
        said += f" No row shows the rank of a straggler itself for {listed}."
    return said


def _rank_table(found: Pipeline, ranks: Sequence[RowRanks]) -> str:
    """For each row, its rank, its GPU, and the ranks it represents.

    A long list is folded.
    """
    rows = [
        [escape(name), escape(one.rank), escape(one.stands_for)]
        for name, one in zip(row_names(found), ranks, strict=True)
    ]
    is_open = " open" if len(rows) <= _MOST_OPEN else ""
    shown = table(("row", "shows", "stands for"), rows, texts=(0, 1, 2))
    return f"<details{is_open}><summary>Which rank stands for which</summary>{shown}</details>"


def _of_the_chart(found: Pipeline) -> str:
    said = (
        "A row shows one rank of a stage, which stands for all ranks that did the same. Numbers are micro batches. "
        "Where pieces are narrower than a pixel, heights show their shares."
    )
    if found.is_merged:
        said += " Inside a pass, pieces of one kind are drawn together, since a page cannot show all of them in order."
    if found.left_out:
        said += f" {plural(found.left_out, 'row is', 'rows are')} not shown; the table segments has all."
    return said


def _pipeline(run: Run, found: Pipeline | None) -> PageSection:
    lead = "The activity of every stage over time. Times in the legend are those of an average GPU in one iteration."
    content = pipeline_figure(run, found, has_anchors=True)
    return PageSection(id="pipeline", short="Pipeline", title="The pipeline", lead=lead, content=content)


def job_waterfalls(run: Run) -> str:
    """A waterfall for each job, with its what-if lines."""
    jobs = [job for job in jobs_of(run) if job["iteration_ps"] is not None]
    cards = [_waterfall(run, job, is_alone=len(jobs) == 1) for job in jobs[:_MOST_JOBS]]
    if not cards:
        return notice(["No iteration was finished."])
    return "".join(cards)


def _waterfall(run: Run, job: dict[str, Any], *, is_alone: bool) -> str:
    spent = time_by_kind(run, job["job"])
    whole = job["iteration_ps"]
    steps = [
        Step(name=TIME_KINDS[kind].short, length_ps=ps, colour=f"k{KINDS.index(kind)}")
        for kind, ps in spent.items()
        if ps
    ]
    steps.append(Step(name="an iteration", length_ps=whole, colour="total", starts_anew=True))
    cases = what_if_of(run, job["job"])
    steps += [
        Step(
            name=f"what if: {case['change']}",
            length_ps=case["iteration_ps"],
            colour="case",
            starts_anew=True,
            note=what_if_change(case, job),
        )
        for case in cases
    ]
    title = "" if is_alone else job["job"]
    return figure(title, waterfall(steps), note=_how_found(cases))


def _how_found(cases: Sequence[Mapping[str, Any]]) -> str:
    """The methods of the what-if cases, each named once."""
    by_text: dict[str, list[str]] = {}
    for case in cases:
        if case["text"]:
            by_text.setdefault(case["text"].rstrip("."), []).append(case["change"])
    return " ".join(f"{sentence(', '.join(names))}: {text}." for text, names in by_text.items())


def _time(run: Run) -> PageSection:
    lead = (
        "The parts of an iteration on an average GPU. Below are iteration times in what-if cases, in each of which one "
        "thing is different."
    )
    return PageSection(id="time", short="Time", title="Where the time goes", lead=lead, content=job_waterfalls(run))


def _side_by_side(run: Run, jobs: list[dict[str, Any]]) -> PageSection:
    rows = []
    for job in jobs:
        cells = [
            escape(job["job"]), escape(job["model"]), escape(job["plan"]), f"{job['gpus']:,}",
            *(escape(typeset(amount(job[name], unit))) for name, unit in (
                ("iteration_ps", "ps"), ("tokens_per_s", "count"), ("tokens_per_s_per_gpu", "count"), ("mfu", "share"),
                ("exposed_share", "share"), ("bubble_share", "share"))),
        ]  # fmt: skip
        rows.append([*cells, *(escape(typeset(amount(time, "ps"))) for time in _alone(run, job))])
    head = ("job", "model", "plan", "GPUs", "iteration", "tokens/s", "per GPU", "MFU", "exposed", "bubble")
    alone = ("alone",) if any(_alone(run, job) for job in jobs) else ()
    content = table((*head, *alone), rows, texts=(1, 2))
    lead = "Jobs that ran at the same time on one fabric."
    return PageSection(id="jobs", short="Jobs", title="The jobs side by side", lead=lead, content=content)


def _alone(run: Run, job: dict[str, Any]) -> list[int]:
    """Time of a job without the others, if it was simulated."""
    return [case["iteration_ps"] for case in what_if_of(run, job["job"]) if case["change"] == "alone"]


def _goodput(run: Run) -> PageSection:
    names = (
        ("effective_share", "training that counts", "forward"),
        *(
            (name, NUMBERS[name].noun, kind)
            for name, kind in (
                ("checkpoint_share", "checkpoint"), ("lost_share", "tensor"), ("recovery_share", "expert"),
                ("no_spare_share", "skew"),
            )
        ),
    )  # fmt: skip
    parts = [(words, run.value(name) or 0, KINDS.index(kind)) for name, words, kind in names]
    line = "".join(f'<i class="k{kind}" style="width:{100 * share:.3f}%"></i>' for _, share, kind in parts)
    keys = "".join(
        f'<span><i class="k{kind}"></i>{escape(words)} <b>{escape(typeset(amount(share, "share")))}</b></span>'
        for words, share, kind in parts
        if share
    )
    content = f'<figure><div class="split">{line}</div><div class="kinds">{keys}</div></figure>'
    said = paragraphs([goodput_sentence(run)], "told")
    return PageSection(id="goodput", short="Goodput", title="Goodput over weeks", content=content + said)


def _traffic(run: Run) -> PageSection:
    lead = (
        f"{few_flows_sentence(run)} The entropy is log2 of the number of equal flows that would spread the bytes as "
        "evenly. Where the entropy is low, hashing loads equal paths unevenly."
    )
    tiers = _tiers(run)
    charts = f'<div class="two">{tiers}</div>' if tiers else notice(["Nothing was recorded over time."])
    content = charts + _tier_table(run) + _kind_table(run) + _hot_links(run)
    return PageSection(id="traffic", short="Traffic", title="What the network carried", lead=lead, content=content)


def _arrow(name: str) -> str:
    return name.replace("->", " \u2192 ")


def _tiers(run: Run) -> str:
    """A card for the network flows, and one for every used tier."""
    names = run.query(
        "select tier, min(place) as first from (select tier, bytes, row_number() over () as place from tiers) "
        "group by tier having sum(bytes) > 0 order by first"
    )
    ends = run.query("select coalesce(max(end_ps), 0) as e from activities")["e"][0].as_py()
    cards = [_flows(run, np.linspace(0, ends, _BINS + 1).astype(np.int64))] if ends else []
    is_first = True  # words of faults stand in the first chart of a tier
    for name in names["tier"].to_pylist()[:_MOST_TIERS]:
        found = run.query(f"select * from tiers where tier = '{name.replace(chr(39), chr(39) * 2)}' order by start_ps")  # noqa: S608 - quoted
        starts, ends = (found[column].to_numpy() for column in ("start_ps", "at_ps"))
        edges = np.unique(np.concatenate([[0], starts, ends]))  # bins in which nothing was carried may be missing
        rate_bps = np.zeros(len(edges) - 1)
        rate_bps[np.searchsorted(edges, starts)] = found["bytes"].to_numpy() * 8e12 / np.maximum(ends - starts, 1)
        curve = Curve(name="all links together", values=rate_bps, is_area=True)
        faults = moments(run, int(edges[-1]))
        shown = faults if is_first else without_words(faults)
        chart = curves(f"Rate, {_arrow(name)}", [curve], edges_ps=edges, unit="b/s", height_px=110, moments=shown)
        is_first = False
        cards.append(figure(_arrow(name), chart, aside="all links together"))
    return "".join(cards)


def _flows(run: Run, edges: NDArray[np.int64]) -> str:
    found = network_flows(run, edges)
    if found is None:
        return figure("flows on the network", "", note=verdict_text("run.no-network-traffic"))
    faults = without_words(moments(run, int(edges[-1])))
    both = (
        curves("Flows under way", [Curve(name="flows", values=found.flows)], edges_ps=edges, unit="count",
               height_px=60, first_colour=2, moments=faults),
        curves("Entropy", [Curve(name="entropy, bits", values=found.entropy)], edges_ps=edges, unit="bit", height_px=50,
               first_colour=3, moments=faults),
    )  # fmt: skip
    aside = f"{amount(found.mean_flows, 'count')} concurrent while communicating; below, their entropy in bits"
    return figure("flows on the network", "".join(both), aside=aside)


def _tier_table(run: Run) -> str:
    found = run.query(
        """
        select tier, sum(bytes) as bytes, max(bytes / (at_ps - start_ps)) * 8e12 as most,
            sum(bytes) / sum(at_ps - start_ps) * 8e12 as mean,
            sum(entropy * bytes) / sum(case when entropy is not null then bytes end) as entropy
        from tiers where bytes > 0 group by tier order by bytes desc, tier
        """
    ).to_pylist()
    units = [("bytes", "B"), ("mean", "b/s"), ("most", "b/s"), ("entropy", "bit")]
    if not any(row["entropy"] for row in found):
        units.pop()
    rows = [
        [escape(_arrow(row["tier"])), *(escape(typeset(amount(row[name], unit))) for name, unit in units)]
        for row in found
    ]  # fmt: skip
    head = ("tier", "carried", "mean while busy", "most in a step", "entropy, bits")
    return table(head[: 1 + len(units)], rows)


def _kind_table(run: Run) -> str:
    """Number, size and time of operations by kind.

    One row counts for all equal ones.
    """
    found = run.query(
        """
        with ordered as (
            select *, end_ps - start_ps as length, sum(instances) over of_kind as all_of_kind,
                sum(instances) over (of_kind order by end_ps - start_ps rows unbounded preceding) as up_to_here
            from activities window of_kind as (partition by job, kind, operation)
        )
        select job, kind, operation, sum(instances) as calls, max(ranks) as ranks, max(flows) as flows,
            sum(size_bytes::double * instances) / sum(instances) as size,
            min(length) filter (up_to_here >= 0.5 * all_of_kind) as middle,
            min(length) filter (up_to_here >= 0.99 * all_of_kind) as tail,
            sum((start_ps - posted_ps)::double * instances) / sum(instances) as late
        from ordered group by job, kind, operation
        order by job, sum(size_bytes::double * instances) desc, kind, operation
        """
    ).to_pylist()
    several = len({row["job"] for row in found}) > 1
    rows = [
        [escape(f"{row['job']}: {row['kind']}" if several else row["kind"]), escape(row["operation"]),
         f"{row['calls']:,}", f"{row['ranks']:,}", f"{row['flows']:,}",
         *(escape(typeset(amount(row[name], unit))) for name, unit in (
             ("size", "B"), ("middle", "ps"), ("tail", "ps"), ("late", "ps")))]
        for row in found
    ]  # fmt: skip
    head = ("communication", "operation", "how often", "ranks", "flows of one", "size of one", "time p50", "p99",
            "waited for members")  # fmt: skip
    return table(head, rows, texts=(1,))


def _hot_links(run: Run) -> str:
    """The hottest link of every direction, with the mean of all."""
    found = run.query(
        """
        select a.role || '->' || b.role as direction, count(*) as links,
            arg_max(links.name, (utilisation, -port)) as name, arg_max(mean_rate_bps, (utilisation, -port)) as rate,
            max(utilisation) as most, avg(utilisation) as mean
        from links join nodes a on links.node = a.node join nodes b on links.peer = b.node
        where bytes > 0 group by 1 order by most desc, direction
        """
    ).to_pylist()
    rows = [
        [escape(_arrow(row["direction"])), port(row["name"]), escape(typeset(amount(row["rate"], "b/s"))),
         bar(row["most"]) + escape(typeset(amount(row["most"], "share"))),
         escape(typeset(amount(row["mean"], "share"))), f"{row['links']:,}"]
        for row in found
    ]  # fmt: skip
    return table(("links", "hottest", "rate", "in use", "mean of all in use", "how many in use"), rows, texts=(1,))
