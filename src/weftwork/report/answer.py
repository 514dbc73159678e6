"""What a run says, for people: an answer in words first, then the tables behind it.

Reads the run's folder and nothing else.
"""

from __future__ import annotations

from collections import Counter
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from weftwork.report.pipeline import EXPOSED, is_training, share_of, time_by_kind
from weftwork.report.tables import busiest_links, drops_by_reason, pausing_ports
from weftwork.report.three_lines import LABELS, three_lines
from weftwork.report.training_answer import (
    KIND_WORDS,
    goodput_sentence,
    is_bound,
    jobs_of,
    training_sentences,
    what_if_of,
)
from weftwork.report.waiting import waiting_lines
from weftwork.report.words import amount, caveat_lines, label, plural, sentence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from weftwork.store.runs import Run

__all__ = ["answer", "details", "finished", "print_answer"]

_INSIDE = {"nvlink": "NVLink", "pcie": "PCIe"}
_NO_PATH = (
    "No fault took a path away: the fabric has none between some of those that talked; `weftwork topology` says which "
    "networks it is made of."
)
_NO_PACKETS = (
    "Flows shared links evenly: congestion control, queues, pauses, marks and losses were not simulated "
    "(engine.fidelity: flow)."
)
_SHOWN_FAULTS = 3  # chosen: a sentence, not a list; events.parquet has all
_RESTS_ON = {  # kinds of caveats, one and several
    "unverified": ("figure that nobody has verified", "figures that nobody has verified"),
    "chosen": ("figure that was chosen", "figures that were chosen"),
    "approximate": ("approximation", "approximations"),
    "note": ("note", "notes"),
}
_ROWS = {  # short, so that two tables stand side by side on 80 columns
    **{kind: kind for kind in EXPOSED}, "launch": "waiting for CPU", "skew": "waiting for ranks",
}  # fmt: skip
_EQUAL = 0.0005  # a difference that rounds to 0.0 %
_WAIT_SHARE = 0.02  # chosen: ranks that end together to 2 % of the time wait for nobody
_KEY_NUMBERS = (
    "iteration_ps", "tokens_per_s", "mfu", "exposed_share", "bubble_share",
    "completion_ps", "goodput_bps", "fct_p50_ps", "fct_p95_ps", "fct_p99_ps", "fct_p99.9_ps", "slowdown_p50",
    "slowdown_p95", "slowdown_p99", "slowdown_p99.9", "collective_duration_ps", "collective_bus_bandwidth_bps",
    "jain_index", "busiest_link", "drops", "retransmissions", "pauses", "paused_ps", "marks",
)  # fmt: skip


def answer(run: Run) -> list[str]:
    """Say in a few sentences how a run went: the three lines first, then what stands behind them.

    Parameters
    ----------
    run : that was written
    """
    lines = [f"{sentence(label_)} {text}." for label_, text in zip(LABELS, three_lines(run), strict=True) if text]
    return [*lines, *details(run)]


def details(run: Run) -> list[str]:
    """What stands behind the three lines, as sentences.

    Parameters
    ----------
    run : that was written
    """
    waits = [] if run.is_complete or run.seeds else waiting_lines(run)
    if is_training(run):
        return waits + training_sentences(run)
    done, counted = finished(run)
    said: list[str] = [*waits]
    if run.seeds and done < counted:
        some = "None" if done == 0 else f"{done}"
        said.append(f"NOT FINISHED: {some} of {counted} seeds delivered everything, so there is no average time.")
    said.append(_flows(run))
    if done == counted or not run.seeds:
        said.append(_times(run))
    said.append(_inside(run))
    said += [_NO_PACKETS] if run.provenance["engine"] == "flow" else [_losses(run), _pauses(run)]
    if not run.seeds:
        said += [_faults(run), _waits(run)]
    said += [goodput_sentence(run)]
    return [text for text in said if text]


def finished(run: Run) -> tuple[int, int]:
    """How many runs delivered everything, of how many that count: all seeds that were not interrupted."""
    parts = run.seeds or (run,)
    counted = [part for part in parts if part.status != "interrupted"] or parts
    return sum(part.is_complete for part in counted), len(counted)


def _value(run: Run, name: str) -> float:
    """A number of the summary; 0 where there is nothing to measure, or an older Weftwork did not count it."""
    return run.summary[name]["value"] or 0 if name in run.summary else 0


def _amount(run: Run, name: str) -> str:
    number = run.summary[name]
    return amount(number["value"], number["unit"])


def _flows(run: Run) -> str:
    flows, done = _value(run, "flows"), _value(run, "flows_completed")
    text = ""
    if done == 0:
        text = f"None of {plural(flows, 'flow')} completed."
    elif done < flows:
        text = f"{amount(done, 'count')} of {plural(flows, 'flow')} completed."
    if errors := _value(run, "queue_pair_errors"):
        text += f" {sentence(plural(errors, 'connection'))} failed after too many timeouts."
    return text.strip()


def _inside(run: Run) -> str:
    """What went by packet and what by message, where there is both."""
    if "nvlink_bytes" not in run.summary:
        return ""
    carriers = [
        f"{_amount(run, f'{name}_bytes')} inside servers by {words}"
        for name, words in _INSIDE.items()
        if run.value(f"{name}_bytes")
    ]
    if not carriers:
        return ""  # nothing has come inside a server, or nothing of any size: a barrier
    said = f"{_amount(run, 'packets_bytes')} went between servers, by packet, and {' and '.join(carriers)}, by message."
    for name, words in _INSIDE.items():
        if f"busiest_{name}" in run.summary and run.value(f"{name}_bytes"):
            said += f" The busiest {words} port was in use {_amount(run, f'busiest_{name}')} of the time."
    return said


def _times(run: Run) -> str:
    if run.value("fct_p50_ps") is None:
        return ""
    middle, tail = _amount(run, "fct_p50_ps"), _amount(run, "fct_p99_ps")
    slow_middle, slow_tail = _amount(run, "slowdown_p50"), _amount(run, "slowdown_p99")
    if run.value("flows_completed") == 1:
        return f"It took {slow_middle} times as long as alone on an empty fabric."
    which = "Flows" if run.value("flows_completed") == run.value("flows") else "Those that completed"
    return (
        f"{which} took p50 {middle}, p99 {tail}; that is p50 {slow_middle}, p99 {slow_tail} times as long as alone on "
        "an empty fabric."
    )


def _losses(run: Run) -> str:
    drops, again = _value(run, "drops"), _value(run, "retransmissions")
    if drops == 0 and again == 0:
        return "Nothing was lost."
    if drops == 0:
        return f"Nothing was lost, yet {plural(again, 'packet was', 'packets were')} sent again."
    reasons = ""
    if not run.seeds:
        counts = (f"{row['reason']} {row['packets']:,}" for row in drops_by_reason(run).to_pylist())
        reasons = f" ({', '.join(counts)})"
    lost = plural(drops, "packet was", "packets were")
    return f"{lost} lost{reasons}; {plural(again, 'packet was', 'packets were')} sent again."


def _faults(run: Run) -> str:
    """What was done to the fabric, the first few of it; or that it never had a path which was wanted."""
    rows = run.query("select detail, \"where\", at_ps from events where event = 'fault' order by at_ps").to_pylist()
    if not rows:
        return _NO_PATH if _value(run, "drop_no_route") else ""
    told = ", ".join(f"{row['where']} {row['detail']} at {amount(row['at_ps'], 'ps')}" for row in rows[:_SHOWN_FAULTS])
    more = f" and {len(rows) - _SHOWN_FAULTS:,} more" if len(rows) > _SHOWN_FAULTS else ""
    return f"Faults: {told}{more}."


def _waits(run: Run) -> str:
    """For whom the others waited at the end of a collective; the longest wait of its repetitions."""
    if "last_rank" not in run.collectives.column_names:
        return ""  # of an older Weftwork
    rows = run.query(
        "select last_rank, end_ps - first_end_ps as wait_ps, end_ps - start_ps as duration_ps from collectives"
        " where last_rank is not null order by wait_ps desc limit 1"
    ).to_pylist()
    if not rows or rows[0]["wait_ps"] < _WAIT_SHARE * rows[0]["duration_ps"]:
        return ""
    return f"Rank {rows[0]['last_rank']} had its result last, {amount(rows[0]['wait_ps'], 'ps')} after the first."


def _pauses(run: Run) -> str:
    pauses, marks = _value(run, "pauses"), _value(run, "marks")
    paused = (
        f"PFC asked for a pause {plural(pauses, 'time')}, and ports stood still for {_amount(run, 'paused_ps')} in all"
        if pauses
        else "Nobody was paused"
    )
    said = f"ECN marked {plural(marks, 'packet')}" if marks else "nothing was marked"
    return f"{paused}; {said}."


def print_answer(run: Run, console: Console, *, is_verbose: bool = True, has_sources: bool = False) -> None:
    """Write a run for people.

    Parameters
    ----------
    run : that was written
    console : where to
    is_verbose : whether details and tables follow the three lines
    has_sources : whether every caveat is written out
    """
    about = run.about
    console.print(Text(about["name"], style="bold"), Text(sentence(about["workload"])), sep=": ", soft_wrap=True)
    for key in ("fabric", "transport"):
        _print_text(console, f"{key:<11}{about[key]}", "dim", indent=11)
    console.print()
    for label_, text in zip(LABELS, three_lines(run), strict=True):
        if text:
            _print_text(console, f"{label_:<11}{text}", "bold", indent=11)
    if is_verbose:
        tables = _tables(run)
        said = details(run)
        if is_training(run) and (bounds := _bounds(run)):
            said.insert(0, bounds)
        for part in (tables, said) if is_training(run) else (said, tables):
            for place, each in enumerate(part):
                if place == 0 or not isinstance(each, str):
                    console.print()
                if isinstance(each, str):
                    _print_text(console, each)
                else:
                    console.print(each)
    console.print()
    if "assumes" in about:
        _print_text(console, f"{'assumes':<11}{about['assumes']}", "dim", indent=11)
    _print_notes(run, console, has_sources=has_sources)
    console.print(Text(f"run folder: {run.path}"), soft_wrap=True)


def _print_text(console: Console, text: str, style: str = "", *, indent: int = 0) -> None:
    """Wrap at the edge of a terminal; a file or a pipe gets whole lines."""
    if console.is_terminal:
        text = "\n".join(wrap(text, console.width, subsequent_indent=" " * indent))
    console.print(Text(text, style=style), soft_wrap=True)


def _tables(run: Run) -> list[Table]:
    if run.seeds:
        return [_seed_table(run)]
    if is_training(run):
        return _training_tables(run)
    tables: list[Table] = []
    rows = busiest_links(run).to_pylist()
    if rows:
        table = _table("busiest links", "rate", "in use", "longest queue", "marks", "drops")
        for row in rows:
            table.add_row(
                row["name"],
                amount(row["mean_rate_bps"], "b/s"),
                amount(row["utilisation"], "share"),
                amount(row["max_queue_bytes"], "B"),
                f"{row['marks']:,}",
                f"{row['drops']:,}",
            )
        tables.append(table)
    rows = pausing_ports(run).to_pylist()
    if rows:
        table = _table("paused longest", "for", "pause frames")
        for row in rows:
            table.add_row(row["name"], amount(row["paused_ps"], "ps"), f"{row['pauses']:,}")
        tables.append(table)
    return tables


def _training_tables(run: Run) -> list[Table]:
    """Where the time goes, and beside it what an iteration would be in other worlds; one for each job."""
    tables: list[Table] = []
    jobs = jobs_of(run)
    for job in (job for job in jobs if job["iteration_ps"] is not None):
        spent = _table("time goes to" if len(jobs) == 1 else f"time of {job['job']}", "time", "share")
        for kind, ps in time_by_kind(run, job["job"]).items():
            exposed = ", exposed" if kind in EXPOSED else ""
            share = amount(share_of(run, job, kind, ps), "share")
            spent.add_row(f"{_ROWS.get(kind, KIND_WORDS[kind])}{exposed}", amount(ps, "ps"), share)
        cases = _table("what it would be with", "time", "change")
        for case in what_if_of(run, job["job"]):
            bound = ">= " if is_bound(case) else ""
            cases.add_row(case["case"], f"{bound}{amount(case['iteration_ps'], 'ps')}", _change(case, job))
        both = Table.grid(padding=(0, 1, 0, 0))
        both.add_row(spent, cases)
        tables.append(both if cases.row_count else spent)
    return tables


def _bounds(run: Run) -> str:
    """What holds the bounds among the what-ifs back."""
    rows = {row["case"]: row["text"] for job in jobs_of(run) for row in what_if_of(run, job["job"]) if is_bound(row)}
    told = "; ".join(f"{case}: {text.removeprefix('a bound: ')}" for case, text in rows.items())
    return f"Bounds (>=) are not simulated. {sentence(told)}." if told else ""


def _change(case: Mapping[str, Any], job: Mapping[str, Any]) -> str:
    change = case["iteration_ps"] / job["iteration_ps"] - 1
    return "the same" if abs(change) < _EQUAL else f"{100 * change:+.3g} %"


def _seed_table(run: Run) -> Table:
    done, counted = finished(run)
    partial = "" if done == counted else f", {done} finished"
    table = _table(f"mean of {counted} seeds{partial}", "mean", "95 % from", "to")
    for name in _KEY_NUMBERS:
        if name in run.summary and run.value(name) is not None:
            number = run.summary[name]
            table.add_row(label(name), *(amount(number[key], number["unit"]) for key in ("value", "low", "high")))
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _print_notes(run: Run, console: Console, *, has_sources: bool) -> None:
    """Notes of the scenario, and how many caveats there are; each of them where the sources are wanted."""
    for note in run.provenance.get("notes", []):
        _print_text(console, f"note: {note}", "dim")
    if has_sources:
        for line in caveat_lines(run.caveats):
            _print_text(console, f"source: {line}", "dim")
        return
    counts = Counter(str(caveat.kind) for caveat in run.caveats)
    told = ", ".join(plural(counts[kind], *words) for kind, words in _RESTS_ON.items() if counts[kind])
    if told:
        _print_text(console, f"rests on   {told}: --sources lists them", "dim", indent=11)
