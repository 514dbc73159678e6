"""NDP: after a first window every packet waits for a pull, which the receiver paces over all that send to its NIC.

Source: Handley et al., SIGCOMM 2017, doi:10.1145/3098822.3098825, section 3; csg-htsim, sim/ndp.cpp (pulls at 0.99 of
the line rate). A packet that arrives, whole or cut to its header, earns its sender one pull. Each packet tells what
its sender will still want, so that the last ones earn none; a sender that waits in vain asks again.
Leaves out: fair queueing of pulls (they go in the order of arrivals), headers that are returned to the sender.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, CongestionControl, Kind, ReceiverState, SenderState, Signal, row


class Params:
    initial: float = row(default=1, minimum=0.1, source="section 3.1", text="First window, in BDPs.")
    share: float = row(default=0.99, minimum=0.01, maximum=1, source="ndp.cpp", text="Part of the line rate pulled.")
    overhead_bytes: int = row(default=82, minimum=0, source="RoCEv2 frame and gap", text="On the wire beside payload.")
    patience_ps: int = row(default="5ms", minimum=1, source="ndp.cpp, smallest timeout", text="Wait before it asks.")


class State(SenderState):
    allowed: int  # packets that may be sent now
    uncredited: int  # packets that were ever allowed without credit
    resends: int  # packets that were lost without a trace
    told_bytes: int  # request that the last packet carried


class Receiver(ReceiverState):
    owed: int  # pulls
    cut: int  # packets of which the header alone has come


class Shared:
    next_at_ps: int  # turn of the NIC's one pacer
    has_turn: bool


def first_packets(params: Params, signal: Signal) -> int:
    bdp_bytes = float(signal.line_rate_bps) * float(signal.base_rtt_ps) / 8e12
    return int(params.initial * bdp_bytes / signal.mtu_bytes) + 1


def packets_of(size_bytes: int, signal: Signal) -> int:
    return (size_bytes + signal.mtu_bytes - 1) // signal.mtu_bytes


def allow(state: State, packets: int) -> None:
    """Allow so many packets at least, without credit."""
    more = max(packets - state.allowed, 0)
    state.allowed += more
    state.uncredited += more


def step(params: Params, state: State, signal: Signal) -> None:
    if signal.kind == Kind.START or signal.kind == Kind.RESUME:  # noqa: PLR1714 - 'in' does not compile
        allow(state, first_packets(params, signal))
    elif signal.kind == Kind.SEND:
        state.allowed = max(state.allowed - 1, 0)
    elif signal.kind == Kind.CREDIT:
        state.allowed += signal.bytes // signal.mtu_bytes
    elif signal.kind == Kind.ACK:
        state.resends += packets_of(signal.lost_bytes, signal)
    elif signal.kind == Kind.TIMEOUT:
        state.resends += packets_of(signal.lost_bytes, signal)
        allow(state, 1)  # it goes again unasked
    state.window_bytes = float(signal.inflight_bytes + state.allowed * signal.mtu_bytes)
    ask(params, state, signal)


def ask(params: Params, state: State, signal: Signal) -> None:
    """Tell all the credit that will ever be wanted; in a packet, or in a request where none is left to tell it."""
    packets = signal.next_seq + packets_of(signal.backlog_bytes, signal) + state.resends - state.uncredited
    state.request_bytes = max(packets, 0) * signal.mtu_bytes
    is_stuck = state.allowed == 0 and signal.inflight_bytes == 0 and signal.backlog_bytes > 0
    if signal.kind == Kind.SEND:
        state.told_bytes = state.request_bytes
    elif is_stuck and (signal.kind == Kind.TIMER or state.request_bytes > state.told_bytes):
        state.told_bytes = state.request_bytes
        state.send_request = 1
    if not is_stuck:
        state.timer_at_ps[0] = OFF
    elif state.timer_at_ps[0] == OFF:
        state.timer_at_ps[0] = signal.now_ps + params.patience_ps


def turn_at(params: Params, shared: Shared, signal: Signal) -> int:
    """Take the next turn of the pacer: one packet's time after the last."""
    wire_bits = 8.0 * float(signal.mtu_bytes + params.overhead_bytes)
    gap_ps = int(wire_bits * 1e12 / (params.share * signal.line_rate_bps))
    now_ps = signal.now_ps
    shared.next_at_ps = max(shared.next_at_ps, now_ps) + gap_ps if shared.has_turn else now_ps + gap_ps
    shared.has_turn = True
    return shared.next_at_ps


def receive(params: Params, state: Receiver, shared: Shared, signal: Signal) -> None:
    if signal.kind == Kind.TRIM:
        state.cut += 1  # it has to come again, beyond what was asked for
        state.owed += 1
    elif signal.kind == Kind.TIMER and state.owed > 0:
        state.credit_bytes += signal.mtu_bytes
        state.owed -= 1
    else:
        wanted_bytes = signal.request_bytes + (state.cut - state.owed) * signal.mtu_bytes - state.credit_bytes
        if signal.kind == Kind.DATA and wanted_bytes > 0:
            state.owed += 1
        elif signal.kind == Kind.REQUEST:
            state.send_credit = 1  # the last one may be lost
            if wanted_bytes > 0 and state.owed == 0:
                state.owed = min(wanted_bytes // signal.mtu_bytes, first_packets(params, signal))
    if state.owed > 0 and state.timer_at_ps[0] == OFF:
        state.timer_at_ps[0] = turn_at(params, shared, signal)


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.RESUME, Kind.SEND, Kind.ACK, Kind.NAK, Kind.TRIM, Kind.TIMEOUT, Kind.CREDIT}),
    receiver_state=Receiver,
    receive=receive,
    shared_state=Shared,
    needs=frozenset({"request", "trimming"}),
    source="doi:10.1145/3098822.3098825",
)
