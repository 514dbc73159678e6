"""The waiting ranks of an unfinished run, from the table ``waits``.

The first cause comes first.

Leaves out: how waits and their causes are found, see `weftwork.study.results.waits`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.grammar import plural
from weftwork.report.words import amount

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weftwork.store.runs import Run

__all__ = ["OWN_FAULT", "waiting_lines"]

OWN_FAULT: Final = (
    "This is a fault of Weftwork, not of the fabric or the job: without a fault in the scenario, training always ends. "
    "Please report it with the folder {folder}."
)

Row = dict[str, Any]

_SHOWN_CAUSES: Final = 3  # chosen: an answer, not a list; waits.parquet has all
_SHOWN_CHAIN: Final = 4  # chosen: likewise
_SHOWN_PORTS: Final = 16  # chosen: a ring of so many switches is told whole
_CAUSES: Final = {
    "dead link": "link {where} is down since {since}",
    "no path": "no path to it is left{down}",
    "no route": "no route leads to it{down}",
    "deadlock": "it is held in the deadlock",
    "retries exhausted": "its queue pair gave up after too many timeouts",
    "receive missing": "rank {receiver} posts no receive for it, and there are no credits without one",
    "held back": "neither its window nor its credits ever allowed it",
    "never sent": "rank {peer} has ended without sending it",
    "never joined": "rank {peer} has ended without taking part",
    "never notified": "no other stream of the rank is left that would notify it",
}


def waiting_lines(run: Run) -> list[str]:
    """Name the waiting ranks and their causes, first causes first.

    Empty if no rank waits. A run that shows a fault of Weftwork says so at the end.

    Parameters
    ----------
    run : of one seed
    """
    said = _waiting(run)
    if run.has_own_fault:
        said.append(OWN_FAULT.format(folder=run.path))
    return said


def _waiting(run: Run) -> list[str]:
    rows: list[Row] = run.waits.to_pylist()
    cycle: list[Row] = run.deadlock.to_pylist()
    causes: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row["stopped_by"] is not None:
            causes[row["stopped_by"], row["place"]].append(row)
    chain = _chain(rows)
    if not rows or (run.ending.is_by_hand and not causes):
        return _deadlock(cycle)
    said = _deadlock(cycle)
    roots = [found[0] for found in causes.values()][:_SHOWN_CAUSES]
    if chain[-1]["stopped_by"] is not None:  # that which the chain leads to stands for its cause
        key = (chain[-1]["stopped_by"], chain[-1]["place"])
        roots = [chain[-1], *(found[0] for cause, found in causes.items() if cause != key)][:_SHOWN_CAUSES]
    said += [f"{_who(row)} {_what(row)}: {_why(row)}." for row in roots]
    if len(causes) > len(roots):
        said.append(f"{plural(len(causes) - len(roots), 'more cause')}: table waits.")
    if not roots:
        said.append(_without_cause(chain, rows, is_cut=not run.ending.has_failed))
        return said
    behind = [row for row in reversed(chain[:-1]) if row["blocked_by"] != row["rank"]]  # of other ranks
    said += [f"{_who(row)} {_what(row)}; {_behind(row)}." for row in behind[:_SHOWN_CHAIN]]
    ranks = _ranks(rows)
    if ranks > 1:
        said.append(f"{plural(ranks, 'rank waits', 'ranks wait')} in all.")
    return said


def _ranks(rows: Sequence[Row]) -> int:
    """Number of ranks that the rows stand for."""
    return sum({row["rank"]: row["ranks"] for row in rows}.values())


def _deadlock(cycle: Sequence[Row]) -> list[str]:
    """The cycle of a deadlock, port by port."""
    if not cycle:
        return []
    ports = plural(len(cycle), "port")
    said = [f"Deadlock: {ports} in a circle, each held back by the switch at its end, which waits for the next one:"]
    said += [
        f"  {row['name']}: {amount(row['waiting_bytes'], 'B')} of priority {row['priority']} wait; {row['paused_by']}"
        f" holds {amount(row['held_bytes'], 'B')} from it"
        for row in cycle[:_SHOWN_PORTS]
    ]
    if len(cycle) > _SHOWN_PORTS:
        said.append(f"  and {plural(len(cycle) - _SHOWN_PORTS, 'more port')} (table deadlock), then the first again")
    return said


def _chain(rows: Sequence[Row]) -> list[Row]:
    """The chain from a wait to the wait that has to end first.

    It ends with a cause, or where it would repeat itself.
    """
    by_rank: defaultdict[int, list[Row]] = defaultdict(list)
    for row in rows:
        by_rank[row["rank"]].append(row)
    longest: list[Row] = []
    for start in rows:
        if start["blocked_by"] is None and start["stopped_by"] is None:
            continue
        chain = _follow(start, by_rank)
        is_better = (chain[-1]["stopped_by"] is not None, len(chain)) > (
            bool(longest) and longest[-1]["stopped_by"] is not None,
            len(longest),
        )
        longest = chain if is_better else longest
        if len(longest) > _SHOWN_CHAIN and longest[-1]["stopped_by"] is not None:
            break
    return longest or list(rows[:1])


def _follow(start: Row, by_rank: Mapping[int, list[Row]]) -> list[Row]:
    chain, seen = [start], {start["rank"], (start["rank"], start["stream"])}
    while chain[-1]["stopped_by"] is None and chain[-1]["blocked_by"] is not None:
        row = chain[-1]
        is_own = row["blocked_by"] == row["rank"]
        others = [
            other
            for other in by_rank.get(row["blocked_by"], ())
            if (other["rank"], other["stream"]) not in seen or (is_own and other["stopped_by"] is not None)
        ]
        if not others or (not is_own and row["blocked_by"] in seen):
            return chain
        chain.append(min(others, key=_preference))
        seen |= {chain[-1]["rank"], (chain[-1]["rank"], chain[-1]["stream"])}
    return chain


def _preference(row: Row) -> tuple[bool, bool]:
    """Sort key: first waits with a cause, then for other ranks, then own."""
    return row["stopped_by"] is None, row["blocked_by"] in (None, row["rank"])


def _who(row: Row) -> str:
    others = f" (and {plural(row['ranks'] - 1, 'rank')} like it)" if row["ranks"] > 1 else ""
    return f"Rank {row['rank']} ({row['host']}){others}"


def _what(row: Row) -> str:
    """The operation and message of a waiting rank."""
    where = [row["operation"]] if row["operation"] else []
    if row["pass"]:
        of = f" of micro batch {row['micro_batch']}" if row["micro_batch"] >= 0 else ""
        where.append(f"{row['pass']}{of}")
    if row["operation"] and row["waits_for"] in ("send", "receive"):
        where.append(f"step {row['step']}")
    inside = f" in {', '.join(where)}" if where else ""
    size = "" if row["size_bytes"] is None else f", {amount(row['size_bytes'], 'B')}"
    match row["waits_for"]:
        case "send" | "receive":
            towards = "to" if row["waits_for"] == "send" else "from"
            message = f"message {row['ordinal']} {towards} rank {row['peer']} ({row['peer_host']})"
            return f"waits{inside} for {message}, channel {row['channel']}{size}"
        case "collective":
            return f"waits{inside} for call {row['ordinal']} of its group{size}"
        case "token":
            return f"waits{inside} for another stream of its own"
    return f"computes{inside}"


def _why(row: Row) -> str:
    down = "" if row["place"] is None else f" (down: {row['place']}, since {amount(row['since_ps'], 'ps')})"
    receiver = row["peer"] if row["waits_for"] == "send" else row["rank"]
    text = _CAUSES[row["stopped_by"]]
    since = amount(row["since_ps"], "ps")
    return text.format(where=row["place"], since=since, peer=row["peer"], receiver=receiver, down=down)


def _behind(row: Row) -> str:
    """The rank behind a wait that has no cause of its own."""
    if row["waits_for"] == "collective":
        return f"{plural(row['missing'], 'member is', 'members are')} not there yet, the first rank {row['blocked_by']}"
    if row["waits_for"] == "send":
        return f"rank {row['blocked_by']} has not asked for what came before it, and there are no credits left"
    return f"rank {row['blocked_by']} has not sent it"


def _without_cause(chain: Sequence[Row], rows: Sequence[Row], *, is_cut: bool) -> str:
    """The text for a cut run, or for ranks in a circle; a run that was cut shows no circle."""
    ranks = f"{plural(_ranks(rows), 'rank')} had work left"
    row = chain[-1]
    is_busy = any(each["waits_for"] == "time" or each["state"] == "under way" for each in rows)
    if is_cut or is_busy or row["blocked_by"] is None:
        under_way = next((each for each in rows if each["state"] == "under way"), row)
        goes_on = ", which is in progress" if under_way["state"] == "under way" else ""
        return f"{ranks}; {_who(under_way).replace('Rank', 'rank', 1)} {_what(under_way)}{goes_on}."
    circle = ", ".join(str(each["rank"]) for each in chain)
    return f"{ranks}: ranks wait for each other and no rank sends ({circle}, and again). {_who(row)} {_what(row)}."
