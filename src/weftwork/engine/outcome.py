"""Results of a packet engine: completions, counters, and their digest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.clock import NEVER_PS
from weftwork.engine.digest import digest_of
from weftwork.engine.waits import DEADLOCK_DTYPE, WAIT_DTYPE
from weftwork.policies.interface import HOPS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.base.caveat import Caveat

__all__ = [
    "CAPTURE_DTYPE",
    "CAPTURE_KINDS",
    "COUNTERS",
    "EVENT_DTYPE",
    "EVENT_KINDS",
    "MESSAGE_DTYPE",
    "MILESTONE_DTYPE",
    "PATH_DTYPE",
    "PORT_DTYPE",
    "QUEUE_PAIR_DTYPE",
    "SERIES_DTYPE",
    "SERIES_KINDS",
    "TIMELINE_DTYPE",
    "Outcome",
    "ending",
]

MESSAGE_DTYPE: Final = np.dtype(
    [
        ("source", np.int64),  # rank
        ("destination", np.int64),  # rank
        ("channel", np.int64),
        ("ordinal", np.int64),  # on its queue pair, from 0
        ("size_bytes", np.int64),
        ("posted_at_ps", np.int64),
        ("delivered_at_ps", np.int64),  # last byte at the receiver; -1: not delivered
        ("acked_at_ps", np.int64),  # -1: not acknowledged
    ]
)

PORT_DTYPE: Final = np.dtype(
    [
        ("frames", np.int64),  # packets that started transmission, flow-control frames not counted
        ("bytes", np.int64),  # of those frames
        ("drops", np.int64),  # of packets that wanted to leave here (egress reasons) or came in here (ingress reasons)
        ("marks", np.int64),
        ("pauses_sent", np.int64),  # flow-control frames with quanta above 0, refreshes included
        ("resumes_sent", np.int64),
        ("paused_ps", np.int64),  # summed over classes
        ("max_queue_bytes", np.int64),  # largest egress queue of one class, after an enqueue
        ("max_ingress_bytes", np.int64),  # largest use of one (port, class), headroom included
        ("trims", np.int64),  # packets that were cut because they found no room towards this port
        ("credit_frames", np.int64),  # that started transmission
        ("nic_state_bytes", np.int64),  # that the ends of connections took at a NIC port
        ("max_early_packets", np.int64),  # most that the receivers at a NIC port have kept behind gaps at once
    ]
)

COUNTERS: Final = (
    "packet_hops",  # arrivals of packets over links, lost ones included
    "data_sent",
    "retransmissions",
    "acks_sent",
    "naks_sent",
    "cnps_sent",
    "credits_sent",
    "probes_sent",
    "timeouts",
    "queue_pair_errors",
    "out_of_order_discards",
    "duplicates",
    "drop_no_route",
    "drop_link_down",
    "drop_link_loss",
    "drop_corrupted",
    "drop_buffer_full",
    "drop_egress_threshold",
    "drop_headroom_full",
    "drop_receive_buffer",
    "requests_sent",
    "trims",  # packets that a switch has cut to their headers
    "end_ps",  # instant of the last arrival of a packet
)

QUEUE_PAIR_DTYPE: Final = np.dtype([(name, np.int64) for name in ("source", "destination", "channel")])
MILESTONE_DTYPE: Final = np.dtype([("rank", np.int64), ("name", np.int64), ("at_ps", np.int64)])
SERIES_KINDS: Final = ("rate_bps", "window_bytes", "queue_bytes")  # of a flow, of a flow, of a port
SERIES_DTYPE: Final = np.dtype(
    [
        ("at_ps", np.int64),
        (
            "kind",
            np.int64,
        ),  # place in SERIES_KINDS; from its end on, of the fields of a flow's state that were asked for
        ("index", np.int64),  # queue pair in order of (source, destination, channel), or port
        ("value", np.float64),
    ]
)

EVENT_KINDS: Final = ("pause", "resume", "mark", "drop", "timeout", "go back")
EVENT_DTYPE: Final = np.dtype(
    [
        ("at_ps", np.int64),
        ("kind", np.int64),  # index into EVENT_KINDS
        ("place", np.int64),  # port; timeout and go back: queue pair in order of (source, destination, channel)
        ("detail", np.int64),  # pause, resume, mark: class; drop: index into packet_input.DROP_REASONS
    ]
)


TIMELINE_DTYPE: Final = np.dtype(
    [
        ("at_ps", np.int64),  # end of the bin; all but the last are multiples of `Outcome.timeline_bin_ps`
        ("port", np.int64),
        ("bytes", np.int64),  # of packets that started transmission in the bin, as PORT_DTYPE counts them
        ("queue_bytes", np.int64),  # of all classes, at the end; the largest where bins were merged
        ("marks", np.int64),
        ("drops", np.int64),
        ("pauses", np.int64),  # flow-control frames with quanta above 0 that were sent
        ("paused_ps", np.int64),  # summed over classes: for how long the port was paused within the bin
    ]
)

PATH_DTYPE: Final = np.dtype(
    [
        ("queue_pair", np.int64),  # in order of (source, destination, channel)
        ("port", np.int64),  # egress
        ("packets", np.int64),  # of the sample, retransmissions included
        ("queue_bytes", np.int64),  # that were queued there ahead of them, summed; 0 at a host
    ]
)


CAPTURE_KINDS: Final = ("DATA", "ACK", "NAK", "CNP", "CREDIT", "PROBE", "REQUEST", "PAUSE", "LINK CREDIT")
CAPTURE_DTYPE: Final = np.dtype(  # a frame that started at a port; what its kind does not have is 0
    [
        ("at_ps", np.int64),  # its first bit leaves the port
        ("port", np.int64),  # egress
        ("kind", np.int64),  # index into CAPTURE_KINDS
        ("traffic_class", np.int64),
        ("source", np.int64),  # rank, of the queue pair, whichever way the packet travels
        ("destination", np.int64),
        ("channel", np.int64),
        ("seq", np.int64),  # DATA: number of the packet; ACK, NAK: next expected; PROBE: first not acknowledged
        ("attempt", np.int64),
        ("origin", np.int64),  # NIC port that sends this packet
        ("target", np.int64),  # NIC port that it is for
        ("size_bytes", np.int64),  # of the frame with its check sequence
        ("payload_bytes", np.int64),  # DATA, also when it was cut
        ("entropy", np.int64),  # UDP source port
        ("hops", np.int64),  # DATA, REQUEST: switches passed
        ("marked", np.int64),  # DATA: by a switch; ACK, NAK: echoed
        ("asks_ack", np.int64),
        ("cut", np.int64),  # DATA: cut to its headers; ACK, NAK: caused by such a packet
        ("msn", np.int64),  # ACK, NAK
        ("credit_code", np.int64),  # ACK, NAK, where receivers give credits
        ("amount", np.int64),  # CREDIT, REQUEST, LINK CREDIT: bytes; PAUSE: quanta
        ("refused", np.int64),  # NAK: number of the packet that caused it; -1: none
        ("hop_count", np.int64),  # DATA, ACK, NAK: switches that have written telemetry, or into the packet echoed
        ("hop_queue_bytes", np.int64, (HOPS,)),
        ("hop_tx_bytes", np.int64, (HOPS,)),
        ("hop_rate_bps", np.int64, (HOPS,)),
        ("hop_at_ps", np.int64, (HOPS,)),
        ("hop_port", np.int64, (HOPS,)),
    ]
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """Results of one run.

    Attributes
    ----------
    messages : `MESSAGE_DTYPE`, by (source, destination, channel, ordinal)
    ports : `PORT_DTYPE`, one row per port
    counters : by the names of `COUNTERS`
    milestones : `MILESTONE_DTYPE`, by (rank, instant, order of the program)
    series : `SERIES_DTYPE`, empty unless asked for; not part of the digest
    complete, simulated_ps : how the run ended and how far it came, see `ending`
    events : `EVENT_DTYPE` by instant, empty unless asked for; not part of the digest
    events_left_out : how many did not fit the limit that was asked for
    timeline : `TIMELINE_DTYPE` by (bin, port), only rows with something in them; empty unless asked for
    timeline_bin_ps : length of a bin; 0 without a timeline
    paths : `PATH_DTYPE` by (queue pair, port), empty unless asked for; like the timeline no part of the digest
    caveats : what a user should know of this run, besides what is known before it
    waits : `WAIT_DTYPE`, what streams still wait for; empty after a run that did all; like `deadlock` no part of the
        digest
    deadlock : `DEADLOCK_DTYPE`, the cycle of ports that ended the run, in order; empty: none did
    captured : `CAPTURE_DTYPE` by (instant, port), empty unless asked for; not part of the digest
    captured_left_out : how many frames more started at the captured ports
    """

    messages: NDArray[np.void]
    ports: NDArray[np.void]
    counters: dict[str, int]
    milestones: NDArray[np.void]
    series: NDArray[np.void]
    complete: bool
    simulated_ps: int
    events: NDArray[np.void] = field(default_factory=lambda: np.empty(0, EVENT_DTYPE))
    events_left_out: int = 0
    timeline: NDArray[np.void] = field(default_factory=lambda: np.empty(0, TIMELINE_DTYPE))
    timeline_bin_ps: int = 0
    paths: NDArray[np.void] = field(default_factory=lambda: np.empty(0, PATH_DTYPE))
    caveats: dict[str, Caveat] = field(default_factory=dict)
    waits: NDArray[np.void] = field(default_factory=lambda: np.empty(0, WAIT_DTYPE))
    deadlock: NDArray[np.void] = field(default_factory=lambda: np.empty(0, DEADLOCK_DTYPE))
    captured: NDArray[np.void] = field(default_factory=lambda: np.empty(0, CAPTURE_DTYPE))
    captured_left_out: int = 0

    def digest(self) -> str:
        """SHA-256 over the completion times and counters that `weftwork.engine.digest` lists.

        Two runs that agree to the bit have the same digest.
        """
        return digest_of({"messages": self.messages, "ports": self.ports, "milestones": self.milestones}, self.counters)


def ending(
    *, is_done: bool, interrupted_at_ps: int | None, end_ps: int, until_ps: int, has_clock_ended: bool
) -> tuple[bool, int]:
    """Return how a run ended.

    It follows from the state of the job, which both engines know, and not from stale timers that are left.

    Parameters
    ----------
    is_done : every stream has stopped and every message is acknowledged
    interrupted_at_ps : how far an interrupted run had come; None for one that was not
    end_ps : the last arrival of a packet
    until_ps : of the engine input
    has_clock_ended : something would have to be done after the end of simulated time, `NEVER_PS`

    Returns
    -------
    ``complete`` : False if the run was interrupted, or ended at ``until_ps`` or with simulated time itself and the job
        was not done. A run without such an instant that came to rest is complete, even if its job waits for ever
    ``simulated_ps`` : ``end_ps`` of a complete run, else where it was stopped
    """
    if interrupted_at_ps is not None:
        return False, min(interrupted_at_ps, until_ps)
    if is_done or (until_ps == NEVER_PS and not has_clock_ended):
        return True, end_ps
    return False, until_ps
