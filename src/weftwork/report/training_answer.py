"""The answer of a training run for people.

It has the time of an iteration, its parts, and what would help.

Reads the run's folder and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weftwork.base.grammar import plural
from weftwork.report.network_flows import network_flows
from weftwork.report.tables import busiest_groups
from weftwork.report.words import amount, change, sentence
from weftwork.spec.numbers import numbers_shown
from weftwork.spec.training import HEADROOM
from weftwork.spec.verdicts import verdict_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weftwork.base.caveat import Caveat
    from weftwork.store.runs import Run

__all__ = [
    "approximations",
    "few_flows_sentence",
    "goodput_sentence",
    "is_approximation",
    "is_bound",
    "jobs_of",
    "may_not_fit",
    "memory_sentence",
    "memory_warnings",
    "training_sentences",
    "what_if_change",
    "what_if_of",
]

_OF_MEMORY: Final = ".memory_bytes"  # subjects behind the name of a job
_OF_ENGINE: Final = "engine."  # subjects that tell how it was run; notes tell them
_SMALL: Final = 0.005  # of the iteration; what takes less is not told in a sentence
_EQUAL: Final = 0.0005  # a difference that rounds to 0.0 %


def jobs_of(run: Run) -> list[dict[str, Any]]:
    """The rows of the table `jobs`."""
    rows: list[dict[str, Any]] = run.table("jobs").to_pylist()
    return rows


def what_if_of(run: Run, job: str) -> list[dict[str, Any]]:
    """The rows of the table `what_if` for one job."""
    return [row for row in run.table("what_if").to_pylist() if row["job"] == job]


def approximations(run: Run) -> list[str]:
    """The approximations that the engine declares, each as a sentence."""
    is_alone = len(_memory_texts(run)) == 1
    return [
        f"Approximate: {caveat.subject}: {caveat.text}"
        for caveat in run.caveats
        if is_approximation(caveat, is_alone=is_alone)
    ]


def is_approximation(caveat: Caveat, *, is_alone: bool = True) -> bool:
    """Whether the answer has a sentence on an approximation that begins with its subject.

    The memory of a job that is alone has its own sentence.
    """
    return (
        caveat.kind == "approximate"
        and not caveat.subject.startswith(_OF_ENGINE)
        and not (caveat.subject.endswith(_OF_MEMORY) and is_alone)
    )


def memory_warnings(run: Run) -> list[str]:
    """Jobs whose predicted memory leaves less than `HEADROOM` of a GPU free, or is too much with its likely error.

    Each comes with the errors of the nearest measured rows.
    """
    said = []
    for place, (job, text) in enumerate(_memory_texts(run).items()):
        if may_not_fit(run.summary, f"{job}." if place else ""):
            said.append(f"{job}: {text}" if place else text)
    return said


def may_not_fit(numbers: Mapping[str, Mapping[str, Any]], lead: str = "") -> bool:
    """Whether predicted memory leaves less than `HEADROOM` of a GPU free, or is too much with its likely error.

    Parameters
    ----------
    numbers : of a summary; those of older versions and of other workloads do not tell
    lead : of the names of a job's numbers
    """
    share, likely = (
        float(numbers.get(f"{lead}{name}", {}).get("value") or 0) for name in ("memory_share", "memory_likely_share")
    )
    return share > 1 - HEADROOM or likely > 1


def memory_sentence(run: Run) -> str:
    """The memory of the only job, with the errors of the nearest measured rows.

    Empty for several jobs, whose memory is among the approximations.
    """
    jobs = jobs_of(run)
    if len(jobs) != 1 or not jobs[0]["memory_bytes"]:
        return ""
    text = _memory_texts(run).get(jobs[0]["job"], f"up to {amount(jobs[0]['memory_bytes'], 'B')} of memory")
    return f"A GPU needs {text}."


def _memory_texts(run: Run) -> dict[str, str]:
    """What is known of the memory of each job, in the order of the jobs; nothing in folders of older versions."""
    return {
        caveat.subject.removesuffix(_OF_MEMORY): caveat.text
        for caveat in run.caveats
        if caveat.subject.endswith(_OF_MEMORY)
    }


def is_bound(case: Mapping[str, Any]) -> bool:
    """Whether a what-if is a lower bound from sums, and not a simulation."""
    return str(case["text"]).startswith("a bound")


def what_if_change(case: Mapping[str, Any], job: Mapping[str, Any]) -> str:
    """Change of a what-if iteration against the iteration of its job."""
    share = case["iteration_ps"] / job["iteration_ps"] - 1
    return "the same" if abs(share) < _EQUAL else change(share)


def training_sentences(run: Run) -> list[str]:
    """The sentences behind the three lines of training jobs.

    For several seeds they are averages.
    """
    said = [goodput_sentence(run)]
    if not run.seeds:
        jobs = jobs_of(run)
        behind = [_unfinished(job, is_alone=len(jobs) == 1) for job in jobs]
        behind += [memory_sentence(run)]
        said = [*behind, _hottest(run), *said, *approximations(run)]
    return [text for text in said if text]


def _unfinished(job: Mapping[str, Any], *, is_alone: bool) -> str:
    if job["iteration_ps"] is not None:
        return ""
    return "No iteration was finished." if is_alone else f"{sentence(job['job'])} finished no iteration."


def few_flows_sentence(run: Run) -> str:
    """Concurrent flows on the network, with their size and entropy."""
    found = network_flows(run, np.array([0, 1], np.int64))
    if found is None:
        return verdict_text("run.no-network-traffic")
    flows = plural(found.mean_flows, "concurrent flow", shown=amount(found.mean_flows, "count"))
    bits = plural(found.mean_entropy, "bit", shown=amount(found.mean_entropy, "bit"))
    whose = "the job has" if len(jobs_of(run)) == 1 else "the jobs have"
    return (
        f"While communicating, {whose} {flows} on the network (entropy {bits}). "
        f"An average byte is part of a flow of {amount(found.mean_size_bytes, 'B')}."
    )


def goodput_sentence(run: Run) -> str:
    """The useful share of the time over weeks with failures.

    Empty if the scenario does not ask for it.
    """
    number = run.summary
    if "effective_share" not in number:
        return ""
    told = {name: amount(run.value(name), number[name]["unit"]) for name in number if run.value(name) is not None}
    if "interruption_every_s" not in told:
        return f"Over weeks {told['effective_share']} of the time is useful training: nothing fails."
    costs = ", ".join(f"{part.noun} {told[part.name]}" for part in numbers_shown("weeks") if run.value(part.name))
    rate = f", {told['effective_tokens_per_s']} tokens/s" if "effective_tokens_per_s" in told else ""
    return (
        f"Over weeks a failure interrupts training every {told['interruption_every_s']}; with a checkpoint every "
        f"{told['checkpoint_every_s']} of training, {told['effective_share']} of the time is useful{rate} "
        f"({told['effective_share_p5']} to {told['effective_share_p95']} in nine of ten runs). The rest: {costs}."
    )


def _hottest(run: Run) -> str:
    rows = busiest_groups(run, 1)
    if not rows or rows[0]["use"] == amount(0, "share"):
        return ""
    return f"The busiest link is {rows[0]['names']}, in use {rows[0]['use']} of the time."
