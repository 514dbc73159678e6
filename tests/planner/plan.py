"""Which cases of a step are run at one commit: what the change touches first, then a turn that moves with the commit.

A step has cases with prices and a budget. Each case has a turn, a number below ``TURNS`` that is written down with
its price and never changes, so that any ``TURNS`` commits in a row cover every case. Chosen are, in this order:

1. the cases whose turn the commit has;
2. of each file of cases that the change touches, one case, the cheapest; and the cases of each example that changed;
3. the other touched cases, nearest to the change first;
4. cases of the turns that come next;

3 and 4 as long as the budget lasts, and 2 as long as ``WIDE`` times the budget lasts: only a change of nearly all files
leaves a touched file out, and the plan counts what it left out.
Leaves out: what a step costs besides its cases, which is part of what the budget leaves to them.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

TURNS = 10  # any ten successive commits cover every case
WIDE = 1.5  # chosen: what a step may take of its budget before `.ci/run` tells it as slow


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One case of a step.

    Parameters
    ----------
    name : as pytest or the step's script names it
    file : of the repository, in which the case stands
    price_s : CPU seconds that it took when prices were measured
    turn : below ``TURNS``
    """

    name: str
    file: str
    price_s: float
    turn: int


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The cases of a step at one commit.

    Parameters
    ----------
    chosen, left_out : names of cases, with their order of choice and of the list
    price_s : CPU seconds of the chosen cases
    touched, touched_left_out : how many of all cases the change touches, and how many of these the budget leaves out
    """

    chosen: tuple[str, ...]
    left_out: tuple[str, ...]
    price_s: float
    touched: int
    touched_left_out: int


def planned(
    cases: Iterable[Case],
    *,
    budget_s: float,
    place: int,
    distances: Mapping[str, int] | None = None,
    examples: frozenset[str] = frozenset(),
) -> Plan:
    """Choose cases.

    Parameters
    ----------
    cases : of the step
    budget_s : CPU seconds for the cases
    place : of the commit in its history; successive commits have successive places
    distances : of files that the change touches; None where the change is not known
    examples : folders below examples in which files changed; the names of their cases have the folder
    """
    cases = list(cases)
    near = {} if distances is None else distances
    words = [word for name in examples for word in (f"[{name}]", f"/{name}/")]
    of_examples = {case.name for case in cases if any(word in case.name for word in words)}
    touched = sorted(
        (case for case in cases if case.file in near or case.name in of_examples),
        key=lambda case: (near.get(case.file, 0), case.price_s),
    )
    first_of_file: dict[str, Case] = {}
    for case in sorted(touched, key=lambda case: case.price_s):
        first_of_file.setdefault(case.name if case.name in of_examples else case.file, case)
    by_turn: dict[int, list[Case]] = defaultdict(list)
    for case in cases:
        by_turn[case.turn].append(case)
    chosen: dict[str, Case] = {}
    for case in by_turn[place % TURNS]:
        chosen[case.name] = case
    spent_s = sum(case.price_s for case in chosen.values())
    firsts = sorted(first_of_file.values(), key=lambda case: (near.get(case.file, 0), case.price_s))
    later = [case for step in range(1, TURNS) for case in by_turn[(place + step) % TURNS]]
    for limit_s, group in ((WIDE * budget_s, firsts), (budget_s, touched), (budget_s, later)):
        for case in group:
            if case.name not in chosen and spent_s + case.price_s <= limit_s:
                chosen[case.name] = case
                spent_s += case.price_s
    return Plan(
        chosen=tuple(chosen),
        left_out=tuple(case.name for case in cases if case.name not in chosen),
        price_s=spent_s,
        touched=len(touched),
        touched_left_out=sum(case.name not in chosen for case in touched),
    )


def turn_of_stranger(name: str) -> int:
    """The turn of a case that has no price yet: by its name, so that it stays the same from commit to commit."""
    return zlib.crc32(name.encode()) % TURNS
