"""ECMP: a hash of header fields chooses the port, one path per flow.

Source: RFC 2992 (modulo-N hash). The hash itself (polynomial, seed, offset, fields) belongs to the switch.
Leaves out: weights, and resilient tables that keep flows in place when a member goes.
"""

from __future__ import annotations

from weftwork.policies.interface import Candidate, PortSelection, PortSignal

__all__ = ["PLUGIN", "Params", "State", "step"]


class Params:
    """No parameters."""


class State:
    """No state."""


def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    """Choose hash modulo the number of candidates."""
    signal.choice = signal.hash % signal.candidates


PLUGIN = PortSelection(params=Params, state=State, step=step, waits_for_routes=True, spreads="hash", source="RFC 2992")
