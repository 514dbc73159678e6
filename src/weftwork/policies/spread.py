"""Check whether a policy spreads packets as it declares.

Its step is asked about packets that differ in one thing. The flow engine reads ``PLUGIN.spreads`` and asks no step, so
that a declaration that lies would give a wrong result.
Leaves out: candidates with queues: flows have none, and evenly is meant among ports that are equally busy.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.grammar import plural
from weftwork.base.random import Stream, draw
from weftwork.policies.interface import OFF, Kind

if TYPE_CHECKING:
    from pathlib import Path

    from weftwork.policies.load import LoadedPolicy

__all__ = ["is_spread_proved", "spread_contradiction"]

_PACKETS: Final = 1_024  # chosen: a share of 1 / 8 is then found within a third of it, six standard deviations
_PER_CANDIDATE: Final = 400  # chosen: the same for candidates, however many
_CANDIDATES: Final = (2, 3, 4, 8)
_SLACK: Final = 1 / 3
_LEAST_ENTROPIES: Final = 16  # chosen: with fewer a switch of 16 uplinks leaves some of them without packets


def is_spread_proved(policy: LoadedPolicy) -> bool:
    """Whether the conformance of the catalogue has shown that a policy spreads packets as it declares.

    This holds for a file of Weftwork with the parameters that it has by itself.

    Parameters
    ----------
    policy : of any kind
    """
    return policy.is_shipped and all(policy.values[row.name] == row.default for row in policy.rows)


def spread_contradiction(policy: LoadedPolicy) -> str | None:
    """Describe how a selection contradicts its declaration, or return None.

    It is a path or port selection with its parameters.

    Parameters
    ----------
    policy : a path selection or a port selection; one that declares nothing contradicts nothing

    Raises
    ------
    PolicyError : the step breaks; with file and line
    """
    plugin: Any = policy.plugin
    if policy.kind == "congestion_control" or plugin.spreads is None:
        return None
    found = _found(_Declaration(path=policy.source_path, digest=policy.hash, policy=policy))
    return None if found is None else f"'{policy.name}' declares spreads={plugin.spreads!r}, but {found}"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Declaration:
    """A policy with its declaration.

    Two are equal if file, text and parameters are equal.
    """

    path: Path
    digest: str
    policy: LoadedPolicy = field(compare=False)


@lru_cache(maxsize=64)  # chosen: more than a sweep names; the thousands of calls take longer than a small run on flows
def _found(asked: _Declaration) -> str | None:
    policy, plugin = asked.policy, asked.policy.plugin
    return _of_path(policy, plugin) if policy.kind == "path_selection" else _of_port(policy, plugin)


def _bits(purpose: int, packet: int) -> int:
    """62 random bits, as given to a step."""
    return draw(1, Stream.PORT_CHOICE, purpose, packet, 0) >> 2


def _of_path(policy: LoadedPolicy, plugin: Any) -> str | None:  # noqa: ANN401 - one of two records
    state, signal = policy.new_state(), policy.new_signal()
    given = 50_000
    state.entropy = given
    taken: Counter[int] = Counter()
    for packet in range(_PACKETS):
        signal.kind, signal.seq, signal.next_seq = int(Kind.SEND), packet, packet
        signal.now_ps, signal.bytes, signal.mtu_bytes = packet * 100_000, 4_096, 4_096
        signal.line_rate_bps, signal.base_rtt_ps = 400_000_000_000, 10_000_000
        signal.entropy, signal.draw = state.entropy, _bits(0, packet)
        policy.call_step(state, signal)
        taken[int(state.entropy)] += 1
    if plugin.spreads == "constant":
        others = [entropy for entropy in taken if entropy != given]
        return None if not others else f"it moved packets of a queue pair from entropy {given} to {others[0]}"
    most, times = taken.most_common(1)[0]
    if times <= _PACKETS // _LEAST_ENTROPIES:
        return None
    return (
        f"{times:,} of {_PACKETS:,} packets of a queue pair took the entropy {most}; wanted {_LEAST_ENTROPIES} or more"
    )


def _of_port(policy: LoadedPolicy, plugin: Any) -> str | None:  # noqa: ANN401
    for count in _CANDIDATES:
        state, signal = policy.new_state(), policy.new_port_signal()
        candidates, ports = policy.new_candidates(count), policy.new_port_states(count)
        for port, candidate in enumerate(candidates):
            candidate.rate_bps, candidate.minimal, candidate.port = 400_000_000_000, 1, port
            candidate.weight = 1 + port % 3 if plugin.spreads == "weighted-hash" else 1
        entries = [port for port, candidate in enumerate(candidates) for _ in range(candidate.weight)]
        signal.tier, signal.group, signal.ports = 1, OFF, count
        signal.edges, signal.to_edge = 2, 1
        used: Counter[int] = Counter()
        flow = _bits(1, count) % 2**32
        is_even = plugin.spreads == "evenly"
        for packet in range(_PER_CANDIDATE * count if is_even else _PACKETS):
            signal.now_ps, signal.bytes, signal.is_data = packet * 100_000, 4_174, 1
            signal.candidates, signal.choice = count, 0
            signal.word, signal.via, signal.virtual_channel = 0, OFF, 0
            signal.draw = _bits(2, packet)
            signal.hash = flow if is_even else _bits(3, packet) % 2**32
            signal.destination = 7 if is_even else _bits(4, packet) % 100_000
            signal.stride = 1 if is_even else (1, 4, 32)[packet % 3]
            signal.queue_pair_hash = _bits(5, 0 if is_even else packet)
            policy.call_step(state, signal, candidates, ports)
            used[int(signal.choice)] += 1
            wanted = {
                "hash": signal.hash,
                "weighted-hash": signal.hash,
                "destination": signal.destination // signal.stride,
            }.get(plugin.spreads)
            right = None if wanted is None else entries[wanted % len(entries)]
            if right is not None and signal.choice != right:
                told = f"destination // stride {wanted}" if plugin.spreads == "destination" else f"hash {signal.hash}"
                return f"it chose candidate {signal.choice} of {count} for {told}, wanted {right}"
        if is_even and any(abs(used[at] - _PER_CANDIDATE) > _SLACK * _PER_CANDIDATE for at in range(count)):
            shares = ", ".join(f"{used[at]:,}" for at in range(count))
            return f"{plural(count, 'equal candidate')} got {shares} packets of one flow"
    return None
