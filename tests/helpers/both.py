"""Run a plan on both engines, which have to agree to the bit; a compiled core that does not load is a failure."""

from __future__ import annotations

from weft.engine import packet, reference
from weft.engine.outcome import Outcome
from weft.engine.plan import Plan

__all__ = ["both"]


def both(plan: Plan) -> Outcome:
    """What the reference says, after the native engine has said the same."""
    wanted, got = reference.run(plan), packet.run(plan)
    assert got.counters == wanted.counters
    for table in ("messages", "ports", "marks"):
        assert getattr(got, table).tolist() == getattr(wanted, table).tolist()
    assert got.digest() == wanted.digest()
    assert (got.complete, got.simulated_ps) == (wanted.complete, wanted.simulated_ps)
    return wanted
