"""Priority flow control against numbers on paper: overshoot, headroom, and what a pause does to those who share it.

A threshold is static here by construction: it is alpha x free shared bytes, and with alpha = 1e-6 of a buffer a million
times as large, what is queued moves it by less than a byte per megabyte.

Source: IEEE 802.1Qbb, annex O (what arrives after Xoff); Zhu et al., SIGCOMM 2015, doi:10.1145/2785956.2787484, section
2.2 (unfairness and victims of PFC).
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from helpers.figures import Show
from helpers.tiny import BYTE_PS, DELAY_PS, Message, packet_input_of, sends, star, wired
from hypothesis import example, given
from hypothesis import strategies as st

from weftwork.engine.outcome import Outcome
from weftwork.engine.packet import run
from weftwork.spec.device import Switch
from weftwork.spec.transport import Transport

GBPS = 10**9
MILLION = 1_000_000


def static_switch(xoff_bytes: int, *, xon_offset_bytes: int = 0, headroom_bytes: int = 10_000_000) -> Switch:
    """A switch whose ingresses ask for a pause above ``xoff_bytes``, whatever else is queued."""
    return Switch(
        forwarding_latency_ps=0,
        buffer_bytes=xoff_bytes * MILLION,
        reserve_bytes=0,
        alpha=1 / MILLION,
        xon_offset_bytes=xon_offset_bytes,
        headroom_bytes=headroom_bytes,
    )


@pytest.mark.parametrize("rate_gbps", [100, 400])
@pytest.mark.parametrize("delay_ps", [100_000, 1_000_000, 5_000_000])
def test_overshoot_is_twice_the_delay_and_the_frames_in_flight(rate_gbps: int, delay_ps: int, show: Show) -> None:
    """Above Xoff come 2 D C / 8 bytes, the packet that crosses, and what is sent during the pause frame.

    The receiver's link is so slow that nothing leaves (drain 0, the case for which headroom is made). Packet k starts
    at k S; with m = floor(Xoff / f) + 1 the ingress is above Xoff when m packets of f bytes are in it, and one is on
    the slow wire. The pause starts then, and arrives P = (m + 1) S + 2 D + S(pause) after the start of the run. Packets
    that start up to P still come: floor(P / S) + 1 in all. The test holds the approximation within one packet, and the
    count exactly.
    """
    xoff_bytes, wire = 98_765, Transport(first_extra_bytes=0, interframe_bytes=0)
    frame_bytes = wire.mtu_bytes + wire.data_overhead_bytes
    rates = [rate_gbps * GBPS, 1_000_000]  # the second: 33 ms a packet
    fabric = star(2, switch=static_switch(xoff_bytes), rates_bps=rates, delays_ps=[delay_ps, 1_000])
    # the pause is refreshed; it ends long before the slow link has sent its first packet
    job = sends(2, [Message(source=0, destination=1, size_bytes=2_000 * wire.mtu_bytes)])
    outcome = run(packet_input_of(fabric, job, transport=wire, until_ps=10**9))
    found_bytes = int(outcome.ports["max_ingress_bytes"][2])

    each_ps, pause_ps = (math.ceil(size * 8_000 / rate_gbps) for size in (frame_bytes, wire.pause_frame_bytes))
    crossing = xoff_bytes // frame_bytes + 1
    last_start_ps = (crossing + 1) * each_ps + 2 * delay_ps + pause_ps
    in_flight_bytes = 2 * delay_ps * rate_gbps / 8_000 + wire.pause_frame_bytes + frame_bytes
    show(
        f"{rate_gbps} Gb/s, {delay_ps / 1e6:g} us: {found_bytes - xoff_bytes:,} B above Xoff, "
        f"2 x delay x rate {2 * delay_ps * rate_gbps / 8_000:,.0f} B, with frames in flight {in_flight_bytes:,.0f} B"
    )
    assert outcome.ports["pauses_sent"][2] > 0
    assert outcome.ports["drops"].sum() == 0
    assert found_bytes - xoff_bytes == pytest.approx(in_flight_bytes, abs=frame_bytes)
    assert found_bytes == (last_start_ps // each_ps + 1 - 1) * frame_bytes


@pytest.mark.parametrize("delay_us", [5, 50])
def test_overshoot_under_drain(delay_us: int, show: Show) -> None:
    """With a drain of r the ingress grows by 2 D (C - r) / 8 after Xoff, and by up to two packets.

    The second packet is the one whose arrival is compared with a drain that has just taken or not yet taken one.
    """
    rate_gbps, drain_gbps, wire = 100, 50, Transport(first_extra_bytes=0, interframe_bytes=0, mtu_bytes=1024)
    frame_bytes = wire.mtu_bytes + wire.data_overhead_bytes
    xoff_bytes = 4 * delay_us * 125 * rate_gbps  # deep enough that the drain never runs dry
    fabric = star(
        2,
        switch=static_switch(xoff_bytes),
        rates_bps=[rate_gbps * GBPS, drain_gbps * GBPS],
        delays_ps=[delay_us * 10**6, 1_000],
    )
    job = sends(2, [Message(source=0, destination=1, size_bytes=40_000 * wire.mtu_bytes)])
    outcome = run(packet_input_of(fabric, job, transport=wire))
    growth_bytes = int(outcome.ports["max_ingress_bytes"][2]) - xoff_bytes
    expected_bytes = 2 * delay_us * 125 * (rate_gbps - drain_gbps)
    show(f"{delay_us} us, 100 into 50 Gb/s: {growth_bytes:,} B above Xoff, 2 D (C - r) {expected_bytes:,} B")
    assert expected_bytes <= growth_bytes <= expected_bytes + 2 * frame_bytes


@given(
    senders=st.integers(2, 12),
    rates_gbps=st.lists(st.sampled_from([100, 400]), min_size=13, max_size=13),
    delays_ps=st.lists(st.integers(1_000, 2_000_000), min_size=13, max_size=13),
    size_bytes=st.integers(1, 300_000),
    jitter_ps=st.lists(st.integers(0, 3_000_000), min_size=13, max_size=13),
    buffer_kb=st.integers(5, 400),
    alpha=st.sampled_from([0.0625, 0.125, 1.0, 8.0]),
    xon_offset_bytes=st.sampled_from([0, 8_320, 60_000]),
    lossless=st.sampled_from([(3,), (3, 6)]),
)
@example(  # fills the shared buffer to the byte, so that six acknowledgements find no room where their class is lossy
    senders=8, rates_gbps=[100] * 13, delays_ps=[1_000] * 13, size_bytes=299_627, jitter_ps=[0] * 13, buffer_kb=140,
    alpha=8.0, xon_offset_bytes=0, lossless=(3,),
)  # fmt: skip
def test_no_drop_with_enough_headroom(
    *,
    senders: int,
    rates_gbps: list[int],
    delays_ps: list[int],
    size_bytes: int,
    jitter_ps: list[int],
    buffer_kb: int,
    alpha: float,
    xon_offset_bytes: int,
    lossless: tuple[int, ...],
) -> None:
    """Whatever the incast: links of 100 and 400 Gb/s mixed, any delay, any threshold, almost no shared buffer.

    Acknowledgements have priority 6. Where it is lossy, the full shared buffer may drop them, and only them.
    """
    switch = Switch(forwarding_latency_ps=300_000, alpha=alpha, xon_offset_bytes=xon_offset_bytes, reserve_bytes=0)
    rates = [rate * GBPS for rate in rates_gbps[: senders + 1]]
    flows = [
        Message(source=s, destination=senders, size_bytes=size_bytes, at_ps=jitter_ps[s], channel=c)
        for s in range(senders)
        for c in range(2)
    ]
    fabric = star(senders + 1, switch=switch, rates_bps=rates, delays_ps=delays_ps[: senders + 1])
    engine_input = packet_input_of(fabric, sends(senders + 1, flows), transport=Transport(lossless_priorities=lossless))
    # the headroom stays as it follows from cable and rate; what all ports share is this small
    shared_bytes = np.where(engine_input.shared_bytes > 0, buffer_kb * 1_000, 0)
    outcome = run(replace(engine_input, shared_bytes=shared_bytes))
    assert dropped_data_packets(outcome, engine_input.transport.mtu_bytes) == 0
    assert outcome.counters["drop_headroom_full"] == outcome.counters["naks_sent"] == 0
    if 6 in lossless:
        assert outcome.ports["drops"].sum() == outcome.counters["retransmissions"] == 0
    assert (outcome.messages["acked_at_ps"] >= 0).all()


def dropped_data_packets(outcome: Outcome, mtu_bytes: int) -> int:
    """Drops of the class of data alone, of a run at rest: counters of drops are of all classes together.

    Every data packet that was sent was the first of its number at the receiver, a duplicate, out of order, or dropped.
    """
    assert outcome.complete
    expected = int(np.maximum(1, -(-outcome.messages["size_bytes"] // mtu_bytes)).sum())
    counters = outcome.counters
    arrived = expected + counters["duplicates"] + counters["out_of_order_discards"]
    return counters["data_sent"] - arrived


def test_that_incasts_of_this_kind_do_pause_and_do_drop_without_headroom() -> None:
    """What the property above says is not said of idle switches, and it is the headroom that keeps it true."""
    found: dict[int | None, Outcome] = {}
    for headroom_bytes in (None, 5_000):
        switch = Switch(forwarding_latency_ps=300_000, reserve_bytes=0, headroom_bytes=headroom_bytes)
        flows = [Message(source=s, destination=6, size_bytes=300_000) for s in range(6)]
        fabric = star(7, switch=switch, rates_bps=[100 * GBPS, 400 * GBPS] * 3 + [100 * GBPS])
        engine_input = packet_input_of(fabric, sends(7, flows), transport=Transport(retransmission_timeout_ps=10**8))
        found[headroom_bytes] = run(
            replace(engine_input, shared_bytes=np.where(engine_input.shared_bytes > 0, 100_000, 0))
        )
    assert found[None].ports["pauses_sent"].sum() > 5
    assert found[None].ports["drops"].sum() == dropped_data_packets(found[None], 4096) == 0
    assert dropped_data_packets(found[5_000], 4096) == found[5_000].counters["drop_headroom_full"] > 0


def test_a_lossy_acknowledgement_is_no_drop_of_the_lossless_class() -> None:
    """Acknowledgements cross the switch in the other direction and find its shared buffer full; no data packet is lost.

    Eight senders fill 140 kB to the byte, as in the example of the property above, which is one of those that drop.
    """
    flows = [Message(source=s, destination=8, size_bytes=299_627, channel=c) for s in range(8) for c in range(2)]
    switch = Switch(forwarding_latency_ps=300_000, alpha=8.0, xon_offset_bytes=0, reserve_bytes=0)
    fabric = star(9, switch=switch, rates_bps=[100 * GBPS] * 9, delays_ps=[1_000] * 9)
    engine_input = packet_input_of(fabric, sends(9, flows), transport=Transport(lossless_priorities=(3,)))
    outcome = run(replace(engine_input, shared_bytes=np.where(engine_input.shared_bytes > 0, 140_000, 0)))
    assert outcome.ports["drops"].sum() > 0
    assert dropped_data_packets(outcome, 4096) == 0


def test_headroom_has_no_frame_to_spare() -> None:
    """Every part of IEEE 802.1Qbb, annex O, in one case: it all fits, and with one frame less it would not.

    The shared buffer holds thirty frames. The next one crosses; the pause has to wait for a frame towards the sender,
    half of which is out; a wire of 515 ns each way is full; and the sender has just begun a frame when it hears.
    """
    wire = Transport(first_extra_bytes=0, retransmission_timeout_ps=10**13)
    frame_bytes = wire.mtu_bytes + wire.data_overhead_bytes
    frame_ps = (frame_bytes + wire.interframe_bytes) * BYTE_PS
    switch = Switch(forwarding_latency_ps=0, alpha=1e9, reserve_bytes=0, xon_offset_bytes=0)
    delays_ps = [DELAY_PS + 3 * frame_ps // 16, DELAY_PS, DELAY_PS]
    fabric = star(3, switch=switch, rates_bps=[400 * GBPS, 10_000_000, 400 * GBPS], delays_ps=delays_ps)
    flows = [
        Message(source=0, destination=1, size_bytes=80 * wire.mtu_bytes),
        Message(source=2, destination=0, size_bytes=120 * wire.mtu_bytes, at_ps=frame_ps // 2),
    ]
    engine_input = packet_input_of(fabric, sends(3, flows), transport=wire, until_ps=2 * 10**7)
    headroom_bytes = int(engine_input.port_headroom_bytes[3])
    outcome = run(
        replace(engine_input, shared_bytes=np.where(engine_input.shared_bytes > 0, 30 * frame_bytes + 100, 0))
    )
    used_bytes = int(outcome.ports["max_ingress_bytes"][3]) - 30 * frame_bytes
    assert outcome.ports["drops"].sum() == 0
    assert used_bytes <= headroom_bytes < used_bytes + frame_bytes


PAPER = Transport(mtu_bytes=1024, retransmission_timeout_ps=10**12)
RUN_PS = 20 * 10**9


def goodput_gbps(outcome: Outcome, sizes_bytes: int, from_ps: int) -> dict[int, float]:
    """Goodput of each source from an instant to the end of the run, by whole messages."""
    rows = outcome.messages[outcome.messages["delivered_at_ps"] > from_ps]
    sources = sorted(set(outcome.messages["source"].tolist()))
    return {s: int((rows["source"] == s).sum()) * sizes_bytes * 8_000 / (RUN_PS - from_ps) for s in sources}


def greedy(pairs: list[tuple[int, int]], size_bytes: int, count: int) -> list[Message]:
    return [Message(source=a, destination=b, size_bytes=size_bytes) for a, b in pairs for _ in range(count)]


def efficiency(size_bytes: int) -> float:
    """Payload over bytes on the line, for messages of this size."""
    packets = size_bytes // PAPER.mtu_bytes
    line_bytes = packets * (PAPER.mtu_bytes + PAPER.data_overhead_bytes + PAPER.interframe_bytes)
    return size_bytes / (line_bytes + PAPER.first_extra_bytes)


@pytest.mark.parametrize("others", [1, 3, 7])
def test_a_victim_of_pfc_is_dragged_to_the_share_of_the_congested(others: int, show: Show) -> None:
    """Head-of-line blocking: the victim's own path is free, and it gets no more than the flow beside it.

    Two senders share a trunk of 40 Gb/s: one sends to R1, the victim to R2; k more senders beyond the trunk send to R1.
    R1's link is shared per ingress, so the trunk gets C / (k + 1) of it, and the trunk's FIFO serves both flows alike:
    the victim is held to C / (k + 1) too, where C k / (k + 1) would be free. Xoff 40 KB, Xon 37 KB, links of 1 us. That
    is an upper bound: where packets for R2 leave the ingress first, those for R1 may run out before the trunk resumes,
    and others take the turn. The test allows a tenth for it.
    """
    hosts = 4 + others  # 0 sends to R1 = 2, 1 to R2 = 3, the others to R1
    near, far = hosts, hosts + 1
    links = [(0, near), (1, near), (2, far), (3, far), *((4 + i, far) for i in range(others)), (near, far)]
    fabric = wired(
        links,
        hosts=hosts,
        switch=static_switch(40_000, xon_offset_bytes=3_000, headroom_bytes=1_000_000),
        rates_bps=[40 * GBPS] * len(links),
        delays_ps=[1_000_000] * len(links),
    )
    size_bytes = 1024 * 32
    flows = greedy([(0, 2), (1, 3), *((4 + i, 2) for i in range(others))], size_bytes, 3_200)
    outcome = run(packet_input_of(fabric, sends(hosts, flows), transport=PAPER, until_ps=RUN_PS))
    found = goodput_gbps(outcome, size_bytes, RUN_PS // 4)
    share = 40 / (others + 1) * efficiency(size_bytes)
    free = 40 * others / (others + 1) * efficiency(size_bytes)
    show(
        f"k={others}: victim {found[1]:.2f}, beside it {found[0]:.2f} Gb/s; C/(k+1) {share:.2f}, free for it {free:.2f}"
    )
    assert found[1] == pytest.approx(found[0], rel=0.03)
    assert 0.9 * share <= found[1] <= share


def test_a_parking_lot_halves_at_every_switch(show: Show) -> None:
    """A chain of n switches with a sender at each, receiver at the end: C/2, C/4 .. and the two farthest equal."""
    switches = 5
    hosts = switches + 1  # sender i hangs on switch i, the receiver on the last
    links = [(i, hosts + i) for i in range(switches)] + [(switches, hosts + switches - 1)]
    links += [(hosts + i, hosts + i + 1) for i in range(switches - 1)]
    fabric = wired(
        links,
        hosts=hosts,
        switch=static_switch(40_000, xon_offset_bytes=3_000, headroom_bytes=1_000_000),
        rates_bps=[40 * GBPS] * len(links),
        delays_ps=[1_000_000] * len(links),
    )
    size_bytes = 1024 * 32
    flows = greedy([(i, switches) for i in range(switches)], size_bytes, 2_000)
    outcome = run(packet_input_of(fabric, sends(hosts, flows), transport=PAPER, until_ps=RUN_PS))
    found = goodput_gbps(outcome, size_bytes, RUN_PS // 4)
    ideal = [share * efficiency(size_bytes) for share in (2.5, 2.5, 5, 10, 20)]
    show("Gb/s " + ", ".join(f"{g:.2f}" for g in found.values()) + "; formula " + ", ".join(f"{g:.2f}" for g in ideal))
    assert list(found.values()) == pytest.approx(ideal, rel=0.05)
