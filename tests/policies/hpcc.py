"""HPCC, small: the sender sets its window from the telemetry of every hop. For tests of the interface, not for results.

Source: Li et al., SIGCOMM 2019, doi:10.1145/3341302.3342085, algorithm 1.
Leaves out: scaling of the additive increase with the number of flows.
"""

from __future__ import annotations

from weftwork.policies.interface import CongestionControl, Kind, SenderState, Signal, array, row


class Params:
    eta: float = row(default=0.95, minimum=0.1, maximum=1, source="algorithm 1", text="Target utilisation.")
    stages: int = row(default=5, minimum=0, source="algorithm 1, maxStage", text="Additive steps before a product.")
    increase_bytes: int = row(default=80, minimum=0, source="section 5", text="Additive increase of the window.")


class State(SenderState):
    last_queue_bytes: list[int] = array(8)
    last_tx_bytes: list[int] = array(8)
    last_at_ps: list[int] = array(8)
    hops: int
    utilisation: float = 1.0
    base_window_bytes: float
    stage: int
    update_seq: int


def path_bytes(signal: Signal) -> float:
    return float(signal.line_rate_bps) * float(signal.base_rtt_ps) / 8e12


def step(params: Params, state: State, signal: Signal) -> None:
    if signal.kind == Kind.START:
        state.base_window_bytes = max(path_bytes(signal), float(signal.mtu_bytes))
        state.window_bytes = state.base_window_bytes
    elif signal.kind == Kind.ACK and signal.bytes > 0:
        hops = min(signal.hops, 8)
        if hops > 0 and state.hops == hops:
            measure(state, signal, hops)
            react(params, state, signal)
        remember(state, signal, hops)


def measure(state: State, signal: Signal, hops: int) -> None:
    highest = 0.0
    tau_ps = 0
    for i in range(hops):
        gap_ps = signal.hop_at_ps[i] - state.last_at_ps[i]
        if gap_ps > 0:
            rate_bps = float(signal.hop_rate_bps[i])
            sent_bps = float(signal.hop_tx_bytes[i] - state.last_tx_bytes[i]) * 8e12 / gap_ps
            queue_bytes = min(signal.hop_queue_bytes[i], state.last_queue_bytes[i])
            used = queue_bytes * 8e12 / (rate_bps * float(signal.base_rtt_ps)) + sent_bps / rate_bps
            if used > highest:
                highest = used
                tau_ps = gap_ps
    share = min(float(tau_ps) / signal.base_rtt_ps, 1.0)
    state.utilisation = (1.0 - share) * state.utilisation + share * highest


def react(params: Params, state: State, signal: Signal) -> None:
    ratio = state.utilisation / params.eta
    stage = state.stage + 1
    window_bytes = state.base_window_bytes + params.increase_bytes
    if ratio >= 1.0 or state.stage >= params.stages:
        window_bytes = state.base_window_bytes / max(ratio, 0.01) + params.increase_bytes
        stage = 0
    window_bytes = min(max(window_bytes, float(signal.mtu_bytes)), path_bytes(signal) + signal.mtu_bytes)
    if signal.seq > state.update_seq:
        state.base_window_bytes = window_bytes
        state.stage = stage
        state.update_seq = signal.next_seq
    state.window_bytes = window_bytes
    state.rate_bps = min(window_bytes * 8e12 / signal.base_rtt_ps, float(signal.line_rate_bps))


def remember(state: State, signal: Signal, hops: int) -> None:
    state.hops = hops
    for i in range(hops):
        state.last_queue_bytes[i] = signal.hop_queue_bytes[i]
        state.last_tx_bytes[i] = signal.hop_tx_bytes[i]
        state.last_at_ps[i] = signal.hop_at_ps[i]


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.ACK}),
    needs=frozenset({"telemetry"}),
    source="doi:10.1145/3341302.3342085",
)
