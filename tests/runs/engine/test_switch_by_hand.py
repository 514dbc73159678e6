"""Thresholds of a switch and the gap of a paced flow, to the byte and to the picosecond, in both engines.

Each number is worked out here from docs/models/packet-engine.md: a rule that both engines had wrong would agree with
itself, and not with these. One sender fills the queue towards a link so slow that, after its first packet, nothing
leaves while the test looks. Frame k arrives, whole, at `arrival_ps(k)`; frame 0 leaves the queue at once, so that frame
k finds k - 1 frames in it.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.both import both
from helpers.tiny import BYTE_PS, DELAY_PS, RATE_BPS, Message, packet_input_of, pair, sends, star

from weftwork.base.clock import MS_PS, SECOND_PS, US_PS
from weftwork.engine.outcome import Outcome
from weftwork.engine.packet_input import PacketInput
from weftwork.spec.device import Ecn, Nic, Switch
from weftwork.spec.transport import Transport

pytestmark = pytest.mark.sanitize

FRAME_BYTES = 4096 + 62  # every data packet: no header is of the first one alone
FRAME_PS = (FRAME_BYTES + 20) * BYTE_PS
PAUSE_FRAME_PS = (64 + 20) * BYTE_PS
WIRE = Transport(first_extra_bytes=0, retransmission_timeout_ps=10 * SECOND_PS)
LOSSY = WIRE.model_copy(update={"lossless_priorities": ()})
SENT = 24
TO_SENDER, TO_RECEIVER = 2, 3  # ports of the switch
PACED = str(Path(__file__).parents[2] / "policies" / "paced.py")
PATTERN = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # K1, K2, K3 of the page


def arrival_ps(frame: int) -> int:
    return (frame + 1) * FRAME_PS + DELAY_PS


def filling(
    switch: Switch, *, wire: Transport = WIRE, shared_bytes: int | None = None, seed: int = 1, until_ps: int = MS_PS
) -> PacketInput:
    """Host 0 sends all frames at once; a frame takes 3.3 ms to host 1, and the run ends after 1 ms."""
    fabric = star(2, switch=switch, rates_bps=[RATE_BPS, 10_000_000])
    job = sends(2, [Message(source=0, destination=1, size_bytes=SENT * 4096)])
    engine_input = packet_input_of(fabric, job, transport=wire, seed=seed, until_ps=until_ps)
    if shared_bytes is None:
        return engine_input
    return replace(engine_input, shared_bytes=np.where(engine_input.shared_bytes > 0, shared_bytes, 0))


def marks(ecn: Ecn, *, seed: int = 1, until_ps: int = MS_PS) -> int:
    outcome = both(filling(Switch(forwarding_latency_ps=0, ecn=ecn), seed=seed, until_ps=until_ps))
    assert outcome.ports["marks"].sum() == outcome.ports["marks"][TO_RECEIVER]
    return int(outcome.ports["marks"][TO_RECEIVER])


@pytest.mark.parametrize(
    ("kmin_bytes", "kmax_bytes", "first"),
    [
        (3 * FRAME_BYTES, 3 * FRAME_BYTES + 1, 5),  # frame 4 finds Kmin exactly
        (3 * FRAME_BYTES - 1, 3 * FRAME_BYTES, 4),  # and here Kmax exactly, where the lot is not asked: pmax is 0
        (3 * FRAME_BYTES - 1, 3 * FRAME_BYTES + 1, 5),  # here a lot of probability 0
    ],
)
def test_the_first_frame_marked_is_the_first_above_kmin_and_at_kmax(
    kmin_bytes: int, kmax_bytes: int, first: int
) -> None:
    ecn = Ecn(kmin_bytes=kmin_bytes, kmax_bytes=kmax_bytes, pmax=0.0)
    assert marks(ecn) == SENT - first
    assert marks(ecn, until_ps=arrival_ps(first)) == 0
    assert marks(ecn, until_ps=arrival_ps(first) + 1) == 1


def test_the_first_frame_is_marked_with_probability_pmax_just_below_kmax() -> None:
    # pmax 1 and one byte below Kmax of a ramp of two: a half. Frame 4 is alone there; all behind it are marked.
    ecn = Ecn(kmin_bytes=3 * FRAME_BYTES - 1, kmax_bytes=3 * FRAME_BYTES + 1, pmax=1.0)
    drawn = [marks(ecn, seed=seed) - (SENT - 5) for seed in range(1, 25)]
    assert drawn == [int(uniform_of_mark(seed, frame=4, port=TO_RECEIVER) < 0.5) for seed in range(1, 25)]
    assert 6 <= sum(drawn) <= 18


@pytest.mark.parametrize("pmax", [0.2, 1.0])
def test_marks_on_the_ramp_are_those_of_its_line(pmax: float) -> None:
    kmin, kmax = 2 * FRAME_BYTES + 77, 11 * FRAME_BYTES + 501
    for seed in range(1, 6):
        wanted = 0
        for frame in range(1, SENT):
            queue = (frame - 1) * FRAME_BYTES
            luck = uniform_of_mark(seed, frame=frame, port=TO_RECEIVER)
            wanted += queue >= kmax or (queue > kmin and luck < pmax * (queue - kmin) / (kmax - kmin))
        assert marks(Ecn(kmin_bytes=kmin, kmax_bytes=kmax, pmax=pmax), seed=seed) == wanted


@pytest.mark.parametrize(("kmin_bytes", "kept"), [(3 * FRAME_BYTES, 3), (3 * FRAME_BYTES - 1, 2)])
def test_a_mark_at_dequeue_counts_what_stays_behind(kmin_bytes: int, kept: int) -> None:
    # All are there before the second one leaves; frame k leaves 23 - k behind it, and frame 0 nobody.
    switch = Switch(
        forwarding_latency_ps=0, ecn=Ecn(kmin_bytes=kmin_bytes, kmax_bytes=kmin_bytes + 1, pmax=0, at="dequeue")
    )
    fabric = star(2, switch=switch, rates_bps=[RATE_BPS, RATE_BPS // 400])
    job = sends(2, [Message(source=0, destination=1, size_bytes=SENT * 4096)])
    outcome = both(packet_input_of(fabric, job, transport=WIRE))
    assert outcome.ports["marks"].tolist() == [0, 0, 0, SENT - 1 - (kept + 1)]


def uniform_of_mark(seed: int, *, frame: int, port: int) -> float:
    """The draw of section Randomness for ECN_MARK, 5, of a first transmission from rank 0 to rank 1 on channel 0."""
    mask = (1 << 64) - 1
    flow = 0 << 40 | 1 << 16 | 0
    packet = frame | 0 << 32 | 0 << 48
    words = flow, packet | 5 << 56, (seed << 32) + port
    x = sum(word * factor for word, factor in zip(words, PATTERN, strict=True)) & mask
    x = (x ^ x >> 30) * PATTERN[1] & mask
    x = (x ^ x >> 27) * PATTERN[2] & mask
    return ((x ^ x >> 31) >> 11) / 2**53


# Admission


def queued(outcome: Outcome) -> tuple[int, int]:
    """Frames that were admitted, the one on the slow wire left out, and those dropped at the egress."""
    assert outcome.ports["max_queue_bytes"][TO_RECEIVER] % FRAME_BYTES == 0
    return int(outcome.ports["max_queue_bytes"][TO_RECEIVER]) // FRAME_BYTES, int(outcome.ports["drops"][TO_RECEIVER])


@pytest.mark.parametrize("reserve_bytes", [0, 1_001])
@pytest.mark.parametrize(
    ("spare_bytes", "held"), [(0, 5), (1, 5), (-1, 4), (3 * FRAME_BYTES, 6), (3 * FRAME_BYTES - 1, 5)]
)
def test_a_lossy_queue_holds_exactly_its_share_of_what_is_free(reserve_bytes: int, spare_bytes: int, held: int) -> None:
    """Frame n is held if n F <= R + floor((S - ((n - 1) F - R)) / 2), that is, from S = (3 n - 1) F - 3 R on."""
    shared = 14 * FRAME_BYTES - 3 * reserve_bytes + spare_bytes
    switch = Switch(forwarding_latency_ps=0, egress_alpha=0.5, reserve_bytes=reserve_bytes)
    outcome = both(filling(switch, wire=LOSSY, shared_bytes=shared))
    assert queued(outcome) == (held, SENT - 1 - held)
    assert outcome.counters["drop_egress_threshold"] == SENT - 1 - held == outcome.ports["drops"].sum()


@pytest.mark.parametrize(("spare_bytes", "held"), [(0, 3), (-1, 2)])
def test_the_reserve_of_a_lossy_queue_is_its_own(spare_bytes: int, held: int) -> None:
    # A millionth of what is free is less than a byte.
    switch = Switch(forwarding_latency_ps=0, egress_alpha=1e-6, reserve_bytes=3 * FRAME_BYTES + spare_bytes)
    outcome = both(filling(switch, wire=LOSSY, shared_bytes=100_000))
    assert queued(outcome) == (held, SENT - 1 - held)


@pytest.mark.parametrize(("spare_bytes", "held"), [(0, 4), (-1, 3)])
def test_a_lossy_packet_is_dropped_where_the_shared_buffer_is_full(spare_bytes: int, held: int) -> None:
    # 4 F - R of shared bytes are taken by four frames; the threshold of the queue lies far above.
    switch = Switch(forwarding_latency_ps=0, egress_alpha=1e6, reserve_bytes=1_001)
    outcome = both(filling(switch, wire=LOSSY, shared_bytes=4 * FRAME_BYTES - 1_001 + spare_bytes))
    # with nothing left the share of nothing is nothing: then the threshold drops, and before it the full buffer
    reason = "drop_buffer_full" if spare_bytes else "drop_egress_threshold"
    assert outcome.counters[reason] == SENT - 1 - held == outcome.ports["drops"].sum()
    assert outcome.ports["max_queue_bytes"][TO_RECEIVER] == held * FRAME_BYTES


@pytest.mark.parametrize(("spare_bytes", "held"), [(0, 3), (-1, 2)])
def test_what_another_ingress_holds_is_not_free(spare_bytes: int, held: int) -> None:
    # Four frames of one sender are in the buffer. Frame n of the other is held if n F <= (S - 4 F - (n - 1) F) / 2.
    switch = Switch(forwarding_latency_ps=0, egress_alpha=0.5, reserve_bytes=0)
    fabric = star(4, switch=switch, rates_bps=[RATE_BPS, 10_000_000, RATE_BPS, 10_000_000])
    messages = [
        Message(source=0, destination=1, size_bytes=5 * 4096),
        Message(source=2, destination=3, size_bytes=SENT * 4096, at_ps=100 * FRAME_PS),
    ]
    engine_input = packet_input_of(fabric, sends(4, messages), transport=LOSSY, until_ps=MS_PS)
    shared_bytes = np.where(engine_input.shared_bytes > 0, 12 * FRAME_BYTES + spare_bytes, 0)
    ports = both(replace(engine_input, shared_bytes=shared_bytes)).ports
    assert ports["max_queue_bytes"][4:].tolist() == [0, 4 * FRAME_BYTES, 0, held * FRAME_BYTES]
    assert ports["drops"].tolist() == [0, 0, 0, 0, 0, 0, 0, SENT - 1 - held]


# Pause


def pauses(switch: Switch, shared_bytes: int, until_ps: int) -> int:
    outcome = both(filling(switch, shared_bytes=shared_bytes, until_ps=until_ps))
    return int(outcome.ports["pauses_sent"][TO_SENDER])


@pytest.mark.parametrize("reserve_bytes", [0, 1_001])
def test_a_pause_is_asked_for_by_the_first_frame_above_the_share_of_what_is_free(reserve_bytes: int) -> None:
    # Frame n asks if n F - R > floor((S - (n F - R)) / 2): the third one below S = 9 F - 3 R, from there the fourth.
    switch = Switch(forwarding_latency_ps=0, alpha=0.5, reserve_bytes=reserve_bytes, xon_offset_bytes=0)
    shared = 9 * FRAME_BYTES - 3 * reserve_bytes
    assert [pauses(switch, shared, arrival_ps(3) + late) for late in (0, 1)] == [0, 0]
    assert [pauses(switch, shared, arrival_ps(4) + late) for late in (0, 1)] == [0, 1]
    assert [pauses(switch, shared - 1, arrival_ps(3) + late) for late in (0, 1)] == [0, 1]


@pytest.mark.parametrize(("spare_bytes", "kept"), [(0, 5), (-1, 4)])
def test_headroom_takes_what_fits_to_the_byte(spare_bytes: int, kept: int) -> None:
    # Frame 4 asks for the pause, which arrives a delay and a pause frame later; what has started by then still comes.
    headroom = 5 * FRAME_BYTES + spare_bytes
    switch = Switch(forwarding_latency_ps=0, alpha=0.5, reserve_bytes=0, xon_offset_bytes=0, headroom_bytes=headroom)
    outcome = both(filling(switch, shared_bytes=9 * FRAME_BYTES))
    obeyed_ps = arrival_ps(4) + PAUSE_FRAME_PS + DELAY_PS
    started = obeyed_ps // FRAME_PS + 1
    assert started < SENT
    assert outcome.ports["frames"][0] == started
    assert outcome.ports["max_ingress_bytes"][TO_SENDER] == (4 + kept) * FRAME_BYTES
    assert outcome.counters["drop_headroom_full"] == started - 5 - kept == outcome.ports["drops"].sum()


@pytest.mark.parametrize(("spare_bytes", "asking"), [(1, 6), (0, 5), (-1, 5)])
def test_a_frame_asks_for_a_pause_where_the_shared_buffer_ends(spare_bytes: int, asking: int) -> None:
    """Five frames less R are shared, and a byte more (its share is large), and a byte less (the fifth does not fit).

    What finds no room in the shared buffer is in the headroom, and asks for a pause by that alone.
    """
    switch = Switch(
        forwarding_latency_ps=0, alpha=1e9, reserve_bytes=1_001, xon_offset_bytes=0, headroom_bytes=30 * FRAME_BYTES
    )
    shared = 5 * FRAME_BYTES - 1_001 + spare_bytes
    assert [pauses(switch, shared, arrival_ps(asking) + late) for late in (0, 1)] == [0, 1]
    assert both(filling(switch, shared_bytes=shared)).ports["drops"].sum() == 0


@pytest.mark.parametrize(
    ("offset_bytes", "paused"),
    [(0, 1), (1, 5), (2 * FRAME_BYTES, 5), (2 * FRAME_BYTES + 1, 9), (4 * FRAME_BYTES, 9)],
)
def test_a_pause_ends_at_the_offset_below_the_share_of_what_is_free(offset_bytes: int, paused: int) -> None:
    """Eight frames come in one frame's time each and leave in four: the eighth finds five, and 6 F > 10 F - 6 F.

    It was the last. One frame's time later five are left, then each four times later one less: n of them end the pause
    if n F <= 10 F - n F - offset.
    """
    switch = Switch(
        forwarding_latency_ps=0, alpha=1, reserve_bytes=0, xon_offset_bytes=offset_bytes, headroom_bytes=10_000
    )
    fabric = star(2, switch=switch, rates_bps=[RATE_BPS, RATE_BPS // 4], delays_ps=[DELAY_PS, 10 * DELAY_PS])
    engine_input = packet_input_of(
        fabric, sends(2, [Message(source=0, destination=1, size_bytes=8 * 4096)]), transport=WIRE
    )
    shared_bytes = np.where(engine_input.shared_bytes > 0, 10 * FRAME_BYTES, 0)
    ports = both(replace(engine_input, shared_bytes=shared_bytes)).ports
    assert (ports["pauses_sent"][TO_SENDER], ports["resumes_sent"][TO_SENDER]) == (1, 1)
    assert ports["paused_ps"][0] == paused * FRAME_PS


# Pacing


@pytest.mark.parametrize(
    "sent_bps",
    [
        70_000_000_000,  # 4,178 B x 8e12 / 7e10 = 477,485.71 ps
        33_000_000_000,  # 1,012,848.48 ps
        123_456_789,  # 270,734,661.31 ps
        RATE_BPS,  # the gap of the line itself
        3 * RATE_BPS,  # faster than the line, which then decides
    ],
)
def test_the_gap_of_a_paced_flow_is_its_bytes_over_its_rate_rounded_down(sent_bps: int) -> None:
    """Nineteen gaps, so that rounding up or to the nearest is seen; the last frame is shorter and its gap unseen."""
    frames = 20
    size = frames * 4096 - 1_234
    engine_input = packet_input_of(
        pair(),
        sends(2, [Message(source=0, destination=1, size_bytes=size)]),
        transport=WIRE,
        congestion_control=PACED,
        parameters={"sent_bps": sent_bps},
    )
    gap_ps = (FRAME_BYTES + 20) * 8 * 10**12 // sent_bps
    last_ps = (frames - 1) * max(gap_ps, FRAME_PS)
    delivered_ps = last_ps + FRAME_PS - 1_234 * BYTE_PS + DELAY_PS
    assert both(engine_input).messages["delivered_at_ps"].tolist() == [delivered_ps]


def test_the_first_frame_of_a_message_and_a_short_one_have_gaps_of_their_own() -> None:
    # Two messages of 5,000 B on one queue pair: frames of 4,174, 966, 4,174 and 966 B; gaps of the first three.
    sent_bps = 70_000_000_000
    messages = [Message(source=0, destination=1, size_bytes=5_000)] * 2
    wire = Transport()
    engine_input = packet_input_of(
        pair(), sends(2, messages), transport=wire, congestion_control=PACED, parameters={"sent_bps": sent_bps}
    )
    first, second = 4096 + 62 + 16 + 20, 904 + 62 + 20
    starts_ps = [0]
    for line_bytes in (first, second, first):
        starts_ps.append(starts_ps[-1] + line_bytes * 8 * 10**12 // sent_bps)
    delivered_ps = [starts_ps[frame] + second * BYTE_PS + DELAY_PS for frame in (1, 3)]
    assert both(engine_input).messages["delivered_at_ps"].tolist() == delivered_ps


# Windows


@pytest.mark.parametrize(("window_bytes", "sent"), [(0, 14), (5 * 4096, 5), (5 * 4096 - 1, 4), (1, 1)])
def test_a_fixed_window_holds_its_payload_and_by_default_that_of_a_round_trip(window_bytes: int, sent: int) -> None:
    """Base RTT is a frame, a delay, an acknowledgement and a delay: 1,085,280 ps, or 54,264 B at 20 ps, and an MTU.

    58,360 B hold fourteen packets; the host interface keeps the first acknowledgement back until after the test.
    """
    round_trip_ps = FRAME_PS + DELAY_PS + (66 + 20) * BYTE_PS + DELAY_PS
    assert (round_trip_ps // BYTE_PS + 4096) // 4096 == 14
    engine_input = packet_input_of(
        pair(nic=Nic(pcie_latency_ps=10 * US_PS)),
        sends(2, [Message(source=0, destination=1, size_bytes=SENT * 4096)]),
        transport=WIRE,
        congestion_control="fixed-window",
        parameters={"window_bytes": window_bytes},
        until_ps=10 * US_PS,
    )
    assert both(engine_input).ports["frames"].tolist() == [sent, 0]
