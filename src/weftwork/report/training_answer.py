"""What a run of training jobs says, for people: how long an iteration takes, where the time goes, what would help.

Reads the run's folder and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weftwork.report.network_flows import network_flows
from weftwork.report.pipeline import EXPOSED, time_by_kind
from weftwork.report.tables import busiest_links
from weftwork.report.words import amount, plural, sentence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weftwork.base.caveat import Caveat
    from weftwork.store.runs import Run

__all__ = [
    "KIND_WORDS",
    "approximations",
    "few_flows_sentence",
    "goodput_sentence",
    "is_approximation",
    "jobs_of",
    "rates_sentence",
    "training_sentences",
    "what_if_of",
]

KIND_WORDS: Final = {
    "forward": "forward passes",
    "backward": "backward passes",
    "recompute": "recomputation",
    "optimizer": "the optimizer",
    "launch": "waiting for the CPU",
    "tensor": "tensor parallel",
    "context": "context parallel",
    "expert": "expert parallel",
    "pipeline": "pipeline",
    "data": "data parallel",
    "bubble": "the bubble",
    "skew": "waiting for other ranks",
    "checkpoint": "checkpoints",
    "loading": "loading data",
    "other": "other things",
}
_GOODPUT: Final = {  # numbers of `weftwork.workload.reliability`, and what those are called that take time
    "effective_share": "",
    "effective_share_p5": "",
    "effective_share_p95": "",
    "effective_tokens_per_s": "",
    "interruption_every_s": "",
    "checkpoint_every_s": "",
    "recovery_share": "detection and restart",
    "lost_share": "lost work",
    "checkpoint_share": "checkpoints",
    "no_spare_share": "waiting for a spare server",
}
_OF_ENGINE: Final = "engine."  # subjects that tell how it was run; notes tell them
_SMALL: Final = 0.005  # of the iteration; what takes less is not told in a sentence
_HOT: Final = 3  # links that a sentence names
_ALIKE: Final = 0.999  # of the utilisation of the hottest link
_EQUAL: Final = 0.0005  # a difference that rounds to 0.0 %


def jobs_of(run: Run) -> list[dict[str, Any]]:
    """The rows of the table `jobs`."""
    rows: list[dict[str, Any]] = run.table("jobs").to_pylist()
    return rows


def what_if_of(run: Run, job: str) -> list[dict[str, Any]]:
    """The rows of the table `what_if` of one job."""
    return [row for row in run.table("what_if").to_pylist() if row["job"] == job]


def approximations(run: Run) -> list[str]:
    """What the engine declares as approximate, each as a sentence."""
    return [f"Approximate: {caveat.subject}: {caveat.text}" for caveat in run.caveats if is_approximation(caveat)]


def is_approximation(caveat: Caveat) -> bool:
    """Whether a sentence of the answer tells it."""
    return caveat.kind == "approximate" and not caveat.subject.startswith(_OF_ENGINE)


def training_sentences(run: Run) -> list[str]:
    """Say how the jobs of a run went; for several seeds, on average."""
    if run.seeds:
        return [text for text in (_mean(run), rates_sentence(run), goodput_sentence(run)) if text]
    said = []
    jobs = jobs_of(run)
    if len(jobs) == 1:
        said += _of_job(run, jobs[0])
    else:
        said += [f"{sentence(run.about['workload'])}.", *(_in_short(run, job) for job in jobs)]
    return [
        text
        for text in (*said, few_flows_sentence(run), _hottest(run), goodput_sentence(run), *approximations(run))
        if text
    ]


def _in_short(run: Run, job: dict[str, Any]) -> str:
    """One of several jobs, in a sentence."""
    what = f"{job['job']}: {job['model']} on {plural(job['gpus'], 'GPU')}"
    if job["iteration_ps"] is None:
        return f"{what} finished no iteration."
    alone = next((case for case in what_if_of(run, job["job"]) if case["case"] == "alone"), None)
    cost = ""
    if alone is not None:
        by = amount(job["iteration_ps"] / alone["iteration_ps"] - 1, "share")
        cost = f" ({amount(alone['iteration_ps'], 'ps')} if it had the fabric to itself: the others cost it {by})"
    return (
        f"{what} takes {amount(job['iteration_ps'], 'ps')} for an iteration{cost}: "
        f"{amount(round(job['tokens_per_s']), 'count')} tokens per second, MFU {amount(job['mfu'], 'share')}, "
        f"{amount(job['exposed_share'], 'share')} exposed communication, {amount(job['bubble_share'], 'share')} bubble."
    )


def _of_job(run: Run, job: dict[str, Any]) -> list[str]:
    if job["iteration_ps"] is None:
        return ["No iteration was finished."]
    what = run.about["workload"]
    spent = time_by_kind(run, job["job"])
    return [
        f"{sentence(what)} took {amount(job['iteration_ps'], 'ps')}.",
        _rates(job),
        _where(spent, job["iteration_ps"]),
        _exposed(spent, job["iteration_ps"]),
        _what_if(what_if_of(run, job["job"]), job["iteration_ps"]),
        f"The GPU that needs most has {amount(job['memory_bytes'], 'B')} in its memory." if job["memory_bytes"] else "",
    ]


def _mean(run: Run) -> str:
    number = run.summary.get("iteration_ps")
    if number is None or number["value"] is None:
        return ""
    span = f"{amount(number['low'], 'ps')} to {amount(number['high'], 'ps')}"
    whole = f"{sentence(run.about['workload'])} took {amount(number['value'], 'ps')} on average"
    return f"{whole}; 95 % interval of the mean: {span}."


def rates_sentence(run: Run) -> str:
    """Say how fast the first job of a run trains, from its summary; nothing where it trains nothing or did not end."""
    return _rates({name: run.value(name) if name in run.summary else None for name in ("tokens_per_s", "mfu")})


def _rates(job: Mapping[str, Any]) -> str:
    if job["tokens_per_s"] is None:
        return ""
    each = f", {amount(job['tokens_per_s_per_gpu'], 'count')} for each GPU" if "tokens_per_s_per_gpu" in job else ""
    mfu = f", at a model FLOP utilisation (MFU) of {amount(job['mfu'], 'share')}" if job["mfu"] is not None else ""
    return f"That is {amount(round(job['tokens_per_s']), 'count')} tokens per second{each}{mfu}."


def _where(spent: Mapping[str, float], whole: float) -> str:
    told = [
        f"{amount(ps / whole, 'share')} {KIND_WORDS[kind]}"
        for kind, ps in sorted(spent.items(), key=lambda item: -item[1])
        if kind not in EXPOSED and ps >= _SMALL * whole
    ]
    return f"Of the time of an average GPU went: {', '.join(told)}." if told else ""


def _exposed(spent: Mapping[str, float], whole: float) -> str:
    kinds = sorted((kind for kind in EXPOSED if spent.get(kind)), key=lambda kind: -spent[kind])
    if not kinds:
        return "No communication was exposed: computation hid all of it."
    total = sum(spent[kind] for kind in kinds)
    told = ", ".join(f"{KIND_WORDS[kind]} {amount(spent[kind] / whole, 'share')}" for kind in kinds)
    first = f"{amount(total / whole, 'share')} ({amount(total, 'ps')}) was exposed communication"
    return f"{first}, which computation did not hide: {told}."


def _what_if(rows: list[dict[str, Any]], whole: float) -> str:
    told = [f"{row['case']} {amount(row['iteration_ps'], 'ps')} ({_less(row, whole)})" for row in rows]
    return f"What it would be: {'; '.join(told)}." if told else ""


def _less(row: Mapping[str, Any], whole: float) -> str:
    change = row["iteration_ps"] / whole - 1
    if abs(change) < _EQUAL:
        return "the same"
    return f"{amount(abs(change), 'share')} {'less' if change < 0 else 'more'}"


def few_flows_sentence(run: Run) -> str:
    """How many flows are on the network at once, their size and their entropy."""
    found = network_flows(run, np.array([0, 1], np.int64))
    if found is None:
        return "Nothing crossed the network."
    return (
        f"On the network {amount(found.mean_flows, 'count')} flows are under way at once, while there are any, with an "
        f"entropy of {amount(found.mean_entropy, 'bit')} bit; an average byte is part of a flow of "
        f"{amount(found.mean_size_bytes, 'B')}."
    )


def goodput_sentence(run: Run) -> str:
    """What failures leave over weeks; nothing where that was not asked."""
    number = run.summary
    if "effective_share" not in number:
        return ""
    told = {
        name: amount(run.value(name), number[name]["unit"])
        for name in number
        if name in _GOODPUT and run.value(name) is not None
    }
    if "interruption_every_s" not in told:
        return f"Over weeks {told['effective_share']} of the time is training which counts: nothing fails."
    costs = ", ".join(f"{words} {told[name]}" for name, words in _GOODPUT.items() if words and run.value(name))
    rate = f", {told['effective_tokens_per_s']} tokens per second" if "effective_tokens_per_s" in told else ""
    return (
        f"Over weeks something interrupts it every {told['interruption_every_s']}; with a checkpoint every "
        f"{told['checkpoint_every_s']} of training, {told['effective_share']} of the time counts{rate} "
        f"({told['effective_share_p5']} to {told['effective_share_p95']} in nine of ten runs). The rest: {costs}."
    )


def _hottest(run: Run) -> str:
    rows = busiest_links(run, _HOT).to_pylist()
    rows = [row for row in rows if row["utilisation"] >= _SMALL * rows[0]["utilisation"]]
    if not rows or not rows[0]["utilisation"]:
        return ""
    alike = run.query(f"select count(*) as n from links where utilisation >= {_ALIKE * rows[0]['utilisation']}")  # noqa: S608
    if (others := alike["n"][0].as_py() - 1) >= _HOT:
        used = amount(rows[0]["utilisation"], "share")
        return f"The hottest links were {rows[0]['name']} and {others:,} like it, in use {used} of the time."
    told = ", ".join(f"{row['name']} in use {amount(row['utilisation'], 'share')} of the time" for row in rows)
    return f"The hottest link{'s were' if len(rows) > 1 else ' was'} {told}."
