"""PCC Vivace: tries two rates and climbs towards the higher utility.

Utility is computed from goodput, RTT gradient and loss.
Source: Dong et al., PCC Vivace: online-learning congestion control, NSDI 2018, sections 3 to 5; the rate controller as
in WebRTC (modules/congestion_controller/pcc, in part by the paper's authors), numbers of PCC-Kernel (branch vivace,
src/tcp_pcc.c) and PCC-Uspace where the text was not at hand.
Leaves out: intervals of a random length, and the choice of PCC-Kernel to leave out the first packets of an interval.

Two monitor intervals, at r (1 + e) and r (1 - e) in an order drawn by lot, follow each other. The sender goes on at r
until the ACK of a packet arrives that left after both. A packet belongs to the interval in which it left, which its
RTT tells; a loss belongs to that of the packet which has shown it. Intervals in which the queue pair became idle count
for nothing. There are no timers: intervals begin and end at departures.
"""

from __future__ import annotations

import math

from weftwork.policies.interface import OFF, CongestionControl, Kind, SenderState, Signal, array, row

__all__ = ["PLUGIN", "Params", "State", "step"]

STARTING = 0
LEARNING = 1
MBPS = 1e6
PS_PER_US = 1e6
PS_PER_BYTE_SECOND = 8e12  # bits per byte x picoseconds per second
RTT_SHARE = 0.125  # RFC 6298, section 2.3: weight of the newest RTT in the smoothed one
LEAST_PART = 0.01  # chosen: in a round trip of some microseconds two packets are a sixth of the link
LEAST_STEPS = 3  # WebRTC, bitrate_controller.cc: the amplifier counts single steps up to here, then double ones


class Params:
    """Parameters of the utility u = x^t - b x dRTT/dT - c x loss.

    The rate x counts megabits per second at ``scale_rate_bps``.
    """

    exponent: float = row(
        default=0.9,
        minimum=0.01,
        maximum=1,
        source="NSDI 2018, section 3 (t); PCC-Uspace, pcc_vivace_ucalc.cpp, kExponent",
        text="Power of the rate in the utility.",
    )
    rtt_coefficient: float = row(
        default=900.0,
        minimum=0,
        source="NSDI 2018, section 3 (b); PCC-Uspace, kRTTCoefficient; 0: Vivace-Loss",
        text="Weight of rate x RTT gradient; 0 looks at loss alone.",
    )
    loss_coefficient: float = row(
        default=11.35,
        minimum=0,
        source="NSDI 2018, section 3 (c); WebRTC, utility_function_unittest.cc",
        text="Weight of rate x share of lost bytes.",
    )
    gradient_threshold: float = row(
        default=0.01,
        minimum=0,
        source="NSDI 2018, section 5; WebRTC, pcc_network_controller.cc, kRttGradientThreshold",
        text="An RTT gradient below this, in seconds per second, is noise and counts as 0.",
    )
    probe_step: float = row(
        default=0.05,
        minimum=0.001,
        maximum=0.5,
        source="NSDI 2018, section 4; WebRTC, kDefaultSamplingStep",
        text="The two rates lie this much above and below the sender's.",
    )
    conversion: float = row(
        default=1.0,
        minimum=0,
        source="NSDI 2018, section 4 (theta_0), unverified",
        text="Units of rate by which a utility gradient of 1 changes the rate, before it is amplified.",
    )
    first_bound: float = row(
        default=0.05,
        minimum=0.001,
        source="NSDI 2018, section 4 (omega_0), unverified; WebRTC, kInitialDynamicBoundary: 0.1",
        text="Largest change of the rate in one decision, as a part of it.",
    )
    bound_step: float = row(
        default=0.1,
        minimum=0,
        source="NSDI 2018, section 4 (delta); WebRTC, kDynamicBoundaryIncrement",
        text="The bound grows by this with each decision that it has cut in the same direction.",
    )
    interval_rtts: float = row(
        default=1.0,
        minimum=0.1,
        source="WebRTC, kMonitorIntervalDurationRatio",
        text="Length of a monitor interval, in smoothed RTTs, at least.",
    )
    interval_packets: int = row(
        default=50,
        minimum=2,
        source="PCC-Kernel, PCC_INTERVAL_MIN_PACKETS; WebRTC, kMinPacketsNumberPerInterval",
        text="Packets of a monitor interval at least; fewer make a noisy RTT gradient.",
    )
    initial_fraction: float = row(
        default=0.04,
        minimum=0.0001,
        maximum=1,
        source="chosen: PCC-Kernel begins at 4 Mb/s, a twenty-fifth of 100 Mb/s",
        text="First rate as a part of the line rate; it doubles while utility rises.",
    )
    window_rtts: float = row(
        default=2.0,
        minimum=1,
        source="PCC-Kernel, pcc_set_cwnd",
        text="Payload in flight at most, in rate x smoothed RTT; 4 packets at least.",
    )
    scale_rate_bps: int = row(
        default="1Gbps",
        minimum=0,
        source="chosen: several flows on a fast link then hold a short queue; 0: 1 Mb/s at every rate, as in NSDI 2018",
        text="Line rate at which the utility's unit is 1 Mb/s; at other rates it scales. 0: it does not.",
    )


class State(SenderState):
    """One sending queue pair.

    Arrays hold a value for each of two monitor intervals.
    """

    mode: int
    base_bps: float
    smoothed_rtt_ps: float
    has_utility: bool
    last_utility: float
    last_rate_bps: float
    steps: int  # decisions in a row upwards; negative: downwards
    cuts: int  # decisions in a row whose change the bound has cut, with their sign
    is_second_look: bool
    is_first_higher: bool
    seed: int
    sending: int  # interval that is sent; as many as there are: the sender waits
    loss_at_ps: int = OFF
    interval_bps: list[float] = array(2, 0.0)
    began_at_ps: list[int] = array(2, OFF)
    due_at_ps: list[int] = array(2, OFF)
    ended_at_ps: list[int] = array(2, OFF)
    arrived_bytes: list[int] = array(2)
    lost_bytes: list[int] = array(2)
    samples: list[float] = array(2, 0.0)
    sum_time: list[float] = array(2, 0.0)
    sum_rtt: list[float] = array(2, 0.0)
    sum_time_time: list[float] = array(2, 0.0)
    sum_time_rtt: list[float] = array(2, 0.0)


def step(params: Params, state: State, signal: Signal) -> None:
    """Measure at departures and ACKs, and decide when all ACKs are there.

    These are the ACKs of the intervals of a decision.
    """
    if signal.kind == Kind.START:
        state.smoothed_rtt_ps = float(signal.base_rtt_ps)
        state.base_bps = within(state, params.initial_fraction * signal.line_rate_bps, signal)
        state.rate_bps = state.base_bps
    elif signal.kind == Kind.SEND:
        if state.seed == 0:
            state.seed = signal.entropy + 1
        keep_intervals(params, state, signal)
    elif signal.kind == Kind.ACK:
        lose(state, signal)
        if signal.arrived_bytes > 0 and signal.rtt_ps > 0:
            acknowledge(params, state, signal)
    elif signal.kind == Kind.NAK:
        lose(state, signal)
    elif signal.kind == Kind.TIMEOUT:
        state.mode = LEARNING
        state.base_bps = within(state, state.base_bps / 2.0, signal)
        begin_anew(state)
    elif signal.kind == Kind.RESUME:
        begin_anew(state)
    window_bytes = params.window_rtts * state.base_bps * state.smoothed_rtt_ps / PS_PER_BYTE_SECOND
    state.window_bytes = max(window_bytes, 4.0 * signal.mtu_bytes)


def within(state: State, rate_bps: float, signal: Signal) -> float:
    """A rate between a minimum and the line rate (PCC-Kernel).

    The minimum is two packets in an RTT, or the smallest part of the line rate.
    """
    line_bps = float(signal.line_rate_bps)
    least_bps = 2.0 * signal.mtu_bytes * PS_PER_BYTE_SECOND / max(state.smoothed_rtt_ps, 1.0)
    return min(max(rate_bps, min(least_bps, LEAST_PART * line_bps)), line_bps)


# Monitor intervals


def intervals(state: State) -> int:
    """Number of intervals in a decision: one while starting, then two."""
    return 1 if state.mode == STARTING else 2


def begin_anew(state: State) -> None:
    """Forget intervals; the next departure begins the first interval."""
    state.sending = 0
    state.rate_bps = state.base_bps
    for index in range(2):
        state.began_at_ps[index] = OFF
        state.ended_at_ps[index] = OFF


def keep_intervals(params: Params, state: State, signal: Signal) -> None:
    """End an interval whose time is over, and begin the next.

    It happens at a departure; the next interval begins with this packet.
    """
    wanted = intervals(state)
    index = min(state.sending, wanted - 1)
    if state.sending < wanted and state.began_at_ps[index] != OFF and signal.now_ps >= state.due_at_ps[index]:
        state.ended_at_ps[index] = signal.now_ps
        state.sending += 1
        index = min(state.sending, wanted - 1)
        if state.sending == wanted:
            state.rate_bps = state.base_bps
    if state.sending < wanted and state.began_at_ps[index] == OFF:
        begin_interval(params, state, signal, index)


def begin_interval(params: Params, state: State, signal: Signal, index: int) -> None:
    """Set the rate and duration of an interval, and reset its counts."""
    rate_bps = state.base_bps
    if state.mode == LEARNING:
        if index == 0:
            state.seed = (state.seed * 1_103_515_245 + 12_345) % 2_147_483_648  # ISO C, 7.22.2: the example of rand
            state.is_first_higher = (state.seed // 65_536) % 2 == 1
        is_higher = bool(state.is_first_higher) == (index == 0)
        rate_bps = state.base_bps * (1.0 + params.probe_step if is_higher else 1.0 - params.probe_step)
    state.rate_bps = within(state, rate_bps, signal)
    state.interval_bps[index] = state.rate_bps
    packets_ps = params.interval_packets * signal.mtu_bytes * PS_PER_BYTE_SECOND / state.rate_bps
    state.began_at_ps[index] = signal.now_ps
    state.due_at_ps[index] = signal.now_ps + int(max(params.interval_rtts * state.smoothed_rtt_ps, packets_ps))
    state.ended_at_ps[index] = OFF
    state.arrived_bytes[index] = 0
    state.lost_bytes[index] = 0
    state.samples[index] = 0.0
    state.sum_time[index] = 0.0
    state.sum_rtt[index] = 0.0
    state.sum_time_time[index] = 0.0
    state.sum_time_rtt[index] = 0.0


def acknowledge(params: Params, state: State, signal: Signal) -> None:
    """Count an ACK for the interval of its packet, then decide if complete.

    It decides after the last ACK.
    """
    state.smoothed_rtt_ps += RTT_SHARE * (signal.rtt_ps - state.smoothed_rtt_ps)
    sent_at_ps = signal.now_ps - signal.rtt_ps
    index = interval_of(state, sent_at_ps)
    if index >= 0:
        time_us = (sent_at_ps - state.began_at_ps[index]) / PS_PER_US
        rtt_us = signal.rtt_ps / PS_PER_US
        state.arrived_bytes[index] += signal.arrived_bytes
        state.samples[index] += 1.0
        state.sum_time[index] += time_us
        state.sum_rtt[index] += rtt_us
        state.sum_time_time[index] += time_us * time_us
        state.sum_time_rtt[index] += time_us * rtt_us
    wanted = intervals(state)
    last_ended_at_ps = state.ended_at_ps[wanted - 1]
    if state.sending == wanted and last_ended_at_ps != OFF and sent_at_ps >= last_ended_at_ps:
        if state.mode == STARTING:
            climb(params, state, signal)
        else:
            learn(params, state, signal)
        begin_anew(state)


def interval_of(state: State, sent_at_ps: int) -> int:
    """The interval in which a packet left, or -1."""
    found = -1
    for index in range(intervals(state)):
        ended_at_ps = state.ended_at_ps[index]
        is_before = ended_at_ps == OFF or sent_at_ps < ended_at_ps
        if state.began_at_ps[index] != OFF and sent_at_ps >= state.began_at_ps[index] and is_before:
            found = index
    return found


def lose(state: State, signal: Signal) -> None:
    """Count a loss once, for the interval of the packet that showed it.

    ACK and NAK may both report the loss.
    """
    if signal.lost_bytes > 0 and signal.now_ps != state.loss_at_ps:
        state.loss_at_ps = signal.now_ps
        rtt_ps = signal.rtt_ps if signal.kind == Kind.ACK and signal.rtt_ps > 0 else int(state.smoothed_rtt_ps)
        index = interval_of(state, signal.now_ps - rtt_ps)
        if index >= 0:
            state.lost_bytes[index] += signal.lost_bytes


# Utility and decisions


def unit_bps(params: Params, signal: Signal) -> float:
    """One unit of the rate in the utility.

    It is a megabit per second at the rate for which the utility is meant.
    """
    if params.scale_rate_bps > 0:
        return MBPS * float(signal.line_rate_bps) / params.scale_rate_bps
    return MBPS


def loss_share(state: State, index: int) -> float:
    """Share of an interval's bytes that was lost."""
    return state.lost_bytes[index] / max(state.lost_bytes[index] + state.arrived_bytes[index], 1)


def rtt_gradient(params: Params, state: State, index: int) -> float:
    """Slope of RTT over departure time, by least squares (section 5).

    It is 0 if the slope is noise.
    """
    count = state.samples[index]
    spread = count * state.sum_time_time[index] - state.sum_time[index] * state.sum_time[index]
    if spread <= 0.0:
        return 0.0
    slope = (count * state.sum_time_rtt[index] - state.sum_time[index] * state.sum_rtt[index]) / spread
    return 0.0 if abs(slope) < params.gradient_threshold else slope


def utility(params: Params, state: State, signal: Signal, index: int) -> float:
    """Utility of an interval (section 3): u = x^t - b x dRTT/dT - c x loss."""
    rate = state.interval_bps[index] / unit_bps(params, signal)
    penalty = params.rtt_coefficient * rtt_gradient(params, state, index)
    penalty += params.loss_coefficient * loss_share(state, index)
    return math.exp(params.exponent * math.log(rate)) - rate * penalty


def climb(params: Params, state: State, signal: Signal) -> None:
    """Double the rate while utility rises; else go back and learn.

    This is the starting phase.
    """
    found = utility(params, state, signal, 0)
    if state.has_utility and found <= state.last_utility:
        state.base_bps = state.last_rate_bps
        state.mode = LEARNING
    elif state.base_bps >= signal.line_rate_bps:
        state.mode = LEARNING
    else:
        state.has_utility = True
        state.last_utility = found
        state.last_rate_bps = state.base_bps
        state.base_bps = within(state, state.base_bps * 2.0, signal)


def learn(params: Params, state: State, signal: Signal) -> None:
    """Move along the gradient of utility (section 4).

    It looks twice if the higher rate has lost less.
    """
    higher = 0 if state.interval_bps[0] > state.interval_bps[1] else 1
    is_odd = loss_share(state, higher) < loss_share(state, 1 - higher)
    if is_odd and not state.is_second_look:
        state.is_second_look = True
    else:
        state.is_second_look = False
        unit = unit_bps(params, signal)
        gained = utility(params, state, signal, higher) - utility(params, state, signal, 1 - higher)
        apart = (state.interval_bps[higher] - state.interval_bps[1 - higher]) / unit
        if apart > 0.0:
            gradient = gained / apart
            change_bps = amplified(state, gradient) * params.conversion * gradient * unit
            state.base_bps = within(state, state.base_bps + bounded(params, state, change_bps), signal)


def amplified(state: State, gradient: float) -> float:
    """Confidence amplifier: n in step n of one direction.

    From the fourth step on it is 2 n - 3.
    """
    if gradient > 0.0:
        state.steps = max(state.steps + 1, 1)
    elif gradient < 0.0:
        state.steps = min(state.steps - 1, -1)
    else:
        state.steps = 0
    count = abs(state.steps)
    return float(max(count, 1)) if count <= LEAST_STEPS else 2.0 * count - LEAST_STEPS


def bounded(params: Params, state: State, change_bps: float) -> float:
    """Dynamic change boundary: the largest change of the rate.

    It is a part of the rate. It grows while it cuts steps in one direction.
    """
    sign = 1 if change_bps > 0.0 else -1
    if state.cuts * sign < 0:
        state.cuts = 0
    size_bps = abs(change_bps)
    bound_bps = state.base_bps * (params.first_bound + abs(state.cuts) * params.bound_step)
    if size_bps > bound_bps:
        state.cuts += sign
        return sign * bound_bps
    for _ in range(abs(state.cuts)):  # back to the smallest bound that holds the change
        if size_bps > state.base_bps * (params.first_bound + (abs(state.cuts) - 1) * params.bound_step):
            break
        state.cuts -= sign
    return sign * size_bps


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.SEND, Kind.ACK, Kind.NAK, Kind.TIMEOUT, Kind.RESUME}),
    is_loss_based=True,
    needs=frozenset({"rtt"}),
    source="Dong et al., NSDI 2018; rate controller as in WebRTC, numbers of PCC-Kernel and PCC-Uspace",
    variants={
        # Vivace-Latency: the defaults above.
        "latency": {},
        # Vivace-Loss: the utility does not look at the RTT (section 3).
        "loss": {"rtt_coefficient": 0.0},
    },
)
