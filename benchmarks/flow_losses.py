"""Losses on flows, their expected cost, against the mean of packet runs with drawn losses.

    python benchmarks/flow_losses.py [--scenarios 50] [--seeds 20]

The table of docs/models/flow-losses.md is what this prints. Each scenario is small and drawn at random: its workload,
its fabric, where packets are lost and how they are recovered. Packet runs draw losses and paths anew for each seed; a
flow run draws nothing but the paths, so that the mean of its seeds is the expected cost.
Leaves out: training, which packets run with other collectives (tests/runs/study/run/test_flow_losses.py has one).
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from weftwork.base.clock import US_PS
from weftwork.study.prepare.prepare import prepare
from weftwork.study.record.road import execute
from weftwork.study.results.loss_range import loss_range_ps
from weftwork.study.results.measure import taken_ps

BOUND: Final = 0.25  # as the project asks
LEAST: Final = 0.01  # chosen: of a time, what no range tells
FIXED_WINDOW: Final = {
    "name": "fixed-window",
    "window_bytes": "1MB",
}  # several round trips: links are never idle for it


def drawn(number: int) -> dict[str, Any]:
    """The scenario of one row, the same for the same number."""
    lot = random.Random(number)
    leaves, hosts = lot.choice([2, 4]), lot.choice([2, 4])
    spines = lot.choice([1, 2, hosts])
    recovery = lot.choice(["go-back-n", "selective-repeat"])
    loss = 10 ** lot.uniform(-6, -3)
    size = lot.choice(["64KiB", "256KiB", "1MiB", "4MiB"])
    senders = lot.randint(2, leaves * hosts - 1)
    workload = lot.choice([
        {"traffic": {"pattern": "permutation", "size": size}},
        {"traffic": {"pattern": "incast", "senders": senders, "size": size}},
        {"traffic": {"pattern": "permutation", "size": size}},
        {"collective": {"operation": "all-reduce", "algorithm": "ring", "gpus": leaves * hosts, "size": size}},
    ])  # fmt: skip
    fabric: dict[str, Any] = {
        "topology": "leaf-spine", "leaves": leaves, "spines": spines, "hosts_per_leaf": hosts,
        "link_rate": "400Gbps", "cable_length": lot.choice(["20m", "100m", "500m"]),
    }  # fmt: skip
    scenario: dict[str, Any] = {
        "schema": 3,
        "name": f"losses {number}",
        "fabric": fabric,
        "transport": {
            "recovery": recovery,
            "timeout": lot.choice(["200us", "1ms", "67.108864ms"]),
            # DCQCN leaves a part of a shared link idle, with losses or without: flows differ by that, not by losses
            "congestion_control": "dcqcn" if "collective" in workload else FIXED_WINDOW,
        },
        **workload,
    }  # fmt: skip
    if lot.random() < 0.5:
        fabric["loss"] = loss
    else:
        link = f"leaf0-spine{lot.randrange(spines)}" if lot.random() < 0.5 else "host0-leaf0"
        scenario["faults"] = [{"at": "0s", "link": link, "event": "lossy", "loss": loss}]
    return scenario


def sprayed(number: int) -> dict[str, Any]:
    """A scenario of several spines, sprayed by switches: a flow then crosses every lossy link on its ways."""
    scenario = drawn(number)
    fabric = scenario["fabric"]
    fabric["spines"] = max(2, fabric["spines"])
    scenario["transport"] |= {"load_balancing": "switch-spray", "reorder_tolerant": True}
    for fault in scenario.get("faults", ()):
        fault["link"] = "leaf0-spine0"
    return scenario


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One scenario on packets and on flows, mean times in picoseconds.

    Attributes
    ----------
    packet_ps, flow_ps : with losses
    none_packet_ps, none_flow_ps : without them
    low_ps, high_ps : the range that flows tell
    """

    packet_ps: float
    flow_ps: float
    none_packet_ps: float
    none_flow_ps: float
    low_ps: float
    high_ps: float

    @property
    def error(self) -> float:
        """What flows differ by."""
        return self.flow_ps / self.packet_ps - 1

    @property
    def holds(self) -> bool:
        """Whether flows are within the bound, or what losses cost on packets is in the range that flows tell.

        In the range, both are told by what they take without losses, by which the engines differ too.
        """
        slowdown = self.packet_ps / self.none_packet_ps
        low, high = self.low_ps / self.none_flow_ps, self.high_ps / self.none_flow_ps
        return abs(self.error) <= BOUND or low - LEAST <= slowdown <= high + LEAST


def took_ps(scenario: dict[str, Any], fidelity: str, seed: int) -> tuple[float, float, float]:
    """The time of a run, and the range that it tells, which on packets is the time itself."""
    prepared = prepare(scenario, {"engine": {"fidelity": fidelity, "seed": seed}})
    execution = execute(prepared, what_if="none")
    taken = taken_ps(prepared, execution)
    if taken is None:
        raise SystemExit(f"{words(scenario)}, seed {seed}: not everything was delivered")
    own = float(max(taken))
    low, high = loss_range_ps(prepared, execution) or (own, own)
    return own, low, high


def measure(scenario: dict[str, Any], seeds: int) -> Row:
    """A scenario on both fidelities, as means over seeds."""
    none = without_losses(scenario)
    packet, flow, none_packet, none_flow = (
        np.mean([took_ps(each, fidelity, seed) for seed in range(1, seeds + 1)], axis=0)
        for each in (scenario, none)
        for fidelity in ("packet", "flow")
    )
    return Row(
        packet_ps=float(packet[0]),
        flow_ps=float(flow[0]),
        none_packet_ps=float(none_packet[0]),
        none_flow_ps=float(none_flow[0]),
        low_ps=float(flow[1]),
        high_ps=float(flow[2]),
    )


def words(scenario: dict[str, Any]) -> str:
    """A scenario in one cell."""
    fabric, transport = scenario["fabric"], scenario["transport"]
    control = transport["congestion_control"]
    section = scenario.get("traffic", scenario.get("collective"))
    name = section.get("pattern", "ring all-reduce")
    count = f" of {section['senders']}" if "senders" in section else ""
    fault = scenario.get("faults")
    where = f"{fault[0]['link']} {fault[0]['loss']:.1e}" if fault else f"all links {fabric['loss']:.1e}"
    return (
        f"{name}{count}, {section['size']}, {fabric['leaves']}x{fabric['hosts_per_leaf']} hosts, {fabric['spines']}"
        f" spines, {fabric['cable_length']}; {transport['recovery']}, {transport['timeout']},"
        f" {control if isinstance(control, str) else control['name']}; {where}"
    )


def without_losses(scenario: dict[str, Any]) -> dict[str, Any]:
    """The same scenario on links that lose nothing."""
    fabric = {key: value for key, value in scenario["fabric"].items() if key != "loss"}
    return {key: value for key, value in scenario.items() if key != "faults"} | {"fabric": fabric}


def main() -> None:
    """Print the table, and how many rows are within the bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenarios", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=20)
    chosen = parser.parse_args()
    print("| scenario | packets | flows | range of flows | difference | without losses |")
    print("|---|---:|---:|---:|---:|---:|")
    near = held = 0
    for number in range(chosen.scenarios):
        scenario = drawn(number)
        row = measure(scenario, chosen.seeds)
        near += abs(row.error) <= BOUND
        held += row.holds
        print(
            f"| {words(scenario)} | {row.packet_ps / US_PS:,.1f} us | {row.flow_ps / US_PS:,.1f} us "
            f"| {row.low_ps / US_PS:,.1f} to {row.high_ps / US_PS:,.1f} us | {100 * row.error:+.1f} %"
            f" | {100 * (row.none_flow_ps / row.none_packet_ps - 1):+.1f} % |{'' if row.holds else ' outside'}",
            flush=True,
        )
    print(f"\n{near} of {chosen.scenarios} within {100 * BOUND:g} %, {held} within that or in the range")


if __name__ == "__main__":
    main()
