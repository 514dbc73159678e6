"""A search for parallel plans in words.

It has the winner, why the next plan loses, and what was left out.

Takes the document that `weftwork plan` writes as ``plan.json``. Leaves out: tables and figures.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.base.plain_file import read_plain
from weftwork.report.words import amount, amounts_apart, assumptions, interval_sentence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = [
    "PLAN_FILE",
    "SCENARIO_FILE",
    "argument_lines",
    "front_rows",
    "left_out",
    "loss_words",
    "megatron_notes",
    "memory_words",
    "open_plan",
    "overlap_words",
    "own_plan",
    "plan_verdict",
]  # fmt: skip

PLAN_FILE: Final = "plan.json"
SCENARIO_FILE: Final = "scenario.yaml"
_MOST_BYTES: Final = 100_000_000  # chosen: a document with 2,000 dots has 0.4 MB
_NEEDED: Final = frozenset({
    "name", "about", "kinds", "gpus", "fixed", "counted", "pruned", "gpu_bytes", "headroom", "limit_bytes", "run",
    "not_run_within_margin", "closed_form_s", "flow_s", "best", "own", "megatron", "front", "cloud",
})  # fmt: skip
_OF_PLANS: Final = {
    "best": frozenset({
        "plan", "short", "keys", "iteration_ps", "closed_form_ps", "limited_by", "tokens_per_s", "mfu", "memory_bytes",
        "exposed_share", "near_peaks", "near_words",
    }),
    "front": frozenset({"short", "closed_form_ps", "memory_bytes"}),
    "cloud": frozenset({"short", "closed_form_ps", "memory_bytes"}),
}  # fmt: skip
_SHOWN: Final = 6  # rows of the front


def open_plan(folder: Path) -> tuple[dict[str, Any], str]:
    """Read the document and the best scenario of a `weftwork plan` folder.

    Raises
    ------
    ConfigError : a file cannot be read, is no such document, or was written by a version without some of its keys
    """
    try:
        found = json.loads(_read(folder, PLAN_FILE))
    except ValueError as error:
        raise ConfigError(str(folder), [Mistake(path=PLAN_FILE, text=f"is no JSON: {error}")]) from error
    missing = sorted(_NEEDED - found.keys()) if isinstance(found, dict) else sorted(_NEEDED)
    if not missing:
        missing = _missing_in(found)
    if missing or not found["best"] or not found["front"]:
        text = f"lacks {', '.join(missing) or 'plans'}; run weftwork plan again"
        raise ConfigError(str(folder), [Mistake(path=PLAN_FILE, text=text)])
    return dict(found), _read(folder, SCENARIO_FILE)


def _missing_in(found: Mapping[str, Any]) -> list[str]:
    """Keys that the plans of a document lack."""
    return sorted(
        f"{name}[{place}].{key}"
        for name, needed in _OF_PLANS.items()
        for place, one in enumerate(found[name])
        for key in (needed - one.keys() if isinstance(one, dict) else needed)
    )[:3]


def _read(folder: Path, name: str) -> str:
    try:
        return read_plain(folder / name, _MOST_BYTES).decode("utf-8", errors="replace")
    except OSError as error:
        raise ConfigError(str(folder), [Mistake(path=name, text=f"cannot be read: {error.strerror}")]) from error


def plan_verdict(document: Mapping[str, Any]) -> list[str]:
    """The best plan, its result, and why the next plan loses, in sentences."""
    best, *others = document["best"]
    gives = (
        f"An iteration takes {amount(best['iteration_ps'], 'ps')}, most of it {best['limited_by']}:"
        f" {best['tokens_per_s']:,.0f} tokens/s, MFU {amount(best['mfu'], 'share')},"
        f" {amount(best['memory_bytes'], 'B')} of the {amount(document['gpu_bytes'], 'B')} of a GPU."
    )
    measured = interval_sentence(best["iteration_ps"], best.get("interval"))
    said = [f"Best plan: {best['plan']}", gives, *measured, memory_words(document)]
    if others:
        said.append(f"The next, {others[0]['plan']}, {_behind(others[0], best)}.")
    return [*said, *assumptions(document.get("assumed", ()))]


def memory_words(document: Mapping[str, Any]) -> str:
    """The memory that all plans leave free, and how well plans near the best one were predicted."""
    best = document["best"][0]
    share, headroom = best["memory_bytes"] / document["gpu_bytes"], document["headroom"]
    free = (
        f"Every plan leaves {amount(headroom, 'share')} of a GPU's memory free (--headroom)"
        if headroom
        else "No memory is left free on purpose (--headroom 0 %)"
    )
    return f"{free}; the best is predicted to use {amount(share, 'share')}, and {best['near_words']}."


def own_plan(document: Mapping[str, Any]) -> list[str]:
    """The user's own plan against the best, in sentences.

    Empty if there is no own plan.
    """
    own = document["own"]
    if own is None:
        return []
    if own["plan"] is None:
        return [f"Your plan is infeasible: {'; '.join(own['mistakes'])}."]
    whose = f"Yours, with {', '.join(document['fixed'])} as set" if document["fixed"] else "Yours"
    if own["plan"] == 0:
        return ["The best plan is yours."]
    mine = document["best"][own["plan"]]
    return [f"{whose}, {mine['plan']}, {_behind(mine, document['best'][0])}."]


def _behind(one: Mapping[str, Any], best: Mapping[str, Any]) -> str:
    """By how much a plan loses, and through what."""
    more_ps = one["iteration_ps"] - best["iteration_ps"]
    if more_ps == 0:
        return "takes the same time"
    share = amount(one["iteration_ps"] / best["iteration_ps"] - 1, "share")
    more_of = f"{amount(one['loses_ps'], 'ps')} more of {one['loses_by']}"
    return f"takes {amount(more_ps, 'ps')} ({share}) longer: {more_of}"


def loss_words(one: Mapping[str, Any]) -> str:
    """The kind of time that a plan has more of than the best plan, and how much more; empty for the best.

    Parameters
    ----------
    one : plan of the document

    Examples
    --------
    >>> loss_words({"loses_by": "computing", "loses_ps": 0}), loss_words({})
    ('nothing', '')
    """
    if "loses_by" not in one:
        return ""
    return f"{one['loses_by']}, {amount(one['loses_ps'], 'ps')}" if one["loses_ps"] else "nothing"


def argument_lines(words: Sequence[str]) -> str:
    """Arguments for a shell, each option on its own line."""
    lines: list[str] = []
    for word in map(shlex.quote, words):
        if word.startswith("--") or not lines:
            lines.append(word)
        else:
            lines[-1] += f" {word}"
    return " \\\n".join(lines) + "\n"


def megatron_notes(document: Mapping[str, Any]) -> list[str]:
    """Notes on the arguments of Megatron-LM, in sentences."""
    written = document["megatron"]
    if written is None and (asked := document.get("trainer")) and asked["name"] != "megatron":
        return [f"The plans are for {asked['title']}: no arguments of Megatron-LM are written."]
    if written is None:
        return [f"Megatron-LM can run none of the plans that ran on the flow engine{_lacks(document)}."]
    said = []
    if written["plan"]:
        one, best = document["best"][written["plan"]], document["best"][0]
        share = amount(one["iteration_ps"] / best["iteration_ps"] - 1, "share")
        said.append(
            f"The arguments are those of {one['plan']}, which takes {share} longer: Megatron-LM cannot run the best"
            f" plan{_lacks(document)}."
        )
    said += [f"No argument sets {key}: {why}." for key, why in written["left_out"].items()]
    return said


def _lacks(document: Mapping[str, Any]) -> str:
    """Keys of the best plan that Megatron-LM cannot run, each with the reason."""
    reasons = "; ".join(f"{key}: {why}" for key, why in document.get("megatron_lacks", {}).items())
    return f" ({reasons})" if reasons else ""


def overlap_words(document: Mapping[str, Any]) -> list[str]:
    """Which share of its communication every plan hides behind computation, and the keys that change it."""
    shares = document.get("overlap", ())
    if not shares:
        return []
    texts = ", ".join(f"{one['kind']} {amount(one['share'], 'share')}" for one in shares)
    words = [f"Communication that may hide behind computation, at most (training.overlap): {texts}."]
    return words + [
        f"No {one['kind']} is hidden, as in {one['trainer']} without {one['argument']};"
        f" --set {one['key']}={one['share_with']:g} stands for a job with it."
        for one in shares
        if one["share"] == 0 and one.get("argument")
    ]


def left_out(document: Mapping[str, Any]) -> list[str]:
    """Numbers of counted, run and infeasible plans, in sentences."""
    pruned, fixed = document["pruned"], document["fixed"]
    limit = f" beyond {amount(document['limit_bytes'], 'B')}"
    reasons = ", ".join(f"{count:,} for {key}{limit if key == 'memory' else ''}" for key, count in pruned.items())
    left = f"; {sum(pruned.values()):,} are infeasible: {reasons}" if reasons else ""
    kept = f" {plural(len(fixed), 'key')} stayed as given: {', '.join(fixed)}." if fixed else ""
    who = _for_trainer(document)
    counted = (
        f"{plural(document['counted'], 'plan')}{who} counted by closed forms, {document['run']} run on the flow engine"
        f" ({document['closed_form_s']:.1f} s and {document['flow_s']:.1f} s){left}.{kept}"
    )
    said = [counted]
    if left_ways := document.get("left_ways"):
        ways = plural(left_ways, "way", "ways")
        few = f"of {ways} to spread the GPUs only a few plans were counted"
        said.append(f"Time was over: {few}; a longer --within counts more.")
    within_s = document.get("within_s")
    if within_s is not None and document["took_s"] > within_s:
        over = f"{document['took_s']:.0f} s, {document['took_s'] - within_s:.0f} s more than --within {within_s:g}s"
        said.append(f"The search took {over}: what has begun is ended, and one plan always runs on the flow engine.")
    if document["not_run_within_margin"]:
        count = plural(document["not_run_within_margin"], "plan")
        said.append(f"{count} may be as good and did not run on the flow engine.")
    if waiting := document.get("waiting"):
        times = amounts_apart([one["closed_form_ps"] for one in waiting], "ps")
        plans = "; ".join(f"{one['short']}, {time}" for one, time in zip(waiting, times, strict=True))
        said.append(f"The fastest of the plans that did not run, by closed forms: {plans}.")
    return said


def _for_trainer(document: Mapping[str, Any]) -> str:
    """Who can run the plans, where that was asked."""
    asked = document.get("trainer")
    return "" if asked is None else f" that {asked['title']} can run"


def front_rows(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Some plans of the front, evenly spread, the fastest first."""
    front = document["front"]
    return list(front[:: max(1, -(-len(front) // _SHOWN))])
