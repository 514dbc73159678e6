"""Times on paper, to the picosecond: serialisation, propagation, pipelining through switches, and incast.

Source: store and forward, as in Kurose and Ross, Computer Networking, section 1.4: a packet is sent on when its last
bit has come. With S(i, h) the serialisation of packet i on link h and D(h) the delay of that link, the fixed latency of
its far end included, packet i has arrived over link h at

    A(i, h) = max(A(i, h-1), B(i-1, h)) + S(i, h) + D(h),    B(i, h) = A(i, h) - D(h)

Leaves out: everything that holds a packet back (pauses, windows, losses), which other files of this folder measure.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import pytest
from helpers.figures import Show
from helpers.tiny import Message, packet_input_of, sends, star, wired

from weftwork.engine.packet import run
from weftwork.spec.device import Nic, Switch
from weftwork.spec.transport import Transport

GBPS = 10**9
LINKS = [
    pytest.param([(400 * GBPS, 500_000)], id="one-link"),
    pytest.param([(400 * GBPS, 500_000)] * 3, id="equal-links"),
    pytest.param(
        [(100 * GBPS, 40_000), (400 * GBPS, 1_500_000), (10 * GBPS, 7_001), (333_333_333_333, 12_345)], id="mixed"
    ),
]
FORWARDING_PS, RECEIVE_PS = 600_000, 77_000


def serialisation_ps(size_bytes: int, rate_bps: int) -> int:
    """The time of so many bytes, rounded up; written here anew, so that the engine's own rule is judged too."""
    return math.ceil(Fraction(size_bytes * 8 * 10**12, rate_bps))


def arrival_ps(frames: Sequence[int], links: Sequence[tuple[int, int]], latencies_ps: Sequence[int]) -> int:
    """A(last packet, last link) of the module's formula; all packets are ready at 0."""
    free_ps = [0] * len(links)
    at_ps = 0
    for frame_bytes in frames:
        at_ps = 0
        for hop, ((rate_bps, delay_ps), latency_ps) in enumerate(zip(links, latencies_ps, strict=True)):
            free_ps[hop] = max(at_ps, free_ps[hop]) + serialisation_ps(frame_bytes, rate_bps)
            at_ps = free_ps[hop] + delay_ps + latency_ps
    return at_ps


@pytest.mark.parametrize("links", LINKS)
@pytest.mark.parametrize("size_bytes", [1, 4096, 4097, 100 * 4096 + 17])
def test_packets_follow_each_other_to_the_picosecond(links: list[tuple[int, int]], size_bytes: int) -> None:
    switches = len(links) - 1
    ends = [0, *range(2, 2 + switches), 1]
    fabric = wired(
        list(pairwise(ends)),
        hosts=2,
        rates_bps=[rate for rate, _ in links],
        delays_ps=[delay for _, delay in links],
        switch=Switch(forwarding_latency_ps=FORWARDING_PS, buffer_bytes=10**9),
        nic=Nic(receive_latency_ps=RECEIVE_PS),
    )
    wire = Transport(ack_every=65_536)  # one ACK, for the last packet, so that it meets no other on its way back
    job = sends(2, [Message(source=0, destination=1, size_bytes=size_bytes)])
    outcome = run(packet_input_of(fabric, job, transport=wire))
    sizes = [wire.mtu_bytes] * (size_bytes // wire.mtu_bytes)
    sizes += [size_bytes % wire.mtu_bytes] if size_bytes % wire.mtu_bytes else []
    frames = [size + wire.data_overhead_bytes + wire.interframe_bytes for size in sizes]
    frames[0] += wire.first_extra_bytes
    latencies_ps = [FORWARDING_PS] * switches + [RECEIVE_PS]
    delivered_ps = arrival_ps(frames, links, latencies_ps)
    assert outcome.messages["delivered_at_ps"].tolist() == [delivered_ps]
    ack_ps = arrival_ps([wire.ack_bytes + wire.interframe_bytes], links[::-1], latencies_ps)
    assert outcome.messages["acked_at_ps"].tolist() == [delivered_ps + ack_ps]


@pytest.mark.parametrize("hops", [1, 2, 5])
def test_equal_packets_cost_the_slowest_link_each(hops: int, show: Show) -> None:
    """n equal packets over h links take sum(S + D) + (n - 1) max S."""
    packets, delay_ps = 1000, 300_000
    rates_bps = [100 * GBPS, 400 * GBPS, 40 * GBPS, 200 * GBPS, 100 * GBPS][:hops]
    ends = [0, *range(2, 1 + hops), 1]
    fabric = wired(
        list(pairwise(ends)),
        hosts=2,
        rates_bps=rates_bps,
        delays_ps=[delay_ps] * hops,
        switch=Switch(forwarding_latency_ps=0, buffer_bytes=10**9),
    )
    wire = Transport(first_extra_bytes=0)
    job = sends(2, [Message(source=0, destination=1, size_bytes=packets * wire.mtu_bytes)])
    outcome = run(packet_input_of(fabric, job, transport=wire))
    each_ps = [
        serialisation_ps(wire.mtu_bytes + wire.data_overhead_bytes + wire.interframe_bytes, r) for r in rates_bps
    ]
    expected_ps = sum(each_ps) + hops * delay_ps + (packets - 1) * max(each_ps)
    found_ps = int(outcome.messages["delivered_at_ps"][0])
    show(f"{packets} packets over {hops} links: {found_ps:,} ps, formula {expected_ps:,} ps")
    assert found_ps == expected_ps


@pytest.mark.parametrize("senders", [2, 8, 32])
@pytest.mark.parametrize("flow_control", ["none", "pfc"])
def test_an_incast_takes_the_time_of_its_last_link(senders: int, flow_control: str, show: Show) -> None:
    """N senders of n packets: T = S + D + N n S + D, as the last link never rests once the first packet has come.

    With PFC the senders are paused (asserted), and the time is the same: an ingress holds more than what comes within
    the time that a resume takes to have an effect, so the last link has always something to send. Without it the queue
    grows to (N - 1) n packets: at the instant of the last arrivals, N n have come and n have left.
    """
    packets, delay_ps, rate_bps = 256, 500_000, 400 * GBPS
    wire = Transport(first_extra_bytes=0, lossless_priorities=(3,) if flow_control == "pfc" else ())
    frame_bytes = wire.mtu_bytes + wire.data_overhead_bytes
    each_ps = serialisation_ps(frame_bytes + wire.interframe_bytes, rate_bps)
    buffer_bytes = 10**9 if flow_control == "none" else (senders + 1) * 600_000
    switch = Switch(forwarding_latency_ps=0, buffer_bytes=buffer_bytes, egress_alpha=16.0)
    fabric = star(senders + 1, switch=switch, delays_ps=[delay_ps] * (senders + 1))
    flows = [Message(source=s, destination=senders, size_bytes=packets * wire.mtu_bytes) for s in range(senders)]
    outcome = run(packet_input_of(fabric, sends(senders + 1, flows), transport=wire))
    expected_ps = each_ps + delay_ps + senders * packets * each_ps + delay_ps
    found_ps = int(outcome.messages["delivered_at_ps"].max())
    pauses = int(outcome.ports["pauses_sent"].sum())
    found = f"{found_ps:,} ps, formula {expected_ps:,} ps, {pauses} pauses"
    show(f"{senders}:1 of {packets} packets, {flow_control}: {found}")
    assert found_ps == expected_ps
    assert outcome.ports["drops"].sum() == 0
    if flow_control == "pfc":
        assert pauses >= senders - 1
    else:
        assert outcome.ports["max_queue_bytes"].max() == (senders - 1) * packets * frame_bytes
