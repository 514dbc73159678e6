"""The three lines with which every answer begins.

They are the time it took, its limit, and the culprit with its cost.

All numbers are those of `summary.json`. Leaves out: everything behind them (`weftwork.report.answer`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.clock import SECOND_PS
from weftwork.base.grammar import plural
from weftwork.report.tables import busiest_groups
from weftwork.report.verdict_words import untried_words, verdict_words
from weftwork.report.words import CLOCK_ENDED, amount, has_clock_ended, has_word, interval_words, measured_words
from weftwork.spec.answer import NAMELESS, REACTIONS
from weftwork.spec.numbers import HEADLINES, TIME_GROUPS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weftwork.spec.answer import Answer, Culprit
    from weftwork.store.runs import Run

__all__ = [
    "LABELS", "MEASURED", "cost_texts", "culprit_text", "grave_suspects", "labelled_lines", "other_suspects",
    "partial_text", "repair_text", "stopped_what_ifs", "three_lines", "told_numbers",
]  # fmt: skip

LABELS: Final = ("took", "limited by", "to blame")
MEASURED: Final = "measured"  # the line beside the time: its interval, and the measurements behind it
LEAST_TOLD: Final = 0.01  # of the time; what costs less is nobody's culprit either
MOST_TOLD: Final = 6  # chosen: lines that a screen still holds
GRAVE_SHARE: Final = 0.05  # chosen: of the time; a second suspect that costs as much is worth a repair of its own
MOST_REPAIRED: Final = 3  # chosen: repairs that one sentence can hold
_NO_REPAIRS: Final = (*REACTIONS, "collective.size", "fabric")  # the latter: latencies of launches and of cables
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


def labelled_lines(run: Run) -> tuple[tuple[str, str], ...]:
    """The three lines with their labels, and the interval of the time beside it.

    Lines of which nothing is known are left out.

    Parameters
    ----------
    run : of one seed or several
    """
    took, *others = zip(LABELS, three_lines(run), strict=True)
    lines = (took, (MEASURED, _measured(run)), *others)
    return tuple((label, text) for label, text in lines if text)


def partial_text(run: Run) -> str:
    """How an incomplete run ended; empty for a complete one."""
    if run.seeds:
        if not run.ending.is_by_hand:
            return ""
        counted, wanted = len(run.provenance["seeds"]), run.provenance["seeds_wanted"]
        return f"PARTIAL: {run.status}; counted: {counted} of {plural(wanted, 'seed')}"
    if has_clock_ended(run):
        return f"NOT FINISHED: {CLOCK_ENDED}".rstrip(".")
    if run.is_complete:
        return ""
    return run.ending.headline.format(at=amount(run.value("simulated_ps"), "ps"))


def stopped_what_ifs(run: Run) -> str:
    """Which what-ifs of a run that ended were not made since somebody stopped them; empty if all were."""
    stops = [part.provenance.get("what_ifs_stopped") for part in run.seeds or (run,)]
    counts = [stop for stop in stops if stop is not None]
    if not counts:
        return ""
    made, wanted = (sum(stop[name] for stop in counts) for name in ("made", "wanted"))
    weeks = ", and the goodput over weeks was not simulated" if any(stop["lacks_goodput"] for stop in counts) else ""
    return (
        f"stopped after {made} of {wanted}: the run itself had ended{weeks}; costs without a what-if are upper bounds,"
        " and the same command makes all what-ifs"
    )


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
        low, high = (run.summary[name][end] for end in ("low", "high"))
        between = interval_words(low, high, "ps", beside=run.value(name) or 0.0)
        told = f"{told} on average, {f'95 % interval {between}' if between else 'the same for each seed'}"
        return f"{lead}{told}{' an iteration' if name == 'iteration_ps' else ''}"
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


def _measured(run: Run) -> str:
    """The interval of the time, and the measurements behind it; empty where there is no time."""
    took = run.answer.took
    if took.seconds is None or took.interval is None:
        return ""
    return measured_words(took.seconds, took.interval.low, took.interval.high, took.interval.basis)


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


def other_suspects(run: Run) -> list[str]:
    """The other suspects that cost at least a hundredth of the time, the dearest first.

    A fault or straggler of the scenario, and a suspect of a user's own file, has a line whatever it costs, also
    nothing. Suspects with a bound alone stand in a line of their own, unless the line of the culprit names them.
    Suspects that were tried together have a line if they cost more together than the dearest of them alone.

    Parameters
    ----------
    run : of one seed or several
    """
    answer = run.answer
    alone = {one.name: one.cost_share or 0.0 for one in (answer.culprit, *answer.others)}
    costly = [
        one for one in answer.others
        if one.how != "bound" and not _is_told(one, alone)
        and ((one.cost_share or 0.0) >= LEAST_TOLD or one.is_named_by_user)
    ]  # fmt: skip
    limit = _limited_by(run)
    told = costly[:MOST_TOLD] + [one for one in costly[MOST_TOLD:] if one.is_named_by_user]
    found = [culprit_text(one, seeds=answer.seeds, said=limit) for one in told]
    if len(costly) > len(told):
        found.append(f"{len(costly) - len(told)} more, each with its cost, on the page and in summary.json")
    if answer.culprit.kind not in NAMELESS and (untried := untried_words(answer)):
        found.append(untried)
    return found


def _is_told(suspect: Culprit, alone: Mapping[str, float]) -> bool:
    """Whether suspects tried together cost no more than one of them alone, which has its own line."""
    dearest = max((alone.get(name, 0.0) for name in suspect.members), default=0.0)
    return len(suspect.members) > 1 and (suspect.cost_share or 0.0) < dearest + LEAST_TOLD


def grave_suspects(answer: Answer) -> list[Culprit]:
    """Suspects beside the culprit that a reader must not overlook, the dearest first.

    They are the faults and stragglers of the scenario, and those that cost at least `GRAVE_SHARE` by a simulation.

    Parameters
    ----------
    answer : of one seed or several
    """
    return [
        one for one in answer.others
        if not one.members
        and (one.is_listed or (one.how == "simulated" and (one.cost_share or 0.0) >= GRAVE_SHARE))
    ]  # fmt: skip


def repair_text(answer: Answer) -> str:
    """The order in which to repair suspects, with the time after each repair and after all; empty for less than two.

    What answers to others, such as a loss recovery, and what only another job or building mends, is no repair.

    Parameters
    ----------
    answer : of one seed or several

    Examples
    --------
    >>> from weftwork.spec.answer import Answer, Culprit, Limit, Took
    >>> def suspect(name, cost_s, members=()):
    ...     return Culprit(kind="nic", name=name, key=f"faults.{name}", text="is slow", cost_s=cost_s,
    ...                    cost_share=cost_s / 10, how="simulated", of="the run", members=members)
    >>> both = suspect("a and b", 5.0, ("a", "b"))
    >>> took = Took(what="an iteration", seconds=10.0, number="iteration_ps")
    >>> limit = Limit(name="computing", share=0.5, number="computing_share")
    >>> repair_text(Answer(took=took, limited_by=limit, culprit=suspect("a", 3.0), others=(suspect("b", 1.0), both)))
    'a first: 7 s instead of 10 s; b alone: 9 s; both: 5 s'
    """
    suspects = [
        one for one in (answer.culprit, *grave_suspects(answer))
        if one.kind not in NAMELESS and one.kind != "part" and one.key not in _NO_REPAIRS
        and not one.members and one.of == "the run"
    ]  # fmt: skip
    listed = [one for one in suspects if one.is_listed]
    suspects = listed if len(listed) > 1 else suspects
    if len(suspects) < 2 or answer.took.seconds is None:
        return ""
    took_s, every_name = answer.took.seconds, {one.name for one in suspects}
    which = "both" if len(every_name) == 2 else f"all {len(every_name)}"
    suspects = sorted(suspects, key=lambda one: -(one.cost_s or 0.0))[:MOST_REPAIRED]
    if any(one.how == "bound" or one.cost_s is None for one in suspects):
        command = next((one.command for one in suspects if one.command), None)
        alone = ", ".join(f"without {one.name}" for one in suspects)
        how = f"; {command} does it" if command else ""
        return f"the times {alone} and without {which} were not simulated{how}"
    first, *rest = suspects
    texts = [f"{first.name} first: {_time(took_s, first)} instead of {amount(took_s * SECOND_PS, 'ps')}"]
    texts += [f"{one.name} alone: {_time(took_s, one)}" for one in rest]
    joint = next((one for one in (answer.culprit, *answer.others) if set(one.members) == every_name), None)
    repaired = f"{which} together were not simulated" if joint is None else f"{which}: {_time(took_s, joint)}"
    return "; ".join([*texts, repaired])


def _time(took_s: float, repaired: Culprit) -> str:
    """The time without a suspect."""
    return amount((took_s - max(repaired.cost_s or 0.0, 0.0)) * SECOND_PS, "ps")


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
