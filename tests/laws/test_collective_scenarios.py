"""Any collective on any servers and fabric is refused in words, or both engines say the same of it, faults included."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

from helpers.cases import Saw, case_count
from helpers.kept_seeds import kept_first

from weftwork.base.errors import ConfigError
from weftwork.engine import packet
from weftwork.engine.reference import simulation as reference
from weftwork.hardware.catalogue import nodes
from weftwork.spec.scenario.scenario import loads
from weftwork.spec.scenario.workload import OPERATIONS, PLACEMENTS
from weftwork.study.prepare.prepare import check_parameters, known_names, prepare
from weftwork.study.prepare.prepared import Prepared
from weftwork.study.results.collective_times import collective_times
from weftwork.workload.collectives.catalogue import ALGORITHMS

PLANS = case_count(plain=30, deep=150)
MOST_HOPS = 20_000  # of plans that the reference runs too
GPUS = {"plain": 1, "dgx-h100": 8, "dgx-a100": 8, "p4d": 8, "p5": 8, "gb200-nvl4": 4}
FAULTS: tuple[dict[str, Any], ...] = (
    {"at": "5us", "switch": "leaf0", "event": "down", "for": "50us"},
    {"at": "3us", "nic": "host0", "event": "slow", "fraction": 0.1},
    {"at": "1us", "nic": "host1/nic0", "event": "down", "for": "30us", "every": "60us", "times": 3},
)


def scenario(rng: Random) -> dict[str, Any]:
    node = rng.choice(list(GPUS))
    gpus = GPUS[node] * rng.choice((2, 3, 4))
    fabric: dict[str, Any] = {"node": node, "gpus": gpus, "switch": "tomahawk-5"}
    fabric["topology"] = rng.choice(("rail-optimized", "leaf-spine"))
    if fabric["topology"] == "rail-optimized" and rng.random() < 0.5:
        fabric["nodes_per_pod"] = 2
    if node == "p5" and rng.random() < 0.5:
        fabric |= {"planes": 2} if fabric["topology"] == "rail-optimized" else {"dual_homed": True}
    collective: dict[str, Any] = {
        "operation": rng.choice(OPERATIONS),
        "size": rng.choice((1, 7, 1000, 65_536, 300_001)),
        "placement": rng.choice(PLACEMENTS),
        "protocol": rng.choice(("none", "simple")),
        "repeat": rng.choice((1, 1, 2)),
    }
    if rng.random() < 0.8:
        collective["algorithm"] = rng.choice([name for name, one in ALGORITHMS.items() if not one.needs_lattice])
    if collective.get("algorithm") == "hierarchical":
        collective["inner"] = rng.choice(("ring", "direct", "nvls"))
    if rng.random() < 0.3:
        collective["gpus"] = rng.randrange(2, gpus + 1)
    if rng.random() < 0.4:
        collective["channels"] = rng.randrange(1, 5)
    transport: dict[str, Any] = {
        "recovery": rng.choice(("go-back-n", "selective-repeat", "timeout")),
        "congestion_control": rng.choice(("none", "dcqcn", "fixed-window")),
        "timeout": "100us",
    }
    if rng.random() < 0.3:
        transport |= {"load_balancing": "spray", "reorder_tolerant": True}
    faults = [rng.choice(FAULTS)] if rng.random() < 0.4 else []
    return {"schema": 3, "fabric": fabric, "collective": collective, "transport": transport, "faults": faults}


def prepared(document: dict[str, Any]) -> Prepared | None:
    """None where it is refused, as it has to be: with mistakes that name keys of the document."""
    try:
        text = json.dumps(document)
        return prepare(loads(text, known=known_names(), check_parameters=check_parameters, nodes=nodes()))
    except ConfigError as refused:
        mistakes = refused.mistakes
    assert mistakes
    assert {mistake.path.partition(".")[0] for mistake in mistakes} <= set(document)
    return None


def test_a_collective_is_refused_or_ends_the_same_on_both_engines(saw: Saw) -> None:
    seen: Counter[str] = Counter()
    for seed in kept_first("test_collective_scenarios", range(PLANS)):
        document = scenario(Random(seed))
        run = prepared(document)
        if run is None:
            seen["refused"] += 1
            continue
        outcome = packet.run(run.engine_input)
        if outcome.counters["packet_hops"] < MOST_HOPS:
            assert reference.run(run.engine_input).digest() == outcome.digest(), f"seed {seed}"
            seen["on both engines"] += 1
        times = collective_times(run, outcome)
        is_done = all(duration is not None for duration in times["duration_ps"])
        assert is_done or document["faults"], f"seed {seed} waits for ever"
        assert len(times["duration_ps"]) == document["collective"]["repeat"] or not is_done
        seen["ended"] += is_done
    saw(PLANS, ", ".join(f"{name}: {count}" for name, count in sorted(seen.items())))
    assert seen["on both engines"] >= PLANS // 3
    assert seen["ended"] >= PLANS // 3
    assert seen["refused"] <= PLANS // 2
