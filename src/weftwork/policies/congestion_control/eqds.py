"""EQDS: receivers pace cumulative credit, and serve retransmissions first.

Credit comes in quanta.
Source: Olteanu et al., NSDI 2022, "An edge-queued datagram service for all datacenter traffic", as csg-htsim has it
(github.com/Broadcom/csg-htsim, sim/eqds.cpp); the paper's text was not read.
Leaves out: the queues of the sending host, through which EQDS carries other protocols; the randomised timeout; credit
inside acknowledgements: each grant is a packet of its own; the simulator's pacer, which multiplies the time of a pull
by 0.99 where it means to divide.

A queue pair begins with speculative credit, of which the rest is dropped at the first acknowledgement. Each packet
tells the credit up to which its sender wants to be pulled. If the dropped credit was to carry the rest of a message,
a request tells it at once. A receiving NIC grants a pull at a time to the queue pairs in turn: first to those of which
it has seen cut packets, then to those that want credit (active), then, up to one window in advance, to the rest (idle).
Credit counts payload. A turn is booked when the one before it ends, and an earlier class takes its time.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, CongestionControl, Kind, ReceiverState, SenderState, Signal, array, row

__all__ = ["PLUGIN", "Params", "Receiver", "Shared", "State", "receive", "step"]

PS_PER_BYTE_SECOND = 8e12  # bits per byte x picoseconds per second
RESENDING = 0  # whose turn it is: classes of the pacer, each before the next
ACTIVE = 1
IDLE = 2
NONE = 3
MOST_ASKS = 3  # chosen: after as many in vain a packet goes unasked, whose retries the transport counts
LEAST_RTTS = 4  # chosen: a queue of one BDP doubles the round trip; below it timeouts would be spurious


class Params:
    """Parameters of EQDS.

    A window is ``window_packets``, or if that is 0 ``window_bdps`` x line rate x base RTT of the path.
    """

    window_bdps: float = row(
        default=1.5,
        minimum=0.1,
        maximum=1000,
        source="chosen: as UEC's credit, which comes from EQDS; 50 packets are 1.4 BDPs at 100 Gb/s and 12 us",
        text="Speculative credit of a new queue pair, and the most that it asks for or is given in advance, in BDPs.",
    )
    window_packets: int = row(
        default=0,
        minimum=0,
        source="chosen: 0 takes window_bdps; csg-htsim, main_eqds.cpp (DEFAULT_CWND): 50",
        text="The same in packets; 0: in BDPs.",
    )
    quantum_bytes: int = row(
        default=512,
        minimum=1,
        maximum=16384,
        source="uet-htsim, eqdspacket.h (pull quantum)",
        text="Unit of requested and granted credit.",
    )
    pull_quanta: int = row(
        default=8,
        minimum=1,
        maximum=1000,
        source="csg-htsim, eqds.cpp (_credit_per_pull 4096): 8 quanta",
        text="Quanta that a turn grants.",
    )
    pull_share: float = row(
        default=0.99,
        minimum=0.01,
        maximum=1,
        source="csg-htsim, main_eqds.cpp (pull rate modifier)",
        text="Part of the line rate for which credit is granted.",
    )
    overhead_bytes: int = row(
        default=86,
        minimum=0,
        source="chosen: RoCEv2's frame, the request in it and the gap, 62 + 4 + 20; csg-htsim: 64",
        text="Bytes on the wire beside the payload of a packet, which the pacer counts.",
    )
    timeout_ps: int = row(
        default="100us",
        minimum=1_000_000,
        source="csg-htsim, eqds.h (DEFAULT_EQDS_RTO_MIN 100); an older version: 200",
        text="Retransmission timeout, and time without credit after which a sender asks again; 4 base RTTs at least.",
    )


class State(SenderState):
    """One sending queue pair."""

    credit_bytes: int  # payload that may be sent, granted
    speculative_bytes: int  # the same, granted by nobody
    granted_bytes: int  # all credit that the receiver was heard to grant
    sent_bytes: int  # payload of packets below next_seq
    arrived_bytes: int  # of these, known to have arrived
    next_seq: int
    asks: int  # requests in a row, in vain


class Receiver(ReceiverState):
    """One receiving queue pair."""

    target_bytes: int  # the most that its sender has asked for
    resend_bytes: int  # of cut packets, not yet pulled again
    turn: int = NONE  # class of the turn that is booked


class Shared:
    """The pacer of one receiving NIC."""

    booked_until_ps: list[int] = array(3)  # by class
    busy_until_ps: int  # end of the turn that was taken last


def step(params: Params, state: State, signal: Signal) -> None:
    """Spend credit, at the sending NIC."""
    count(state, signal)
    is_unasked = False
    if signal.kind == Kind.START or signal.kind == Kind.RESUME:  # noqa: PLR1714 - 'in' does not compile
        # chosen: after idle as at first, with no more than a window
        state.speculative_bytes = max(window_of(params, signal) - state.credit_bytes, 0)
        state.timeout_ps = timeout_of(params, signal)
    elif signal.kind == Kind.SEND:
        spend(state, signal.bytes)
    elif signal.kind == Kind.CREDIT:
        state.granted_bytes += signal.bytes
        state.credit_bytes += signal.bytes
        state.asks = 0
    elif signal.kind == Kind.ACK or signal.kind == Kind.TRIM:  # noqa: PLR1714 - 'in' does not compile
        is_unasked = signal.kind == Kind.ACK and state.speculative_bytes > 0
        is_unasked = is_unasked and state.request_bytes <= state.granted_bytes
        state.speculative_bytes = 0
    elif signal.kind == Kind.TIMER and state.asks >= MOST_ASKS:
        state.speculative_bytes = max(signal.mtu_bytes - state.credit_bytes, 0)
    allowed_bytes = max(state.credit_bytes + state.speculative_bytes, 0)
    wanted_bytes = wanted_of(state, signal)
    # A NIC without anything in flight would send the next packet for any credit: it needs credit for a whole one.
    if signal.inflight_bytes == 0 and allowed_bytes < min(wanted_bytes, signal.mtu_bytes):
        allowed_bytes = 0
    state.window_bytes = float(signal.inflight_bytes + allowed_bytes)
    ask(params, state, signal, allowed_bytes, wanted_bytes)
    if is_unasked and allowed_bytes < min(wanted_bytes, signal.mtu_bytes):
        # chosen: no packet has asked for what the dropped credit was to carry; csg-htsim leaves it to the timer
        state.send_request = 1


def spend(state: State, size_bytes: int) -> None:
    """Spend granted credit, then speculative credit.

    A packet that is sent again at once may overdraw both.
    """
    state.credit_bytes -= size_bytes
    if state.credit_bytes < 0:
        from_speculative = min(-state.credit_bytes, state.speculative_bytes)
        state.speculative_bytes -= from_speculative
        state.credit_bytes += from_speculative


def count(state: State, signal: Signal) -> None:
    """Count sent and arrived bytes; the rest that is not in flight is lost."""
    if signal.kind == Kind.SEND:
        if signal.next_seq > state.next_seq:
            state.sent_bytes += signal.bytes
    elif signal.kind == Kind.ACK:
        state.arrived_bytes += signal.arrived_bytes
    if signal.next_seq < state.next_seq:  # it went back: what was lost is backlog again
        state.sent_bytes = state.arrived_bytes + signal.inflight_bytes
    state.sent_bytes = max(state.sent_bytes, state.arrived_bytes + signal.inflight_bytes)
    state.next_seq = signal.next_seq


def wanted_of(state: State, signal: Signal) -> int:
    """Payload that waits for its first or next transmission."""
    return signal.backlog_bytes + state.sent_bytes - state.arrived_bytes - signal.inflight_bytes


def window_of(params: Params, signal: Signal) -> int:
    """Return the most credit that is asked for, kept, or speculative."""
    if params.window_packets > 0:
        return params.window_packets * signal.mtu_bytes
    bdp_bytes = float(signal.line_rate_bps) * float(signal.base_rtt_ps) / PS_PER_BYTE_SECOND
    return max(int(params.window_bdps * bdp_bytes), signal.mtu_bytes)


def timeout_of(params: Params, signal: Signal) -> int:
    """Return the retransmission timeout."""
    return max(params.timeout_ps, LEAST_RTTS * signal.base_rtt_ps)


def ask(params: Params, state: State, signal: Signal, allowed_bytes: int, wanted_bytes: int) -> None:
    """Report the credit limit that the sender wants to be pulled to.

    It goes into each packet, or into a request if no packet can be sent.
    """
    credit_bytes = state.credit_bytes + state.speculative_bytes
    target_bytes = max(state.granted_bytes + min(wanted_bytes, window_of(params, signal)) - credit_bytes, 0)
    state.request_bytes = (target_bytes + params.quantum_bytes - 1) // params.quantum_bytes * params.quantum_bytes
    is_stuck = allowed_bytes == 0 and signal.inflight_bytes == 0 and wanted_bytes > 0
    if not is_stuck:
        state.timer_at_ps[0] = OFF
    elif signal.kind == Kind.TIMEOUT or signal.kind == Kind.TIMER:  # noqa: PLR1714 - 'in' does not compile
        state.asks += 1
        state.send_request = 1
        state.timer_at_ps[0] = signal.now_ps + timeout_of(params, signal)
    elif state.timer_at_ps[0] == OFF:
        state.timer_at_ps[0] = signal.now_ps + timeout_of(params, signal)


def receive(params: Params, state: Receiver, shared: Shared, signal: Signal) -> None:
    """Grant credit, at the receiving NIC."""
    if signal.kind == Kind.TIMER:
        if state.turn != NONE:
            take_turn(params, state, shared, signal)
        return
    state.target_bytes = max(state.target_bytes, signal.request_bytes)
    if signal.kind == Kind.TRIM:
        state.resend_bytes += signal.mtu_bytes  # eqds.cpp: a whole packet, whatever was cut
    elif signal.kind == Kind.REQUEST:
        state.send_credit = 1  # the last one may be lost
    book_next(params, state, shared, signal)


def pull_bytes(params: Params) -> int:
    """Return the credit of one turn."""
    return params.quantum_bytes * params.pull_quanta


def take_turn(params: Params, state: Receiver, shared: Shared, signal: Signal) -> None:
    """Grant a pull, then book the next turn.

    A queue pair of an earlier class that came in between goes first.
    """
    turn = state.turn
    state.turn = NONE
    if free_at(shared, signal, turn) > signal.now_ps:
        book(params, state, shared, signal, turn)
        return
    state.credit_bytes += pull_bytes(params)
    state.resend_bytes = max(state.resend_bytes - pull_bytes(params), 0)
    shared.busy_until_ps = signal.now_ps + time_of(params, signal)
    book_next(params, state, shared, signal)
    if state.turn == NONE and state.credit_bytes - state.target_bytes < window_of(params, signal):
        book(params, state, shared, signal, IDLE)


def book_next(params: Params, state: Receiver, shared: Shared, signal: Signal) -> None:
    """Book a turn of the queue pair's first class.

    It is booked only if that is before the class of its present turn.
    """
    if state.resend_bytes > 0:
        if state.turn > RESENDING:
            book(params, state, shared, signal, RESENDING)
    elif state.target_bytes > state.credit_bytes and state.turn > ACTIVE:
        book(params, state, shared, signal, ACTIVE)


def free_at(shared: Shared, signal: Signal, turn: int) -> int:
    """Return the first free instant of the pacer for this class."""
    at_ps = max(shared.busy_until_ps, signal.now_ps)
    for earlier in range(turn):
        at_ps = max(at_ps, shared.booked_until_ps[earlier])
    return at_ps


def book(params: Params, state: Receiver, shared: Shared, signal: Signal, turn: int) -> None:
    """Book a turn behind those of its class.

    Each queue pair has one turn, so that all are served in rotation.
    """
    at_ps = max(free_at(shared, signal, turn), shared.booked_until_ps[turn])
    shared.booked_until_ps[turn] = at_ps + time_of(params, signal)
    state.turn = turn
    state.timer_at_ps[0] = at_ps


def time_of(params: Params, signal: Signal) -> int:
    """Return the pacer's time for a pull: that of its packets on the wire."""
    packet_bytes = float(signal.mtu_bytes)
    wire_bytes = pull_bytes(params) * (packet_bytes + params.overhead_bytes) / packet_bytes
    return int(wire_bytes * PS_PER_BYTE_SECOND / (params.pull_share * signal.line_rate_bps)) + 1


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.RESUME, Kind.SEND, Kind.ACK, Kind.TRIM, Kind.TIMEOUT, Kind.CREDIT}),
    receiver_state=Receiver,
    receive=receive,
    shared_state=Shared,
    needs=frozenset({"request", "trimming"}),
    source="Olteanu et al., NSDI 2022; github.com/Broadcom/csg-htsim, sim/eqds.cpp",
    variants={
        # The window of github.com/Broadcom/csg-htsim, sim/datacenter/main_eqds.cpp.
        "csg-htsim": {"window_packets": 50},
    },
)
