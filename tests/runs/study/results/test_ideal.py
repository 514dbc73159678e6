"""The ideal time of a sprayed message: a bound that a run comes close to and does not beat."""

from __future__ import annotations

import pytest
from helpers.gallery import Gallery

SCENARIO = """schema: 3
fabric: {topology: leaf-spine, leaves: 2, spines: 4, hosts_per_leaf: 1, link_rate: 400Gbps, fabric_rate: 100Gbps}
transport: {congestion_control: none, load_balancing: LB, reorder_tolerant: true}
traffic: {pattern: incast, senders: 1, receiver: 0, size: 1MB}
engine: {fidelity: reference}
"""


@pytest.mark.parametrize(
    ("balancing", "ideal_us"),
    [
        ("ecmp", 85),  # 245 packets of 4,194 B on the wire at 100 Gb/s, and the path there
        ("switch-spray", 22),  # a quarter of it
        ("least-loaded", 22),
        ("spray", 22),
    ],
)
def test_a_lone_flow_over_slow_uplinks(gallery: Gallery, balancing: str, ideal_us: int) -> None:
    run = gallery.run(SCENARIO.replace("LB", balancing))
    (flow,) = run.flows.to_pylist()
    assert flow["ideal_fct_ps"] == pytest.approx(ideal_us * 1_000_000, rel=0.05)
    assert 1 <= flow["slowdown"] < (1.05 if balancing in {"ecmp", "least-loaded"} else 1.5)


def test_the_bound_of_a_sprayed_message_on_paper(gallery: Gallery) -> None:
    """All bytes leave the host at 400 Gb/s; the last frame, the smallest of all, then has three more links to cross."""
    (flow,) = gallery.run(SCENARIO.replace("LB", "spray")).flows.to_pylist()
    packets, headers, first, gap = 245, 62, 16, 20  # of 4,096 B, the last of 576 B
    sending_ps = (1_000_000 + packets * (headers + gap) + first) * 20
    last_bytes = 1_000_000 - 244 * 4_096 + headers + gap
    crossing_ps = last_bytes * (80 + 80 + 20)  # two links of 100 Gb/s and one of 400 Gb/s
    delays_ps = 4 * 100_000 + 3 * 500_000  # cables of 20 m, and the switches behind three of them
    assert flow["ideal_fct_ps"] == sending_ps + crossing_ps + delays_ps


@pytest.mark.parametrize("node", ["dgx-h100", "{model: dgx-h100, nic_ports: 16}", "p5"])
@pytest.mark.parametrize("algorithm", ["ring", "tree", "hierarchical", "direct"])
def test_no_message_of_a_collective_is_faster_than_alone(gallery: Gallery, node: str, algorithm: str) -> None:
    run = gallery.run(
        f"{{schema: 3, fabric: {{topology: rail-optimized, hosts: 2, node: {node}, radix: 128}},"
        " transport: {congestion_control: none},"
        f" collective: {{operation: all-reduce, algorithm: {algorithm}, size: 1MB, protocol: none}}}}"
    )  # rings cross on the rail of the channel, whatever the rail of the GPU that sends
    flows = run.query("select slowdown, ideal_fct_ps from flows where carrier = 'packets'")
    assert flows.num_rows > 0
    assert min(flows["slowdown"].to_pylist()) >= 1
