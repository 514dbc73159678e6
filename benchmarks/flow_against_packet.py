"""Both fidelities on the same scenarios: mean flow completion times, collective times and what they differ by.

    python benchmarks/flow_against_packet.py [--congestion dcqcn] [--routing random] [SHAPE ...]
    python benchmarks/flow_against_packet.py --short   # short messages, and sprays over few paths

The tables of docs/models/flow-engine.md are what this prints. Leaves out: shapes that only one engine runs.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Final

import numpy as np

from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.record.road import execute, results

LEAF: Final = "{topology: leaf-spine, hosts: 64, radix: 16, link_rate: 400Gbps, cable_length: 20m}"
TAPERED: Final = (
    "{topology: leaf-spine, hosts: 48, radix: 16, link_rate: 400Gbps, cable_length: 20m, oversubscription: 3}"
)
TREE: Final = "{topology: fat-tree, tiers: 3, radix: 4, link_rate: 400Gbps, cable_length: 20m}"
RAILS: Final = "{topology: rail-optimized, gpus: 64, node: dgx-h100, switch: tomahawk-5, cable_length: 20m}"
CALL: Final = "collective: {{operation: {0}, algorithm: {1}, gpus: 64, size: {2}}}"
EXTRA = __import__("os").environ.get("EXTRA", "")
SHAPES: Final = {  # name: fabric, workload
    "permutation": (LEAF, "traffic: {pattern: permutation, size: 32MiB}"),
    "permutation-3-tiers": (TREE, "traffic: {pattern: permutation, size: 32MiB}"),
    "incast": (LEAF, "traffic: {pattern: incast, senders: 16, size: 1MiB}"),
    "victim": (LEAF, "traffic: {pattern: incast, senders: 16, size: 1MiB, victim_source: 20, victim_receiver: 1}"),
    "all-to-all": (LEAF, "traffic: {pattern: all-to-all, size: 64KiB}"),
    "poisson": (LEAF, "traffic: {pattern: poisson, sizes: web-search, load: 0.5, flows: 2000}"),
    "oversubscription": (TAPERED, "traffic: {pattern: permutation, size: 16MiB}"),
    "ring": (LEAF, CALL.format("all-reduce", "ring", "64MiB")),
    "tree": (LEAF, CALL.format("all-reduce", "tree", "64MiB")),
    "halving-doubling": (LEAF, CALL.format("all-reduce", "halving-doubling", "64MiB")),
    "direct": (LEAF, CALL.format("all-to-all", "direct", "16MiB")),
    "rails-ring": (RAILS, CALL.format("all-reduce", "ring", "256MiB")),
    "rails-hierarchical": (RAILS, CALL.format("all-reduce", "hierarchical", "256MiB")),
    "rails-nvls": (RAILS, "collective: {operation: all-reduce, algorithm: nvls, gpus: 8, size: 256MiB}"),
    "rails-direct": (RAILS, CALL.format("all-to-all", "direct", "64MiB")),
}
SHORT: Final = {  # by senders and bytes, by hosts, radix and bytes
    **{
        f"incast-{senders}-{size}": (LEAF, f"traffic: {{pattern: incast, senders: {senders}, size: {size}}}")
        for senders in (4, 16, 48)
        for size in ("10kB", "100kB", "1MB")
    },
    **{
        f"permutation-{hosts}-{size}": (
            f"{{topology: leaf-spine, hosts: {hosts}, radix: {radix}, link_rate: 400Gbps, cable_length: 20m}}",
            f"traffic: {{pattern: permutation, size: {size}}}",
        )
        for hosts, radix in ((8, 4), (16, 8), (32, 8), (64, 16))
        for size in ("100kB", "1MiB", "32MiB")
    },
}
ROUTING: Final = {
    "sprayed": "load_balancing: least-loaded, reorder_tolerant: true",
    "hashed": "load_balancing: ecmp",
}
RANDOM: Final = "load_balancing: switch-spray, reorder_tolerant: true"  # by lot, packet by packet
FIXED_WINDOW: Final = "{name: fixed-window, window_bytes: 1MB}"  # several round trips: links are never idle for it
ACK_EVERY: Final = 16  # acknowledgements take a thousandth of a link, not a fiftieth


def scenario_text(shape: str, routing: str, congestion: str, fidelity: str) -> str:
    """The scenario of one row, as a user would write it."""
    fabric, workload = (SHAPES | SHORT)[shape]
    balancing = RANDOM if routing == "random" else ROUTING[routing]
    control = f"congestion_control: {congestion}, {balancing}"
    transport = f"{{protocol: rocev2, {control}, flow_control: pfc, recovery: go-back-n, ack_every: {ACK_EVERY}}}"
    engine = f"{{fidelity: {fidelity}}}"
    return f"schema: 3\nname: {shape}\nfabric: {fabric}\ntransport: {transport}\n{workload}\nengine: {engine}\n"


def measure(shape: str, routing: str, congestion: str, fidelity: str) -> tuple[float, float, float]:
    """Mean flow completion time and completion of everything, in ps, and CPU seconds of the engine."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scenario.yaml"
        file.write_text(scenario_text(shape, routing, congestion, fidelity), encoding="utf-8")
        prepared = prepare(read_scenario(file))
    clock = time.process_time()
    execution = execute(prepared, what_if="none")
    cpu_s = time.process_time() - clock
    found = results(prepared, execution)
    if found.status != "complete":
        raise SystemExit(f"{shape}, {routing}, {fidelity}: not everything was delivered")
    mean_ps = float(np.mean(found.tables["flows"]["fct_ps"].to_numpy()))
    durations = found.tables["collectives"]["duration_ps"].to_numpy()
    whole_ps = (
        float(np.mean(durations)) if len(durations) else float(found.tables["flows"]["delivered_ps"].to_numpy().max())
    )
    return mean_ps, whole_ps, cpu_s


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shapes", nargs="*", default=[], choices=[*SHAPES, *SHORT, []])
    parser.add_argument("--congestion", default=FIXED_WINDOW)
    parser.add_argument("--routing", nargs="*", default=list(ROUTING))
    parser.add_argument("--short", action="store_true", help="short messages, and sprays over few paths")
    chosen = parser.parse_args()
    print("| shape | routing | mean FCT packet, flow | difference | whole packet, flow | difference | CPU s |")
    print("|---|---|---|---|---|---|---|")
    for shape in chosen.shapes or (SHORT if chosen.short else SHAPES):
        for routing in chosen.routing:
            by_packet = measure(shape, routing, chosen.congestion, "packet")
            by_flow = measure(shape, routing, chosen.congestion, "flow")
            cells = [
                f"{a / 1e6:,.1f}, {b / 1e6:,.1f} us | {100 * (b / a - 1):+.2f} %"
                for a, b in zip(by_packet[:2], by_flow[:2], strict=True)
            ]
            print(f"| {shape} | {routing} | {' | '.join(cells)} | {by_packet[2]:.2f}, {by_flow[2]:.3f} |", flush=True)


if __name__ == "__main__":
    main()
