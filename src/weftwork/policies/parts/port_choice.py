"""One of several equal ports: by hash, at random, or with the shortest queue.

Source: Dally and Towles, Principles and Practices of Interconnection Networks, 2004, section 10.2 (minimal adaptive
routing takes the shortest queue). Leaves out: rates; queues are compared in bytes.
"""

from __future__ import annotations

from typing import Protocol

from weftwork.policies.interface import Candidate, PortSignal, row

__all__ = ["AMONG_EQUALS", "LEAST_QUEUE", "SPRAY", "ChoiceParams", "choice_of", "shortest_queue"]

SPRAY = 1
LEAST_QUEUE = 2

AMONG_EQUALS = row(
    default=0,
    minimum=0,
    maximum=2,
    source="chosen: as transport.port_selection says",
    text="Among equal ports: 0 by the switch's hash, 1 at random for every packet, 2 the shortest queue.",
)


class ChoiceParams(Protocol):
    """Parameters that the functions read."""

    among: int


def choice_of(params: ChoiceParams, signal: PortSignal, candidates: list[Candidate]) -> int:
    """Index of the candidate, by hash, at random, or with the shortest queue, ties at random."""
    if params.among == SPRAY:
        return (signal.draw >> 30) % signal.candidates
    if params.among != LEAST_QUEUE:
        return signal.hash % signal.candidates
    return shortest_queue(signal, candidates)


def shortest_queue(signal: PortSignal, candidates: list[Candidate]) -> int:
    """Index of the candidate with the shortest queue, ties at random."""
    first = (signal.draw >> 30) % signal.candidates
    best = first
    for i in range(signal.candidates):
        j = (first + i) % signal.candidates
        if candidates[j].queue_bytes < candidates[best].queue_bytes:
            best = j
    return best
