"""Folding is exact under faults too: links, switches and NIC ports die, lose packets and come back while a job runs.

Ranks use two NIC ports, each on a plane or on a leaf of its own, so that paths change by routes and by failover. Times
of all ranks and bytes of all ports are compared; what each case contained is counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest
from helpers.cases import Saw, case_count
from helpers.kept_seeds import kept_first
from tests.helpers.flow_jobs import Degrees, parallel_job

from weftwork.base.clock import US_PS
from weftwork.engine.flow import run as flow
from weftwork.engine.flow.flow_input import FlowInput, Mode
from weftwork.engine.flow.lower import lower_flow
from weftwork.engine.flow.outcome import FlowOutcome
from weftwork.engine.instants import Fault
from weftwork.engine.rows.fabric import Instant
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import load
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.spec.routing import Routing
from weftwork.spec.transport import Transport
from weftwork.topology.build import fabric_of
from weftwork.workload import placement

pytestmark = pytest.mark.sanitize

CASES = case_count(plain=30, deep=300)
WANTED = CASES // 10
RUN_PS = 150 * US_PS  # about as long as the jobs take
NODE = {"model": "dgx-h100", "nic_ports": 16}
FABRICS: dict[str, dict[str, Any]] = {
    "planes": {"topology": "rail-optimized", "hosts": 8, "node": NODE, "planes": 2, "pods": 2,
               "spines": 4},
    "one plane": {"topology": "rail-optimized", "hosts": 8, "node": NODE, "pods": 2,
                  "spines": 8},
    "dual-homed": {"topology": "leaf-spine", "leaves": 4, "spines": 4, "hosts_per_leaf": 8, "dual_homed": True,
                   "node": {"gpus": 1, "nic_ports": 2}},
}  # fmt: skip
DEGREES = {
    "planes": (Degrees(tensor=8, pipeline=2, data=4), Degrees(tensor=2, context=2, pipeline=2, data=8, expert=4)),
    "one plane": (Degrees(tensor=8, pipeline=2, data=4), Degrees(tensor=4, pipeline=1, data=16, expert=8)),
    "dual-homed": (Degrees(tensor=1, pipeline=4, data=4), Degrees(tensor=1, pipeline=2, data=8, expert=8)),
}


@cache
def fabric(name: str) -> Fabric:
    return fabric_of(**FABRICS[name])


def random_faults(rng: Random, built: Fabric) -> list[Fault]:
    """A place that goes down and mostly comes back, once or again and again; two of them in some cases."""
    links = built.links
    is_edge = (built.node_kind[links["a"]] == HOST) | (built.node_kind[links["b"]] == HOST)
    switches = np.flatnonzero(built.node_kind == SWITCH)
    faults: list[Fault] = []
    for _ in range(rng.choice((1, 1, 2))):
        kind = rng.choice(("nic", "nic", "core", "switch"))
        if kind == "switch":
            where = {"switch": int(rng.choice(switches.tolist()))}
        else:
            where = {"link": int(rng.choice(np.flatnonzero(is_edge == (kind == "nic")).tolist()))}
        at_ps = rng.choice((0, rng.randrange(RUN_PS)))
        for _ in range(rng.choice((1, 1, 3))):
            faults.append(Fault(at_ps=at_ps, event="down", **where))
            if rng.random() < 0.2:
                break
            faults.append(Fault(at_ps=at_ps + rng.randrange(1, RUN_PS // 2), event="up", **where))
            at_ps += RUN_PS // 2
    if rng.random() < 0.2:
        link = rng.randrange(len(links))
        rate_bps = int(links["rate_bps"][link]) // 3
        faults.append(Fault(at_ps=rng.randrange(RUN_PS), event="degrade", link=link, rate_bps=rate_bps))
    return sorted(faults, key=lambda fault: fault.at_ps)


def random_losses(seed: int, built: Fabric) -> list[Fault]:
    """A link of some cases that loses packets from an instant on, and mostly no longer from another one."""
    rng = Random(f"losses {seed}")
    if rng.random() < 0.6:
        return []
    link, at_ps = rng.randrange(len(built.links)), rng.choice((0, rng.randrange(RUN_PS)))
    loss = Fault(at_ps=at_ps, event="lossy", link=link, loss=10 ** rng.uniform(-5, -2))
    ends = Fault(at_ps=at_ps + rng.randrange(1, RUN_PS), event="lossy", link=link)
    return [loss, ends] if rng.random() < 0.7 else [loss]


def random_input(seed: int) -> FlowInput:
    rng = Random(f"folding under faults {seed}")
    name = rng.choice(sorted(FABRICS))
    degrees = rng.choice(DEGREES[name])
    job = parallel_job(degrees, placement.packed(fabric(name), degrees.ranks), network_share=0.75)
    engine_input = lower_flow(
        fabric=fabric(name),
        job=job,
        transport=Transport(),
        settings=EngineSettings(
            port_selection=load("port_selection", "ecmp"),
            seed=seed,
            faults=(*random_faults(rng, fabric(name)), *random_losses(seed, fabric(name))),
            reconvergence_delay_ps=rng.choice((0, 10 * US_PS, 40 * US_PS)),
            until_ps=100 * RUN_PS,
            failover_delay_ps=rng.choice((0, 10 * US_PS, 20 * US_PS)),
            routing=Routing(paths=Random(f"layers {seed}").choice((0, 0, 3))),
        ),
        tolerance=1e-9,
    )
    return replace(engine_input, mode=rng.choice(list(Mode)))


def run(engine_input: FlowInput, fold: str) -> FlowOutcome:
    return flow.run(replace(engine_input, fold=fold))


def passed_ps(engine_input: FlowInput, outcome: FlowOutcome) -> dict[int, list[int]]:
    """When the first and the last rank of each program passed a milestone: folded ones stand for others."""
    found: dict[int, list[int]] = {}
    for row in outcome.packets.milestones:
        found.setdefault(int(engine_input.rank_program[row["rank"]]), []).append(int(row["at_ps"]))
    return {program: [min(times), max(times)] for program, times in found.items()}


def test_a_job_under_faults_takes_as_long_folded_as_not(saw: Saw) -> None:
    found: Counter[str] = Counter()
    for seed in kept_first("test_flow_folding_faults", range(CASES)):
        engine_input = random_input(seed)
        whole, folded = run(engine_input, "never"), run(engine_input, "exact")
        assert folded.packets.complete == whole.packets.complete, f"case {seed}"
        assert abs(folded.packets.counters["end_ps"] - whole.packets.counters["end_ps"]) <= 2, f"case {seed}"
        ends = passed_ps(engine_input, whole)
        for program, times in passed_ps(engine_input, folded).items():
            np.testing.assert_allclose(times, ends[program], rtol=0, atol=2, err_msg=f"case {seed}")
        np.testing.assert_allclose(folded.link_bytes, whole.link_bytes, rtol=1e-6, atol=1.0, err_msg=f"case {seed}")
        end_ps = whole.packets.counters["end_ps"]
        codes = {int(row["code"]) for row in engine_input.instants if row["at_ps"] < end_ps}
        ranks = len(engine_input.rank_host)
        found["folded"] += len(folded.actors) < ranks
        found["routes change"] += Instant.ROUTES in codes
        found["ports change"] += Instant.FAILOVER in codes
        found["packets are lost"] += engine_input.has_losses
        found["finished"] += whole.packets.complete
        found["could not go on"] += not whole.packets.complete
    saw(CASES, ", ".join(f"{name}: {found[name]}" for name in sorted(found)))
    assert (
        min(found[name] for name in ("folded", "routes change", "ports change", "packets are lost", "finished"))
        >= WANTED
    ), found
