"""Both engines agree on plans with what policies may do beyond sending and marking, counted by feature.

Words, virtual channels, intermediate switches, detours and layers; packets that are cut, and credits between links;
messages in any order, and hosts whose processor pays; requests, credit that counts, segments, moved departures and
timers of path selection. The policies fold every field that they see into what they do,
so that a field that one engine fills in another way shows in the digest.
"""

from __future__ import annotations

from collections import Counter

import pytest
from helpers.both import both, packet_hops
from helpers.cases import Saw, case_count
from helpers.kept_seeds import kept_first
from laws.scenarios import random_plan

from weftwork.engine.outcome import Outcome
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.rows.fabric import Instant

PLANS = case_count(plain=30, deep=300)
SANITIZED_PLANS = 20
MOST_HOPS = 200_000  # chosen: 3 of 300 plans are storms with more; they took most of the time, and the soak has them
FEATURES = 13
WANTED_OF_A_FEATURE = PLANS // 8  # chosen: the rarest, trims, is in 44 of 300


def features(engine_input: PacketInput, outcome: Outcome) -> set[str]:
    """What the two engines had to agree on."""
    plugins = (engine_input.congestion_control.plugin, engine_input.port_selection.plugin)
    counters, happened = outcome.counters, engine_input.instants["code"][:]
    is_voyager = engine_input.port_selection.name == "voyager" and counters["packet_hops"] > 0
    is_selective = engine_input.transport.recovery == "selective-repeat"
    path = engine_input.path_selection
    found = {
        "trim": counters["trims"] > 0,
        "class change": is_voyager,
        "SACK": is_selective and counters["retransmissions"] > 0,
        "out-of-order delivery": engine_input.transport.ordering != "connection"
        and counters["naks_sent"] + counters["duplicates"] > 0,
        "request": counters["requests_sent"] > 0,
        "grant": counters["credits_sent"] > 0,
        "credit": bool(outcome.ports["credit_frames"].any()),
        "layers": bool(engine_input.routes[0].layer_group.size) and counters["packet_hops"] > 0,
        "host's processor": engine_input.transport.host_packet_ps > 0 and counters["data_sent"] > 0,
        "moved departures": getattr(plugins[0], "moves_departures", False) and counters["data_sent"] > 0,
        "path timers": path is not None and path.name == "wanderer",
        "two timeouts": engine_input.transport.timeout_low_ps > 0 and counters["timeouts"] > 0,
        "faults": bool((happened != Instant.ROUTES).any()) and counters["drop_link_down"] > 0,
    }
    return {name for name, is_there in found.items() if is_there}


@pytest.mark.sanitize
def test_the_first_wide_plans_agree(saw: Saw) -> None:
    saw(SANITIZED_PLANS)
    for seed in kept_first("test_wide_plans_agree", range(SANITIZED_PLANS)):
        both(random_plan(seed, is_wide=True), f"wide plan {seed}")


def test_the_engines_agree_on_wide_plans(saw: Saw) -> None:
    found: Counter[str] = Counter()
    storms = 0
    for seed in kept_first("test_wide_plans_agree", range(PLANS)):
        engine_input = random_plan(seed, is_wide=True)
        if packet_hops(engine_input) > MOST_HOPS:
            storms += 1
            continue
        found.update(features(engine_input, both(engine_input, f"wide plan {seed}")))
    names = ", ".join(f"{name}: {found[name]}" for name in sorted(found))
    saw(PLANS - storms, f"{names}; left to the soak, with more than {MOST_HOPS:,} packet-hops: {storms}")
    assert storms <= PLANS // 50
    assert len(found) == FEATURES, found
    assert min(found.values()) >= WANTED_OF_A_FEATURE, found
