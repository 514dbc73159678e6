"""The three lines with which every answer begins.

They are the time it took, its limit, and the culprit with its cost.

All numbers are those of `summary.json`. Leaves out: everything behind them (`weftwork.report.answer`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.clock import SECOND_PS
from weftwork.base.grammar import plural
from weftwork.report.tables import busiest_groups
from weftwork.report.verdict_words import verdict_words
from weftwork.report.words import CLOCK_ENDED, amount, has_clock_ended, has_word
from weftwork.spec.answer import HEADLINES, NAMELESS, TIME_GROUPS
from weftwork.spec.endings import ENDINGS

if TYPE_CHECKING:
    from weftwork.spec.answer import Culprit
    from weftwork.store.runs import Run

__all__ = ["LABELS", "cost_texts", "culprit_text", "partial_text", "three_lines", "told_numbers"]

LABELS: Final = ("took", "limited by", "to blame")
_NOT_KNOWN: Final = "\u2013"
_SMALL: Final = 0.005  # of the iteration; what takes less is not told


def three_lines(run: Run) -> tuple[str, str, str]:
    """The time of a run, its limit and its culprit.

    Each is without its label, and empty if nothing is known.

    Parameters
    ----------
    run : of one seed or several
    """
    limit = _limited_by(run)
    return _took(run), limit, _to_blame(run, limit)


def partial_text(run: Run) -> str:
    """How an incomplete run ended; empty for a complete one."""
    if run.seeds:
        if run.status != "interrupted":
            return ""
        counted, wanted = len(run.provenance["seeds"]), run.provenance["seeds_wanted"]
        return f"PARTIAL: {run.status}; counted: {counted} of {plural(wanted, 'seed')}"
    if has_clock_ended(run):
        return f"NOT FINISHED: {CLOCK_ENDED}".rstrip(".")
    if run.is_complete:
        return ""
    return ENDINGS[run.status].headline.format(at=amount(run.value("simulated_ps"), "ps"))


def _known(run: Run, name: str) -> bool:
    return name in run.summary and run.summary[name]["value"] is not None


def _told(run: Run, name: str) -> str:
    number = run.summary[name]
    return amount(number["value"], number["unit"])


def _took(run: Run) -> str:
    partial = partial_text(run)
    if partial and not run.seeds:
        return partial
    lead = f"{partial}; " if partial else ""
    name = next((one for one in HEADLINES if _known(run, one)), None)
    if name is None or not _ended(run):
        return f"{lead}no time: it did not finish"
    told = _told(run, name)
    if run.seeds:
        low, high = (amount(run.summary[name][end], "ps") for end in ("low", "high"))
        told = f"{told} on average, 95 % interval {low} to {high}"
        return f"{lead}{told}{' an iteration' if name == 'iteration_ps' else ''}"
    told += _calibrated(run, name)
    if name == "iteration_ps":
        return f"{lead}{told} an iteration{_unmeasured(run)}{_rates(run)}"
    if name == "collective_duration_ps":
        repetitions = run.value("collective_repetitions") if _known(run, "collective_repetitions") else None
        each = " each" if (repetitions or 0) > 1 else ""
        bandwidth = ""
        if _known(run, "collective_bus_bandwidth_bps"):
            bandwidth = f": bus bandwidth {_told(run, 'collective_bus_bandwidth_bps')}, as nccl-tests counts it"
        return f"{lead}{told}{each}{bandwidth}"
    if not run.value("payload_bytes"):
        return f"{lead}{told}"
    return f"{lead}{told}: {_told(run, 'payload_bytes')} of payload at {_told(run, 'goodput_bps')} in total"


def _calibrated(run: Run, name: str) -> str:
    """The interval that a calibration gives to a time.

    Empty without a calibration.
    """
    ends = [name.replace("_ps", f"_{end}_ps") for end in ("low", "high")]
    if not all(_known(run, end) for end in ends):
        return ""
    low, high = (_told(run, end) for end in ends)
    return f" ({low} to {high}: 5 to 95 % of the calibration)"


def _unmeasured(run: Run) -> str:
    """The iteration time with unmeasured products on the GPU.

    Empty if the products were measured.
    """
    name = "iteration_unmeasured_ps"
    return f" (up to {_told(run, name)}: its products in eight bits are not measured)" if _known(run, name) else ""


def _ended(run: Run) -> bool:
    return all(part.is_complete for part in run.seeds) if run.seeds else run.is_complete


def _rates(run: Run) -> str:
    if not _known(run, "tokens_per_s"):
        return ""
    each = f", {_whole(run, 'tokens_per_s_per_gpu')} for each GPU" if _known(run, "tokens_per_s_per_gpu") else ""
    mfu = f", MFU {_told(run, 'mfu')}" if _known(run, "mfu") else ""
    return f": {_whole(run, 'tokens_per_s')} tokens/s{each}{mfu}"


def _whole(run: Run, name: str) -> str:
    return amount(round(run.value(name) or 0), "count")


def _limited_by(run: Run) -> str:
    if groups := _groups(run):
        return ", ".join(f"{words} {_told(run, name)}" for name, words in groups)
    found = run.answer
    if found.limited_by.share is None:
        return ""
    use = amount(found.limited_by.share, "share")
    if run.seeds:
        mean = f" (mean of {_seeds(found.limited_by.named_by, found.seeds)})" if found.seeds > 1 else ""
        return f"{found.limited_by.name}, in use {use} of the time{mean}"
    alike = next((row for row in busiest_groups(run, 1) if row["name"] == found.limited_by.name), None)
    if alike is None:
        return f"{found.limited_by.name}, in use {use} of the time"
    counts = [f"{alike[name]} {name}" for name in ("marks", "drops") if alike[name] != "0"]
    queue = [f"a queue of up to {alike['queue']}"] if alike["queue"] != amount(0, "B") else []
    behind = ", ".join(queue + counts)
    return f"{alike['names']}, in use {use} of the time at {alike['rate']}{'; ' if behind else ''}{behind}"


def _groups(run: Run) -> list[tuple[str, str]]:
    """The largest parts of an iteration, the longest first.

    Each is a number of the summary and its words.
    """
    if not _known(run, "computing_share"):
        return []
    shares = [(run.value(name) or 0.0, name, words) for name, words in TIME_GROUPS.items() if name in run.summary]
    shares.sort(key=lambda one: -one[0])
    return [(name, words) for share, name, words in shares if share >= _SMALL] or [shares[0][1:]]


def told_numbers(run: Run) -> set[str]:
    """Names of the summary numbers in the first two lines of several seeds.

    Parameters
    ----------
    run : of several seeds
    """
    times = [name for name in HEADLINES if _known(run, name)][:1] if _ended(run) else []
    return {*times, *(name for name, _ in _groups(run))}


def _to_blame(run: Run, limit: str) -> str:
    text = culprit_text(run.answer.culprit, seeds=run.answer.seeds, said=limit)
    behind = verdict_words(run.answer, f"{limit} {text}")
    return f"{text}{': ' if run.answer.culprit.kind in NAMELESS else '; '}{behind}" if behind else text


def culprit_text(culprit: Culprit, *, seeds: int = 1, said: str = "") -> str:
    """Name the culprit, its cost, and how the cost was found.

    Parameters
    ----------
    culprit : of an answer
    seeds : of how many runs it is the answer
    said : what the lines above say; the share of a part that stands there is not printed again
    """
    named_by = _seeds(culprit.named_by, seeds)
    text = f"{culprit.name}: {culprit.text}" if culprit.kind in NAMELESS else _named(culprit)
    if culprit.kind in NAMELESS or culprit.cost_s is None:
        return f"{text} ({named_by})" if seeds > 1 else text
    mean = f" on average of {named_by}" if seeds > 1 else ""
    costs = cost_texts(culprit)
    if culprit.kind == "part" and has_word(said, costs[1]):
        costs = costs[:1]
    return f"{text}: {', '.join(costs)}{_of(culprit)}{mean}{_found(culprit)}"


def _seeds(named_by: int, seeds: int) -> str:
    return plural(seeds, "seed") if named_by == seeds else f"{named_by} of {plural(seeds, 'seed')}"


def _named(culprit: Culprit) -> str:
    key = f" ({culprit.key})" if culprit.key and culprit.key != culprit.name else ""
    return f"{culprit.name}{key} {culprit.text}"


def cost_texts(culprit: Culprit) -> tuple[str, ...]:
    """The cost of a suspect, as a time and a share.

    Parameters
    ----------
    culprit : or another suspect; ``nothing`` and 0 % where the run was no faster without it
    """
    if culprit.cost_s is None or culprit.cost_share is None:
        return _NOT_KNOWN, _NOT_KNOWN
    if culprit.cost_s <= 0:
        return "nothing", amount(0.0, "share")
    bound = "at most " if culprit.how == "bound" else ""
    return f"{bound}{amount(culprit.cost_s * SECOND_PS, 'ps')}", amount(culprit.cost_share, "share")


def _of(culprit: Culprit) -> str:
    return "" if culprit.of == "the run" else f" of the time of {culprit.of}"


def _found(culprit: Culprit) -> str:
    if culprit.how == "simulated":
        return " (simulated again without it)"
    if culprit.how == "recorded":
        return " (recorded)"
    return f" (a bound; {culprit.command} simulates it)" if culprit.command else " (a bound)"
