"""The native engine and the reference give the same result to the bit, on hundreds of random plans.

What the plans contain is counted and has to be enough: plans without a pause, a drop or a fault would agree for
nothing.
"""

from collections import Counter

import numpy as np
import pytest
from property.scenarios import LONG_DELAY_PS, TEST_ONLY, random_plan

from weft.engine import packet, reference
from weft.engine.outcome import Outcome
from weft.engine.plan import Instant, Plan
from weft.policies.load import catalogue

PLANS = 400
SANITIZED_PLANS = 40  # of those, also run under the sanitizers and on the newest Python
WANTED = 60  # plans with each of the features
WANTED_OF_A_POLICY = 5
COMMON = ("acks_sent", "naks_sent", "cnps_sent", "credits_sent", "probes_sent", "timeouts", "queue_pair_errors",
          "out_of_order_discards", "duplicates", "drop_no_route", "drop_link_down", "drop_link_loss", "drop_corrupted",
          "drop_buffer_full", "drop_egress_threshold", "drop_headroom_full", "drop_receive_buffer")  # fmt: skip


def features(plan: Plan, outcome: Outcome) -> set[str]:
    """What the two engines had to agree on."""
    found = {
        "a pause": outcome.ports["pauses_sent"].any(),
        "a drop": outcome.ports["drops"].any(),
        "a mark": outcome.ports["marks"].any(),
        "a retransmission": outcome.counters["retransmissions"] > 0,
        "a fault": bool((plan.instants["code"] != Instant.ROUTES).any() and plan.instants["at_ps"][0] < plan.until_ps),
        "unequal delays and rates": len(set(plan.port_delay_ps.tolist())) > 1 < len(set(plan.port_rate_bps.tolist())),
        "a link of 5 ms": plan.port_delay_ps.max() >= LONG_DELAY_PS,
    }
    return {name for name, is_there in found.items() if is_there}


def policies(plan: Plan) -> set[str]:
    chosen = (plan.congestion_control, plan.path_selection, plan.port_selection)
    return {f"{policy.kind}: {policy.name}" for policy in chosen if policy is not None}


def difference(one: Outcome, other: Outcome) -> str:
    """Where two outcomes differ first, for whoever has to find out why."""
    lines = [
        f"{name}: reference {one.counters[name]}, native {other.counters[name]}"
        for name in one.counters
        if one.counters[name] != other.counters[name]
    ]
    for title in ("messages", "ports", "marks"):
        a, b = getattr(one, title), getattr(other, title)
        if len(a) != len(b):
            lines.append(f"{title}: reference {len(a)} rows, native {len(b)}")
        else:
            rows = np.flatnonzero(a != b)
            lines += [f"{title}[{row}]: reference {a[row]}, native {b[row]}" for row in rows[:3].tolist()]
    return "\n".join(lines)


@pytest.mark.sanitize
def test_the_first_plans_agree_with_faults_among_them() -> None:
    found: Counter[str] = Counter()
    for seed in range(SANITIZED_PLANS):
        plan = random_plan(seed)
        wanted = reference.run(plan)
        got = packet.run(plan)
        assert got.digest() == wanted.digest(), f"plan {seed}:\n{difference(wanted, got)}"
        assert (got.complete, got.simulated_ps) == (wanted.complete, wanted.simulated_ps), f"plan {seed}"
        found.update(features(plan, wanted))
    assert len(found) == 7
    assert min(found.values()) >= 3, found


@pytest.mark.slow
def test_the_native_engine_equals_the_reference(capsys: pytest.CaptureFixture[str]) -> None:
    found: Counter[str] = Counter()
    used: Counter[str] = Counter()
    happened: Counter[str] = Counter()
    for seed in range(PLANS):
        plan = random_plan(seed)
        wanted = reference.run(plan)
        got = packet.run(plan)
        assert got.digest() == wanted.digest(), f"plan {seed}:\n{difference(wanted, got)}"
        assert (got.complete, got.simulated_ps) == (wanted.complete, wanted.simulated_ps), f"plan {seed}"
        found.update(features(plan, wanted))
        used.update(policies(plan))
        happened.update(name for name in COMMON if wanted.counters[name] > 0)
    with capsys.disabled():
        print(f"\n{PLANS} random plans agree; with " + ", ".join(f"{name}: {found[name]}" for name in sorted(found)))  # noqa: T201
    assert min(found.values()) >= WANTED, found
    assert len(found) == 7
    assert not [name for name in COMMON if happened[name] < 3], happened
    everything = {f"{kind}: {entry.name}" for kind in TEST_ONLY for entry in catalogue(kind)}
    everything |= {f"{kind}: {name}" for kind, names in TEST_ONLY.items() for name in names}
    assert not [name for name in everything if used[name.replace("_", "-")] + used[name] < WANTED_OF_A_POLICY], used
