"""Rows of a packet run's results: messages, ports, counters, recordings.

`weftwork.engine.outcome` says how the tables are ordered, and what the digest covers.
"""

from __future__ import annotations

from typing import Final

from weftwork.engine.rows.declare import Enum, Header, RowType, real, whole
from weftwork.policies.interface import HOPS
from weftwork.spec.port_counts import PORT_COUNTS

__all__ = [
    "CAPTURE_DTYPE",
    "CAPTURE_KINDS",
    "CAPTURE_ROW",
    "COUNTERS",
    "COUNTERS_DTYPE",
    "COUNTER_ROW",
    "EVENT_DTYPE",
    "EVENT_KINDS",
    "EVENT_ROW",
    "HEADER",
    "MESSAGE_DTYPE",
    "MESSAGE_ROW",
    "MILESTONE_DTYPE",
    "MILESTONE_ROW",
    "PATH_DTYPE",
    "PATH_ROW",
    "PORT_DTYPE",
    "PORT_ROW",
    "PROGRESS_DTYPE",
    "PROGRESS_ROW",
    "QUEUE_PAIR_DTYPE",
    "QUEUE_PAIR_ROW",
    "SERIES_DTYPE",
    "SERIES_KINDS",
    "SERIES_ROW",
    "TIMELINE_DTYPE",
    "TIMELINE_ROW",
]  # fmt: skip

SERIES_KINDS: Final = ("rate_bps", "window_bytes", "queue_bytes")  # of a flow, of a flow, of a port
EVENT_KINDS: Final = ("pause", "resume", "mark", "drop", "timeout", "go back")
CAPTURE_KINDS: Final = ("DATA", "ACK", "NAK", "CNP", "CREDIT", "PROBE", "REQUEST", "PAUSE", "LINK CREDIT")

MESSAGE_ROW: Final = RowType(
    struct="MessageRow",
    space="python",
    text="A message.",
    fields=(
        whole("source", "rank"),
        whole("destination", "rank"),
        whole("channel", "of the job"),
        whole("ordinal", "on its queue pair, from 0"),
        whole("size_bytes", "payload"),
        whole("posted_at_ps", "by the source's program"),
        whole("delivered_at_ps", "last byte at the receiver; -1: not delivered"),
        whole("acked_at_ps", "-1: not acknowledged"),
    ),
)
PORT_ROW: Final = RowType(
    struct="PortCounters",
    text="What a port has done; the core keeps some of it elsewhere, and fills it in at the end.",
    starts_empty=True,
    fields=tuple(whole(each.name, each.text.removesuffix(".")) for each in PORT_COUNTS),
)
COUNTER_ROW: Final = RowType(
    struct="Counters",
    text="Counters of a run.",
    starts_empty=True,
    fields=(
        whole("packet_hops", "arrivals of packets over links, lost ones included"),
        whole("data_sent", "packets"),
        whole("retransmissions", "packets"),
        whole("acks_sent", "packets"),
        whole("naks_sent", "packets"),
        whole("cnps_sent", "packets"),
        whole("credits_sent", "packets"),
        whole("probes_sent", "packets"),
        whole("timeouts", "of retransmission timers"),
        whole("queue_pair_errors", "queue pairs that gave up"),
        whole("out_of_order_discards", "packets that came early and were not kept"),
        whole("duplicates", "packets that came again"),
        whole("drop_no_route", "packets"),
        whole("drop_link_down", "packets"),
        whole("drop_link_loss", "packets"),
        whole("drop_corrupted", "packets"),
        whole("drop_buffer_full", "packets"),
        whole("drop_egress_threshold", "packets"),
        whole("drop_headroom_full", "packets"),
        whole("drop_receive_buffer", "packets"),
        whole("requests_sent", "packets"),
        whole("trims", "packets that a switch has cut to their headers"),
        whole("end_ps", "instant of the last arrival of a packet"),
    ),
)
QUEUE_PAIR_ROW: Final = RowType(
    struct="QueuePairRow",
    space="python",
    text="Ends of a queue pair, in the order in which series name them.",
    fields=(whole("source", "rank"), whole("destination", "rank"), whole("channel", "of the job")),
)
MILESTONE_ROW: Final = RowType(
    struct="MilestoneRecord",
    text="A milestone that a rank has passed.",
    fields=(whole("rank", "that passed it"), whole("name", "index of its name"), whole("at_ps", "when")),
)
SERIES_ROW: Final = RowType(
    struct="SeriesRow",
    text="A sample over time.",
    fields=(
        whole("at_ps", "when"),
        whole("kind", "place in SERIES_KINDS; from its end on, of the requested fields of a flow's state"),
        whole("index", "queue pair in order of (source, destination, channel), or port"),
        real("value", "of the sample"),
    ),
)
EVENT_ROW: Final = RowType(
    struct="EventRow",
    text="Something that a person looks for in time.",
    fields=(
        whole("at_ps", "when"),
        whole("kind", "index into EVENT_KINDS"),
        whole("place", "port; timeout and go back: queue pair in order of (source, destination, channel)"),
        whole("detail", "pause, resume, mark: class; drop: index into DROP_REASONS"),
    ),
)
TIMELINE_ROW: Final = RowType(
    struct="TimelineRow",
    space="python",
    text="What a port did in a bin of time.",
    fields=(
        whole("at_ps", "end of the bin; all but the last are multiples of the bin"),
        whole("port", "egress"),
        whole("bytes", "of packets that started transmission in the bin, as PORT_DTYPE counts them"),
        whole("queue_bytes", "of all classes, at the end; the largest where bins were merged"),
        whole("marks", "of ECN"),
        whole("drops", "of packets"),
        whole("pauses", "flow-control frames with quanta above 0 that were sent"),
        whole("paused_ps", "summed over classes: for how long the port was paused within the bin"),
    ),
)
PATH_ROW: Final = RowType(
    struct="PathRow",
    space="python",
    text="Sampled packets of a queue pair at an egress port.",
    fields=(
        whole("queue_pair", "in order of (source, destination, channel)"),
        whole("port", "egress"),
        whole("packets", "of the sample, retransmissions included"),
        whole("queue_bytes", "that were queued there ahead of them, summed; 0 at a host"),
    ),
)
CAPTURE_ROW: Final = RowType(
    struct="CaptureRow",
    text="A frame that started at a captured port; what its kind does not have is 0.",
    starts_empty=True,
    fields=(
        whole("at_ps", "its first bit leaves the port"),
        whole("port", "egress"),
        whole("kind", "index into CAPTURE_KINDS"),
        whole("traffic_class", "index of its class"),
        whole("source", "rank, of the queue pair, whichever way the packet travels"),
        whole("destination", "rank, of the queue pair"),
        whole("channel", "of the queue pair"),
        whole("seq", "DATA: number of the packet; ACK, NAK: next expected; PROBE: first not acknowledged"),
        whole("attempt", "of the packet"),
        whole("origin", "NIC_ROW port that sends this packet"),
        whole("target", "NIC_ROW port that it is for"),
        whole("size_bytes", "of the frame with its check sequence"),
        whole("payload_bytes", "DATA, also when it was cut"),
        whole("entropy", "UDP source port"),
        whole("hops", "DATA, REQUEST: switches passed"),
        whole("marked", "DATA: by a switch; ACK, NAK: echoed"),
        whole("asks_ack", "1: the packet asks for an acknowledgement"),
        whole("cut", "DATA: cut to its headers; ACK, NAK: caused by such a packet"),
        whole("msn", "ACK, NAK"),
        whole("credit_code", "ACK, NAK, where receivers give credits"),
        whole("amount", "CREDIT, REQUEST, LINK CREDIT: bytes; PAUSE: quanta"),
        whole("refused", "NAK: number of the packet that caused it; -1: none"),
        whole("hop_count", "DATA, ACK, NAK: switches that have written telemetry, or into the packet echoed"),
        whole("hop_queue_bytes", "of each such switch, in the order of the path", size=HOPS),
        whole("hop_tx_bytes", "of each such switch", size=HOPS),
        whole("hop_rate_bps", "of each such switch", size=HOPS),
        whole("hop_at_ps", "of each such switch", size=HOPS),
        whole("hop_port", "of each such switch", size=HOPS),
    ),
)
PROGRESS_ROW: Final = RowType(
    struct="ProgressRow",
    space="python",
    text="How far a packet run has come.",
    fields=(
        whole("simulated_ps", "instant that was reached"),
        whole("packet_hops", "arrivals of packets over links"),
        whole("delivered_bytes", "payload"),
    ),
)

MESSAGE_DTYPE: Final = MESSAGE_ROW.dtype
PORT_DTYPE: Final = PORT_ROW.dtype
COUNTERS: Final = COUNTER_ROW.names
COUNTERS_DTYPE: Final = COUNTER_ROW.dtype
QUEUE_PAIR_DTYPE: Final = QUEUE_PAIR_ROW.dtype
MILESTONE_DTYPE: Final = MILESTONE_ROW.dtype
SERIES_DTYPE: Final = SERIES_ROW.dtype
EVENT_DTYPE: Final = EVENT_ROW.dtype
TIMELINE_DTYPE: Final = TIMELINE_ROW.dtype
PATH_DTYPE: Final = PATH_ROW.dtype
CAPTURE_DTYPE: Final = CAPTURE_ROW.dtype
PROGRESS_DTYPE: Final = PROGRESS_ROW.dtype
HEADER: Final = Header(
    name="outcome",
    text="Results of a packet run.",
    numbers=(
        (
            "kSeriesKinds",
            len(SERIES_KINDS),
            "From there on, kinds of samples are of requested fields of a flow's state.",
        ),
        ("kCapturedPause", CAPTURE_KINDS.index("PAUSE"), "Kind of a captured frame of flow control."),
        ("kCapturedCredit", CAPTURE_KINDS.index("LINK CREDIT"), "Kind of a captured frame of credits between links."),
    ),
    parts=(
        MESSAGE_ROW,
        PORT_ROW,
        COUNTER_ROW,
        QUEUE_PAIR_ROW,
        MILESTONE_ROW,
        Enum.of_words(SERIES_KINDS, name="SeriesKind", text="Kinds of samples."),
        SERIES_ROW,
        Enum.of_words(EVENT_KINDS, name="EventKind", text="Kinds of recorded events."),
        EVENT_ROW,
        TIMELINE_ROW,
        PATH_ROW,
        CAPTURE_ROW,
        PROGRESS_ROW,
    ),
)
