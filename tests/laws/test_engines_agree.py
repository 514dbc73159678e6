"""The native engine and the reference give the same result to the bit, on hundreds of random plans.

What the plans contain is counted and has to be enough: plans without a pause, a drop or a fault would agree for
nothing.
"""

from collections import Counter
from functools import lru_cache

import numpy as np
import pytest
from helpers.both import both_or_neither
from helpers.cases import Saw, case_count
from helpers.kept_seeds import kept_first
from laws.reference_decisions import DECISIONS, watched
from laws.scenarios import LONG_DELAY_PS, TEST_ONLY, random_plan

from weftwork.engine.outcome import Outcome
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.rows.fabric import Instant
from weftwork.engine.rows.job import Op, Rule
from weftwork.policies.load import catalogue

PLANS = case_count(plain=100, deep=700)
SANITIZED_PLANS = 40  # of those, also run under the sanitizers and on the newest Python
FEATURES = 25
WANTED_OF_A_FEATURE = PLANS // 20
EVERYWHERE = ("a pause", "a drop", "a mark", "a retransmission", "a fault", "unequal delays and rates")
WANTED_EVERYWHERE = PLANS // 5
WANTED_OF_A_POLICY = PLANS // 80
WANTED_OF_A_COUNTER = -(-3 * PLANS // 400)
WANTED_DECISIONS = -(-PLANS // 200)  # rounded credits are seldom here: `test_rare_features_agree.py` has more of them
COMMON = ("acks_sent", "naks_sent", "cnps_sent", "credits_sent", "probes_sent", "timeouts", "queue_pair_errors",
          "out_of_order_discards", "duplicates", "drop_no_route", "drop_link_down", "drop_link_loss", "drop_corrupted",
          "drop_buffer_full", "drop_egress_threshold", "drop_headroom_full", "drop_receive_buffer")  # fmt: skip


def features(engine_input: PacketInput, outcome: Outcome) -> set[str]:
    """What the two engines had to agree on."""
    found = {
        "a pause": outcome.ports["pauses_sent"].any(),
        "a drop": outcome.ports["drops"].any(),
        "a mark": outcome.ports["marks"].any(),
        "a retransmission": outcome.counters["retransmissions"] > 0,
        "a fault": bool(
            (engine_input.instants["code"] != Instant.ROUTES).any()
            and engine_input.instants["at_ps"][0] < engine_input.until_ps
        ),
        "unequal delays and rates": len(set(engine_input.port_delay_ps.tolist()))
        > 1
        < len(set(engine_input.port_rate_bps.tolist())),
        "a link of 5 ms": engine_input.port_delay_ps.max() >= LONG_DELAY_PS,
    }
    found |= (
        in_servers(engine_input, outcome)
        | in_programs(engine_input)
        | in_recovery(engine_input, outcome)
        | in_instants(engine_input, outcome)
    )
    return {name for name, is_there in found.items() if is_there}


def in_servers(engine_input: PacketInput, outcome: Outcome) -> dict[str, bool]:
    host = engine_input.port_node[engine_input.rank_ports[:, 0]]
    domain = engine_input.rank_gpu["nvlink_domain"]
    source, destination = outcome.messages["source"], outcome.messages["destination"]
    is_inside = (host[source] == host[destination]) & (outcome.messages["delivered_at_ps"] >= 0)
    is_nvlink = is_inside & (domain[source] == domain[destination]) & (domain[source] >= 0)
    rate_bps = engine_input.rank_gpu["nvlink_rate_bps"]
    return {
        "a message over NVLink": bool(is_nvlink.any()),
        "a message over PCIe": bool((is_inside & ~is_nvlink).any()),
        "NVLink of unequal rates": bool((is_nvlink & (rate_bps[source] != rate_bps[destination])).any()),
        "messages by packet and inside a server": bool(is_inside.any() and not is_inside.all()),
    }


def in_programs(engine_input: PacketInput) -> dict[str, bool]:
    sends = engine_input.ops[engine_input.ops["code"] == Op.SEND]
    sized = sends[sends["parts"] > 0]
    grouped = sends[np.isin(sends["rule"], (Rule.SHIFT, Rule.XOR))]
    return {
        "several columns": bool(engine_input.rank_ports.shape[1] > 1 and (sends["nic"] > 0).any()),
        "the rail of the peer": bool(sends["peer_rail"].any()),
        "a group by members": bool((grouped["members"] >= 0).any()),
        "digits with xor": bool(sized["digits"].any() and (engine_input.digits["rule"] == Rule.XOR).any()),
        "digits by members": bool(sized["digits"].any() and (engine_input.digits["members"] >= 0).any()),
        "spans": bool((sized["span"] > 1).any()),
        "copies": bool((sized["copies"] > 1).any()),
    }


def in_recovery(engine_input: PacketInput, outcome: Outcome) -> dict[str, bool]:
    is_selective = engine_input.transport.recovery == "selective-repeat" and outcome.counters["retransmissions"] > 0
    is_patient = engine_input.transport.reorder_threshold_packets > 0
    return {
        "selective repeat sends again": is_selective and not is_patient,
        "selective repeat with a threshold sends again": is_selective and is_patient,
        "selective repeat with spraying": is_selective and engine_input.path_selection is not None,
        "selective repeat with credits": is_selective and engine_input.transport.end_to_end_credits > 0,
    }


def in_instants(engine_input: PacketInput, outcome: Outcome) -> dict[str, bool]:
    happened = engine_input.instants["code"][
        engine_input.instants["at_ps"] < min(outcome.counters["end_ps"], engine_input.until_ps)
    ]
    return {
        "loss over time": bool((happened == Instant.LOSS).any()),
        "a slow host": bool((happened == Instant.HOST_RATE).any()),
        "a failover": bool((happened == Instant.FAILOVER).any()),
    }


def policies(engine_input: PacketInput) -> set[str]:
    chosen = (engine_input.congestion_control, engine_input.path_selection, engine_input.port_selection)
    return {f"{policy.kind}: {policy.name}" for policy in chosen if policy is not None}


@lru_cache(maxsize=SANITIZED_PLANS)  # the first plans are those of both tests
def agreed(seed: int) -> tuple[PacketInput, Outcome | None, dict[str, int]]:
    """A plan, what both engines say of it, and how often the reference decided what seldom comes."""
    engine_input = random_plan(seed)
    with watched() as inside:
        wanted = both_or_neither(engine_input, f"engine_input {seed}")
    return engine_input, wanted, dict(inside)


@pytest.mark.sanitize
def test_the_first_plans_agree_with_faults_among_them(saw: Saw) -> None:
    saw(SANITIZED_PLANS)
    found: Counter[str] = Counter()
    for seed in kept_first("test_engines_agree", range(SANITIZED_PLANS)):
        engine_input, wanted, _ = agreed(seed)
        assert wanted is not None
        found.update(features(engine_input, wanted))
    assert len(found) == FEATURES
    assert min(found.values()) >= 1, found


def test_the_native_engine_equals_the_reference(saw: Saw) -> None:
    found: Counter[str] = Counter()
    used: Counter[str] = Counter()
    happened: Counter[str] = Counter()
    within: Counter[str] = Counter()
    refused = 0
    for seed in kept_first("test_engines_agree", range(PLANS)):
        engine_input, wanted, inside = agreed(seed)
        if wanted is None:  # routes that changed on its way led a packet past more switches than telemetry has room for
            refused += 1
            continue
        within.update(name for name, count in inside.items() if count > 0)
        found.update(features(engine_input, wanted))
        used.update(policies(engine_input))
        happened.update(name for name in COMMON if wanted.counters[name] > 0)
    saw(PLANS, ", ".join(f"{name}: {found[name]}" for name in sorted(found)))
    assert refused <= PLANS // 100
    assert len(found) == FEATURES
    assert min(found.values()) >= WANTED_OF_A_FEATURE, found
    assert min(found[name] for name in EVERYWHERE) >= WANTED_EVERYWHERE, found
    assert not [name for name in COMMON if happened[name] < WANTED_OF_A_COUNTER], happened
    assert not [name for name in DECISIONS if within[name] < WANTED_DECISIONS], within
    everything = {f"{kind}: {entry.name}" for kind in TEST_ONLY for entry in catalogue(kind)}
    everything |= {f"{kind}: {name}" for kind, names in TEST_ONLY.items() for name in names}
    assert not [name for name in everything if used[name] < WANTED_OF_A_POLICY], used
