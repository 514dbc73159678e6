"""BBR, version 1: paces at measured bandwidth, with about one BDP in flight.

BDP is the bandwidth-delay product.
Source: Cardwell et al., BBR: congestion-based congestion control, ACM Queue 14(5), 2016, doi:10.1145/3012426.3022184;
numbers and order of events of Linux, net/ipv4/tcp_bbr.c (version 1) and tcp_rate.c (samples of the delivery rate).
Leaves out: long-term sampling, by which Linux finds a policer; the allowance for aggregated ACKs (Linux 5.1); fixed
point arithmetic; and the handshake, in whose place the base RTT of the path sets the first pacing rate.

Samples of the delivery rate are those of parts/delivery_rate.py: one packet in some gives one, and the ACKs of the
others count bytes and measure the RTT. The maximum over ten rounds is exact, where Linux keeps the three best. All
transitions happen at ACKs, so that there are no timers.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, CongestionControl, Kind, Signal, array, row
from weftwork.policies.parts.delivery_rate import (
    PS_PER_BYTE_SECOND,
    DeliveryState,
    drawn_bits,
    end_limit,
    limit_by_application,
    newest_mark,
    note_departure,
    paced,
    sample_interval_ps,
)

__all__ = ["PLUGIN", "Params", "State", "step"]

STARTUP = 0
DRAIN = 1
PROBE_BW = 2
PROBE_RTT = 3
ROUNDS = 32  # chosen: more than bw_rounds may be
PHASES = 8  # Linux, tcp_bbr.c: CYCLE_LEN
PROBE_PHASE = 0
DRAIN_PHASE = 1


class Params:
    """Gains, filters and times.

    None of them scales with the line rate, as bandwidth is measured.
    """

    high_gain: float = row(
        default=2.885,
        minimum=1,
        source="ACM Queue 2016: 2/ln 2; Linux, tcp_bbr.c, bbr_high_gain",
        text="Gain of pacing and window in Startup; Drain paces at its inverse.",
    )
    probe_gain: float = row(
        default=1.25,
        minimum=1,
        source="Linux, tcp_bbr.c, bbr_pacing_gain",
        text="Pacing gain of the phase that probes.",
    )
    drain_gain: float = row(
        default=0.75,
        minimum=0.01,
        maximum=1,
        source="Linux, tcp_bbr.c, bbr_pacing_gain",
        text="Pacing gain of the phase behind it, which takes the queue down.",
    )
    window_gain: float = row(
        default=2.0, minimum=1, source="Linux, tcp_bbr.c, bbr_cwnd_gain", text="Window in bandwidth-delay products."
    )
    pacing_margin: float = row(
        default=0.01,
        minimum=0,
        maximum=0.5,
        source="Linux, tcp_bbr.c, bbr_pacing_margin_percent; 0: ACM Queue 2016",
        text="Margin of the pacing rate below the measured bandwidth.",
    )
    bw_rounds: int = row(
        default=10,
        minimum=1,
        maximum=ROUNDS,
        source="Linux, tcp_bbr.c, bbr_bw_rtts (8 phases and 2)",
        text="Round trips in the filter that takes the largest delivery rate as the bandwidth.",
    )
    full_growth: float = row(
        default=1.25,
        minimum=1,
        source="Linux, tcp_bbr.c, bbr_full_bw_thresh",
        text="Startup goes on while the bandwidth grows by this factor.",
    )
    full_rounds: int = row(
        default=3,
        minimum=1,
        source="Linux, tcp_bbr.c, bbr_full_bw_cnt",
        text="Rounds without such growth that end Startup.",
    )
    min_rtt_window_ps: int = row(
        default="10s",
        minimum=1_000_000,
        source="Linux, tcp_bbr.c, bbr_min_rtt_win_sec",
        text="Age of the smallest RTT at which ProbeRTT measures it again.",
    )
    probe_rtt_ps: int = row(
        default="200ms",
        minimum=0,
        source="Linux, tcp_bbr.c, bbr_probe_rtt_mode_ms",
        text="Shortest time of ProbeRTT; it takes a round trip at least.",
    )
    min_window_packets: int = row(
        default=4,
        minimum=1,
        source="Linux, tcp_bbr.c, bbr_cwnd_min_target",
        text="Smallest window, and the one of ProbeRTT.",
    )
    initial_window_packets: int = row(
        default=10, minimum=1, source="RFC 6928; Linux, TCP_INIT_CWND", text="First window."
    )
    burst_bytes: int = row(
        default=0,
        minimum=0,
        source="0: chosen, a NIC paces packet by packet; Linux, tcp_bbr.c, bbr_tso_segs_goal: 64 KiB at these rates",
        text="Bytes that leave back to back; three such bursts, or three packets, are added to the window.",
    )


class State(DeliveryState):
    """One sending queue pair."""

    mode: int
    phase: int
    phase_at_ps: int
    pacing_gain: float
    cwnd_bytes: float
    saved_cwnd_bytes: float
    bw_bps: float
    bw_of_round: list[float] = array(ROUNDS, 0.0)
    round: int
    round_began: bool
    round_ends_at_bytes: int
    min_rtt_ps: int = OFF
    min_rtt_at_ps: int
    probe_rtt_until_ps: int = OFF
    probe_rtt_round_done: bool
    full_bw_bps: float
    full_rounds: int
    is_full: bool
    is_restarting: bool
    in_recovery: bool
    is_conserving: bool
    recovered_at_seq: int


def step(params: Params, state: State, signal: Signal) -> None:
    """Count departures; update model, rate and window at ACKs (tcp_bbr.c, bbr_main)."""
    if signal.kind == Kind.START:
        start(params, state, signal)
    elif signal.kind == Kind.SEND:
        count_departure(state, signal)
    elif signal.kind == Kind.RESUME:
        restart(params, state, signal)
    elif signal.kind == Kind.TIMEOUT:
        time_out(state, signal)
    elif signal.kind == Kind.NAK:
        if not state.in_recovery:
            enter_recovery(state, signal)
    elif signal.kind == Kind.ACK:
        state.delivered_bytes += signal.arrived_bytes
        if signal.lost_bytes > 0:
            lose(state, signal)
        if signal.arrived_bytes > 0:
            acknowledge(params, state, signal)
    state.window_bytes = max(state.cwnd_bytes, float(signal.mtu_bytes))


def start(params: Params, state: State, signal: Signal) -> None:
    """Begin Startup with the first window in a base RTT (bbr_init)."""
    state.cwnd_bytes = float(params.initial_window_packets * signal.mtu_bytes)
    state.pacing_gain = params.high_gain
    state.min_rtt_at_ps = signal.now_ps
    state.delivered_at_ps = signal.now_ps
    state.first_sent_at_ps = signal.now_ps
    first_bps = state.cwnd_bytes * PS_PER_BYTE_SECOND / float(max(signal.base_rtt_ps, 1))
    state.rate_bps = paced(first_bps * params.high_gain, params.pacing_margin, signal)


# Samples of the delivery rate: net/ipv4/tcp_rate.c


def count_departure(state: State, signal: Signal) -> None:
    """Remember the delivery count at some departures (tcp_rate_skb_sent)."""
    note_departure(state, signal)
    if signal.backlog_bytes == 0 and float(signal.inflight_bytes) < state.window_bytes:
        limit_by_application(state, signal)


# The model


def acknowledge(params: Params, state: State, signal: Signal) -> None:
    """Update the model from an ACK of new data, then obey it (bbr_update_model, bbr_main)."""
    inflight_before_bytes = signal.inflight_bytes + signal.arrived_bytes + signal.lost_bytes
    state.delivered_at_ps = signal.now_ps
    end_limit(state)
    state.round_began = False
    is_app_limited = False
    if signal.rtt_ps > 0:
        place = newest_mark(state, signal.now_ps - signal.rtt_ps)
        if place >= 0:
            is_app_limited = state.mark_app_limited[place] == 1
            update_bandwidth(params, state, signal, place)
        state.first_sent_at_ps = max(state.first_sent_at_ps, signal.now_ps - signal.rtt_ps)
    if state.mode == PROBE_BW and is_phase_over(params, state, signal, inflight_before_bytes):
        state.phase = (state.phase + 1) % PHASES
        state.phase_at_ps = signal.now_ps
    if not state.is_full and state.round_began and not is_app_limited:
        check_whether_full(params, state)
    check_drain(params, state, signal)
    update_min_rtt(params, state, signal)
    update_gain(params, state)
    if state.bw_bps > 0.0:
        rate_bps = paced(state.pacing_gain * state.bw_bps, params.pacing_margin, signal)
        if state.is_full or rate_bps > state.rate_bps:
            state.rate_bps = rate_bps
    set_window(params, state, signal)
    state.is_restarting = False


def update_bandwidth(params: Params, state: State, signal: Signal, place: int) -> None:
    """Count rounds, and filter a bandwidth sample (tcp_rate_gen, bbr_update_bw)."""
    delivered_then = state.mark_delivered_bytes[place]
    if delivered_then >= state.round_ends_at_bytes:
        state.round_ends_at_bytes = state.delivered_bytes
        state.round += 1
        state.round_began = True
        state.is_conserving = False
        state.bw_of_round[state.round % ROUNDS] = 0.0
    interval_ps = sample_interval_ps(state, place, signal.now_ps)
    state.first_sent_at_ps = max(state.first_sent_at_ps, state.mark_sent_at_ps[place])
    # tcp_rate.c drops samples shorter than the smallest RTT: ACKs that came in a burst
    if interval_ps > 0 and interval_ps >= state.min_rtt_ps:
        sample_bps = float(state.delivered_bytes - delivered_then) * PS_PER_BYTE_SECOND / interval_ps
        if state.mark_app_limited[place] == 0 or sample_bps >= state.bw_bps:
            newest = state.round % ROUNDS
            state.bw_of_round[newest] = max(state.bw_of_round[newest], sample_bps)
    most_bps = 0.0
    for back in range(params.bw_rounds):
        most_bps = max(most_bps, state.bw_of_round[(state.round + ROUNDS - back) % ROUNDS])
    if most_bps > 0.0:
        state.bw_bps = most_bps


def bdp_bytes(state: State, gain: float) -> float:
    """Bandwidth-delay product times a gain (bbr_bdp).

    The window stays as it is while there is no model.
    """
    if state.min_rtt_ps == OFF or state.bw_bps == 0.0:
        return state.cwnd_bytes
    return gain * state.bw_bps * float(state.min_rtt_ps) / PS_PER_BYTE_SECOND


def with_budget(params: Params, state: State, wanted_bytes: float, signal: Signal) -> float:
    """A window with room for bursts, and for probing (bbr_quantization_budget).

    Bursts happen at both ends; probing adds two packets.
    """
    budget_bytes = 3.0 * float(max(params.burst_bytes, signal.mtu_bytes))
    if state.mode == PROBE_BW and state.phase == PROBE_PHASE:
        budget_bytes += 2.0 * signal.mtu_bytes
    return wanted_bytes + budget_bytes


def is_phase_over(params: Params, state: State, signal: Signal, inflight_bytes: int) -> bool:
    """Whether the next phase of the cycle begins (bbr_is_next_cycle_phase)."""
    is_long = signal.now_ps - state.phase_at_ps > state.min_rtt_ps
    flying_bytes = float(inflight_bytes)
    if state.phase == PROBE_PHASE:
        flying_bytes += max(params.burst_bytes, signal.mtu_bytes)
        goal_bytes = with_budget(params, state, bdp_bytes(state, params.probe_gain), signal)
        return is_long and (signal.lost_bytes > 0 or flying_bytes >= goal_bytes)
    if state.phase == DRAIN_PHASE:
        return is_long or flying_bytes <= with_budget(params, state, bdp_bytes(state, 1.0), signal)
    return is_long


def check_whether_full(params: Params, state: State) -> None:
    """End Startup when the bandwidth stops growing (bbr_check_full_bw_reached)."""
    if state.bw_bps >= state.full_bw_bps * params.full_growth:
        state.full_bw_bps = state.bw_bps
        state.full_rounds = 0
    else:
        state.full_rounds += 1
        state.is_full = state.full_rounds >= params.full_rounds


def check_drain(params: Params, state: State, signal: Signal) -> None:
    """Go to Drain after Startup, then to ProbeBW (bbr_check_drain).

    Drain ends when the queue is thought to be gone.
    """
    if state.mode == STARTUP and state.is_full:
        state.mode = DRAIN
    if state.mode == DRAIN and is_drained(params, state, signal):
        enter_probe_bw(state, signal)


def is_drained(params: Params, state: State, signal: Signal) -> bool:
    """Whether in-flight data fits the path without a queue."""
    return signal.inflight_bytes <= with_budget(params, state, bdp_bytes(state, 1.0), signal)


def enter_probe_bw(state: State, signal: Signal) -> None:
    """Begin the cycle at a random phase that does not drain (bbr_reset_probe_bw_mode)."""
    state.mode = PROBE_BW
    state.phase = (PHASES - drawn_bits(state) % (PHASES - 1)) % PHASES
    state.phase_at_ps = signal.now_ps


def update_min_rtt(params: Params, state: State, signal: Signal) -> None:
    """Keep the smallest RTT, and probe for it when it is old (bbr_update_min_rtt).

    ProbeRTT lasts long enough.
    """
    is_old = signal.now_ps - state.min_rtt_at_ps > params.min_rtt_window_ps
    if signal.rtt_ps > 0 and (state.min_rtt_ps == OFF or signal.rtt_ps < state.min_rtt_ps or is_old):
        state.min_rtt_ps = signal.rtt_ps
        state.min_rtt_at_ps = signal.now_ps
    if is_old and not state.is_restarting and state.mode != PROBE_RTT:
        save_window(state)
        state.mode = PROBE_RTT
        state.probe_rtt_until_ps = OFF
    if state.mode == PROBE_RTT:
        limit_by_application(state, signal)
        if state.probe_rtt_until_ps == OFF:
            if signal.inflight_bytes <= params.min_window_packets * signal.mtu_bytes:
                state.probe_rtt_until_ps = signal.now_ps + params.probe_rtt_ps
                state.probe_rtt_round_done = False
                state.round_ends_at_bytes = state.delivered_bytes
        else:
            if state.round_began:
                state.probe_rtt_round_done = True
            if state.probe_rtt_round_done:
                check_probe_rtt_done(state, signal)


def check_probe_rtt_done(state: State, signal: Signal) -> None:
    """Leave ProbeRTT after its time and restore the window (bbr_check_probe_rtt_done)."""
    if state.probe_rtt_until_ps != OFF and signal.now_ps > state.probe_rtt_until_ps:
        state.min_rtt_at_ps = signal.now_ps
        state.cwnd_bytes = max(state.cwnd_bytes, state.saved_cwnd_bytes)
        if state.is_full:
            enter_probe_bw(state, signal)
        else:
            state.mode = STARTUP


def update_gain(params: Params, state: State) -> None:
    """The pacing gain of the mode (bbr_update_gains)."""
    state.pacing_gain = 1.0
    if state.mode == STARTUP:
        state.pacing_gain = params.high_gain
    elif state.mode == DRAIN:
        state.pacing_gain = 1.0 / params.high_gain
    elif state.mode == PROBE_BW and state.phase == PROBE_PHASE:
        state.pacing_gain = params.probe_gain
    elif state.mode == PROBE_BW and state.phase == DRAIN_PHASE:
        state.pacing_gain = params.drain_gain


def restart(params: Params, state: State, signal: Signal) -> None:
    """After idle time continue at measured bandwidth, without gain (bbr_cwnd_event)."""
    limit_by_application(state, signal)
    state.is_restarting = True
    if state.mode == PROBE_BW and state.bw_bps > 0.0:
        state.rate_bps = paced(state.bw_bps, params.pacing_margin, signal)
    elif state.mode == PROBE_RTT:
        check_probe_rtt_done(state, signal)


# The window, and losses


def set_window(params: Params, state: State, signal: Signal) -> None:
    """Grow the window to the model's, or cut it down at once (bbr_set_cwnd).

    It grows by what was delivered.
    """
    acked_bytes = float(signal.arrived_bytes)
    if state.in_recovery and signal.seq >= state.recovered_at_seq:
        state.in_recovery = False
        state.is_conserving = False
        state.cwnd_bytes = max(state.cwnd_bytes, state.saved_cwnd_bytes)
    least_bytes = float(params.min_window_packets * signal.mtu_bytes)
    if state.in_recovery and state.is_conserving:
        state.cwnd_bytes = max(state.cwnd_bytes, signal.inflight_bytes + acked_bytes)
    else:
        gain = params.window_gain if state.mode == PROBE_BW else params.high_gain
        if state.mode == PROBE_RTT:
            gain = 1.0
        goal_bytes = with_budget(params, state, bdp_bytes(state, gain), signal)
        first_bytes = params.initial_window_packets * signal.mtu_bytes
        if state.is_full:
            state.cwnd_bytes = min(state.cwnd_bytes + acked_bytes, goal_bytes)
        elif state.cwnd_bytes < goal_bytes or state.delivered_bytes < first_bytes:
            state.cwnd_bytes += acked_bytes
        state.cwnd_bytes = max(state.cwnd_bytes, least_bytes)
    if state.mode == PROBE_RTT:
        state.cwnd_bytes = min(state.cwnd_bytes, least_bytes)


def save_window(state: State) -> None:
    """Remember the last good window (bbr_save_cwnd)."""
    if not state.in_recovery and state.mode != PROBE_RTT:
        state.saved_cwnd_bytes = state.cwnd_bytes
    else:
        state.saved_cwnd_bytes = max(state.saved_cwnd_bytes, state.cwnd_bytes)


def lose(state: State, signal: Signal) -> None:
    """Take lost bytes off the window (bbr_set_cwnd_to_recover_or_restore).

    The first loss begins a recovery.
    """
    if state.in_recovery:
        state.cwnd_bytes = max(state.cwnd_bytes - signal.lost_bytes, float(signal.mtu_bytes))
    else:
        enter_recovery(state, signal)


def enter_recovery(state: State, signal: Signal) -> None:
    """Conserve packets for a round: send only what arrives.

    The round ends when all that has left by now is acknowledged.
    """
    save_window(state)
    state.in_recovery = True
    state.is_conserving = True
    state.recovered_at_seq = state.highest_seq
    state.round_ends_at_bytes = state.delivered_bytes
    state.cwnd_bytes = float(max(signal.inflight_bytes, signal.mtu_bytes))


def time_out(state: State, signal: Signal) -> None:
    """Restart with one packet, and look again for growth (tcp_enter_loss, bbr_set_state)."""
    save_window(state)
    state.in_recovery = True
    state.is_conserving = False
    state.recovered_at_seq = state.highest_seq
    state.full_bw_bps = 0.0
    state.cwnd_bytes = float(signal.mtu_bytes)


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.SEND, Kind.ACK, Kind.NAK, Kind.TIMEOUT, Kind.RESUME}),
    is_loss_based=True,
    needs=frozenset({"rtt"}),
    source="Cardwell et al., ACM Queue 14(5), 2016, doi:10.1145/3012426.3022184; Linux, net/ipv4/tcp_bbr.c, version 1",
    variants={
        # The defaults above: version 1 in Linux, on a NIC that paces every packet.
        "linux": {},
        # The same with segmentation offload: 64 KiB leave at once, and the window has room for three such bursts.
        "linux-offload": {"burst_bytes": 65_536},
        # The article, which paces at the measured bandwidth itself.
        "queue-2016": {"pacing_margin": 0.0},
        # chosen: a data centre's round trips are a thousandth of the Internet's, and so are both times of ProbeRTT.
        "datacenter": {"min_rtt_window_ps": "10ms", "probe_rtt_ps": "200us"},
    },
)
