"""NDP: after the first window, receivers pull each packet.

The pacer of a NIC serves all senders to this NIC.
Source: Handley et al., SIGCOMM 2017, doi:10.1145/3098822.3098825, section 3, as csg-htsim has it
(github.com/Broadcom/csg-htsim, sim/ndp.cpp); the paper's text was not read.
Leaves out: headers that a switch returns to the sender, priorities among pulls, receivers' congestion control for
narrow cores (csg-htsim, -oversubscribed_cc), pulls inside acknowledgements: each is a packet of its own.

A packet that arrives, whole or cut to its header, earns its sender one pull. Packets that were lost go before new ones.
Instead of a flag on the last packet each packet tells all the credit that its sender will ever want, so that the last
packets of a message earn no pull in vain; a sender that waits in vain asks again.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, CongestionControl, Kind, ReceiverState, SenderState, Signal, row

__all__ = ["PLUGIN", "Params", "Receiver", "Shared", "State", "receive", "step"]

PS_PER_BYTE_SECOND = 8e12  # bits per byte x picoseconds per second
MOST_ASKS = 3  # chosen: after as many in vain a packet goes unasked, whose retries the transport counts


class Params:
    """Parameters of NDP.

    The first window is ``initial_packets``, or if that is 0 ``initial_bdps`` and a packet.
    """

    initial_bdps: float = row(
        default=2.0,
        minimum=0.1,
        maximum=1000,
        source="csg-htsim, ndp.cpp: 15 packets, 1.9 BDPs of a fat tree at 10 Gb/s with 9,000 B and 1 us a link",
        text="First window of a queue pair, in line rate x base RTT of the path.",
    )
    initial_packets: int = row(
        default=0,
        minimum=0,
        source="chosen: 0 takes initial_bdps",
        text="The same in packets; 0: in BDPs.",
    )
    pull_share: float = row(
        default=0.99,
        minimum=0.01,
        maximum=1,
        source="csg-htsim, main_ndp.cpp (pull rate modifier)",
        text="Part of the line rate at which packets are pulled.",
    )
    overhead_bytes: int = row(
        default=86,
        minimum=0,
        source="chosen: RoCEv2's frame, the request in it and the gap, 62 + 4 + 20; csg-htsim: 64",
        text="Bytes on the wire beside the payload of a packet, which the pacer counts.",
    )
    timeout_ps: int = row(
        default="5ms",
        minimum=1_000_000,
        source="csg-htsim, ndp.h (DEFAULT_RTO_MIN 5000 us); its first one is 20 ms",
        text="Retransmission timeout, and time without a pull after which a sender asks again.",
    )


class State(SenderState):
    """One sending queue pair, in packets."""

    allowed: int  # that may be sent now
    unpulled: int  # that were ever allowed without a pull
    resends: int  # that were lost and not cut: the receiver knows of those that were cut
    told_bytes: int  # request that the last packet carried
    asks: int  # requests in a row, in vain


class Receiver(ReceiverState):
    """One receiving queue pair, in packets."""

    owed: int  # pulls
    cut: int  # of which the header alone has come


class Shared:
    """The pacer of one receiving NIC."""

    free_at_ps: int  # first instant that is not booked


def step(params: Params, state: State, signal: Signal) -> None:
    """Send pulled packets, at the sending NIC."""
    if signal.kind == Kind.START or signal.kind == Kind.RESUME:  # noqa: PLR1714 - 'in' does not compile
        state.timeout_ps = params.timeout_ps
        allow(state, first_packets(params, signal))  # chosen: after idle as at first
    elif signal.kind == Kind.SEND:
        state.allowed = max(state.allowed - 1, 0)
    elif signal.kind == Kind.CREDIT:
        state.allowed += signal.bytes // signal.mtu_bytes
        state.asks = 0
    elif signal.kind == Kind.ACK:
        state.resends += packets_of(signal.lost_bytes, signal)
    elif signal.kind == Kind.TIMEOUT:
        state.resends += packets_of(signal.lost_bytes, signal)
        allow(state, 1)  # one goes again unasked
    elif signal.kind == Kind.TIMER and state.asks >= MOST_ASKS:
        allow(state, 1)
    state.window_bytes = float(signal.inflight_bytes + state.allowed * signal.mtu_bytes)
    ask(params, state, signal)


def first_packets(params: Params, signal: Signal) -> int:
    """Return the first window."""
    if params.initial_packets > 0:
        return params.initial_packets
    bdp_bytes = float(signal.line_rate_bps) * float(signal.base_rtt_ps) / PS_PER_BYTE_SECOND
    return int(params.initial_bdps * bdp_bytes / signal.mtu_bytes) + 1


def packets_of(size_bytes: int, signal: Signal) -> int:
    """Return the number of packets for a payload."""
    return (size_bytes + signal.mtu_bytes - 1) // signal.mtu_bytes


def allow(state: State, packets: int) -> None:
    """Allow a number of packets, at least, without a pull."""
    more = max(packets - state.allowed, 0)
    state.allowed += more
    state.unpulled += more


def ask(params: Params, state: State, signal: Signal) -> None:
    """Report the total credit wanted.

    It goes into each packet, or into a request if no packet can be sent.
    """
    packets = signal.next_seq + packets_of(signal.backlog_bytes, signal) + state.resends - state.unpulled
    state.request_bytes = max(packets, 0) * signal.mtu_bytes
    is_stuck = state.allowed == 0 and signal.inflight_bytes == 0 and signal.backlog_bytes > 0
    if signal.kind == Kind.SEND:
        state.told_bytes = state.request_bytes
    elif is_stuck and (signal.kind == Kind.TIMER or state.request_bytes > state.told_bytes):
        state.told_bytes = state.request_bytes
        state.send_request = 1
        state.asks += 1
    if not is_stuck:
        state.timer_at_ps[0] = OFF
    elif state.timer_at_ps[0] == OFF:
        state.timer_at_ps[0] = signal.now_ps + params.timeout_ps


def receive(params: Params, state: Receiver, shared: Shared, signal: Signal) -> None:
    """Pull, at the receiving NIC."""
    if signal.kind == Kind.TIMER:
        if state.owed > 0:
            state.credit_bytes += signal.mtu_bytes
            state.owed -= 1
    elif signal.kind == Kind.TRIM:
        state.cut += 1  # it has to come again, beyond what its sender has told
        state.owed += 1
    else:
        wanted_bytes = signal.request_bytes + (state.cut - state.owed) * signal.mtu_bytes - state.credit_bytes
        if signal.kind == Kind.REQUEST:
            state.send_credit = 1  # the last one may be lost
            if wanted_bytes > 0 and state.owed == 0:  # a whole window may be lost
                state.owed = min(packets_of(wanted_bytes, signal), first_packets(params, signal))
        elif wanted_bytes > 0:
            state.owed += 1
    if state.owed > 0 and state.timer_at_ps[0] == OFF:
        state.timer_at_ps[0] = turn_at(params, shared, signal)


def turn_at(params: Params, shared: Shared, signal: Signal) -> int:
    """Book the pacer's next turn.

    Each queue pair has one turn at a time, so that all are served in rotation.
    """
    wire_bytes = float(signal.mtu_bytes + params.overhead_bytes)
    at_ps = max(shared.free_at_ps, signal.now_ps)
    shared.free_at_ps = at_ps + int(wire_bytes * PS_PER_BYTE_SECOND / (params.pull_share * signal.line_rate_bps)) + 1
    return at_ps


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.RESUME, Kind.SEND, Kind.ACK, Kind.TRIM, Kind.TIMEOUT, Kind.CREDIT}),
    receiver_state=Receiver,
    receive=receive,
    shared_state=Shared,
    needs=frozenset({"request", "trimming"}),
    source="Handley et al., SIGCOMM 2017, doi:10.1145/3098822.3098825",
    variants={
        # The first window of github.com/Broadcom/csg-htsim, sim/datacenter/main_ndp.cpp, in packets.
        "csg-htsim": {"initial_packets": 15},
        # That of the authors for a permutation over queues of 8 packets: github.com/nets-cs-pub-ro/NDP,
        # sim/EXAMPLES/permutation/README.md; a smaller one leaves links idle there.
        "permutation": {"initial_packets": 23},
    },
)
