"""Receivers' credit beside what bounds it: an incast drains at the rate of the link, a permutation fills its fabric.

Source: ultraethernet/uet-htsim, whose committed results have 2,463 to 2,479 us for 15 senders of 2 MB at 100 Gb/s (the
payload alone takes 2,400 us) and 176 to 177 us for a lone flow of 2 MB; nets-cs-pub-ro/NDP, EXAMPLES/permutation: a
permutation over queues of 8 packets at "nearly 100% utilization".
"""

from __future__ import annotations

import pytest
from against.conftest import Show
from helpers.credits import HEADER_BYTES, MTU_BYTES, RATE_BPS, UET, incast, plan, star

from weftwork.base.clock import US_PS
from weftwork.engine import packet
from weftwork.engine.lower import lower
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import load
from weftwork.spec.device import Nic, Switch
from weftwork.topology.shapes.leaf_spine import leaf_spine
from weftwork.workload.traffic.patterns.permutation import permutation

CONTROLS = ("rccc", "ndp", "eqds")
PACKET_BYTES = MTU_BYTES + HEADER_BYTES
SIZE_BYTES = 2_000_000


def on_wire_us(size_bytes: int) -> float:
    """Time of a message on a link, with its headers."""
    return (size_bytes + -(-size_bytes // MTU_BYTES) * HEADER_BYTES) * 8e6 / RATE_BPS


@pytest.mark.parametrize("control", CONTROLS)
def test_an_incast_of_15_senders_takes_what_the_reference_model_takes(control: str, show: Show) -> None:
    outcome = packet.run(plan(star(16, delay_ps=2_850_000), incast(15, SIZE_BYTES), control))
    took_us = float(outcome.messages["acked_at_ps"].max()) / US_PS
    show(f"{control}: {took_us:.1f} us, the link alone {15 * on_wire_us(SIZE_BYTES):.1f} us")
    assert outcome.counters["timeouts"] == 0
    assert took_us == pytest.approx(15 * on_wire_us(SIZE_BYTES) + 12, rel=0.03)
    assert took_us == pytest.approx(2_471, rel=0.01)  # uet-htsim


@pytest.mark.parametrize("control", CONTROLS)
def test_a_lone_flow_takes_what_the_reference_model_takes(control: str, show: Show) -> None:
    outcome = packet.run(plan(star(2, delay_ps=2_850_000), incast(1, SIZE_BYTES), control))
    took_us = float(outcome.messages["acked_at_ps"].max()) / US_PS
    show(f"{control}: {took_us:.1f} us")
    assert took_us > on_wire_us(SIZE_BYTES) + 11
    assert took_us == pytest.approx(176.8, rel=0.02)  # uet-htsim: 176.2 to 177.4 us


@pytest.mark.parametrize("control", CONTROLS)
def test_a_permutation_gets_more_than_nine_tenths_of_its_links_over_queues_of_8_packets(
    control: str, show: Show
) -> None:
    """64 hosts at 8 leaves and 8 spines, 8 MB each, packets spread over 64 entropies in turn."""
    room = 10**9
    fabric = leaf_spine(
        leaves=8, spines=8, hosts_per_leaf=8, host_rate_bps=RATE_BPS, fabric_rate_bps=RATE_BPS, host_delay_ps=US_PS,
        fabric_delay_ps=US_PS, nic=Nic(receive_latency_ps=0),
        switch=Switch(forwarding_latency_ps=0, buffer_bytes=room, egress_alpha=8 * PACKET_BYTES / room),
    )  # fmt: skip
    size_bytes = 4 * SIZE_BYTES
    outcome = packet.run(
        lower(
            fabric=fabric,
            job=permutation(hosts=64, size_bytes=size_bytes, seed=1),
            transport=UET,
            congestion_control=load("congestion_control", control, {"overhead_bytes": HEADER_BYTES}),
            settings=EngineSettings(
                path_selection=load("path_selection", "oblivious"),
                port_selection=load("port_selection", "ecmp"),
                seed=1,
            ),
        )
    )
    took_us = (outcome.messages["acked_at_ps"] - outcome.messages["posted_at_ps"]) / US_PS
    part = on_wire_us(size_bytes) / took_us
    cuts = outcome.counters["trims"]
    show(f"{control}: {part.mean():.1%} of the link on average, {part.min():.1%} at least, {cuts:,} cuts")
    assert part.mean() > 0.9
    assert part.max() < 0.99
    assert outcome.counters["timeouts"] == 0
