"""RCCC, Ultra Ethernet: receivers pace credit, and senders spend it per packet.

The pacer of a NIC serves all senders to this NIC.
Source: UEC specification 1.0, section 3.6.14, as uet-htsim has it (github.com/ultraethernet/uet-htsim, htsim/sim,
uec.cpp and oversubscribed_cc.cpp); the text of the specification was not read.
Leaves out: networks that drop and never cut packets, the window of NSCC beside the credit, requests divided among the
queue pairs of a sending NIC, the receiver's PCIe bus, the jitter of the oversubscription control's intervals.

A queue pair begins with speculative credit, of which the rest is dropped when the receiver is first heard. Each packet
tells the credit up to which its sender wants to be pulled. The receiving NIC grants a few packets of credit at a time,
slightly below its line rate, to the queue pairs in turn: first to those that want some (active), then, up to one
window, to those that want none (idle), so that their next message and a lost credit find some.
Credit counts payload. A turn is booked when the one before it ends, and reserves the pacer's time for what it grants.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, CongestionControl, Kind, ReceiverState, SenderState, Signal, array, row

__all__ = ["PLUGIN", "Params", "Receiver", "Shared", "State", "receive", "step"]

PS_PER_BYTE_SECOND = 8e12  # bits per byte x picoseconds per second
ACTIVE = 0  # whose turn it is: classes of the pacer, the first before the second
IDLE = 1
NONE = 2
LEAST_TURN_BYTES = 1024  # uec.cpp, UecPullPacer: the pacer's time for a turn that grants nothing
MOST_ASKS = 3  # chosen: after as many in vain a packet goes unasked, whose retries the transport counts
LEAST_RTTS = 4  # chosen: a queue of one BDP doubles the round trip; below it timeouts would be spurious
MOST_INTERVALS = 64  # chosen: after as many intervals without a packet the rate is the line rate and G is nothing


class Params:
    """Parameters of RCCC.

    A window is ``window_bytes``, or if that is 0 ``window_bdps`` x line rate x the longest base RTT.
    """

    window_bdps: float = row(
        default=1.5,
        minimum=0.1,
        maximum=1000,
        source="uet-htsim, uec.cpp (maxwnd); UEC 1.0.3, table 3-82, unverified",
        text="Speculative credit of a new queue pair, and the most that it asks for and keeps, in BDPs.",
    )
    window_bytes: int = row(
        default=0,
        minimum=0,
        source="chosen: 0 takes window_bdps; uet-htsim, main_uec.cpp, has -cwnd in packets",
        text="The same in payload; 0: in BDPs.",
    )
    idle_bdps: float = row(
        default=1.5,
        minimum=0,
        maximum=1000,
        source="uet-htsim, uec.cpp: slow credit up to maxwnd",
        text="Credit that a queue pair which wants none is given in advance, in BDPs of its path; 0: none.",
    )
    pull_packets: int = row(
        default=4,
        minimum=1,
        maximum=1000,
        source="uet-htsim, uec.cpp (credit_per_pull): 4 packets",
        text="Credit that a turn grants at most, in full packets.",
    )
    pull_share: float = row(
        default=0.99,
        minimum=0.01,
        maximum=1,
        source="uet-htsim, main_uec.cpp (pull rate modifier)",
        text="Part of the line rate for which credit is granted.",
    )
    quantum_bytes: int = row(
        default=256,
        minimum=1,
        maximum=4096,
        source="uet-htsim, uecpacket.h (256); a comment there says 512",
        text="Unit of requested and granted credit.",
    )
    overhead_bytes: int = row(
        default=86,
        minimum=0,
        source="chosen: RoCEv2's frame, the request in it and the gap, 62 + 4 + 20; uet-htsim: 64",
        text="Bytes on the wire beside the payload of a packet, which the pacer counts.",
    )
    timeout_ps: int = row(
        default="100us",
        minimum=1_000_000,
        source="uet-htsim, uec.h (default of the class); main_uec.cpp: 15 us and six times the time of a queue",
        text="Retransmission timeout, and time without credit after which a sender asks again; 4 base RTTs at least.",
    )
    oversubscription: float = row(
        default=1.0,
        minimum=1,
        maximum=1000,
        source="uet-htsim, main_uec.cpp: the ratio of the topology; above 1 the control is on",
        text="Rate of hosts over that of uplinks; above 1 marks and cuts before the last hop slow the pacer down.",
    )
    mark_target: float = row(
        default=0.3,
        minimum=0,
        maximum=1,
        source="uet-htsim, oversubscribed_cc.cpp (target congestion)",
        text="Average part of packets with a mark that slows nothing down.",
    )
    mark_gain: float = row(
        default=0.5,
        minimum=0.001,
        maximum=1,
        source="uet-htsim, oversubscribed_cc.cpp (alpha)",
        text="Weight of the newest interval in that average.",
    )
    slow_down: float = row(
        default=0.5,
        minimum=0,
        maximum=1,
        source="uet-htsim, oversubscribed_cc.cpp (Md)",
        text="Part of the rate that an average of 1 above the target would take.",
    )
    speed_up: float = row(
        default=0.01,
        minimum=0,
        maximum=1,
        source="uet-htsim, oversubscribed_cc.cpp (Ai)",
        text="Part of the line rate that a good interval adds; it doubles in a row of intervals without marks.",
    )
    least_rate: float = row(
        default=0.9,
        minimum=0.001,
        maximum=1,
        source="uet-htsim, oversubscribed_cc.h (min rate); older versions: 0.75, 0.8",
        text="Part of line rate / oversubscription below which the pacer is never slowed down.",
    )


class State(SenderState):
    """One sending queue pair."""

    credit_bytes: int  # payload that may be sent; a packet may overdraw it
    granted_bytes: int  # all credit that the receiver was heard to grant
    is_speculating: bool
    sent_bytes: int  # payload of packets below next_seq
    arrived_bytes: int  # of these, known to have arrived
    next_seq: int
    asks: int  # requests in a row, in vain


class Receiver(ReceiverState):
    """One receiving queue pair."""

    target_bytes: int  # the most that its sender has asked for
    turn: int = NONE  # class of the turn that is booked
    booked_bytes: int  # credit for which the turn has time
    booked_ps: int  # that time


class Shared:
    """The pacer of one receiving NIC."""

    booked_until_ps: list[int] = array(2)  # by class
    busy_until_ps: int  # end of the turn that was taken last
    rate: float = 1.0  # oversubscription control, beside pull_share
    marked_part: float  # G
    good_intervals: int
    interval_ends_ps: int = OFF
    packets: int  # in this interval: all, and of these marked, cut at the last hop, cut before
    marked: int
    cut_last: int
    cut_before: int


def step(params: Params, state: State, signal: Signal) -> None:
    """Spend credit, at the sending NIC."""
    count(state, signal)
    if signal.kind == Kind.START:
        speculate(params, state, signal)
    elif signal.kind == Kind.RESUME:
        if state.credit_bytes <= 0:  # chosen: as a new queue pair, which uet-htsim has for each flow
            speculate(params, state, signal)
    elif signal.kind == Kind.SEND:
        state.credit_bytes -= signal.bytes
    elif signal.kind == Kind.CREDIT:
        stop_speculating(state)
        state.asks = 0
        state.granted_bytes += signal.bytes
        state.credit_bytes = min(state.credit_bytes + signal.bytes, window_of(params, signal))
    elif signal.kind != Kind.TIMER:
        stop_speculating(state)
    elif state.asks >= MOST_ASKS:
        state.credit_bytes = max(state.credit_bytes, 1)
    packets = (max(state.credit_bytes, 0) + signal.mtu_bytes - 1) // signal.mtu_bytes  # any credit is enough for one
    state.window_bytes = float(signal.inflight_bytes + packets * signal.mtu_bytes)
    ask(params, state, signal)


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


def network_ps(signal: Signal) -> int:
    """Return the base RTT of the whole network."""
    return max(signal.fabric_base_rtt_ps, signal.base_rtt_ps, 1)


def window_of(params: Params, signal: Signal) -> int:
    """Return the most credit that a sender requests and keeps."""
    if params.window_bytes > 0:
        return max(params.window_bytes, signal.mtu_bytes)
    bdp_bytes = float(signal.line_rate_bps) * float(network_ps(signal)) / PS_PER_BYTE_SECOND
    return max(int(params.window_bdps * bdp_bytes), signal.mtu_bytes)


def speculate(params: Params, state: State, signal: Signal) -> None:
    """Begin with speculative credit, which nobody has granted."""
    state.credit_bytes = window_of(params, signal)
    state.is_speculating = True
    state.timeout_ps = timeout_of(params, signal)


def timeout_of(params: Params, signal: Signal) -> int:
    """Return the retransmission timeout."""
    return max(params.timeout_ps, LEAST_RTTS * network_ps(signal))


def stop_speculating(state: State) -> None:
    """Drop the rest of speculative credit.

    The receiver was heard, and grants what it can take.
    """
    if state.is_speculating:
        state.is_speculating = False
        state.credit_bytes = min(state.credit_bytes, 0)


def ask(params: Params, state: State, signal: Signal) -> None:
    """Report the credit limit that the sender wants to be pulled to.

    It goes into each packet, or into a request if no packet can be sent.
    """
    wanted_bytes = wanted_of(state, signal)
    more_bytes = min(wanted_bytes, window_of(params, signal)) - state.credit_bytes
    if state.is_speculating and signal.backlog_bytes > 0:
        more_bytes = max(more_bytes, signal.mtu_bytes)
    target_bytes = max(state.granted_bytes + more_bytes, 0)
    state.request_bytes = (target_bytes + params.quantum_bytes - 1) // params.quantum_bytes * params.quantum_bytes
    is_stuck = state.credit_bytes <= 0 and signal.inflight_bytes == 0 and wanted_bytes > 0
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
    if params.oversubscription > 1.0:
        watch(params, shared, signal)
    if signal.kind == Kind.TIMER:
        if state.turn != NONE:
            take_turn(params, state, shared, signal)
        return
    state.target_bytes = max(state.target_bytes, signal.request_bytes)
    wants = state.target_bytes > state.credit_bytes or signal.kind != Kind.DATA  # a cut packet has to come again
    if wants and state.turn != ACTIVE:
        book(params, state, shared, signal, ACTIVE)


def take_turn(params: Params, state: Receiver, shared: Shared, signal: Signal) -> None:
    """Grant the credit of one turn, then book the next turn.

    A queue pair of an earlier class that came in between goes first.
    """
    turn = state.turn
    free_ps = free_at(shared, signal, turn)
    if turn == IDLE and signal.now_ps < free_ps < signal.now_ps + state.booked_ps:  # it keeps its place
        state.timer_at_ps[0] = free_ps
        return
    state.turn = NONE
    if free_ps > signal.now_ps:
        book(params, state, shared, signal, turn)
        return
    granted_bytes = state.booked_bytes
    if turn == ACTIVE:
        granted_bytes = max(min(granted_bytes, state.target_bytes - state.credit_bytes), 0)
        if granted_bytes == 0:
            state.send_credit = 1  # the last credit may be lost
    state.credit_bytes += granted_bytes
    shared.busy_until_ps = signal.now_ps + time_of(params, shared, signal, max(granted_bytes, LEAST_TURN_BYTES))
    idle_bytes = int(params.idle_bdps * float(signal.line_rate_bps) * float(signal.base_rtt_ps) / PS_PER_BYTE_SECOND)
    if state.target_bytes > state.credit_bytes:
        book(params, state, shared, signal, ACTIVE)
    elif state.credit_bytes - state.target_bytes < idle_bytes:
        book(params, state, shared, signal, IDLE)


def free_at(shared: Shared, signal: Signal, turn: int) -> int:
    """Return the first free instant of the pacer for this class."""
    at_ps = max(shared.busy_until_ps, signal.now_ps)
    if turn == IDLE:
        at_ps = max(at_ps, shared.booked_until_ps[ACTIVE])
    return at_ps


def book(params: Params, state: Receiver, shared: Shared, signal: Signal, turn: int) -> None:
    """Book a turn behind those of its class.

    Each queue pair has one turn, so that all are served in rotation.
    """
    if state.turn == IDLE:  # it gives up its idle turn, for which nobody has to wait any more
        shared.booked_until_ps[IDLE] -= state.booked_ps
    most_bytes = params.pull_packets * signal.mtu_bytes // params.quantum_bytes * params.quantum_bytes
    most_bytes = max(most_bytes, params.quantum_bytes)
    if turn == ACTIVE:
        most_bytes = max(min(most_bytes, state.target_bytes - state.credit_bytes), 0)
    at_ps = max(free_at(shared, signal, turn), shared.booked_until_ps[turn])
    state.booked_ps = time_of(params, shared, signal, max(most_bytes, LEAST_TURN_BYTES))
    shared.booked_until_ps[turn] = at_ps + state.booked_ps
    state.booked_bytes = most_bytes
    state.turn = turn
    state.timer_at_ps[0] = at_ps


def time_of(params: Params, shared: Shared, signal: Signal, granted_bytes: int) -> int:
    """Return the pacer's time for a credit: that of its packets on the wire."""
    packet_bytes = float(signal.mtu_bytes)
    wire_bytes = granted_bytes * (packet_bytes + params.overhead_bytes) / packet_bytes
    return int(wire_bytes * PS_PER_BYTE_SECOND / (params.pull_share * shared.rate * signal.line_rate_bps)) + 1


def watch(params: Params, shared: Shared, signal: Signal) -> None:
    """Count arrivals; adjust the pace after an interval (oversubscribed_cc.cpp)."""
    if signal.kind == Kind.TIMER:
        return
    interval_ps = 3 * max(signal.base_rtt_ps, 2) // 2
    if shared.interval_ends_ps == OFF:
        shared.interval_ends_ps = signal.now_ps + interval_ps
    ended = (signal.now_ps - shared.interval_ends_ps) // interval_ps + 1
    if ended > 0:
        shared.interval_ends_ps += ended * interval_ps
        for _ in range(min(ended, MOST_INTERVALS)):
            adjust(params, shared)
    shared.packets += 1
    if signal.kind == Kind.TRIM:
        if signal.last_hop == 1:
            shared.cut_last += 1
        else:
            shared.cut_before += 1
    elif signal.kind == Kind.DATA:
        shared.marked += signal.ecn


def adjust(params: Params, shared: Shared) -> None:
    """End an interval: mid-path trims and marks lower the rate, else it rises."""
    whole = shared.packets - shared.cut_last - shared.cut_before
    part = shared.marked / whole if whole > 0 else 0.0
    is_cut = False
    if shared.cut_before > 0:
        shared.rate -= shared.cut_before / shared.packets
        is_cut = True
    shared.marked_part = shared.marked_part * (1.0 - params.mark_gain) + params.mark_gain * part
    if shared.marked_part > params.mark_target and params.slow_down > 0.0:
        shared.rate *= 1.0 - (shared.marked_part - params.mark_target) * params.slow_down
        is_cut = True
    if is_cut:
        shared.good_intervals = 0
    else:
        more = params.speed_up
        if shared.marked == 0:
            for _ in range(min(shared.good_intervals, MOST_INTERVALS)):
                more = min(more * 2.0, 1.0)
        shared.rate += more
        shared.good_intervals += 1
    shared.rate = min(max(shared.rate, params.least_rate / params.oversubscription), 1.0)
    shared.packets = 0
    shared.marked = 0
    shared.cut_last = 0
    shared.cut_before = 0


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.RESUME, Kind.SEND, Kind.ACK, Kind.TRIM, Kind.TIMEOUT, Kind.CREDIT}),
    receiver_state=Receiver,
    receive=receive,
    shared_state=Shared,
    needs=frozenset({"ecn", "request", "trimming"}),
    source="UEC specification 1.0, section 3.6.14; github.com/ultraethernet/uet-htsim, htsim/sim/uec.cpp",
    variants={
        # The defaults above: uet-htsim with receiver credit alone.
        "uet-htsim": {},
        # The same below a core that is four times as narrow as its edge, as in the published rows with 4:1.
        "oversubscribed": {"oversubscription": 4.0},
    },
)
