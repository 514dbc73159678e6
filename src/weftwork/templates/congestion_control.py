"""Delay window: a sender keeps less data in flight while packets queue.

It keeps more while they do not. Weftwork calls `step` at the NIC that sends, for each queue pair alone. It runs `step`
both as plain Python and as machine code, so a step may only compute with numbers: docs/models/writing-a-policy.md lists
what it may use.

    weftwork run congestion_control.yaml    simulates four senders and one receiver
    weftwork test congestion_control.py     checks the rules that every congestion control keeps

Source: Kumar et al., Swift, SIGCOMM 2020, doi:10.1145/3387514.3406591, section 3.1, much shortened.
Leaves out: delay in hosts, windows below one packet, and losses, which cost nothing but the retransmission.
"""

from __future__ import annotations

from weftwork.policies.interface import CongestionControl, Kind, SenderState, Signal, row


class Params:
    """Parameters that a scenario may set.

    For example ``congestion_control: {file: ./congestion_control.py, target_ps: 8us}``.
    """

    # The name ends in its unit; text such as "4us" is converted. A default needs a source, or 'chosen: why'.
    target_ps: int = row(
        default="4us", minimum=1, source="chosen: a queue of 50 kB at 100 Gb/s", text="Queueing delay that is aimed at."
    )
    gain: float = row(
        default=2.0,
        minimum=0.0,
        source="chosen: twice that of Swift, so that flows share the link evenly sooner",
        text="Packets by which the window grows in a round trip.",
    )
    cut: float = row(
        default=0.8,
        minimum=0.0,
        maximum=1.0,
        source="Swift, section 3.1",
        text="Share of the excess that is taken off.",
    )


class State(SenderState):
    """State of one queue pair.

    `SenderState` already has rate_bps, window_bytes and timer_at_ps.
    """

    cut_seq: int  # no further cut before this packet is acknowledged


def step(params: Params, state: State, signal: Signal) -> None:
    """Set ``state.window_bytes``, the most data in flight.

    The NIC sends no more than that before the next ACK.
    """
    packet_bytes = float(signal.mtu_bytes)
    # Bytes that fill the path without any queue: line rate x round trip. 8e12 = 8 bits x 10^12 ps.
    path_bytes = float(signal.line_rate_bps) * float(signal.base_rtt_ps) / 8e12
    if signal.kind == Kind.START:
        state.window_bytes = path_bytes + packet_bytes
    elif signal.kind == Kind.ACK and signal.rtt_ps > 0:  # 0: the round trip is not known
        queueing_ps = signal.rtt_ps - signal.base_rtt_ps
        if queueing_ps <= params.target_ps:
            # Each ACK adds its share, so that a whole window of ACKs adds `gain` packets.
            state.window_bytes += params.gain * packet_bytes * signal.bytes / state.window_bytes
        elif signal.seq > state.cut_seq:
            # The farther above the target, the deeper the cut; once for each round trip.
            excess = float(queueing_ps - params.target_ps) / float(signal.rtt_ps)
            state.window_bytes *= 1.0 - params.cut * excess
            state.cut_seq = signal.next_seq
        target_bytes = float(signal.line_rate_bps) * float(params.target_ps) / 8e12
        state.window_bytes = min(max(state.window_bytes, packet_bytes), path_bytes + target_bytes + packet_bytes)


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.ACK}),  # besides START and TIMER; other events do not call the step
    needs=frozenset({"rtt"}),  # without it rtt_ps is 0; it makes packets some bytes longer
    interface=1,  # version of what a step sees and writes: docs/models/policy-interface.md
    source="doi:10.1145/3387514.3406591, section 3.1",
)
