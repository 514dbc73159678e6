"""A number that flows do not measure is none, and not zero: whoever adds a number says here what flows have of it."""

from __future__ import annotations

from helpers.gallery import Gallery

SCENARIO = """schema: 3
name: numbers
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, link_rate: 100Gbps}
traffic: {pattern: permutation, size: 64KiB}
engine: {fidelity: FIDELITY}
"""
MEASURED = {
    "flows", "flows_completed", "payload_bytes", "completion_ps", "goodput_bps", "fct_p50_ps", "fct_p95_ps",
    "fct_p99_ps", "fct_p99.9_ps", "fct_mean_ps", "fct_max_ps", "slowdown_p50", "slowdown_p95", "slowdown_p99",
    "slowdown_p99.9", "slowdown_mean", "slowdown_max", "jain_index", "busiest_link", "simulated_ps",
    "oversubscription",
}  # fmt: skip


def test_flows_measure_these_numbers_and_no_others(gallery: Gallery) -> None:
    flows = gallery.run(SCENARIO.replace("FIDELITY", "flow"), what_if="none").summary
    assert {name for name, number in flows.items() if number["value"] is not None} == MEASURED


def test_packets_measure_all_numbers_of_flows_and_more(gallery: Gallery) -> None:
    packets = gallery.run(SCENARIO.replace("FIDELITY", "packet"), what_if="none").summary
    flows = gallery.run(SCENARIO.replace("FIDELITY", "flow"), what_if="none").summary
    assert set(packets) == set(flows)
    assert {name for name, number in packets.items() if number["value"] is not None} > MEASURED
