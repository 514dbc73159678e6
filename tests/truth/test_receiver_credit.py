"""Receivers' credit beside what bounds it: an incast drains at the rate of the link, a permutation fills its fabric.

Source: ultraethernet/uet-htsim, whose committed results have 2,463 to 2,479 us for 15 senders of 2 MB at 100 Gb/s (the
payload alone takes 2,400 us) and 176 to 177 us for a lone flow of 2 MB; nets-cs-pub-ro/NDP, EXAMPLES/permutation: a
permutation over queues of 8 packets at "nearly 100% utilization".
"""

from __future__ import annotations

import pytest
from helpers.credits import HEADER_BYTES, MTU_BYTES, RATE_BPS, UET, incast, plan, star
from helpers.figures import Show

from weftwork.base.clock import US_PS
from weftwork.engine import packet
from weftwork.engine.lower import lower
from weftwork.engine.outcome import Outcome
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import load
from weftwork.spec.device import Ecn, Nic, Switch
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


def permuted(control: str, *, spines: int, queue_packets: int, size_bytes: int, **parameters: float) -> Outcome:
    """64 hosts at 8 leaves, packets spread over 64 entropies in turn."""
    room = 10**9
    fabric = leaf_spine(
        leaves=8, spines=spines, hosts_per_leaf=8, host_rate_bps=RATE_BPS, fabric_rate_bps=RATE_BPS,
        host_delay_ps=US_PS, fabric_delay_ps=US_PS, nic=Nic(receive_latency_ps=0),
        switch=Switch(
            forwarding_latency_ps=0, buffer_bytes=room, egress_alpha=queue_packets * PACKET_BYTES / room,
            ecn=Ecn(kmin_bytes=30_000, kmax_bytes=120_000, pmax=1.0, at="dequeue"),
        ),
    )  # fmt: skip
    return packet.run(
        lower(
            fabric=fabric,
            job=permutation(hosts=64, size_bytes=size_bytes, seed=1),
            transport=UET,
            congestion_control=load("congestion_control", control, {"overhead_bytes": HEADER_BYTES, **parameters}),
            settings=EngineSettings(
                path_selection=load("path_selection", "oblivious"),
                port_selection=load("port_selection", "ecmp"),
                seed=1,
            ),
        )
    )


@pytest.mark.parametrize("control", CONTROLS)
def test_a_permutation_gets_more_than_nine_tenths_of_its_links_over_queues_of_8_packets(
    control: str, show: Show
) -> None:
    size_bytes = 4 * SIZE_BYTES
    outcome = permuted(control, spines=8, queue_packets=8, size_bytes=size_bytes)
    took_us = (outcome.messages["acked_at_ps"] - outcome.messages["posted_at_ps"]) / US_PS
    part = on_wire_us(size_bytes) / took_us
    cuts = outcome.counters["trims"]
    show(f"{control}: {part.mean():.1%} of the link on average, {part.min():.1%} at least, {cuts:,} cuts")
    assert part.mean() > 0.9
    assert part.max() < 0.99
    assert outcome.counters["timeouts"] == 0


@pytest.mark.parametrize("ratio", [2, 4])
def test_below_a_narrow_core_the_slower_pacer_saves_cuts_and_time(ratio: int, show: Show) -> None:
    taken_us, cuts = {}, {}
    for told in (1.0, float(ratio)):
        outcome = permuted("rccc", spines=8 // ratio, queue_packets=36, size_bytes=SIZE_BYTES, oversubscription=told)
        taken_us[told] = float(outcome.messages["acked_at_ps"].max()) / US_PS
        cuts[told] = outcome.counters["trims"]
    least_us = ratio * on_wire_us(SIZE_BYTES)  # of hosts that send to other leaves, on average
    without = f"{taken_us[1.0]:.0f} us and {cuts[1.0]:,} cuts without"
    show(f"{ratio}:1, least {least_us:.0f} us: {without}, {taken_us[ratio]:.0f} us and {cuts[ratio]:,} cuts with it")
    assert cuts[ratio] < 0.15 * cuts[1.0]
    assert 0.8 * least_us < taken_us[ratio] < 0.99 * taken_us[1.0]
