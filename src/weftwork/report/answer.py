"""What a run says, for people: an answer in words first, then the tables behind it.

Reads the run's folder and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from weftwork.report.pipeline import EXPOSED, is_training, time_by_kind
from weftwork.report.tables import busiest_links, drops_by_reason, flows_by_size, pausing_ports
from weftwork.report.training_answer import (
    KIND_WORDS,
    goodput_sentence,
    is_approximation,
    jobs_of,
    rates_sentence,
    training_sentences,
    what_if_of,
)
from weftwork.report.waiting import waiting_lines
from weftwork.report.words import (
    CLOCK_ENDED,
    FIGURE_KINDS,
    amount,
    caveat_lines,
    doubtful_figures,
    has_clock_ended,
    label,
    plural,
    sentence,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console

    from weftwork.base.caveat import Caveat
    from weftwork.store.runs import Run

__all__ = ["answer", "finished", "print_answer"]

_PARTIAL = {
    "interrupted": "PARTIAL: interrupted at {at} of simulated time; what follows is what was done until then.",
    "stopped": "PARTIAL: stopped at engine.until, {at} of simulated time, with work left.",
    "stuck": "NOT FINISHED: nothing was left to do at {at} of simulated time, and some flows had not arrived.",
    "deadlocked": "NOT FINISHED: a deadlock by {at} of simulated time; only refreshes of pauses were left.",
}
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
_WAIT_SHARE = 0.02  # chosen: ranks that end together to 2 % of the time wait for nobody
_KEY_NUMBERS = (
    "iteration_ps", "tokens_per_s", "mfu", "exposed_share", "bubble_share",
    "completion_ps", "goodput_bps", "fct_p50_ps", "fct_p95_ps", "fct_p99_ps", "fct_p99.9_ps", "slowdown_p50",
    "slowdown_p95", "slowdown_p99", "slowdown_p99.9", "collective_duration_ps", "collective_bus_bandwidth_bps",
    "jain_index", "busiest_link", "drops", "retransmissions", "pauses", "paused_ps", "marks",
)  # fmt: skip


def _partial(run: Run) -> str:
    """How a run ended that is not complete."""
    if has_clock_ended(run):
        return f"NOT FINISHED: {CLOCK_ENDED}"
    return _PARTIAL[run.status].format(at=_amount(run, "simulated_ps"))


def answer(run: Run, *, busiest: Callable[[Run], str] | None = None) -> list[str]:
    """Say in a few sentences how a run went.

    Parameters
    ----------
    run : that was written
    busiest : what to say of its links in place of the busiest one, where it has anything to say
    """
    about = run.about
    said: list[str] = []
    if not run.is_complete and not run.seeds:
        said += [_partial(run), *waiting_lines(run)]
    elif run.status == "interrupted":
        counted, wanted = len(run.provenance["seeds"]), run.provenance["seeds_wanted"]
        said.append(f"PARTIAL: {run.status}; {counted} of {wanted} seeds are counted.")
    if is_training(run):
        return said + training_sentences(run)
    done, counted = finished(run)
    if run.seeds and done < counted:
        some = "None" if done == 0 else f"{done}"
        said.append(f"NOT FINISHED: {some} of {counted} seeds delivered everything, so there is no average time.")
    if done == counted:
        every = " on average" if run.seeds else ""
        said.append(f"{sentence(about['workload'])} took {_duration(run)}{every}.")
    else:
        said.append(f"Not done: {about['workload']}.")
    said += [rates_sentence(run), _flows(run)]
    if done == counted or not run.seeds:
        said += [_collective(run), _times(run)]
    said += [_inside(run)]
    said += [_NO_PACKETS] if run.provenance["engine"] == "flow" else [_losses(run), _pauses(run)]
    if not run.seeds:
        said += [_faults(run), _waits(run), (busiest is not None and busiest(run)) or _busiest(run)]
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
    which = f"All {plural(flows, 'flow')}" if done == flows else f"{amount(done, 'count')} of {plural(flows, 'flow')}"
    if done == flows == 1:
        which = "The one flow"
    if done == 0:
        text = f"None of {plural(flows, 'flow')} completed."
    elif not run.value("payload_bytes"):
        text = f"{which} completed, without payload."
    else:
        text = (
            f"{which} completed: {_amount(run, 'payload_bytes')} of payload at {_amount(run, 'goodput_bps')} together."
        )
    if errors := _value(run, "queue_pair_errors"):
        text += f" {sentence(plural(errors, 'connection'))} failed after too many timeouts."
    return text


def _duration(run: Run) -> str:
    """How long it took; a collective counts from the first rank that begins, and an iteration with its computing."""
    if "iteration_ps" in run.summary and run.value("iteration_ps") is not None:
        return _amount(run, "iteration_ps")
    if "collective_duration_ps" not in run.summary or run.value("collective_duration_ps") is None:
        return _amount(run, "completion_ps")
    each = " each" if _value(run, "collective_repetitions") > 1 else ""
    return f"{_amount(run, 'collective_duration_ps')}{each}"


def _collective(run: Run) -> str:
    if "collective_bus_bandwidth_bps" not in run.summary or run.value("collective_bus_bandwidth_bps") is None:
        return ""
    bandwidth = _amount(run, "collective_bus_bandwidth_bps")
    return f"That is a bus bandwidth of {bandwidth} as nccl-tests counts it."


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
        return f"It took {middle}, {slow_middle} times as long as alone on an empty fabric."
    which = "the flows" if run.value("flows_completed") == run.value("flows") else "those that completed"
    return (
        f"Half of {which} took up to {middle}, 99 % up to {tail}: {slow_middle} and {slow_tail} times as long as"
        " alone on an empty fabric (p50, p99)."
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


def _busiest(run: Run) -> str:
    rows = busiest_links(run, 1).to_pylist()
    if not rows:
        return ""
    return f"The busiest link was {rows[0]['name']}, in use {amount(rows[0]['utilisation'], 'share')} of the time."


def print_answer(run: Run, console: Console, *, is_verbose: bool = True) -> None:
    """Write a run for people.

    Parameters
    ----------
    run : that was written
    console : where to
    is_verbose : whether the tables follow the words
    """
    about = run.about
    console.print(Text(about["name"], style="bold"))
    for key in ("fabric", "transport"):
        _print_text(console, f"{key:<10}{about[key]}", "dim")
    console.print()
    for text in answer(run):
        _print_text(console, text)
    if is_verbose:
        for table in _tables(run):
            console.print()
            console.print(table)
    _print_notes(run, console)
    console.print()
    console.print(Text(f"run folder: {run.path}"), soft_wrap=True)


def _print_text(console: Console, text: str, style: str = "") -> None:
    """Wrap at the edge of a terminal; a file or a pipe gets whole lines."""
    console.print(Text(text, style=style), soft_wrap=not console.is_terminal)


def _tables(run: Run) -> list[Table]:
    if run.seeds:
        return [_seed_table(run)]
    if is_training(run):
        return _training_tables(run)
    tables: list[Table] = []
    rows = flows_by_size(run).to_pylist()
    if rows:
        # Two narrow tables rather than one wide one, which a terminal of 80 columns would break.
        for title, name, suffix, unit in (
            ("completion time", "fct", "_ps", "ps"),
            ("slowdown", "slowdown", "", "ratio"),
        ):
            table = _table(f"{title} of flows", "flows", "p50", "p95", "p99", "p99.9")
            for row in rows:
                found = (amount(row[f"{name}_{quantile}{suffix}"], unit) for quantile in ("p50", "p95", "p99", "p999"))
                table.add_row(row["size"], f"{row['flows']:,}", *found)
            tables.append(table)
    rows = busiest_links(run).to_pylist()
    if rows:
        table = _table("busiest links", "rate", "in use", "longest queue", "marks", "drops")
        for row in rows:
            table.add_row(
                row["name"],
                amount(row["rate_bps"], "b/s"),
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
    """Where the time goes, what would help, and the hottest links."""
    tables: list[Table] = []
    jobs = [job for job in jobs_of(run) if job["iteration_ps"] is not None]
    for job in jobs:
        title = "where the time goes" if len(jobs) == 1 else job["job"]
        table = _table(title, "time", "share")
        for kind, ps in time_by_kind(run, job["job"]).items():
            exposed = " communication, exposed" if kind in EXPOSED else ""
            table.add_row(f"{KIND_WORDS[kind]}{exposed}", amount(ps, "ps"), amount(ps / job["iteration_ps"], "share"))
        table.add_row("an iteration", amount(job["iteration_ps"], "ps"), "")
        for case in what_if_of(run, job["job"]):
            change = f"{100 * (case['iteration_ps'] / job['iteration_ps'] - 1):+.1f} %"
            table.add_row(f"what if: {case['case']}", amount(case["iteration_ps"], "ps"), change)
        tables.append(table)
    table = _table("hottest links", "rate", "in use")
    for row in busiest_links(run).to_pylist():
        table.add_row(row["name"], amount(row["rate_bps"], "b/s"), amount(row["utilisation"], "share"))
    return [*tables, table] if table.row_count else tables


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


def _print_notes(run: Run, console: Console) -> None:
    notes = [*run.provenance.get("notes", [])]
    caveats: Sequence[Caveat] = run.caveats
    if is_training(run):  # rests on dozens of figures: their names here, their sources on the page
        notes += doubtful_figures(caveats, where="on the page of weftwork report and in provenance.json")
        caveats = [caveat for caveat in caveats if caveat.kind not in FIGURE_KINDS and not is_approximation(caveat)]
    notes += caveat_lines(caveats)
    if notes:
        console.print()
        for note in notes:
            _print_text(console, f"note: {note}", "dim")
