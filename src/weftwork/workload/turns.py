"""Alternating queue pairs: message k takes queue pair k mod q.

The queue pairs are those of a connection. Operations name their channel once and for all, so a loop whose passes take
different turns is unrolled until its last pass ends where the first began; rules that read the loop's counter are
shifted to match. Both ends of a connection count alike: an end whose peer changes with the counter begins with each
peer where the loop began.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd, lcm
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from weftwork.base.errors import ConfigError, Mistake
from weftwork.spec.job import Arrivals, Collect, Digit, Loop, Operation, Peer, Program, Receive, Send
from weftwork.spec.peers import peers_of

__all__ = ["in_turn", "widened"]

MOST_OPERATIONS: Final = 1 << 16  # chosen: of one loop; a program stays small beside the messages that it sends
_Key = tuple[type, Peer, int]  # send or receive, the other end, the channel
_Rule = TypeVar("_Rule", Peer, Digit)


def in_turn(
    programs: tuple[Program, ...],
    rank_program: NDArray[np.int32],
    is_switch: NDArray[np.bool_],
    pairs: int,
    first_rank: tuple[int, ...] = (),
) -> tuple[Program, ...]:
    """Let the messages of programs use their queue pairs alternately.

    What an NVLink switch sends or is sent keeps to the first: it has no queue pairs, and several streams share it.

    Parameters
    ----------
    programs, rank_program, first_rank : see `weftwork.spec.job.Job`
    is_switch : shape (ranks,), which ranks are NVLink switches
    pairs : queue pairs of each connection, two or more

    Raises
    ------
    ConfigError : the unrolled loops would be too long
    """
    found: list[Program] = []
    for index, program in enumerate(programs):
        ranks = np.flatnonzero(rank_program == index)
        dealing = _Dealing(pairs, ranks, is_switch, first_rank[index] if first_rank else 0)
        streams = (tuple(_turned(stream, dealing, {}, first=0, step=1)) for stream in program.streams)
        found.append(Program(streams=tuple(streams)))
    return tuple(found)


def widened(operation: Operation, pairs: int) -> Operation:
    """An operation without a message, for this many queue pairs."""
    if isinstance(operation, Collect):
        return replace(operation, queue_pairs=pairs)
    if isinstance(operation, Arrivals):  # each of these flows is a connection of its own
        return replace(operation, channel=operation.channel * pairs)
    return operation


@dataclass(frozen=True, slots=True)
class _Dealing:
    """The messages of a program that are distributed over queue pairs."""

    pairs: int
    ranks: NDArray[np.int64]  # that run the program
    is_switch: NDArray[np.bool_]
    first_rank: int

    def deals(self, operation: Send | Receive) -> bool:
        """Whether a message has no NVLink switch at either end."""
        if not self.is_switch.any():
            return True
        peers = peers_of(operation.peer, self.ranks - self.first_rank, 0)
        others = peers[peers >= 0] + self.first_rank
        return not (self.is_switch[self.ranks].any() or self.is_switch[others].any())


def _turned(
    operations: tuple[Operation, ...], dealing: _Dealing, turns: dict[_Key, int], *, first: int, step: int
) -> list[Operation]:
    """Operations on their queue pairs, for counter i = ``first + step i``.

    ``turns`` has the number of the next queue pair of each connection, and is counted up.
    """
    pairs = dealing.pairs
    found: list[Operation] = []
    for operation in operations:
        match operation:
            case Loop():
                found += _unrolled(operation, dealing, turns)
            case Send() | Receive():
                key = _key(operation)
                turn = turns.get(key, 0)
                turns[key] = (turn + 1) % pairs if dealing.deals(operation) else 0
                found.append(replace(_shifted(operation, first, step), channel=operation.channel * pairs + turn))
            case _:
                found.append(widened(operation, pairs))
    return found


def _unrolled(loop: Loop, dealing: _Dealing, turns: dict[_Key, int]) -> list[Operation]:
    """A loop whose passes begin with the same turns, and the passes left."""
    begun = {
        _key(one): turns.get(_key(one), 0) for one in loop.body if isinstance(one, Send | Receive) and one.peer.step
    }
    tried = dict(turns)
    _turned(loop.body, dealing, tried, first=0, step=1)
    moves = [tried[key] - turns.get(key, 0) for key in tried if key not in begun]
    passes = lcm(1, *(dealing.pairs // gcd(dealing.pairs, move) for move in moves))
    whole, rest = divmod(loop.count, passes)

    def one_pass(first: int, step: int) -> list[Operation]:
        turns.update(begun)
        return _turned(loop.body, dealing, turns, first=first, step=step)

    found: list[Operation] = []
    if whole:
        if passes * len(loop.body) > MOST_OPERATIONS:
            text = (
                f"found {dealing.pairs}, in turn: a loop of this job would have more than {MOST_OPERATIONS:,}"
                " operations; wanted fewer queue pairs, or queue_pair_use: split"
            )
            raise ConfigError("transport", [Mistake(path="transport.queue_pairs", text=text)])
        body = [one for index in range(passes) for one in one_pass(index, passes)]
        found.append(Loop(count=whole, body=tuple(body)))
    for index in range(rest):
        found += one_pass(whole * passes + index, 0)
    return found


def _key(operation: Send | Receive) -> _Key:
    return type(operation), operation.peer, operation.channel


def _shifted(operation: Send | Receive, first: int, step: int) -> Send | Receive:
    """The operation whose counter is ``first + step i``."""
    if first == 0 and step == 1:
        return operation
    peer = _rule(operation.peer, first, step) if operation.peer.rule in {"shift", "xor"} else operation.peer
    if isinstance(operation, Receive):
        return replace(operation, peer=peer)
    digits = tuple(_rule(digit, first, step) for digit in operation.size.digits)
    return replace(operation, peer=peer, size=replace(operation.size, digits=digits))


def _rule(rule: _Rule, first: int, step: int) -> _Rule:
    moved = rule.step * first
    shift = rule.shift + moved if rule.rule == "shift" else rule.shift << moved
    return replace(rule, shift=shift, step=rule.step * step)
