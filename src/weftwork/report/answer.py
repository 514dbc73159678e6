"""A run's answer for people: words first, then tables.

Reads the run's folder and nothing else.
"""

from __future__ import annotations

from collections import Counter
from textwrap import wrap
from typing import TYPE_CHECKING

from rich.text import Text

from weftwork.base.caveat import IN_FULL, mismatch_texts
from weftwork.base.grammar import plural, times_as_long
from weftwork.report.answer_tables import answer_tables
from weftwork.report.pipeline import is_training
from weftwork.report.tables import drops_by_reason
from weftwork.report.three_lines import (
    MEASURED,
    labelled_lines,
    other_suspects,
    repair_text,
    stopped_what_ifs,
    three_lines,
)
from weftwork.report.training_answer import (
    goodput_sentence,
    is_bound,
    jobs_of,
    memory_sentence,
    memory_warnings,
    training_sentences,
    what_if_of,
)
from weftwork.report.waiting import waiting_lines
from weftwork.report.words import (
    FIGURE_KINDS,
    amount,
    assumed_lines,
    breaking,
    caveat_lines,
    ignored_lines,
    sentence,
    unbroken,
)
from weftwork.spec.fidelities import FIDELITIES
from weftwork.spec.verdicts import verdict_text
from weftwork.store.runs import finished

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from weftwork.store.runs import Run

__all__ = ["answer", "details", "print_answer"]

_INSIDE = {"nvlink": "NVLink", "pcie": "PCIe"}
_NO_PATH = (
    "Some packets had no route, and no fault took a path away: the fabric does not join all hosts that talk to each "
    "other. `weftwork topology` lists its separate networks."
)
_NO_PACKETS = (
    "Flows shared links evenly: congestion control, queues, pauses, marks and losses were not simulated "
    "(engine.fidelity: flow)."
)
_MEAN_LOSSES = (
    "Flows shared links evenly and had the mean cost of their losses: congestion control, queues, pauses and marks "
    "were not simulated (engine.fidelity: flow)."
)
_SHOWN_FAULTS = 3  # chosen: a sentence, not a list; events.parquet has all
_AND_MORE = ", and more"  # behind what a suspect did first, where it did several things
_AFTER = ", after "  # before the fault that a timeout or a congestion control made last
_LABEL_WIDTH = 11
_RESTS_ON = {  # kinds of caveats beside figures, one and several
    "approximate": ("approximation", "approximations"),
    "note": ("note", "notes"),
}
_TAILS = ("p99", "p95")
_WAIT_SHARE = 0.02  # chosen: ranks that end together to 2 % of the time wait for nobody


def answer(run: Run) -> list[str]:
    """Say in a few sentences how a run went.

    The three lines come first, then the details behind them.

    Parameters
    ----------
    run : that was written
    """
    lines = [f"{sentence(label_)} {text}." for label_, text in labelled_lines(run)]
    return [*lines, *details(run)]


def details(run: Run) -> list[str]:
    """The sentences behind the three lines.

    Parameters
    ----------
    run : that was written
    """
    return [*_waiting(run), *_sentences(run)]


def _waiting(run: Run) -> list[str]:
    """The causes of waiting in a run that could not continue."""
    return [] if run.is_complete or run.seeds else waiting_lines(run)


def _sentences(run: Run) -> list[str]:
    if is_training(run):
        return training_sentences(run)
    done, counted = finished(run)
    said: list[str] = []
    if run.seeds and done < counted:
        some = "None" if done == 0 else f"{done}"
        said.append(
            f"NOT FINISHED: {some} of {plural(counted, 'seed')} delivered everything, so there is no average time."
        )
    said.append(_flows(run))
    if done == counted or not run.seeds:
        said.append(_times(run))
    said.append(_inside(run))
    if not FIDELITIES[run.provenance["engine"]].has_packets:
        said.append(_MEAN_LOSSES if any(each.subject == "engine.losses" for each in run.caveats) else _NO_PACKETS)
    else:
        said += [_losses(run), _pauses(run)]
    if not run.seeds:
        said += [_faults(run), _waits(run)]
    said += [goodput_sentence(run)]
    return [text for text in said if text]


def _value(run: Run, name: str) -> float:
    """A number of the summary.

    0 if there is nothing to measure, or if a run of this kind does not have it.
    """
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
    """Bytes sent by packet and by message, if the run has both."""
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
    than = "alone on an empty fabric"
    if run.value("flows_completed") == 1:
        return f"It took {times_as_long([_amount(run, 'slowdown_p50')], than)}."
    which = "Flows" if run.value("flows_completed") == run.value("flows") else "The flows that completed"
    # of few flows p99 is the last, which the first of the three lines tells
    took = three_lines(run)[0]
    tails = [one for one in _TAILS if _amount(run, f"fct_{one}_ps") not in took]
    shown = ("p50", *tails[:1])
    times = " and ".join(f"{_amount(run, f'fct_{one}_ps')} ({one})" for one in shown)
    factors = times_as_long([_amount(run, f"slowdown_{one}") for one in shown], than)
    return f"{which} took {times}: {factors}."


def _losses(run: Run) -> str:
    drops, again = _value(run, "drops"), _value(run, "retransmissions")
    trims = _value(run, "trims")
    cut = f"Switches cut {plural(trims, 'packet', 'packets')} to the headers. " if trims else ""
    if _value(run, "reorder_buffer_bytes"):
        cut += f"Receivers kept up to {_amount(run, 'reorder_buffer_bytes')} of early packets at a NIC port. "
    if drops == 0 and again == 0:
        return f"{cut}{verdict_text('run.no-losses')}"
    if drops == 0:
        return f"{cut}Nothing was lost, yet {plural(again, 'packet was', 'packets were')} sent again."
    reasons = ""
    if not run.seeds:
        counts = (f"{row['reason']} {row['packets']:,}" for row in drops_by_reason(run).to_pylist())
        reasons = f" ({', '.join(counts)})"
    lost = plural(drops, "packet was", "packets were")
    return f"{cut}{lost} lost{reasons}; {plural(again, 'packet was', 'packets were')} sent again."


def _faults(run: Run) -> str:
    """The first few faults, or a note that a path never existed.

    What the third line tells already is left out.
    """
    rows = run.query("select detail, place, at_ps from events where event = 'fault' order by at_ps").to_pylist()
    if not rows:
        return _NO_PATH if _value(run, "drop_no_route") else ""
    rows = [row for row in rows if not _is_told_above(run, row["place"])]
    if not rows:
        return ""
    told = ", ".join(f"{row['place']} {row['detail']} at {amount(row['at_ps'], 'ps')}" for row in rows[:_SHOWN_FAULTS])
    more = f" and {len(rows) - _SHOWN_FAULTS:,} more" if len(rows) > _SHOWN_FAULTS else ""
    return f"Faults: {told}{more}."


def _is_told_above(run: Run, where: str) -> bool:
    """Whether the third line already reports the fault at a place.

    It does so if the fault is to blame, or if the fault made another suspect costly.
    """
    culprit = run.answer.culprit
    if culprit.text.endswith(_AND_MORE):
        return False
    is_fault = culprit.key is not None and culprit.key.startswith("faults.")
    return (is_fault and culprit.name == where) or f"{_AFTER}{where} " in culprit.text


def _waits(run: Run) -> str:
    """The rank that finished a collective last.

    The repetition with the longest wait counts.
    """
    rows = run.query(
        "select last_rank, end_ps - first_end_ps as wait_ps, end_ps - start_ps as duration_ps from collectives"
        " where last_rank is not null order by wait_ps desc, end_ps, last_rank limit 1"
    ).to_pylist()
    if not rows or rows[0]["wait_ps"] < _WAIT_SHARE * rows[0]["duration_ps"]:
        return ""
    return f"Rank {rows[0]['last_rank']} had its result last, {amount(rows[0]['wait_ps'], 'ps')} after the first."


def _pauses(run: Run) -> str:
    pauses, marks = _value(run, "pauses"), _value(run, "marks")
    paused = "Nobody was paused"
    if pauses:
        paused = (
            f"PFC asked for a pause {plural(pauses, 'time')}, and ports were paused for {_amount(run, 'paused_ps')} in"
            " total"
        )
    elif _value(run, "credit_frames"):
        paused = "Links used credits, and the time for which ports waited for credits is not counted"
    said = f"ECN marked {plural(marks, 'packet')}" if marks else verdict_text("run.no-marks")
    return f"{paused}; {said}."


def print_answer(run: Run, console: Console, *, is_verbose: bool = True, has_sources: bool = False) -> None:
    """Print the answer of a run for people.

    Parameters
    ----------
    run : that was written
    console : where to
    is_verbose : whether details and tables follow the three lines
    has_sources : whether every caveat is written out
    """
    about = run.about
    console.print(Text(about["name"], style="bold"), Text(sentence(about["workload"])), sep=": ", soft_wrap=True)
    for label_, text in labelled_lines(run):
        _print_labelled(console, label_, text, "" if label_ == MEASURED else "bold")
    for text in other_suspects(run):
        _print_labelled(console, "also", text, "")
    if text := repair_text(run.answer):
        _print_labelled(console, "repair", text, "")
    if text := stopped_what_ifs(run):
        _print_labelled(console, "what-ifs", text, "bold")
    for text in mismatch_texts(run.caveats):
        _print_labelled(console, "parts", text, "bold")
    for text in memory_warnings(run):
        _print_labelled(console, "memory", text, "bold")
    if is_verbose:
        _print_behind(run, console)
    console.print()
    for label_ in ("fabric", "transport", "assumes", "calibrated"):
        if label_ in about:
            _print_labelled(console, label_, about[label_], "dim")
    _print_notes(run, console, has_sources=has_sources)
    console.print(Text(f"run folder: {run.path}"), soft_wrap=True)


def _print_behind(run: Run, console: Console) -> None:
    """Print waiting ranks, tables and sentences.

    For a training run the tables come first.
    """
    for place, line in enumerate(_waiting(run)):
        if place == 0:
            console.print()
        _print_text(console, line)
    tables = answer_tables(run, console, finished=finished(run))
    above = {memory_sentence(run)} if memory_warnings(run) else set()
    said = [text for text in (_bounds(run), *_sentences(run)) if text and text not in above]
    if said and not is_training(run):
        console.print()
        _print_paragraph(console, said)
    for table in tables:
        console.print()
        console.print(table)
    if is_training(run) and said:
        if not console.is_terminal:  # a screen has few lines
            console.print()
        _print_paragraph(console, said)


def _print_labelled(console: Console, label_: str, text: str, style: str) -> None:
    _print_text(console, f"{label_:<{_LABEL_WIDTH}}{text}", style, indent=_LABEL_WIDTH)


def _print_paragraph(console: Console, said: Sequence[str]) -> None:
    """Print sentences as one paragraph on a terminal.

    A file or a pipe gets one line for each.
    """
    for text in [" ".join(said)] if console.is_terminal and said else said:
        _print_text(console, text)


def _print_text(console: Console, text: str, style: str = "", *, indent: int = 0) -> None:
    """Print a text, wrapped on a terminal.

    No number is parted from its unit. A file or a pipe gets whole lines.
    """
    if console.is_terminal:
        lines = wrap(unbroken(text), console.width, subsequent_indent=" " * indent, break_on_hyphens=False)
        text = breaking("\n".join(lines))
    console.print(Text(text, style=style), soft_wrap=True)


def _bounds(run: Run) -> str:
    """The reasons for the bounds among the what-ifs."""
    if run.seeds or not is_training(run):
        return ""
    rows = {row["change"]: row["text"] for job in jobs_of(run) for row in what_if_of(run, job["job"]) if is_bound(row)}
    told = "; ".join(f"{text.removeprefix('a bound: ')} ({case})" for case, text in rows.items())
    return f"Bounds (>=): {told}." if told else ""


def _print_notes(run: Run, console: Console, *, has_sources: bool) -> None:
    """Print the notes of the scenario and the number of caveats.

    With ``has_sources``, each caveat is printed.
    """
    for line in assumed_lines(caveat for caveat in run.caveats if caveat.kind != "mismatch"):
        _print_text(console, line)
    for line in ignored_lines(run.caveats):
        _print_text(console, line)
    for note in run.provenance["notes"]:
        _print_text(console, f"note: {note}", "dim")
    if has_sources:
        for line in caveat_lines(caveat for caveat in run.caveats if caveat.kind not in IN_FULL):
            _print_text(console, f"source: {line}", "dim")
        return
    counts = Counter(str(caveat.kind) for caveat in run.caveats)
    told = [plural(counts[kind], *words) for kind, words in _RESTS_ON.items() if counts[kind]]
    figures = [(counts[kind], kind) for kind in FIGURE_KINDS if counts[kind]]
    if figures:
        *others, (last, kind) = figures
        told[:0] = [*(f"{count:,} {other}" for count, other in others), plural(last, f"{kind} figure")]
    if told:
        _print_labelled(console, "rests on", f"{', '.join(told)}: --sources", "dim")
