"""InfiniBand congestion control: BECNs lengthen packet pauses, a timer shortens them.

Source: IBTA InfiniBand architecture specification, volume 1, annex A10, as public programs show it:
OpenSM (include/iba/ib_types.h, A10.2.2 and A10.4.3) and Linux's hfi1 (rc.c process_becn, init.c set_link_ipg).
Defaults: the options of Mellanox's congestion manager (OFED user manual 2.3, section 3.2.2.8) where they are public.
Leaves out: BECN bits on acknowledgements (here every BECN is a CN packet); one index for a service level or a port, as
in hfi1; the event log and its Trigger_Threshold; and the switch's marks (Threshold, Marking_Rate, Packet_Size,
Victim_Mask), which are the fabric's ECN thresholds.

The table is not standardised, and Mellanox's is computed from the number of hosts by a formula that is not public. Here
entry i of the table has the multiplier i x cct_multiplier and the shift cct_shift, so that the pause after a packet
grows linearly: IRD = i x cct_multiplier / 2^cct_shift times the packet's time on the line, and N senders that share a
link fairly stand at IRD = N - 1. A change of the index does not move a packet whose departure is already set.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, CongestionControl, Kind, ReceiverState, SenderState, Signal, row

__all__ = ["PLUGIN", "Params", "Receiver", "State", "receive", "step"]

CCTI_TIMER = 0
MOST_MULTIPLIER = 16_383  # bits 13 to 0 of an entry: OpenSM, ib_types.h, A10.4.3.9


class Params:
    """CA Congestion Setting and Congestion Control Table (CCT) of the adapter."""

    ccti_increase: int = row(
        default=1,
        minimum=1,
        maximum=255,
        source="Mellanox OFED 2.3, congestion manager: ccti_increase 1",
        text="A BECN adds this to the index (CCTI).",
    )
    ccti_limit: int = row(
        default=127,
        minimum=1,
        maximum=65_535,
        source="chosen: two blocks of 64 entries; Gran et al., IPDPS 2010: 127, unverified",
        text="Largest index; an incast of more senders than 1 + its IRD is held by flow control alone.",
    )
    ccti_min: int = row(
        default=0,
        minimum=0,
        maximum=65_535,
        source="Mellanox OFED 2.3, congestion manager: ccti_min 0",
        text="Smallest index, at which a queue pair starts.",
    )
    ccti_timer_ps: int = row(
        default="153600ns",
        minimum=100_000,
        source="150 x 1.024 us: Gran et al., IPDPS 2010, unverified; OFED 2.3 computes it from the number of hosts",
        text="Time after which the index falls by one.",
    )
    cct_multiplier: int = row(
        default=1,
        minimum=1,
        maximum=MOST_MULTIPLIER,
        source="chosen: a linear table, since the standard has none and the vendor's is not public",
        text="Multiplier of entry i, divided by i; an entry holds 16,383 at most.",
    )
    cct_shift: int = row(
        default=3,
        minimum=0,
        maximum=3,
        source="chosen: the finest steps that the two bits of an entry allow (OpenSM, ib_types.h, A10.4.3.9)",
        text="Shift of every entry: the pause is packet time x multiplier / 2^shift.",
    )
    becn_interval_ps: int = row(
        default=0,
        minimum=0,
        source="0: A10.2.1, a BECN for each packet with FECN",
        text="Receiver: shortest time between two BECNs of a queue pair; 0 answers every marked packet.",
    )


class State(SenderState):
    """One sending queue pair.

    The instant is kept beside ``timer_at_ps``, which is off while the queue pair is idle.
    """

    ccti: int
    decrease_at_ps: int = OFF


class Receiver(ReceiverState):
    """One receiving queue pair."""

    last_becn_at_ps: int = OFF


def step(params: Params, state: State, signal: Signal) -> None:
    """Reaction point, at the sending channel adapter."""
    if signal.kind == Kind.START:
        state.ccti = lowest(params)
    elif signal.kind == Kind.CNP:
        notice(params, state, signal)
    elif signal.kind == Kind.TIMER or signal.kind == Kind.RESUME:  # noqa: PLR1714 - 'in' does not compile
        recover(params, state, signal)
    state.rate_bps = float(signal.line_rate_bps) / (1.0 + inter_packet_delay(params, state.ccti))
    state.timer_at_ps[CCTI_TIMER] = state.decrease_at_ps


def lowest(params: Params) -> int:
    """The smallest index, at most the limit."""
    return min(params.ccti_min, params.ccti_limit)


def inter_packet_delay(params: Params, ccti: int) -> float:
    """Pause after a packet, as a multiple of its time on the line (A10.2.2.1.1).

    It is the entry at this index.
    """
    multiplier = min(ccti * params.cct_multiplier, MOST_MULTIPLIER)
    parts = 1
    for _ in range(params.cct_shift):
        parts = parts * 2
    return multiplier / parts


def notice(params: Params, state: State, signal: Signal) -> None:
    """Take a BECN: raise the index and start the timer (hfi1, process_becn)."""
    state.ccti = min(state.ccti + params.ccti_increase, params.ccti_limit)
    if state.decrease_at_ps == OFF and state.ccti > lowest(params):
        state.decrease_at_ps = signal.now_ps + params.ccti_timer_ps


def recover(params: Params, state: State, signal: Signal) -> None:
    """Lower the index by one per ended period, idle time included.

    It stops at the smallest index.
    """
    if state.decrease_at_ps != OFF and state.decrease_at_ps <= signal.now_ps:
        periods = (signal.now_ps - state.decrease_at_ps) // params.ccti_timer_ps + 1
        state.ccti = max(state.ccti - periods, lowest(params))
        state.decrease_at_ps += periods * params.ccti_timer_ps
        if state.ccti == lowest(params):
            state.decrease_at_ps = OFF


def receive(params: Params, state: Receiver, shared: None, signal: Signal) -> None:
    """Notification point at the receiving adapter: a BECN for packets with FECN.

    It sends at most one BECN in an interval.
    """
    if signal.kind == Kind.DATA and signal.ecn == 1:
        is_time = state.last_becn_at_ps == OFF or signal.now_ps - state.last_becn_at_ps >= params.becn_interval_ps
        if is_time:
            state.send_cnp = 1
            state.last_becn_at_ps = signal.now_ps


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.CNP, Kind.RESUME}),
    receiver_state=Receiver,
    receive=receive,
    receiver_signals="ecn",
    needs=frozenset({"ecn"}),
    source="IBTA InfiniBand specification, volume 1, annex A10; numbers of Linux hfi1, OpenSM and Mellanox OFED 2.3",
    variants={
        # The defaults above: what Mellanox's congestion manager sets (port_control 0: an index for each queue pair),
        # with a table in eighths of a packet's time, up to IRD 15.9.
        "mellanox": {},
        # chosen: entry i is IRD i, so that N senders share fairly at index N - 1. A step of the index is then coarse,
        # and a burst of BECNs goes too far; the interval lets at most one through before the last one has taken hold.
        "whole-steps": {"cct_shift": 0, "becn_interval_ps": "100us"},
    },
)
