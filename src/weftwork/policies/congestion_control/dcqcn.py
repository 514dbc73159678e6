"""DCQCN: the sender sets its rate from congestion notification packets.

It is for RoCEv2 flows; the packets are called CNPs.
Source: Zhu et al., SIGCOMM 2015, doi:10.1145/2785956.2787484, sections 3.1 and 5; the defaults are those that the
authors of HPCC ran, scaled to the line rate, since the paper's were set for 40 Gb/s; variants as told at each of them.
The paper's numbers were checked in its authors' program: jitupadhye-zz/rdma, fluidmodel/dcqcn/dcqcn2.m.
Leaves out: limits of CNPs per destination or port, and the switch's ECN thresholds, which are the fabric's to set.

A queue pair's timers stop while it has nothing to send. When it resumes, what fell due meanwhile is done one by one,
as a NIC whose timers ran on would have done; a step at a time, since a power of (1 - g) would round differently. When
the rate is back at the line rate and alpha has decayed to nothing, all timers stop until the next CNP. A change of rate
does not move a packet whose departure is already set.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, CongestionControl, Kind, ReceiverState, SenderState, Signal, row

__all__ = ["PLUGIN", "Params", "Receiver", "State", "receive", "step"]

ALPHA_TIMER = 0
INCREASE_TIMER = 1
DECREASE_TIMER = 2
DECREASE_LAG_PS = 1_000  # HPCC-ns3, rdma-hw.cc: the decrease timer runs 1 ns behind the alpha timer
FULL = 0.999999  # chosen: halving a gap never closes it; a millionth below the line rate is the line rate
NO_ALPHA = 1e-6  # chosen: alpha / 2 cuts the rate by less than FULL forgives
PS_PER_BYTE_SECOND = 8e12  # bits per byte x picoseconds per second


class Params:
    """Rates of increase are those at ``scale_rate_bps``; absolute if it is 0."""

    cnp_interval_ps: int = row(
        default=0,
        minimum=0,
        source="HPCC-ns3, rdma-hw.cc: every marked packet is echoed; SIGCOMM 2015, section 3.1 (N): 50 us, as dcqcn2.m",
        text="Receiver: shortest time between two CNPs of a queue pair; 0 answers every marked packet.",
    )
    g: float = row(
        default=1 / 256,
        minimum=0,
        maximum=1,
        source="HPCC-ns3, simulation/run.py (EWMA_GAIN 0.00390625); SIGCOMM 2015, section 5: the same, as dcqcn2.m",
        text="Weight of the newest observation in alpha.",
    )
    alpha_initial: float = row(
        default=1.0, minimum=0, maximum=1, source="SIGCOMM 2015, section 3.1", text="Alpha before the first CNP."
    )
    alpha_timer_ps: int = row(
        default="1us",
        minimum=100_000,
        source="HPCC-ns3, simulation/run.py, dcqcn; SIGCOMM 2015, section 3.1 (K): 55 us, as dcqcn2.m",
        text="Time without a CNP after which alpha decays.",
    )
    alpha_at_cnp: bool = row(
        default=False,
        source="false: HPCC-ns3, rdma-hw.cc; true: SIGCOMM 2015, equation 1",
        text="Alpha rises after each cut; if false, when its timer fires after a CNP.",
    )
    decrease_timer_ps: int = row(
        default="4us",
        minimum=0,
        source="HPCC-ns3, simulation/run.py, dcqcn (rate decrease interval); 0: SIGCOMM 2015, equation 1",
        text="The rate is cut at most once in this time; 0 cuts it at every CNP.",
    )
    increase_timer_ps: int = row(
        default="300us",
        minimum=100_000,
        source="HPCC-ns3, simulation/run.py, dcqcn; SIGCOMM 2015, section 5 (T): 55 us, as dcqcn2.m",
        text="Time between two increases by the timer.",
    )
    increase_bytes: int = row(
        default=0,
        minimum=0,
        source="0: HPCC-ns3, rdma-hw.cc, has none; SIGCOMM 2015, section 5 (B): 10 MB, as dcqcn2.m",
        text="Payload between two increases by the byte counter; 0: there is no counter.",
    )
    fast_steps: int = row(
        default=1,
        minimum=0,
        source="HPCC-ns3, simulation/run.py (FAST_RECOVERY_TIMES 1); SIGCOMM 2015, section 5 (F): 5, as dcqcn2.m",
        text="Increases that halve the way to the target before the target itself rises.",
    )
    ai_rate_bps: int = row(
        default="5Mbps",
        minimum=0,
        source="HPCC-ns3, simulation/run.py: 5 Mb/s x C / 25G; SIGCOMM 2015, section 5 (R_AI): 40 Mb/s, as dcqcn2.m",
        text="Additive increase of the target.",
    )
    hai_rate_bps: int = row(
        default="50Mbps",
        minimum=0,
        source="HPCC-ns3, simulation/run.py: 50 Mb/s x C / 25G",
        text="Hyper increase of the target.",
    )
    hyper_grows: bool = row(
        default=False,
        source="false: HPCC-ns3, rdma-hw.cc; true: SIGCOMM 2015, section 3.1",
        text="The n-th hyper increase in a row adds n times the hyper rate.",
    )
    min_rate_bps: int = row(
        default="1Gbps",
        minimum=1000,
        source="HPCC-ns3, simulation/run.py (MIN_RATE 1000Mb/s), at every line rate; the paper has none",
        text="The rate is never cut below this; it limits an incast to line rate / this many senders.",
    )
    first_cnp_fraction: float = row(
        default=1.0,
        minimum=0,
        maximum=1,
        source="HPCC-ns3, rdma-hw.cc (rateOnFirstCnp 1.0); 0: SIGCOMM 2015, NVIDIA rate_to_set_on_first_cnp",
        text="The first CNP of a queue pair sets the rate to this fraction of itself; 0 cuts as at any other.",
    )
    clamp_target: bool = row(
        default=False,
        source="false: HPCC-ns3 CLAMP_TARGET_RATE 0, NVIDIA clamp_tgt_rate off; true: SIGCOMM 2015, equation 1",
        text="Every cut sets the target to the rate before it; if false, only the first cut after an increase.",
    )
    scale_rate_bps: int = row(
        default="25Gbps",
        minimum=0,
        source="HPCC-ns3, simulation/run.py: rates x line rate / 25 Gb/s; 0: SIGCOMM 2015 states absolute rates",
        text="Line rate at which the two increases are meant; at other rates they scale. 0: they do not.",
    )
    window_bdps: float = row(
        default=0.0,
        minimum=0,
        source="0: SIGCOMM 2015, no window; 1: HPCC-ns3, run.py, DCQCN+win",
        text="Payload in flight at most, in line rate x base RTT of the path, and a packet; 0: no window.",
    )
    window_follows_rate: bool = row(
        default=True,
        source="HPCC-ns3, rdma-queue-pair.cc, GetWin with VAR_WIN 1: W x R / R_max",
        text="The window shrinks with the rate, W x rate / line rate, to a packet at least.",
    )


class State(SenderState):
    """One sending queue pair.

    The instants are kept beside ``timer_at_ps``, which is off while the queue pair is idle.
    """

    target_bps: float
    alpha: float
    alpha_at_ps: int = OFF
    increase_at_ps: int = OFF
    decrease_at_ps: int = OFF
    time_stage: int
    byte_stage: int
    sent_bytes: int
    cnps: int
    cnp_for_alpha: bool
    cnp_for_decrease: bool


class Receiver(ReceiverState):
    """One receiving queue pair."""

    last_cnp_at_ps: int = OFF


def step(params: Params, state: State, signal: Signal) -> None:
    """Reaction point, at the sending NIC."""
    if signal.kind == Kind.START:
        state.rate_bps = signal.line_rate_bps
        state.target_bps = state.rate_bps
        state.alpha = params.alpha_initial
    elif signal.kind == Kind.SEND:
        count_bytes(params, state, signal)
    elif signal.kind == Kind.CNP:
        notice(params, state, signal)
    elif signal.kind == Kind.TIMER or signal.kind == Kind.RESUME:  # noqa: PLR1714 - 'in' does not compile
        catch_up(params, state, signal)
    state.timer_at_ps[ALPHA_TIMER] = state.alpha_at_ps
    state.timer_at_ps[INCREASE_TIMER] = state.increase_at_ps
    state.timer_at_ps[DECREASE_TIMER] = state.decrease_at_ps
    if params.window_bdps > 0.0:
        set_window(params, state, signal)


def set_window(params: Params, state: State, signal: Signal) -> None:
    """Allow some bandwidth-delay products in flight.

    They are computed at line rate or at the present rate.
    """
    line_bps = float(signal.line_rate_bps)
    full_bytes = params.window_bdps * line_bps * float(signal.base_rtt_ps) / PS_PER_BYTE_SECOND + signal.mtu_bytes
    if params.window_follows_rate:
        state.window_bytes = max(full_bytes * state.rate_bps / line_bps, float(signal.mtu_bytes))
    else:
        state.window_bytes = full_bytes


def notice(params: Params, state: State, signal: Signal) -> None:
    """Take a CNP: cut at once, or leave it to the decrease timer.

    Section 3.1 has the cut.
    """
    state.cnps += 1
    state.cnp_for_alpha = params.decrease_timer_ps == 0 or state.cnps > 1
    state.cnp_for_decrease = True
    is_first = state.cnps == 1 and params.first_cnp_fraction > 0.0
    if is_first:
        state.rate_bps = max(state.rate_bps * params.first_cnp_fraction, float(params.min_rate_bps))
        state.target_bps = state.rate_bps
    if params.decrease_timer_ps == 0:
        if not is_first:
            cut(params, state, signal.now_ps)
        if params.alpha_at_cnp:
            state.alpha = (1.0 - params.g) * state.alpha + params.g
            state.alpha_at_ps = signal.now_ps + params.alpha_timer_ps
        restart_increase(params, state, signal.now_ps)
    elif state.decrease_at_ps == OFF:
        state.decrease_at_ps = signal.now_ps + params.decrease_timer_ps + DECREASE_LAG_PS
    if state.alpha_at_ps == OFF:
        state.alpha_at_ps = signal.now_ps + params.alpha_timer_ps


def cut(params: Params, state: State, now_ps: int) -> None:
    """Decrease the rate (equation 1) and restart fast recovery."""
    if params.clamp_target or state.time_stage > 0 or state.byte_stage > 0 or state.increase_at_ps == OFF:
        state.target_bps = state.rate_bps
    state.rate_bps = max(state.rate_bps * (1.0 - state.alpha / 2.0), min(float(params.min_rate_bps), state.rate_bps))
    restart_increase(params, state, now_ps)


def restart_increase(params: Params, state: State, now_ps: int) -> None:
    """Reset both stages and the byte counter."""
    state.time_stage = 0
    state.byte_stage = 0
    state.sent_bytes = 0
    state.increase_at_ps = now_ps + params.increase_timer_ps


def count_bytes(params: Params, state: State, signal: Signal) -> None:
    """Count payload sent below line rate; increase at most once per packet."""
    if params.increase_bytes > 0 and state.increase_at_ps != OFF:
        state.sent_bytes += signal.bytes
        if state.sent_bytes >= params.increase_bytes:
            state.sent_bytes = state.sent_bytes % params.increase_bytes
            increase(params, state, signal)
            state.byte_stage += 1


def catch_up(params: Params, state: State, signal: Signal) -> None:
    """Do all due events, the earliest first.

    At one instant alpha comes first, then the increase, then the decrease.
    """
    first = min(on_or(state.alpha_at_ps, signal), on_or(state.increase_at_ps, signal))
    late_ps = signal.now_ps - min(first, on_or(state.decrease_at_ps, signal))
    # Since no CNP comes meanwhile, the decrease is due twice at most: once for those that came, once to stop.
    most = late_ps // params.alpha_timer_ps + 1 + late_ps // params.increase_timer_ps + 1 + 2
    for _ in range(most):
        alpha_at = on_or(state.alpha_at_ps, signal)
        increase_at = on_or(state.increase_at_ps, signal)
        first = min(alpha_at, increase_at, on_or(state.decrease_at_ps, signal))
        if first > signal.now_ps:
            break
        if alpha_at == first:
            update_alpha(params, state)
        elif increase_at == first:
            state.increase_at_ps += params.increase_timer_ps
            increase(params, state, signal)
            state.time_stage += 1
        else:
            decrease_if_noticed(params, state)


def on_or(at_ps: int, signal: Signal) -> int:
    """Instant of a timer, or one that is never due if off."""
    return at_ps if at_ps != OFF else signal.now_ps + 1


def update_alpha(params: Params, state: State) -> None:
    """Let alpha decay (equation 2), or rise after a CNP.

    It rises here only if the timer is in charge.
    """
    state.alpha = (1.0 - params.g) * state.alpha
    if not params.alpha_at_cnp and state.cnp_for_alpha:
        state.alpha += params.g
    state.cnp_for_alpha = False
    state.alpha_at_ps += params.alpha_timer_ps
    if state.alpha < NO_ALPHA:
        state.alpha = 0.0
        state.alpha_at_ps = OFF


def decrease_if_noticed(params: Params, state: State) -> None:
    """Cut once for all CNPs of the last period.

    Without a CNP the timer stops until the next CNP.
    """
    now_ps = state.decrease_at_ps
    state.decrease_at_ps = OFF
    if state.cnp_for_decrease:
        state.cnp_for_decrease = False
        cut(params, state, now_ps)
        state.decrease_at_ps = now_ps + params.decrease_timer_ps


def increase(params: Params, state: State, signal: Signal) -> None:
    """Fast recovery, additive or hyper increase, by the present stages (section 3.1)."""
    line_bps = float(signal.line_rate_bps)
    scale = line_bps / params.scale_rate_bps if params.scale_rate_bps > 0 else 1.0
    byte_stage = state.byte_stage if params.increase_bytes > 0 else state.time_stage
    highest = max(state.time_stage, byte_stage)
    lowest = min(state.time_stage, byte_stage)
    if lowest > params.fast_steps:
        steps = lowest - params.fast_steps if params.hyper_grows else 1
        state.target_bps += steps * scale * params.hai_rate_bps
    elif highest >= params.fast_steps:
        state.target_bps += scale * params.ai_rate_bps
    state.target_bps = min(state.target_bps, line_bps)
    state.rate_bps = (state.rate_bps + state.target_bps) / 2.0
    if state.rate_bps >= FULL * line_bps:
        state.rate_bps = line_bps
        state.target_bps = line_bps
        state.increase_at_ps = OFF


def receive(params: Params, state: Receiver, shared: None, signal: Signal) -> None:
    """Notification point at the receiving NIC: CNPs for marked packets.

    It sends at most one CNP in an interval.
    """
    if signal.kind == Kind.DATA and signal.ecn == 1:
        is_time = state.last_cnp_at_ps == OFF or signal.now_ps - state.last_cnp_at_ps >= params.cnp_interval_ps
        if is_time:
            state.send_cnp = 1
            state.last_cnp_at_ps = signal.now_ps


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.CNP, Kind.SEND, Kind.RESUME}),
    receiver_state=Receiver,
    receive=receive,
    receiver_signals="ecn",
    needs=frozenset({"ecn"}),
    source="Zhu et al., SIGCOMM 2015, doi:10.1145/2785956.2787484",
    variants={
        # The defaults above: `dcqcn` of github.com/alibaba-edu/High-Precision-Congestion-Control, simulation/run.py,
        # rdma-hw.cc, which its authors say are those of a production network (issue 21), scaled to the line rate.
        "hpcc-repo": {},
        # DCQCN+win of the HPCC paper, `dcqcn_vwin` there: the same with a window.
        "hpcc-repo-window": {"window_bdps": 1.0},
        # What the paper states, for 40 Gb/s; the floor of the rate is the default of HPCC-ns3, rdma-hw.cc.
        "paper": {
            "cnp_interval_ps": "50us",
            "g": 1 / 256,
            "alpha_timer_ps": "55us",
            "alpha_at_cnp": True,
            "decrease_timer_ps": 0,
            "increase_timer_ps": "55us",
            "increase_bytes": "10MB",
            "fast_steps": 5,
            "ai_rate_bps": "40Mbps",
            "hai_rate_bps": "400Mbps",  # chosen: ten times the additive increase, as vendors ship it; unverified
            "hyper_grows": True,
            "min_rate_bps": "100Mbps",
            "first_cnp_fraction": 0.0,
            "clamp_target": True,
            "scale_rate_bps": 0,
        },
        # What NVIDIA's NICs ship with: a published mlxconfig query and the DOCA documentation of the parameters.
        "vendor": {
            "cnp_interval_ps": "4us",  # min_time_between_cnps
            "g": 5 / 1024,  # dce_tcp_g 1019 / 1024
            "alpha_initial": 1023 / 1024,  # initial_alpha
            "alpha_timer_ps": "1us",  # dce_tcp_rtt
            "alpha_at_cnp": False,
            "decrease_timer_ps": "4us",  # rate_reduce_monitor_period
            "increase_timer_ps": "300us",  # rpg_time_reset
            "increase_bytes": 32_767,  # rpg_byte_reset
            "fast_steps": 1,  # rpg_threshold
            "ai_rate_bps": "5Mbps",  # rpg_ai_rate
            "hai_rate_bps": "50Mbps",  # rpg_hai_rate
            "hyper_grows": False,
            "min_rate_bps": "1Mbps",  # rpg_min_rate
            "first_cnp_fraction": 0.0,  # rate_to_set_on_first_cnp
            "clamp_target": False,  # clamp_tgt_rate
            "scale_rate_bps": 0,
        },
    },
)
