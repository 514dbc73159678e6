"""The part of a page about victims.

They are flows that PFC held back, ranks behind a straggler, and jobs beside others.

A flow is a victim of PFC where a port of its path was paused, it does not use the full port at which the pauses begin,
and it lost at least half of its time. The rule is that of `weftwork.study.answer.victims`, from the tables of a run.
Reads `flows`, `paths`, `links`, `nodes`, `segments`, `jobs` and `what_if`. Leaves out: flows that only waited in queues
without pauses, and messages of collectives, which wait for each other.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.clock import SECOND_PS
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

_LEAST: Final = 0.5  # chosen: of its time that a victim lost; as in the answer
_LEAST_OF_A_JOB: Final = 0.005  # chosen: of an iteration; less is noise
_MOST: Final = 20  # chosen: victims in the table
_TO_BLAME: Final = {"gpu", "server", "nic", "link", "switch", "fault"}  # kinds of culprits for which ranks wait


def flow_victims(run: Run) -> list[PageSection]:
    """Flows that PFC held back at a full port off their path.

    Empty without such flows.
    """
    if run.table("collectives").num_rows:
        return []
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
    """Victims of PFC, the largest loss first."""
    links = {row["port"]: row for row in run.query("select * from links order by port").to_pylist()}
    if not any(row["paused_ps"] for row in links.values()):
        return []
    nodes = {row["node"]: row for row in run.query("select * from nodes").to_pylist()}
    paths: dict[int, list[tuple[int, int]]] = {}
    for row in run.query("select queue_pair, port, packets from paths").to_pylist():
        paths.setdefault(row["queue_pair"], []).append((row["port"], row["packets"]))
    flows = run.query(
        "select flow, queue_pair, source, destination, wire_bytes, fct_ps, ideal_fct_ps from flows "
        "where fct_ps is not null and ideal_fct_ps is not null and carrier = 'packets' order by flow"
    ).to_pylist()
    ends = {pair: _ends(path, links, nodes) for pair, path in paths.items()}
    load: dict[int, float] = {}  # ps that each NIC port sends or receives
    for row in flows:
        for number, share in ends.get(row["queue_pair"], {}).items():
            size_bits = 8 * row["wire_bytes"] * share
            load[number] = load.get(number, 0.0) + size_bits * SECOND_PS / links[number]["rate_bps"]
    of_node: dict[int, list[dict[str, Any]]] = {}
    for row in links.values():
        of_node.setdefault(row["node"], []).append(row)
    sides: dict[str, list[int]] = {}
    for number, row in links.items():
        sides.setdefault(row["link"], []).append(number)
    found = []
    for row in flows:
        own = ends.get(row["queue_pair"], {})
        needed = max([row["ideal_fct_ps"], *(load[number] for number in own)])
        lost = 1 - needed / max(row["fct_ps"], 1)
        paused = [number for number, _ in paths.get(row["queue_pair"], []) if links[number]["paused_ps"]]
        if lost < _LEAST or not paused:
            continue
        longest = max(paused, key=lambda number: links[number]["paused_ps"])
        root = _root(longest, links, nodes, of_node)
        if any(number in own for number in sides[links[root]["link"]]):
            continue
        found.append(
            {
                "flow": row["flow"],
                "name": f"{row['source']} \u2192 {row['destination']}",
                "took": row["fct_ps"],
                "alone": row["ideal_fct_ps"],
                "lost": 1 - row["ideal_fct_ps"] / max(row["fct_ps"], 1),
                "port": longest,
                "port_name": links[longest]["name"],
                "paused": links[longest]["paused_ps"],
                "root": root,
                "root_name": links[root]["name"],
                "queue": links[root]["max_queue_bytes"],
            }
        )
    return sorted(found, key=lambda one: -one["lost"])


def _ends(
    path: Sequence[tuple[int, int]], links: dict[int, dict[str, Any]], nodes: dict[int, dict[str, Any]]
) -> dict[int, float]:
    """NIC ports of a queue pair at both ends, and packet shares."""
    sends = [(number, packets) for number, packets in path if nodes[links[number]["node"]]["kind"] == "host"]
    receives = [(number, packets) for number, packets in path if nodes[links[number]["peer"]]["kind"] == "host"]
    return {
        number: packets / max(sum(count for _, count in side), 1)
        for side in (sends, receives)
        for number, packets in side
    }


def _root(
    number: int,
    links: dict[int, dict[str, Any]],
    nodes: dict[int, dict[str, Any]],
    of_node: dict[int, list[dict[str, Any]]],
) -> int:
    """The port at which the pauses begin.

    It is the longest queue of the pausing node, and so on.
    """
    chain = [number]
    while True:
        peer = links[number]["peer"]
        if nodes[peer]["kind"] == "host":
            return number
        number = max(of_node[peer], key=lambda row: row["max_queue_bytes"])["port"]
        if number in chain or not links[number]["paused_ps"]:
            return int(number)
        chain.append(number)


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
    jobs = len(whole)
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
