"""Both engines on random plans that are made for what others reach seldom, and whether they did reach it.

An input of this kind is worth something only where its rare feature decides the result. Where credits are rounded, the
reference runs once more with exact ones, and has to come to another end; where a rate changes, the port has to send
before and after.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from unittest import mock

import pytest
from helpers.both import both
from helpers.cases import Saw, case_count
from helpers.kept_seeds import kept_first
from laws.rare import credit_plan, uneven_plan
from laws.reference_decisions import watched

from weftwork.base.clock import SECOND_PS
from weftwork.engine import packet
from weftwork.engine.outcome import Outcome
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.reference import receiver, sender
from weftwork.engine.reference import simulation as reference
from weftwork.engine.rows.fabric import Instant

PLANS = case_count(plain=8, deep=200)


def changes_between_odd_rates(engine_input: PacketInput, outcome: Outcome) -> int:
    """Changes of a rate that does not divide to another, at a port that sends before and behind it."""
    rate_bps = engine_input.port_rate_bps.tolist()
    found = 0
    for row in engine_input.instants[engine_input.instants["code"] == Instant.RATE]:
        port, at_ps, new_bps = (int(row[name]) for name in ("port", "at_ps", "value"))
        for end in (port, int(engine_input.port_peer[port])):
            is_odd = 8 * SECOND_PS % rate_bps[end] and 8 * SECOND_PS % new_bps
            before = int(packet.run(replace(engine_input, until_ps=at_ps)).ports["frames"][end]) if at_ps > 0 else 0
            found += bool(is_odd) and 0 < before < int(outcome.ports["frames"][end])
            rate_bps[end] = new_bps
    return found


def with_exact_credits(engine_input: PacketInput) -> Outcome:
    """What the reference says where an acknowledgement tells how many buffers are free, and not a code of it."""
    with (
        mock.patch.object(receiver, "credits_to_code", lambda credit_count: credit_count),
        mock.patch.object(sender, "code_to_credits", lambda code: code),
    ):
        return reference.run(engine_input)


def uneven(seed: int) -> Counter[str]:
    engine_input = uneven_plan(seed)
    outcome = both(engine_input, f"uneven engine_input {seed}")
    changes = changes_between_odd_rates(engine_input, outcome)
    return Counter(
        {
            "a change between odd rates": changes > 0,
            "several such changes": changes > 2,
            "a pause": bool(outcome.ports["pauses_sent"].any()),
            "a mark": bool(outcome.ports["marks"].any()),
        }
    )


def credited(seed: int) -> Counter[str]:
    engine_input = credit_plan(seed)
    with watched() as inside:
        outcome = both(engine_input, f"credit engine_input {seed}")
    return Counter(
        {
            "credits rounded down": inside["credits rounded down"] > 0,
            "credit rounding that binds": with_exact_credits(engine_input).digest() != outcome.digest(),
            "a message that waits for credit": inside["a message that waits for credit"] > 0,
            "a probe": outcome.counters["probes_sent"] > 0,
            "a retransmission": outcome.counters["retransmissions"] > 0,
        }
    )


KINDS = {"uneven": uneven, "credited": credited}


@pytest.mark.sanitize
@pytest.mark.parametrize("kind", KINDS)
def test_the_engines_agree_on_plans_that_reach_rare_features(kind: str, saw: Saw) -> None:
    found: Counter[str] = Counter()
    for seed in kept_first("test_rare_features_agree", range(PLANS)):
        found.update(KINDS[kind](seed))
    saw(PLANS, ", ".join(f"{name}: {found[name]}" for name in sorted(found)))
    assert min(found.values()) >= PLANS // 8, found  # of every feature that a kind names
