"""Both engines on random plans in which links of hosts go down and up all the time and queue pairs change their ports.

Among the plans of `test_engines_agree.py` few queue pairs move with a timer set, a packet on its way, or a hash that
decides. Here many do; what they did is counted.
"""

from collections import Counter
from functools import lru_cache

import numpy as np
import pytest
from helpers.both import both
from helpers.cases import Saw, case_count
from helpers.kept_seeds import kept_first
from laws.scenarios import random_plan

from weftwork.engine.outcome import Outcome
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.rows.fabric import Instant

PLANS = case_count(plain=50, deep=400)
SANITIZED_PLANS = 20
WANTED = PLANS // 6  # plans with each of these


def features(engine_input: PacketInput, outcome: Outcome) -> set[str]:
    """What may go wrong when a queue pair moves."""
    end_ps = min(outcome.counters["end_ps"], engine_input.until_ps)
    failovers = engine_input.instants["at_ps"][engine_input.instants["code"] == Instant.FAILOVER]
    is_host = engine_input.node_kind[engine_input.port_node] == 0
    by_host = np.bincount(engine_input.port_node[is_host & (outcome.ports["frames"] > 0)])
    found = {
        "several failovers": (failovers < end_ps).sum() > 1,
        "a host that sends by both ports": by_host.max(initial=0) > 1,
        "packets sent again without a timeout": outcome.counters["retransmissions"] > 0 == outcome.counters["timeouts"],
        "duplicates": outcome.counters["duplicates"] > 0,
        "timers of congestion control": engine_input.congestion_control.name
        in {"dcqcn", "outspoken", "swift", "timely"},
        "several ways and hashes": len({row["hash_fields"] for row in engine_input.switches}) > 1,
    }
    return {name for name, is_there in found.items() if is_there}


@lru_cache(maxsize=SANITIZED_PLANS)  # the first plans are those of both tests
def agreed(seed: int) -> tuple[PacketInput, Outcome]:
    """A plan, and what both engines say of it."""
    engine_input = random_plan(seed, is_torn=True)
    return engine_input, both(engine_input, f"engine_input {seed}")


@pytest.mark.sanitize
def test_the_first_torn_plans_agree(saw: Saw) -> None:
    saw(SANITIZED_PLANS)
    for seed in kept_first("test_failovers_agree", range(SANITIZED_PLANS)):
        agreed(seed)


def test_the_engines_agree_while_queue_pairs_change_their_ports(saw: Saw) -> None:
    found: Counter[str] = Counter()
    for seed in kept_first("test_failovers_agree", range(PLANS)):
        engine_input, wanted = agreed(seed)
        found.update(features(engine_input, wanted))
    saw(PLANS, ", ".join(f"{name}: {found[name]}" for name in sorted(found)))
    assert len(found) == 6
    assert min(found.values()) >= WANTED, found
