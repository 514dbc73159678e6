"""What a policy sees and writes: the records that both engines, the software NIC and a policy's author share.

A policy is one file that offers ``PLUGIN``. Its step is called as a plain Python function by the reference engine and
as a compiled one by the native engine; the fields, their order and their types below are the contract between the two,
and ``native/packet/policy.hpp`` repeats them. Every field takes eight bytes: int64, or float64 where it says so.

Leaves out: central engineering (plain Python between runs; a later interface).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "CANDIDATE_DTYPE", "CONGESTION_CONTROL_PREFIX", "HOPS", "NO_WINDOW_BYTES", "OFF", "PATH_SELECTION_PREFIX",
    "PORT_SIGNAL_DTYPE", "RECEIVER_PREFIX", "SIGNAL_DTYPE", "TIMERS", "Candidate", "CongestionControl", "Kind", "Need",
    "PathSelection", "PathSpread", "PathState", "Plugin", "PortSelection", "PortSignal", "PortSpread",
    "ReceiverState", "SenderState", "Signal", "array", "row",
]  # fmt: skip

TIMERS: Final = 4  # per queue pair and side, as the design says
HOPS: Final = 8  # chosen: switches on the longest path whose telemetry a packet carries
OFF: Final = -1  # value of a timer that is not set
NO_WINDOW_BYTES: Final = float(2**53)  # chosen: above any window, exact in float64

Need = Literal["ecn", "telemetry", "rtt", "queue", "reorder-tolerance"]
PathSpread = Literal["constant", "evenly"]
PortSpread = Literal["hash", "destination", "evenly"]


class Kind(IntEnum):
    """What happened. Steps compare ``signal.kind`` with these numbers, imported by name from this module."""

    START = 0  # the queue pair exists and has its first message
    RESUME = 1  # it was idle, its timers were off, and has a message again
    SEND = 2  # a data packet leaves the NIC
    ACK = 3  # an acknowledgement; under spraying it may acknowledge nothing new (0 bytes) and still tell RTT and mark
    CNP = 4  # a congestion notification packet has arrived
    NAK = 5  # the receiver asks to go back
    TRIM = 6  # a packet's payload was cut on the way
    TIMEOUT = 7  # the retransmission timer has fired
    TIMER = 8  # one of the policy's own timers has fired
    CREDIT = 9  # the receiver has granted credit
    DATA = 10  # receiver: a data packet has arrived


SIGNAL_DTYPE: Final = np.dtype(
    [
        ("kind", np.int64),  # a Kind
        ("now_ps", np.int64),
        ("bytes", np.int64),  # ACK: payload newly acknowledged; SEND, DATA: payload; CREDIT: bytes granted
        ("rtt_ps", np.int64),  # of the packet that is acknowledged; 0: not known
        ("ecn", np.int64),  # 1: it was marked
        ("host_delay_ps", np.int64),  # part of the RTT spent in the receiving host
        ("fabric_delay_ps", np.int64),  # the rest of it
        ("seq", np.int64),  # ACK, NAK: next sequence number expected; SEND, DATA: of the packet (packets, not wrapped)
        ("next_seq", np.int64),  # the next one that the sender will send
        ("entropy", np.int64),  # ACK: echoed from the packet; SEND: that the packet carries
        ("timer", np.int64),  # TIMER: which of the four
        ("line_rate_bps", np.int64),
        ("base_rtt_ps", np.int64),  # of the path without queues
        ("mtu_bytes", np.int64),  # payload of a full packet
        ("inflight_bytes", np.int64),  # payload sent and not acknowledged
        ("backlog_bytes", np.int64),  # payload posted and not sent yet
        ("draw", np.int64),  # path selection: 62 random bits of this packet's identity
        ("hops", np.int64),  # telemetry: switches passed
        ("hop_queue_bytes", np.int64, (HOPS,)),
        ("hop_tx_bytes", np.int64, (HOPS,)),
        ("hop_rate_bps", np.int64, (HOPS,)),
        ("hop_at_ps", np.int64, (HOPS,)),
    ]
)

PORT_SIGNAL_DTYPE: Final = np.dtype(
    [
        ("now_ps", np.int64),
        ("hash", np.int64),  # of the chosen fields, by the switch's own hash, after its offset
        ("draw", np.int64),  # 62 random bits of this packet's identity at this switch
        ("bytes", np.int64),  # of the frame
        ("candidates", np.int64),  # how many; the array holds as many
        ("is_data", np.int64),  # 0: ACK, CNP and other control packets
        ("destination", np.int64),  # number of the NIC port that the packet goes to, counted leaf by leaf
        ("stride", np.int64),  # consecutive numbers that the tiers below have already told apart; 1 at a leaf
        ("choice", np.int64),  # written by the step: index of the candidate
    ]
)

CANDIDATE_DTYPE: Final = np.dtype(
    [
        ("queue_bytes", np.int64),  # of the packet's priority at that port, exact at this instant
        ("rate_bps", np.int64),
        ("up", np.int64),  # 0: the link is down and routes have not converged yet
        ("weight", np.int64),
    ]
)

# The first fields of every state; a policy's own fields follow in the order of its class.
CONGESTION_CONTROL_PREFIX: Final = (
    ("rate_bps", np.float64),  # what the NIC paces by
    ("window_bytes", np.float64),  # payload that may be in flight
    ("timer_at_ps", np.int64, (TIMERS,)),  # when to call back, or OFF
)
RECEIVER_PREFIX: Final = (
    ("send_cnp", np.int64),  # set to 1: the NIC sends a CNP now and clears it
    ("send_ack", np.int64),  # set to 1: the NIC acknowledges now and clears it
    ("credit_bytes", np.int64),  # above 0: the NIC grants that much now and clears it
    ("timer_at_ps", np.int64, (TIMERS,)),
)
PATH_SELECTION_PREFIX: Final = (("entropy", np.int64),)  # 0..65535, carried as the UDP source port


class Signal:
    """`SIGNAL_DTYPE` as a step's author sees it; for type checkers, the dtype decides."""

    kind: int
    now_ps: int
    bytes: int
    rtt_ps: int
    ecn: int
    host_delay_ps: int
    fabric_delay_ps: int
    seq: int
    next_seq: int
    entropy: int
    timer: int
    line_rate_bps: int
    base_rtt_ps: int
    mtu_bytes: int
    inflight_bytes: int
    backlog_bytes: int
    draw: int
    hops: int
    hop_queue_bytes: list[int]
    hop_tx_bytes: list[int]
    hop_rate_bps: list[int]
    hop_at_ps: list[int]


class PortSignal:
    """`PORT_SIGNAL_DTYPE` as a step's author sees it."""

    now_ps: int
    hash: int
    draw: int
    bytes: int
    candidates: int
    is_data: int
    destination: int
    stride: int
    choice: int


class Candidate:
    """`CANDIDATE_DTYPE` as a step's author sees it."""

    queue_bytes: int
    rate_bps: int
    up: int
    weight: int


class SenderState:
    """The prefix of a sender's state; a policy's ``State`` inherits it for type checkers and adds its own fields."""

    rate_bps: float
    window_bytes: float
    timer_at_ps: list[int]


class ReceiverState:
    """The prefix of a receiver's state."""

    send_cnp: int
    send_ack: int
    credit_bytes: int
    timer_at_ps: list[int]


class PathState:
    """The prefix of a path selection's state."""

    entropy: int


def array(size: int, fill: float = 0) -> Any:  # noqa: ANN401
    """Make the default of a small fixed array in a state: ``last_at_ps: list[int] = array(8, OFF)``."""
    return [fill] * size


def row(
    *, default: str | float, source: str, text: str, minimum: float | None = None, maximum: float | None = None
) -> Any:  # noqa: ANN401
    """One parameter of a policy: default, source and one sentence, as a dataclass field.

    Parameters
    ----------
    default : a number, or text with a unit (``55us``, ``40Mbps``, ``10MB``) that fits the unit in the field's name
    source : section of the paper, specification or file; or ``chosen: why``
    text : one sentence
    minimum, maximum : smallest and largest value allowed, in the unit of the name
    """
    return field(default=default, metadata={"source": source, "text": text, "minimum": minimum, "maximum": maximum})


@dataclass(frozen=True, kw_only=True, slots=True)
class CongestionControl:
    """A congestion control.

    Parameters
    ----------
    params, state : classes of annotated fields (int, float or bool; state also small fixed arrays)
    step : ``step(params, state, signal)`` at the sending NIC
    signals : kinds at which ``step`` is called; others cost nothing. TIMER and START are always included
    receiver_state, receive : the optional step of the receiving NIC, ``receive(params, state, shared, signal)``
    receiver_signals : DATA (every data packet), or "ecn" for marked ones only; TIMER is always included
    shared_state : class of a record that all queue pairs of one receiving NIC share, or None
    needs : what it needs of switches and transport, so that a scenario is refused before it runs
    source : the paper or specification
    variants : named sets of parameters, such as ``paper``
    """

    params: type
    state: type
    step: Callable[..., None]
    source: str
    signals: frozenset[Kind]
    receiver_state: type | None = None
    receive: Callable[..., None] | None = None
    receiver_signals: Literal["data", "ecn"] = "data"
    shared_state: type | None = None
    needs: frozenset[Need] = frozenset()
    variants: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class PathSelection:
    """A path selection at the NIC: ``step(params, state, signal)`` writes ``state.entropy``.

    It is called with SEND before a packet leaves (``per="packet"``) or before a message's first packet
    (``per="message"``), and with ACK, NAK and TIMEOUT where ``signals`` names them.

    Parameters
    ----------
    spreads : what it comes to where no packet is simulated, which the flow engine reads: ``constant``, a queue pair
        keeps the entropy that the NIC gave it; ``evenly``, its packets take many entropies equally often. None:
        neither, and the flow engine refuses it. `weftwork.policies.spread` holds a declaration to the step
    """

    params: type
    state: type
    step: Callable[..., None]
    source: str
    per: Literal["packet", "message"] = "packet"
    signals: frozenset[Kind] = frozenset()
    reorders: bool = True
    spreads: PathSpread | None = None
    needs: frozenset[Need] = frozenset()
    variants: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class PortSelection:
    """A port selection at the switch: ``step(params, state, signal, candidates)`` writes ``signal.choice``.

    The state belongs to the switch. ``needs={"queue"}`` fills ``queue_bytes``; without it the field is 0.

    Parameters
    ----------
    spreads : what it comes to where no packet is simulated, which the flow engine reads: ``hash``, the candidate is
        hash mod candidates; ``destination``, destination // stride mod candidates; ``evenly``, the packets of a flow
        leave by all candidates equally often. None: none of them, and the flow engine refuses it.
        `weftwork.policies.spread` holds a declaration to the step
    """

    params: type
    state: type
    step: Callable[..., None]
    source: str
    reorders: bool = False
    spreads: PortSpread | None = None
    needs: frozenset[Need] = frozenset()
    variants: dict[str, dict[str, Any]] = field(default_factory=dict)


Plugin = CongestionControl | PathSelection | PortSelection
