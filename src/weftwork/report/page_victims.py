"""The part of a page about victims.

They are flows that PFC held back, ranks behind a straggler, and jobs beside others.

Reads `victims`, `flows`, `links`, `segments`, `jobs` and `what_if`. Leaves out: who is a victim of PFC, which the run
has recorded (`weftwork.study.results.victims`).
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.grammar import plural
from weftwork.report.culprit_marks import is_culprit_row
from weftwork.report.over_time import directions
from weftwork.report.page_elements import PageSection, bar, port, table
from weftwork.report.pipeline import KINDS
from weftwork.report.pipeline_ranks import row_ranks
from weftwork.report.three_lines import cost_texts
from weftwork.report.training_answer import jobs_of, what_if_of
from weftwork.report.words import amount, typeset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.report.pipeline import Pipeline
    from weftwork.store.runs import Run

__all__ = ["flow_victims", "training_victims"]

_LEAST_OF_A_JOB: Final = 0.005  # chosen: of an iteration; less is noise
_MOST: Final = 20  # chosen: victims in the table
_TO_BLAME: Final = {"gpu", "server", "nic", "link", "switch", "fault"}  # kinds of culprits for which ranks wait


def flow_victims(run: Run) -> list[PageSection]:
    """Flows that PFC held back at a full port off their path.

    Empty without such flows.
    """
    found = _victims(run)
    if not found:
        return []
    figures = {number: f"links-{place}" for place, one in enumerate(directions(run)) for number in one.ports.tolist()}
    rows = [
        [
            escape(one["name"]),
            *(escape(typeset(amount(one[name], "ps"))) for name in ("took", "alone")),
            bar(one["lost"]) + escape(typeset(amount(one["lost"], "share"))),
            f'<a href="#{figures[one["port"]]}">{port(one["port_name"])}</a>',
            escape(typeset(amount(one["paused"], "ps"))),
            f'<a href="#{figures[one["root"]]}">{port(one["root_name"])}</a>',
            escape(typeset(amount(one["queue"], "B"))),
        ]
        for one in found[:_MOST]
    ]  # fmt: skip
    head = ("victim", "took", "alone", "lost to others", "paused at", "for", "full port", "its queue")
    more = f" The table has the first {_MOST} of {len(found):,}." if len(found) > _MOST else ""
    lead = (
        f"{plural(len(found), 'flow')} lost at least half of the time to PFC (head-of-line blocking). Such a flow does "
        f"not use the full port: it waited since a port on its path was paused.{more} Links lead to the charts of the "
        "ports."
    )
    return [
        PageSection(id="victims", short="Victims", title="Victims", lead=lead, content=table(head, rows, texts=(0,)))
    ]


def _victims(run: Run) -> list[dict[str, Any]]:
    """Victims of PFC, the largest loss first; none in a folder of an earlier version, which lacks the table."""
    if not run.has_table("victims"):
        return []
    victims = run.query(
        "select f.source || ' \u2192 ' || f.destination as name, f.fct_ps as took, f.ideal_fct_ps as alone, "
        "v.paused_port as port, p.name as port_name, p.paused_ps as paused, "
        "v.root_port as root, r.name as root_name, r.max_queue_bytes as queue "
        "from victims v join flows f using (flow) join links p on p.port = v.paused_port "
        "join links r on r.port = v.root_port order by v.flow"
    ).to_pylist()
    for victim in victims:
        victim["lost"] = 1 - victim["alone"] / max(victim["took"], 1)
    return sorted(victims, key=lambda victim: -victim["lost"])


def training_victims(run: Run, pipeline: Pipeline | None, names: Sequence[str]) -> list[PageSection]:
    """Jobs that others slowed down, and waiting rows of the pipeline.

    Rows waited for a straggler or a fault.

    Parameters
    ----------
    run : of training jobs, one seed
    pipeline : its rows; None where nothing was recorded
    names : of the rows, in words
    """
    content = [*_jobs(run), *([] if pipeline is None else _rows(run, pipeline, names))]
    if not content:
        return []
    return [PageSection(id="victims", short="Victims", title="Victims", content="".join(content))]


def _jobs(run: Run) -> list[str]:
    jobs = jobs_of(run)
    rows = []
    for job in jobs:
        alone = [case["iteration_ps"] for case in what_if_of(run, job["job"]) if case["change"] == "alone"]
        if not alone or not job["iteration_ps"]:
            continue
        lost = 1 - alone[0] / job["iteration_ps"]
        if lost < _LEAST_OF_A_JOB:
            continue
        others = ", ".join(one["job"] for one in jobs if one["job"] != job["job"])
        rows.append(
            [
                f'<a href="#jobs">{escape(job["job"])}</a>',
                escape(others),
                escape(typeset(amount(job["iteration_ps"], "ps"))),
                escape(typeset(amount(alone[0], "ps"))),
                bar(lost)
                + escape(typeset(f"{amount(job['iteration_ps'] - alone[0], 'ps')} ({amount(lost, 'share')})")),
            ]
        )
    if not rows:
        return []
    said = '<p class="lead">These jobs would be faster if they had the fabric to themselves.</p>'
    return [said + table(("job", "shares the fabric with", "iteration", "alone", "lost"), rows, texts=(0, 1))]


def _rows(run: Run, pipeline: Pipeline, names: Sequence[str]) -> list[str]:
    """Rows that waited for a GPU, device or fault, longest first."""
    culprit = run.answer.culprit
    if culprit.kind not in _TO_BLAME:
        return []
    whole = {job["job"]: job["iteration_ps"] for job in jobs_of(run)}
    jobs = list(whole)
    ranks = row_ranks(run, pipeline)
    found = []
    for place, row in enumerate(pipeline.rows):
        iteration = whole.get(row.job)
        if not iteration or is_culprit_row(culprit, row, jobs=jobs):
            continue
        length = row.pieces["end_ps"] - row.pieces["start_ps"]
        skew, bubble = (int(length[row.pieces["kind"] == KINDS.index(kind)].sum()) for kind in ("skew", "bubble"))
        if skew + bubble >= _LEAST_OF_A_JOB * iteration:
            found.append((skew, bubble, iteration, place))
    found.sort(key=lambda one: -one[0] - one[1])
    rows = [
        [
            f'<a href="#row-{place}">{escape(names[place])}</a>',
            escape(ranks[place].stands_for),
            _share(skew, iteration),
            _share(bubble, iteration),
            bar((skew + bubble) / iteration) + _share(skew + bubble, iteration),
        ]
        for skew, bubble, iteration, place in found[:_MOST]
    ]
    if not rows:
        return []
    cost, share = cost_texts(culprit)
    more = f" The table has the first {_MOST} of {plural(len(found), 'row')}." if len(found) > _MOST else ""
    said = typeset(
        f"{culprit.name} {culprit.text}. The cost is {cost} ({share} of the iteration). These rows of the pipeline "
        f"waited meanwhile. A part of the bubble is there without {culprit.name} too.{more}"
    )
    head = ("row of the pipeline", "stands for", "waited for other ranks", "waited in the bubble", "together")
    return [f'<p class="lead">{escape(said)}</p>' + table(head, rows, texts=(0, 1))]


def _share(ps: int, iteration_ps: int) -> str:
    return escape(typeset(f"{amount(ps, 'ps')} ({amount(ps / iteration_ps, 'share')})"))
