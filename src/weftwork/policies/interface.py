"""The records that a policy reads and writes.

Both engines, the software NIC and the authors of policies share them. A policy is one file that offers ``PLUGIN``. Its
step is called as a plain Python function by the reference engine and as a compiled one by the native engine; the
fields, their order and their types below are the contract between the two, and ``native/rows/policies.hpp`` is
written from them. Every field takes eight bytes: int64, or float64 where it says so.

Leaves out: central engineering (plain Python between runs; a later interface).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Literal, get_type_hints

import numpy as np

from weftwork.spec.transport import ReplyEntropy

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "CANDIDATE_DTYPE", "CONGESTION_CONTROL_PREFIX", "HOPS", "INTERFACE", "MOST_CLASSES", "NO_WINDOW_BYTES", "OFF",
    "PATH_SELECTION_PREFIX", "PORT_SIGNAL_DTYPE", "RECEIVER_PREFIX", "SIGNAL_DTYPE", "TIMERS",
    "WRITTEN_BY_PORT_SELECTION", "Candidate", "CongestionControl", "Kind", "Need", "PathSelection", "PathSpread",
    "PathState", "Plugin", "PortSelection", "PortSignal", "PortSpread", "ReceiverState", "Reorders", "ReplyEntropy",
    "SenderState", "Signal", "array", "row",
]  # fmt: skip

INTERFACE: Final = 1  # version of all that stands here; docs/models/policy-interface.md says what is stable
TIMERS: Final = 4  # per queue pair and side, as the design says
HOPS: Final = 8  # chosen: switches on the longest path whose telemetry a packet carries
MOST_CLASSES: Final = 8  # traffic classes of a port: IEEE 802.1Q, clause 8.6.6
OFF: Final = -1  # value of a timer that is not set
NO_WINDOW_BYTES: Final = float(2**53)  # chosen: above any window, exact in float64

Need = Literal[
    "ecn",  # switches that mark packets
    "telemetry",  # switches that write queue, bytes, rate and time of each hop into packets
    "path-load",  # switches that write the smoothed load of the path's busiest port into packets, in a byte
    "rtt",  # packets that carry the time at which they were sent, and acknowledgements that return it
    "entropy",  # acknowledgements that return the entropy of their packet
    "request",  # data packets that carry the sender's request to the receiver
    "trimming",  # a transport and switches that cut packets instead of dropping them
    "queue",  # port selection: bytes in the queues of candidates, and whether they are paused
    "weight",  # port selection: weights by the capacity of the ways behind each candidate
    "hops-left",  # port selection: switches that remain behind each candidate
    "non-minimal",  # port selection: candidates on longer paths too
    "channel",  # port selection: the virtual channel that routing gives a packet behind each candidate
    "detour",  # port selection: an intermediate switch drawn by routing, and the groups of a packet's ends
    "reorder-tolerance",  # a receiver that keeps packets that come early
]
Reorders = Literal["never", "on-move", "always"]
PathSpread = Literal["constant", "evenly"]
PortSpread = Literal["hash", "weighted-hash", "destination", "evenly"]


class Kind(IntEnum):
    """Kind of an event.

    Steps compare ``signal.kind`` with these numbers, imported by name from this module.
    """

    START = 0  # sender: the queue pair exists and has its first message
    RESUME = 1  # sender: it was idle, its timers were off, and has a message again
    SEND = 2  # sender: a data packet leaves the NIC
    ACK = 3  # sender: an acknowledgement; it may acknowledge nothing new (0 bytes) and still tell RTT and mark
    CNP = 4  # sender: a congestion notification packet has arrived; a path selection is never told
    NAK = 5  # sender: the receiver asks to go back, or for what it lacks
    TRIM = 6  # sender, receiver: a packet's payload was cut on the way, and its headers have arrived
    TIMEOUT = 7  # sender: the retransmission timer has fired
    TIMER = 8  # sender, receiver: one of the policy's own timers has fired
    CREDIT = 9  # sender: the receiver has granted credit; a path selection is never told
    DATA = 10  # receiver: a data packet has arrived
    REQUEST = 11  # receiver: the sender asks for credit


def _record(owner: type) -> tuple[tuple[str, type] | tuple[str, type, tuple[int]], ...]:
    """Columns of a record, from the annotated fields of its class.

    The names stand only there.
    """
    columns: list[tuple[str, type] | tuple[str, type, tuple[int]]] = []
    for name, hint in get_type_hints(owner).items():
        default = owner.__dict__.get(name)
        kind = np.float64 if hint in (float, list[float]) else np.int64
        columns.append((name, kind, (len(default),)) if isinstance(default, list) else (name, kind))
    return tuple(columns)


def array(size: int, fill: float = 0) -> Any:  # noqa: ANN401
    """Make the default of a small fixed array in a state: ``last_at_ps: list[int] = array(8, OFF)``."""
    return [fill] * size


class Signal:
    """Signal to a sender's step, a receiver's step or a path selection.

    It is read only. The comment behind a field names the kinds that fill it, and whose; without a name every signal
    does. Elsewhere a field is 0. `weftwork.policies.described` and docs/models/policy-interface.md read these comments.
    """

    kind: int  # a Kind
    now_ps: int  # the instant of the call
    bytes: int  # ACK: payload newly acknowledged; SEND, DATA, TRIM: payload; CREDIT: bytes newly granted
    rtt_ps: int  # sender ACK, TRIM: since the packet was sent; 0: not known
    ecn: int  # ACK, DATA: 1: it was marked
    host_delay_ps: int  # sender ACK, TRIM: part of the RTT spent in the receiving host; DATA: in this host
    fabric_delay_ps: int  # sender ACK, TRIM: the rest of the RTT
    seq: int  # ACK, NAK: next number expected; SEND, DATA, TRIM: of the packet; REQUEST: next_seq when it was queued
    next_seq: int  # sender: number of the next packet, from 0, not wrapped; going back lowers it
    entropy: int  # ACK, NAK, TRIM: echoed from the packet; SEND, DATA: that it carries; TIMEOUT: of the oldest packet
    timer: int  # TIMER: which of the four
    line_rate_bps: int  # of the NIC port, now
    base_rtt_ps: int  # of the path without queues
    mtu_bytes: int  # payload of a full packet
    inflight_bytes: int  # sender: payload that was sent and of which nothing is known
    backlog_bytes: int  # sender: payload posted and not sent yet
    draw: int  # path SEND: 62 random bits of this packet's identity
    arrived_bytes: int  # ACK: payload newly known to have arrived, also beyond gaps
    marked_bytes: int  # ACK: payload that has arrived with a mark since the last ACK signal
    lost_bytes: int  # sender ACK, NAK, TRIM, TIMEOUT: payload newly known to be lost
    completed_messages: int  # ACK: messages newly acknowledged whole
    last_hop: int  # TRIM: 1: the switch that cut the packet is the receiver's own
    request_bytes: int  # receiver DATA, TRIM, REQUEST: what the sender's state said
    fabric_base_rtt_ps: int  # sender: the longest base RTT of any two NIC ports
    hops: int  # ACK, NAK, TRIM, DATA, REQUEST: switches that the packet has passed, from its TTL
    hop_queue_bytes: list[int] = array(HOPS)  # ACK: of the packet's queue at each switch, as it left
    hop_tx_bytes: list[int] = array(HOPS)  # ACK: sent by that port so far
    hop_rate_bps: list[int] = array(HOPS)  # ACK: of that port
    hop_at_ps: list[int] = array(HOPS)  # ACK: when it left
    hop_port: list[int] = array(HOPS)  # ACK: global id of the port by which it left
    path_load: float  # ACK: smoothed load of the busiest port on the packet's way, where 1 is full, as a code tells it


class PortSignal:
    """Signal to a port selection, which writes the last four fields."""

    now_ps: int  # the instant of the call
    hash: int  # of the chosen fields, by the switch's own hash, after its offset
    draw: int  # 62 random bits of this packet's identity at this switch
    bytes: int  # of the frame
    candidates: int  # how many; the array holds as many
    is_data: int  # 0: ACK, CNP and other control packets
    destination: int  # number of the NIC port that the packet goes to, counted leaf by leaf
    stride: int  # consecutive numbers that the tiers below have already told apart; 1 at a leaf
    node: int  # id of this switch
    tier: int  # of this switch: 1 a leaf, and so on upwards
    group: int  # pod or group of this switch; -1: none
    in_port: int  # local index of the port by which the packet came in
    ports: int  # of this switch; the rows of `port_state` are as many
    hops: int  # switches passed before this one
    queue_pair_hash: int  # 62 bits of the queue pair's identity, the same everywhere
    edge: int  # number of this switch among those with hosts; -1: it has none
    from_edge: int  # of the switch of the NIC port that has sent the packet
    to_edge: int  # of the switch of the NIC port that it goes to
    edges: int  # how many there are
    from_group: int  # pod or group of the switch of `from_edge`; -1: none
    via_group: int  # pod or group of the switch of `via`; -1: none, or `via` is OFF
    detour: int  # edge drawn for this packet, by which it may go round; OFF: none, as within a switch or group
    queue_pair_detour: int  # the same for all packets of the queue pair
    hops_after_via: int  # switches from `via` to the destination; 0 where `via` is OFF
    delivered: int  # 1: the only candidate leads to the receiver's NIC port
    virtual_channel: int  # of the packet within its priority, from 0; may be written
    word: int  # travels with the packet, 0 at its NIC; may be written
    via: int  # edge that the packet passes first, or OFF; may be written
    choice: int  # written: index of the candidate; 0 when the step is called


class Candidate:
    """One port by which a packet may leave; the port is up.

    A field whose need is not declared is 0.
    """

    queue_bytes: int  # of the packet's class at that port, exact at this instant
    rate_bps: int  # of the port, now
    weight: int  # capacity of the ways behind it beside that of the others, in whole numbers; 1 where nobody asks
    port: int  # local index at this switch
    paused: int  # 1: the far end forbids the packet's class now
    hops_left: int  # switches that the packet passes after this one, if it goes on by a shortest path
    minimal: int  # 1: on a shortest path, as all are without the need
    channel: int  # virtual channel that routing gives the packet behind the port
    turn_channel: int  # the same if a new part of its way begins here: from `via` on, or towards a `via` after a start


class SenderState:
    """The prefix of a sender's state.

    A policy's ``State`` inherits it for type checkers and adds its own fields.
    """

    rate_bps: float  # what the NIC paces by; at START the line rate
    window_bytes: float  # payload that may be in flight; at START `NO_WINDOW_BYTES`
    timer_at_ps: list[int] = array(TIMERS, OFF)  # when to call back, or OFF
    timeout_ps: int  # own retransmission timeout; 0: the transport's
    segment_bytes: int  # frames that leave back to back before the next pause; 0: every packet is paced
    request_bytes: int  # carried in the header of each packet that is sent
    send_request: int  # set to 1: the NIC sends a REQUEST now and clears it


class ReceiverState:
    """The prefix of a receiver's state."""

    send_cnp: int  # set to 1: the NIC sends a CNP now and clears it
    send_ack: int  # set to 1: the NIC acknowledges now and clears it
    credit_bytes: int  # all that was ever granted: the NIC sends a CREDIT with it whenever it has grown
    send_credit: int  # set to 1: the NIC sends the CREDIT again and clears it
    timer_at_ps: list[int] = array(TIMERS, OFF)  # when to call back, or OFF


class PathState:
    """The prefix of a path selection's state."""

    entropy: int  # 0 to 65,535, carried as the UDP source port; at first the queue pair's own
    timer_at_ps: list[int] = array(TIMERS, OFF)  # when to call back, or OFF


SIGNAL_DTYPE: Final = np.dtype(list(_record(Signal)))
PORT_SIGNAL_DTYPE: Final = np.dtype(list(_record(PortSignal)))
CANDIDATE_DTYPE: Final = np.dtype(list(_record(Candidate)))
# The first fields of every state; a policy's own fields follow in the order of its class.
CONGESTION_CONTROL_PREFIX: Final = _record(SenderState)
RECEIVER_PREFIX: Final = _record(ReceiverState)
PATH_SELECTION_PREFIX: Final = _record(PathState)
WRITTEN_BY_PORT_SELECTION: Final = ("virtual_channel", "word", "via", "choice")


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
    receiver_signals : DATA (every data packet), or "ecn" for marked ones only; TIMER, TRIM and REQUEST are always
        included
    shared_state : class of a record that all queue pairs of one receiving NIC share, or None
    moves_departures : whether a change of the rate moves the departure that is already set
    is_loss_based : whether losses tell it of congestion or bound its rate, so that PFC, which prevents them, would
        leave it without a signal; ``weftwork cross`` runs it on switches that drop packets, and all others under PFC
    needs : what it needs of switches and transport, so that a scenario is refused before it runs
    source : the paper or specification
    variants : named sets of parameters, such as ``paper``
    interface : version of this module for which the file was written; another one is refused on loading
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
    moves_departures: bool = False
    is_loss_based: bool = False
    needs: frozenset[Need] = frozenset()
    variants: dict[str, dict[str, Any]] = field(default_factory=dict)
    interface: int = INTERFACE


@dataclass(frozen=True, kw_only=True, slots=True)
class PathSelection:
    """A path selection at the NIC.

    ``step(params, state, signal)`` writes ``state.entropy``. It is called with SEND before a packet leaves
    (``per="packet"``) or before a message's first packet (``per="message"``), with TIMER, and with START, RESUME, ACK,
    NAK, TRIM and TIMEOUT where ``signals`` names them.

    Parameters
    ----------
    step : ``step(params, state, signal)`` at the sending NIC
    per : ``packet`` or ``message``: before which of them SEND is told
    signals : kinds at which ``step`` is called, besides SEND and TIMER
    reorders : whether packets of a queue pair overtake each other: ``never``; ``on-move``, when it changes the path;
        ``always``
    reply_entropy : which one ACKs and NAKs take, unless ``transport.reply_entropy`` says otherwise: ``own``, that of
        the queue pair; ``echoed``, that of the packet which they answer
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
    reorders: Reorders = "always"
    reply_entropy: ReplyEntropy = "own"
    spreads: PathSpread | None = None
    needs: frozenset[Need] = frozenset()
    variants: dict[str, dict[str, Any]] = field(default_factory=dict)
    interface: int = INTERFACE


@dataclass(frozen=True, kw_only=True, slots=True)
class PortSelection:
    """A port selection at the switch.

    ``step(params, state, signal, candidates)`` writes ``signal.choice``. The state belongs to the switch. Candidates
    are up. ``needs={"queue"}`` fills ``queue_bytes`` and ``paused``, ``"hops-left"`` fills ``hops_left``; without it a
    field is 0. ``"weight"`` asks routing for weights, else all
    are 1. ``"non-minimal"`` adds the other ports that lead to the destination, behind the minimal ones.

    Parameters
    ----------
    step : ``step(params, state, signal, candidates)`` at the switch
    port_state : class of a record that each port of the switch has, or None. The step is then
        ``step(params, state, ports, signal, candidates)``; ``ports[candidates[i].port]`` is the record of a candidate
    always : whether the step is called where there is one candidate too
    at_delivery : whether it is called at the last switch, where the one candidate leads to the receiver
    waits_for_routes : whether a port that has gone down stays a candidate until routes are computed anew, as in a table
        that routing fills; a packet that goes there is lost
    layer_by_word : whether the packet's word chooses its layer of routes, 0 the shortest paths and 1 the first layer;
        else its entropy does
    virtual_channels : queues that each priority has at a port; the step moves a packet by ``signal.virtual_channel``
    reorders : whether packets of a flow overtake each other: ``never``; ``on-move``, when it changes the port;
        ``always``
    spreads : what it comes to where no packet is simulated, which the flow engine reads: ``hash``, the candidate is
        hash mod candidates; ``weighted-hash``, the candidate into whose part of the sum of weights the hash modulo that
        sum falls; ``destination``, destination // stride mod candidates; ``evenly``, the packets of a flow
        leave by all candidates equally often. None: none of them, and the flow engine refuses it.
        `weftwork.policies.spread` holds a declaration to the step
    """

    params: type
    state: type
    step: Callable[..., None]
    source: str
    port_state: type | None = None
    always: bool = False
    at_delivery: bool = False
    waits_for_routes: bool = False
    layer_by_word: bool = False
    virtual_channels: int = 1
    reorders: Reorders = "never"
    spreads: PortSpread | None = None
    needs: frozenset[Need] = frozenset()
    variants: dict[str, dict[str, Any]] = field(default_factory=dict)
    interface: int = INTERFACE


Plugin = CongestionControl | PathSelection | PortSelection
