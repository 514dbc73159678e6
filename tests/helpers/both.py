"""Run both engines, which have to agree to the bit; a compiled core that does not load is a failure."""

from __future__ import annotations

import numpy as np
import pytest

from weftwork.base.errors import ConfigError
from weftwork.engine import packet
from weftwork.engine.outcome import Outcome
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.reference import simulation as reference

__all__ = ["both", "both_or_neither", "packet_hops"]


def packet_hops(engine_input: PacketInput) -> int:
    """Packet-hops that the native engine counts; 0 where it refuses the input.

    The reference takes some 40 us for each, so a storm of retransmissions takes it longer than a thousand other plans.
    """
    try:
        return packet.run(engine_input).counters["packet_hops"]
    except ConfigError:
        return 0


def both_or_neither(engine_input: PacketInput, name: str = "the engine input") -> Outcome | None:
    """What both engines say; None where both end the run, in the same words."""
    try:
        wanted = reference.run(engine_input)
    except ConfigError as error:
        refused = error.mistakes
    else:
        return _same(engine_input, wanted, name)
    with pytest.raises(ConfigError) as caught:
        packet.run(engine_input)
    assert caught.value.mistakes == refused, name
    return None


def both(engine_input: PacketInput, name: str = "the engine input") -> Outcome:
    """What the reference says, after the native engine has said the same."""
    return _same(engine_input, reference.run(engine_input), name)


def _same(engine_input: PacketInput, wanted: Outcome, name: str) -> Outcome:
    got = packet.run(engine_input)
    assert got.digest() == wanted.digest(), f"{name}:\n{difference(wanted, got)}"
    assert got.counters == wanted.counters, name
    for table in ("messages", "ports", "milestones", "waits", "deadlock"):
        assert getattr(got, table).tolist() == getattr(wanted, table).tolist(), name
    assert (got.complete, got.simulated_ps) == (wanted.complete, wanted.simulated_ps), name
    return wanted


def difference(one: Outcome, other: Outcome) -> str:
    """Where two outcomes differ first, for whoever has to find out why."""
    lines = [
        f"{name}: reference {one.counters[name]}, native {other.counters[name]}"
        for name in one.counters
        if one.counters[name] != other.counters[name]
    ]
    for title in ("messages", "ports", "milestones"):
        a, b = getattr(one, title), getattr(other, title)
        if len(a) != len(b):
            lines.append(f"{title}: reference {len(a)} rows, native {len(b)}")
        else:
            rows = np.flatnonzero(a != b)
            lines += [f"{title}[{row}]: reference {a[row]}, native {b[row]}" for row in rows[:3].tolist()]
    return "\n".join(lines)
