"""BBR, version 3: version 1 with loss bounds and rare, cautious probes.

Source: github.com/google/bbr, branch v3, net/ipv4/tcp_bbr.c; draft-ietf-ccwg-bbr for its variant. Functions below name
those of tcp_bbr.c that they follow. Samples of the delivery rate are those of tcp_rate.c (parts/delivery_rate.py).
Leaves out: marks, which Linux heeds where a route is marked as one of low latency; the allowance for aggregated ACKs;
PLB; undoing a recovery that was spurious; tail loss probes; the handshake, in whose place the base RTT sets the first
rate; fixed point arithmetic. What was in flight when a lost packet left is that of the nearest remembered packet.
"""

from __future__ import annotations

import math

from weftwork.policies.interface import NO_WINDOW_BYTES, OFF, CongestionControl, Kind, Signal, array, row
from weftwork.policies.parts.delivery_rate import (
    PS_PER_BYTE_SECOND,
    RING,
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

STARTUP, DRAIN, PROBE_BW, PROBE_RTT = 0, 1, 2, 3
UP, DOWN, CRUISE, REFILL = 0, 1, 2, 3  # phases of PROBE_BW
NO_BOUND = NO_WINDOW_BYTES  # of bytes in flight, and of bits per second
STARTUP_GAIN = 2.77  # tcp_bbr.c, bbr_startup_pacing_gain: 4 ln 2
UP_GAIN = 1.25  # bbr_pacing_gain
WINDOW_GAIN = 2.0  # bbr_cwnd_gain, bbr_startup_cwnd_gain
UP_WINDOW_GAIN = 2.25  # and bbr_bw_probe_cwnd_gain
PROBE_RTT_GAIN = 0.5  # bbr_probe_rtt_cwnd_gain
PACING_MARGIN = 0.01  # bbr_pacing_margin_percent
FULL_GROWTH = 1.25  # bbr_full_bw_thresh
FULL_ROUNDS = 3  # bbr_full_bw_cnt
FULL_LOSSES = 6  # bbr_full_loss_cnt
LEAST_PACKETS = 4  # bbr_cwnd_min_target
FIRST_PACKETS = 10  # RFC 6928
MOST_DOUBLINGS = 30  # tcp_bbr.c, bbr_raise_inflight_hi_slope
V3 = "google/bbr v3, tcp_bbr.c, "


class Params:
    """Settings that differ between variants, and the bounds."""

    drain_gain: float = row(
        default=1 / 2.885, minimum=0.01, maximum=1, source=V3 + "bbr_drain_gain; draft: 0.5", text="Pacing in Drain."
    )
    down_gain: float = row(
        default=0.91, minimum=0.01, maximum=1, source=V3 + "bbr_pacing_gain; draft: 0.9", text="Pacing in DOWN."
    )
    beta: float = row(default=0.3, minimum=0, maximum=0.99, source=V3 + "bbr_beta", text="Cut of bounds at losses.")
    loss_threshold: float = row(
        default=0.02, minimum=0, maximum=0.5, source=V3 + "bbr_loss_thresh", text="More losses: too much in flight."
    )
    headroom: float = row(
        default=0.15, minimum=0, maximum=0.9, source=V3 + "bbr_inflight_headroom", text="Part of the bound left free."
    )
    probe_rounds: int = row(
        default=63, minimum=1, source=V3 + "bbr_bw_probe_max_rounds", text="Rounds between two probes at most."
    )
    probe_wait_ps: int = row(
        default="2s", minimum=1_000_000, source=V3 + "bbr_bw_probe_base_us", text="Time to a probe, up to 1.5 x by lot."
    )
    probe_rtt_interval_ps: int = row(
        default="5s", minimum=1_000_000, source=V3 + "bbr_probe_rtt_win_ms", text="Without a smaller RTT: ProbeRTT."
    )
    probe_rtt_ps: int = row(
        default="200ms", minimum=0, source=V3 + "bbr_probe_rtt_mode_ms", text="Shortest time of ProbeRTT; and a round."
    )


class State(DeliveryState):
    """One sending queue pair; ``_hi`` and ``_lo`` are long-term and short-term bounds."""

    mode: int
    phase: int
    phase_at_ps: int
    cwnd_bytes: float
    saved_cwnd_bytes: float
    is_cwnd_limited: bool
    bw_hi_bps: float  # largest delivery rate of this cycle and the last one
    bw_of_cycle_bps: float
    bw_lo_bps: float = NO_BOUND
    bw_latest_bps: float
    inflight_hi_bytes: float = NO_BOUND
    inflight_lo_bytes: float = NO_BOUND
    inflight_latest_bytes: float
    is_probe_ending: bool  # ack_phase is PROBE_STOPPING
    samples_probe: bool
    was_too_high: bool
    was_cautious: bool
    up_rounds: int
    up_bytes_per_packet: float = NO_BOUND
    up_acked_bytes: float
    rounds_since_probe: int
    probe_wait_ps: int
    round_ends_at_bytes: int
    round_began: bool
    loss_round_ends_at_bytes: int = 1
    loss_round_began: bool
    has_loss_in_round: bool
    loss_events: int
    full_bw_bps: float
    full_rounds: int
    is_full_now: bool
    is_full: bool
    min_rtt_ps: int = OFF
    min_rtt_at_ps: int
    probe_rtt_min_ps: int = OFF
    probe_rtt_min_at_ps: int
    probe_rtt_until_ps: int = OFF
    probe_rtt_round_done: bool
    is_restarting: bool
    in_recovery: bool
    timed_out: bool
    recovered_at_seq: int
    loss_at_ps: int = OFF
    lost_bytes: int
    sample_bps: float  # of this ACK; 0 where its packet is not remembered
    sample_bytes: int
    sample_lost_bytes: int
    sample_inflight_bytes: int
    is_sample_limited: bool
    last_inflight_bytes: int  # when the last remembered packet left that was acknowledged
    last_lost_bytes: int
    mark_inflight_bytes: list[int] = array(RING)
    mark_lost_bytes: list[int] = array(RING)


def step(params: Params, state: State, signal: Signal) -> None:
    """Count departures; update model, rate and window at ACKs (bbr_main)."""
    if signal.kind == Kind.START:
        start(state, signal)
    elif signal.kind == Kind.SEND:
        count_departure(state, signal)
    elif signal.kind == Kind.RESUME:
        restart(params, state, signal)
    elif signal.kind == Kind.TIMEOUT:
        time_out(state, signal)
    elif signal.kind == Kind.NAK:
        note_loss(params, state, signal)
    elif signal.kind == Kind.ACK:
        acknowledge(params, state, signal)
    state.window_bytes = max(state.cwnd_bytes, float(signal.mtu_bytes))


def start(state: State, signal: Signal) -> None:
    """Begin Startup with the first window in a base RTT (bbr_init)."""
    state.cwnd_bytes = float(FIRST_PACKETS * signal.mtu_bytes)
    state.min_rtt_at_ps = signal.now_ps
    state.probe_rtt_min_at_ps = signal.now_ps
    first_bps = state.cwnd_bytes * PS_PER_BYTE_SECOND / float(max(signal.base_rtt_ps, 1))
    state.rate_bps = paced(first_bps * STARTUP_GAIN, PACING_MARGIN, signal)


def count_departure(state: State, signal: Signal) -> None:
    """Remember all counts at some departures (tcp_rate_skb_sent)."""
    place = note_departure(state, signal)
    if place >= 0:
        state.mark_inflight_bytes[place] = signal.inflight_bytes
        state.mark_lost_bytes[place] = state.lost_bytes
    if float(signal.inflight_bytes + signal.mtu_bytes) > state.window_bytes:
        state.is_cwnd_limited = True
    elif signal.backlog_bytes == 0:  # tcp_rate_check_app_limited
        limit_by_application(state, signal)


def take_sample(state: State, signal: Signal) -> None:
    """Delivery rate by the newest remembered packet before this ACK, or none (tcp_rate_gen)."""
    state.sample_bps = 0.0
    state.sample_lost_bytes = 0
    state.sample_inflight_bytes = 0
    state.is_sample_limited = False
    state.round_began = False
    state.loss_round_began = False
    sent_at_ps = signal.now_ps - signal.rtt_ps
    place = newest_mark(state, sent_at_ps)
    if signal.rtt_ps > 0 and place >= 0:
        delivered_then = state.mark_delivered_bytes[place]
        interval_ps = sample_interval_ps(state, place, signal.now_ps)
        if interval_ps > 0 and interval_ps >= state.min_rtt_ps:
            state.sample_bytes = state.delivered_bytes - delivered_then
            state.sample_bps = float(state.sample_bytes) * PS_PER_BYTE_SECOND / interval_ps
            state.last_inflight_bytes = state.mark_inflight_bytes[place]
            state.last_lost_bytes = state.mark_lost_bytes[place]
            state.sample_inflight_bytes = state.last_inflight_bytes
            state.sample_lost_bytes = state.lost_bytes - state.last_lost_bytes
            state.is_sample_limited = state.mark_app_limited[place] == 1
            if delivered_then >= state.round_ends_at_bytes:
                state.round_ends_at_bytes = state.delivered_bytes
                state.round_began = True
            if delivered_then >= state.loss_round_ends_at_bytes:
                state.loss_round_ends_at_bytes = state.delivered_bytes
                state.loss_round_began = True
    if signal.rtt_ps > 0:
        state.first_sent_at_ps = max(state.first_sent_at_ps, sent_at_ps)


def acknowledge(params: Params, state: State, signal: Signal) -> None:
    """Count, update the model, then set rate and window (bbr_main)."""
    state.delivered_bytes += signal.arrived_bytes
    if signal.arrived_bytes > 0:
        state.delivered_at_ps = signal.now_ps
        end_limit(state)
        take_sample(state, signal)
    note_loss(params, state, signal)
    if signal.arrived_bytes > 0:
        if state.round_began:
            state.rounds_since_probe += 1
        if state.sample_bps > 0.0:
            update_signals(params, state)
            check_whether_full(params, state, signal)
        if state.mode == STARTUP and state.is_full:  # bbr_check_drain, bbr_reset_congestion_signals
            state.mode = DRAIN
            state.has_loss_in_round = False
            state.bw_latest_bps = 0.0
            state.inflight_latest_bytes = 0.0
        if state.mode == DRAIN and signal.inflight_bytes <= path_bytes(state, state.bw_hi_bps, 1.0, signal):
            state.mode = PROBE_BW
            go_down(params, state, signal)
        if state.is_full and not adapt_upper_bound(params, state, signal) and state.mode == PROBE_BW:
            update_phase(params, state, signal)
        update_min_rtt(params, state, signal)
        obey(params, state, signal)
        if state.loss_round_began:
            state.bw_latest_bps = state.sample_bps
            state.inflight_latest_bytes = float(state.sample_bytes)
        state.is_cwnd_limited = bool(state.is_cwnd_limited) and not state.round_began
        state.is_restarting = False


def bandwidth(state: State) -> float:
    """The bandwidth of the model (bbr_bw)."""
    return min(state.bw_hi_bps, state.bw_lo_bps)


def path_bytes(state: State, bw_bps: float, gain: float, signal: Signal) -> float:
    """Gain times the product, at least the smallest window (bbr_inflight)."""
    product_bytes = state.cwnd_bytes
    if state.min_rtt_ps != OFF and bw_bps > 0.0:
        product_bytes = gain * bw_bps * float(state.min_rtt_ps) / PS_PER_BYTE_SECOND
    more_packets = 2 if state.mode == PROBE_BW and state.phase == UP else 0
    return max(product_bytes, float(LEAST_PACKETS * signal.mtu_bytes)) + more_packets * signal.mtu_bytes


def update_signals(params: Params, state: State) -> None:
    """Filter a sample; after losses lower short-term bounds (bbr_update_congestion_signals)."""
    state.bw_latest_bps = max(state.bw_latest_bps, state.sample_bps)
    state.inflight_latest_bytes = max(state.inflight_latest_bytes, float(state.sample_bytes))
    if not state.is_sample_limited or state.sample_bps >= state.bw_hi_bps:
        state.bw_of_cycle_bps = max(state.bw_of_cycle_bps, state.sample_bps)
        state.bw_hi_bps = max(state.bw_hi_bps, state.sample_bps)
    if state.loss_round_began:
        if state.has_loss_in_round and not is_probing(state):  # bbr_adapt_lower_bounds
            inflight_bytes = state.cwnd_bytes if state.inflight_lo_bytes == NO_BOUND else state.inflight_lo_bytes
            state.bw_lo_bps = max(state.bw_latest_bps, bandwidth(state) * (1.0 - params.beta))
            state.inflight_lo_bytes = max(state.inflight_latest_bytes, inflight_bytes * (1.0 - params.beta))
        state.has_loss_in_round = False


def is_probing(state: State) -> bool:
    """Whether the sender probes for bandwidth (bbr_is_probing_bandwidth)."""
    if state.mode == PROBE_BW:
        return state.phase == REFILL or state.phase == UP  # noqa: PLR1714 - 'in' does not compile
    return state.mode == STARTUP


def check_whether_full(params: Params, state: State, signal: Signal) -> None:
    """Look for a plateau of delivery rate, or losses in Startup (bbr_check_full_bw_reached)."""
    if not state.is_full_now and not state.is_sample_limited:
        if state.sample_bps >= state.full_bw_bps * FULL_GROWTH:
            reset_full(state, state.sample_bps)
        elif state.round_began:
            state.full_rounds += 1
            state.is_full_now = state.full_rounds >= FULL_ROUNDS
            state.is_full = bool(state.is_full) or bool(state.is_full_now)
    if not state.is_full:  # bbr_check_loss_too_high_in_startup
        state.loss_events += 1 if signal.lost_bytes > 0 else 0
        is_much = state.loss_events >= FULL_LOSSES and is_too_high(params, state)
        if state.loss_round_began and state.in_recovery and is_much:
            state.is_full = True
            state.inflight_hi_bytes = max(path_bytes(state, state.bw_hi_bps, 1.0, signal), state.inflight_latest_bytes)
        state.loss_events = 0 if state.loss_round_began else state.loss_events


def reset_full(state: State, bw_bps: float) -> None:
    """Restart the plateau search at this rate (bbr_reset_full_bw)."""
    state.full_bw_bps = bw_bps
    state.full_rounds = 0
    state.is_full_now = False


def drawn(state: State, below: int) -> int:
    """A random number from 0 on."""
    return drawn_bits(state) * below // 32_768


def go_down(params: Params, state: State, signal: Signal) -> None:
    """Begin a cycle by draining the probe's queue (bbr_start_bw_probe_down)."""
    state.has_loss_in_round = False
    state.bw_latest_bps = 0.0
    state.inflight_latest_bytes = 0.0
    state.up_bytes_per_packet = NO_BOUND
    state.rounds_since_probe = drawn(state, 2)
    state.probe_wait_ps = params.probe_wait_ps + drawn(state, params.probe_wait_ps // 2)
    state.phase_at_ps = signal.now_ps
    state.is_probe_ending = True
    state.round_ends_at_bytes = state.delivered_bytes
    state.phase = DOWN


def go_refill(state: State) -> None:
    """Forget short-term bounds and fill the pipe before the probe (bbr_start_bw_probe_refill)."""
    state.bw_lo_bps = NO_BOUND
    state.inflight_lo_bytes = NO_BOUND
    state.up_rounds = 0
    state.up_acked_bytes = 0.0
    state.was_cautious = False
    state.is_probe_ending = False
    state.round_ends_at_bytes = state.delivered_bytes
    state.phase = REFILL


def raise_slope(state: State, signal: Signal) -> None:
    """Double the growth of the long-term bound per UP round (bbr_raise_inflight_hi_slope)."""
    packets = 1
    for _ in range(state.up_rounds):
        packets = packets * 2
    state.up_rounds = min(state.up_rounds + 1, MOST_DOUBLINGS)
    state.up_bytes_per_packet = max(state.cwnd_bytes / packets, float(signal.mtu_bytes))


def is_too_high(params: Params, state: State) -> bool:
    """Whether losses of this sample show too much in flight (bbr_is_inflight_too_high)."""
    return state.sample_lost_bytes > params.loss_threshold * state.sample_inflight_bytes


def handle_too_high(params: Params, state: State, inflight_bytes: float, signal: Signal) -> None:
    """Lower the long-term bound once per probe and end it (bbr_handle_inflight_too_high)."""
    state.was_too_high = True
    state.samples_probe = False
    if not state.is_sample_limited:
        target_bytes = min(path_bytes(state, bandwidth(state), 1.0, signal), state.cwnd_bytes)
        state.inflight_hi_bytes = max(inflight_bytes, target_bytes * (1.0 - params.beta))
    if state.mode == PROBE_BW and state.phase == UP:
        go_down(params, state, signal)


def adapt_upper_bound(params: Params, state: State, signal: Signal) -> bool:
    """Adapt the long-term bound; return whether a phase began (bbr_adapt_upper_bounds)."""
    if state.is_probe_ending and state.round_began:
        state.samples_probe = False
        state.is_probe_ending = False
        if state.mode == PROBE_BW:
            if not state.is_sample_limited and state.bw_of_cycle_bps > 0.0:
                state.bw_hi_bps = state.bw_of_cycle_bps  # forget the cycle before (bbr_advance_max_bw_filter)
                state.bw_of_cycle_bps = 0.0
            if state.was_cautious and not state.was_too_high:
                go_refill(state)
                return True
    if is_too_high(params, state):
        if state.samples_probe:
            handle_too_high(params, state, float(state.sample_inflight_bytes), signal)
    elif state.inflight_hi_bytes != NO_BOUND:
        state.inflight_hi_bytes = max(state.inflight_hi_bytes, float(state.sample_inflight_bytes))
        is_used = state.is_cwnd_limited and state.cwnd_bytes >= state.inflight_hi_bytes
        if state.mode == PROBE_BW and state.phase == UP and is_used:
            state.up_acked_bytes += signal.arrived_bytes
            packets = math.floor(state.up_acked_bytes / state.up_bytes_per_packet)
            state.up_acked_bytes -= packets * state.up_bytes_per_packet
            state.inflight_hi_bytes += packets * signal.mtu_bytes
            if state.round_began:
                raise_slope(state, signal)
    return False


def update_phase(params: Params, state: State, signal: Signal) -> None:
    """Go from one phase of ProbeBW to the next (bbr_update_cycle_phase)."""
    inflight_bytes = signal.inflight_bytes + signal.arrived_bytes + signal.lost_bytes
    if state.phase == REFILL:
        if state.round_began:  # bbr_start_bw_probe_up
            state.samples_probe = True
            state.round_ends_at_bytes = state.delivered_bytes
            state.phase_at_ps = signal.now_ps
            state.phase = UP
            reset_full(state, state.sample_bps)
            raise_slope(state, signal)
    elif state.phase == UP:
        is_cautious = state.was_too_high and inflight_bytes >= state.inflight_hi_bytes
        is_bounded = state.is_cwnd_limited and state.cwnd_bytes >= state.inflight_hi_bytes
        if is_cautious:
            state.was_cautious = True
        elif is_bounded:
            reset_full(state, state.sample_bps)
        if is_cautious or (state.is_full_now and not is_bounded):
            state.was_too_high = False
            go_down(params, state, signal)
    else:
        is_due = signal.now_ps - state.phase_at_ps > state.probe_wait_ps
        if state.round_began:
            path_packets = min(path_bytes(state, bandwidth(state), 1.0, signal), state.cwnd_bytes) / signal.mtu_bytes
            is_due = is_due or state.rounds_since_probe >= min(float(params.probe_rounds), path_packets)
        if is_due:
            go_refill(state)
        elif state.phase == DOWN:  # bbr_check_time_to_cruise
            room_bytes = min(with_headroom(params, state, signal), path_bytes(state, state.bw_hi_bps, 1.0, signal))
            if inflight_bytes <= room_bytes:
                if state.inflight_lo_bytes != NO_BOUND:
                    state.inflight_lo_bytes = min(state.inflight_lo_bytes, state.inflight_hi_bytes)
                state.phase = CRUISE


def with_headroom(params: Params, state: State, signal: Signal) -> float:
    """The long-term bound less headroom for other flows (bbr_inflight_with_headroom)."""
    if state.inflight_hi_bytes == NO_BOUND:
        return NO_BOUND
    free_bytes = max(params.headroom * state.inflight_hi_bytes, float(signal.mtu_bytes))
    return max(state.inflight_hi_bytes - free_bytes, float(LEAST_PACKETS * signal.mtu_bytes))


def update_min_rtt(params: Params, state: State, signal: Signal) -> None:
    """Keep the smallest RTTs of two windows, and run ProbeRTT (bbr_update_min_rtt)."""
    is_due = signal.now_ps - state.probe_rtt_min_at_ps > params.probe_rtt_interval_ps
    if signal.rtt_ps > 0 and (is_due or state.probe_rtt_min_ps == OFF or signal.rtt_ps < state.probe_rtt_min_ps):
        state.probe_rtt_min_ps = signal.rtt_ps
        state.probe_rtt_min_at_ps = signal.now_ps
    is_old = signal.now_ps - state.min_rtt_at_ps > 2 * params.probe_rtt_interval_ps  # bbr_min_rtt_win_sec is 10
    if state.min_rtt_ps == OFF or state.probe_rtt_min_ps <= state.min_rtt_ps or is_old:
        state.min_rtt_ps = state.probe_rtt_min_ps
        state.min_rtt_at_ps = state.probe_rtt_min_at_ps
    if is_due and not state.is_restarting and state.mode != PROBE_RTT:
        state.saved_cwnd_bytes = max(state.saved_cwnd_bytes if state.in_recovery else 0.0, state.cwnd_bytes)
        state.mode = PROBE_RTT
        state.probe_rtt_until_ps = OFF
        state.is_probe_ending = True
        state.round_ends_at_bytes = state.delivered_bytes
    if state.mode == PROBE_RTT:
        limit_by_application(state, signal)
        if state.probe_rtt_until_ps == OFF:
            if signal.inflight_bytes <= path_bytes(state, bandwidth(state), PROBE_RTT_GAIN, signal):
                state.probe_rtt_until_ps = signal.now_ps + params.probe_rtt_ps
                state.probe_rtt_round_done = False
                state.round_ends_at_bytes = state.delivered_bytes
        else:
            state.probe_rtt_round_done = bool(state.probe_rtt_round_done) or bool(state.round_began)
            if state.probe_rtt_round_done:
                check_probe_rtt_done(params, state, signal)


def check_probe_rtt_done(params: Params, state: State, signal: Signal) -> None:
    """Leave ProbeRTT after its time and restore the window (bbr_exit_probe_rtt)."""
    if state.probe_rtt_until_ps != OFF and signal.now_ps > state.probe_rtt_until_ps:
        state.probe_rtt_min_at_ps = signal.now_ps
        state.cwnd_bytes = max(state.cwnd_bytes, state.saved_cwnd_bytes)
        state.bw_lo_bps = NO_BOUND
        state.inflight_lo_bytes = NO_BOUND
        state.mode = STARTUP
        if state.is_full:
            state.mode = PROBE_BW
            go_down(params, state, signal)
            state.phase = CRUISE


def restart(params: Params, state: State, signal: Signal) -> None:
    """After idle time continue at measured bandwidth, without gain (bbr_cwnd_event)."""
    limit_by_application(state, signal)
    state.is_restarting = True
    if state.mode == PROBE_BW and bandwidth(state) > 0.0:
        state.rate_bps = paced(bandwidth(state), PACING_MARGIN, signal)
    elif state.mode == PROBE_RTT:
        check_probe_rtt_done(params, state, signal)


def obey(params: Params, state: State, signal: Signal) -> None:
    """Set gains, rate and window (bbr_update_gains, bbr_set_cwnd, bbr_bound_cwnd_for_inflight_model)."""
    bw_bps = bandwidth(state)
    window_gain = WINDOW_GAIN
    pacing_gain = 1.0
    if state.mode == STARTUP:
        pacing_gain = STARTUP_GAIN
    elif state.mode == DRAIN:
        pacing_gain = params.drain_gain
    elif state.mode == PROBE_RTT:
        window_gain = 1.0
    elif state.phase == UP:
        pacing_gain = UP_GAIN
        window_gain = UP_WINDOW_GAIN
    elif state.phase == DOWN:
        pacing_gain = params.down_gain
    if bw_bps > 0.0:
        rate_bps = paced(pacing_gain * bw_bps, PACING_MARGIN, signal)
        state.rate_bps = rate_bps if state.is_full else max(rate_bps, state.rate_bps)
    if state.in_recovery and signal.seq >= state.recovered_at_seq:
        state.in_recovery = False
        state.cwnd_bytes = max(state.cwnd_bytes, state.saved_cwnd_bytes if state.timed_out else 0.0)
        state.timed_out = False
    goal_bytes = path_bytes(state, bw_bps, window_gain, signal)
    grown_bytes = state.cwnd_bytes + signal.arrived_bytes
    if state.is_full:
        state.cwnd_bytes = min(grown_bytes, goal_bytes)
    elif state.cwnd_bytes < goal_bytes or state.cwnd_bytes < 2 * FIRST_PACKETS * signal.mtu_bytes:
        state.cwnd_bytes = grown_bytes
    cap_bytes = NO_BOUND
    if state.mode == PROBE_RTT:
        cap_bytes = min(with_headroom(params, state, signal), path_bytes(state, bw_bps, PROBE_RTT_GAIN, signal))
    elif state.mode == PROBE_BW:
        cap_bytes = with_headroom(params, state, signal) if state.phase == CRUISE else state.inflight_hi_bytes
    state.cwnd_bytes = min(state.cwnd_bytes, cap_bytes, state.inflight_lo_bytes)
    state.cwnd_bytes = max(state.cwnd_bytes, float(LEAST_PACKETS * signal.mtu_bytes))


def note_loss(params: Params, state: State, signal: Signal) -> None:
    """Count a loss once for ACK and NAK; it may set a bound (bbr_skb_marked_lost)."""
    if signal.lost_bytes > 0 and signal.now_ps != state.loss_at_ps:
        state.loss_at_ps = signal.now_ps
        state.lost_bytes += signal.lost_bytes
        state.sample_inflight_bytes = state.last_inflight_bytes
        state.sample_lost_bytes = state.lost_bytes - state.last_lost_bytes
        if not state.in_recovery:
            state.in_recovery = True
            state.recovered_at_seq = state.highest_seq
        if not state.has_loss_in_round:
            state.has_loss_in_round = True
            state.loss_round_ends_at_bytes = state.delivered_bytes
        if state.samples_probe and is_too_high(params, state):  # bbr_inflight_hi_from_lost_skb
            before_bytes = float(max(state.sample_inflight_bytes - signal.lost_bytes, 0))
            spare_bytes = params.loss_threshold * before_bytes - (state.sample_lost_bytes - signal.lost_bytes)
            more_bytes = max(spare_bytes, 0.0) / (1.0 - params.loss_threshold)
            handle_too_high(params, state, before_bytes + more_bytes, signal)


def time_out(state: State, signal: Signal) -> None:
    """Restart with one packet; the old window returns after recovery (tcp_enter_loss, bbr_set_state)."""
    state.saved_cwnd_bytes = max(state.saved_cwnd_bytes if state.in_recovery else 0.0, state.cwnd_bytes)
    state.in_recovery = True
    state.timed_out = True
    state.recovered_at_seq = state.highest_seq
    state.lost_bytes += signal.lost_bytes
    reset_full(state, 0.0)
    if not is_probing(state) and state.inflight_lo_bytes == NO_BOUND:
        state.inflight_lo_bytes = state.saved_cwnd_bytes
    state.cwnd_bytes = float(signal.mtu_bytes)


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.SEND, Kind.ACK, Kind.NAK, Kind.TIMEOUT, Kind.RESUME}),
    is_loss_based=True,
    needs=frozenset({"rtt"}),
    source="github.com/google/bbr, branch v3, net/ipv4/tcp_bbr.c; draft-ietf-ccwg-bbr",
    variants={
        "linux-v3": {},  # the defaults above: version 3 in Google's Linux, on a NIC that paces every packet
        # The draft, where its numbers differ: sections on Drain and ProbeBW.
        "draft": {"drain_gain": 0.5, "down_gain": 0.9},
        # chosen: a data centre's round trips are a thousandth of the Internet's, and so are the times by the clock.
        "datacenter": {"probe_wait_ps": "2ms", "probe_rtt_interval_ps": "5ms", "probe_rtt_ps": "200us"},
    },
)
