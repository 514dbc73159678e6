"""The culprit of an unfinished run: a deadlock, a fault, or a rule.

`docs/models/answer.md` has the rules (section Runs that did not end). Leaves out: who waits for whom, which the tables
``waits`` and ``deadlock`` have (`weftwork.study.results.waits`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.base.grammar import plural
from weftwork.base.units import DURATION, format_quantity
from weftwork.engine.rows.waits import WAIT_KINDS, WAIT_STATES
from weftwork.spec.answer import Culprit
from weftwork.study.answer.round_trip import round_trip_ps, short_duration
from weftwork.study.answer.suspicions.fault import placed_faults

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from weftwork.spec.answer import CulpritKind
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.run.execute import Execution

__all__ = ["who_stopped"]

_LOST_AT_FAULTS: Final = ("drop_link_down", "drop_no_route")
_MOST_PAIRS: Final = 64  # chosen: of the queue pairs that gave up; others are like them


def who_stopped(prepared: Prepared, execution: Execution, tables: Mapping[str, pa.Table]) -> Culprit:
    """Name the culprit of a run that did not end.

    Parameters
    ----------
    prepared : what was run
    execution, tables : of it
    """
    if cycle := tables["deadlock"].num_rows:
        what = "credits" if prepared.transport.link_credits else "pauses"
        text = f"locked {plural(cycle, 'port')} in a circle of {what}"
        return _stopped("setting", "flow_control", "transport.flow_control", text)
    waits = tables["waits"].select(["stopped_by", "place", "since_ps"]).to_pylist()
    dead = {mark for row in waits if row["place"] is not None for mark in (row["place"], row["since_ps"])}
    down = _down(prepared, execution)
    if down and (dead or (execution.outcome.complete and (not waits or _is_lost_at_faults(execution)))):
        name, at_ps = next((one for one in down if not dead.isdisjoint(one)), down[-1])
        suspect = next(one for one in placed_faults(prepared) if one.name == name)
        found = _stopped(suspect.kind, name, suspect.key, f"{suspect.text}, and no detour was found")
        return replace(found, start_s=at_ps / SECOND_PS, ids=suspect.ids)
    if execution.outcome.counters.get("queue_pair_errors", 0):
        return _gave_up(prepared, execution)
    words = Counter(row["stopped_by"] for row in waits if row["stopped_by"] in _RULES)
    if not words and execution.interrupted:
        return _stopped("unknown", "not known", None, "the run was interrupted before its end")
    if not words and not execution.outcome.complete:
        until = format_quantity(DURATION, execution.outcome.simulated_ps)
        return _stopped("setting", "engine.until", "engine.until", f"cut the run at {until}, before its end")
    if not words:
        return _stopped("unknown", "not known", None, "ranks wait for each other, and no record says why")
    found = _stopped(*_RULES[words.most_common(1)[0][0]])
    return replace(found, name=prepared.policies[found.name].name) if found.kind == "policy" else found


def _gave_up(prepared: Prepared, execution: Execution) -> Culprit:
    """The timeout, if it is shorter than the round trip of a message that failed, else the limit of retries."""
    waits = execution.outcome.waits
    failed = waits[(waits["state"] == WAIT_STATES.index("failed")) & (waits["peer"] >= 0)]
    is_send = failed["kind"] == WAIT_KINDS.index("send")
    pairs = np.stack(
        [
            np.where(is_send, failed["rank"], failed["peer"]),
            np.where(is_send, failed["peer"], failed["rank"]),
            failed["channel"],
        ],
        axis=1,
    )
    timeout_ps = prepared.transport.retransmission_timeout_ps
    for source, destination, channel in np.unique(pairs, axis=0)[:_MOST_PAIRS].tolist():
        trip_ps = round_trip_ps(prepared, source, destination, channel)
        if timeout_ps < trip_ps:
            text = (
                f"of {format_quantity(DURATION, timeout_ps)} is shorter than the round trip of"
                f" {short_duration(trip_ps)}: a queue pair gave up before an acknowledgement could come"
            )
            return _stopped("setting", "timeout", "transport.timeout", text)
    return _stopped(*_RULES["retries exhausted"])


def _is_lost_at_faults(execution: Execution) -> bool:
    """Whether most losses were at links that were down, or without a route."""
    drops = {name: count for name, count in execution.outcome.counters.items() if name.startswith("drop_")}
    return 2 * sum(drops[name] for name in _LOST_AT_FAULTS) > sum(drops.values())


def _stopped(kind: CulpritKind, name: str, key: str | None, text: str) -> Culprit:
    return Culprit(kind=kind, name=name, key=key, text=text, cost_s=None, cost_share=None, how="recorded", of="the run")


def _down(prepared: Prepared, execution: Execution) -> list[tuple[str, int]]:
    """Places that were down at the end, and since when.

    The latest comes last.
    """
    since_ps: dict[str, int] = {}
    for fault in prepared.faults:
        if fault.at_ps > execution.outcome.simulated_ps:
            continue
        passes = [one.change.passes for one in fault.faults if one.change.passes is not None]
        if passes:
            since_ps.pop(fault.where, None)
        if passes and not passes[-1]:
            since_ps[fault.where] = fault.at_ps
    return list(since_ps.items())


# What stops those who wait, by the words of the table `waits`: kind, name, key and text of a culprit. A policy has the
# name of its kind. What is stopped by a fault or by a deadlock has its culprit above.
_RULES: Final[dict[str, tuple[CulpritKind, str, str | None, str]]] = {
    "retries exhausted": ("setting", "retry_limit", "transport.retry_limit", "was reached, and a queue pair gave up"),
    "receive missing": ("job", "the job", None, "sends a message that no rank receives"),
    "held back": ("policy", "congestion_control", "transport.congestion_control", "never allowed a message to be sent"),
    "never sent": ("job", "the job", None, "waits for a message that no rank sends"),
    "never joined": ("job", "the job", None, "waits for members that have ended"),
    "never notified": ("job", "the job", None, "waits for itself"),
}
