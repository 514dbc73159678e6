"""Settings of a packet run besides its input: policies, recordings, captured frames.

Source: docs/models/packet-engine.md; `weftwork.engine.packet` fills them.
"""

from __future__ import annotations

from typing import Final

from weftwork.engine.packet_input import PACKET_INPUT, ROUTE_TABLE
from weftwork.engine.rows.declare import ArrayField, Header, Input, RowType, flag, record_bytes, whole
from weftwork.engine.rows.policies import PATH_STATE, RECEIVER_STATE, SENDER_STATE

__all__ = ["CAPTURE_REQUEST", "CONGESTION", "HEADER", "PATH_CHOICE", "PORT_CHOICE", "SERIES_REQUEST", "STATE_FIELD_ROW"]

_STEP: Final = whole("step_address", "of the compiled step; 0: none", type="uint64")
_SIGNALS: Final = whole("signals", "bits of the kinds at which the step is called", type="uint32")

_PARAMS: Final = record_bytes("params", "of its parameters, which only its step reads")

CONGESTION: Final = Input(
    struct="CongestionSettings",
    text="A congestion control. Its own classes declare its records.",
    members=(
        _STEP,
        whole("receive_address", "of the receiver's compiled step; 0: none", type="uint64"),
        _SIGNALS,
        flag("receive_all", "the receiver's step is called for each data packet; else only for marked ones"),
        flag("moves_departures", "a change of the rate moves the departure that is already set"),
        _PARAMS,
        record_bytes("state", "of a sender at the start", begins=SENDER_STATE),
        record_bytes("receiver_state", "of a receiver at the start; empty: no such step", begins=RECEIVER_STATE),
        record_bytes("shared_state", "that the receivers of a NIC share; empty: none, and only its step reads it"),
    ),
)
PATH_CHOICE: Final = Input(
    struct="PathSettings",
    text="A path selection. Its own classes declare its records; without a step the entropy is constant.",
    members=(
        _STEP,
        _SIGNALS,
        flag("per_message", "the step is called once for each message; else for each packet"),
        _PARAMS,
        record_bytes("state", "of a queue pair at the start; empty: no step", begins=PATH_STATE),
    ),
)
PORT_CHOICE: Final = Input(
    struct="PortSettings",
    text="A port selection. Its own classes declare its records.",
    members=(
        _STEP,
        flag("queue", "the step needs queues of the candidates"),
        flag("paused", "the step reads `paused`"),
        flag("origin", "the step reads `queue_pair_hash`, `from_edge` or `to_edge`"),
        flag("plain_ecmp", "the catalogue's own ecmp: hash mod candidates, computed in place"),
        flag("hops_left", "the step needs the switches that remain behind each candidate"),
        flag("non_minimal", "candidates on longer paths too"),
        flag("channel", "the step reads `channel` or `turn_channel`"),
        flag("detour", "the step reads `detour`, or groups of a packet's ends"),
        flag("via", "the step reads or writes `via`"),
        flag("always", "the step is called for a single candidate too"),
        flag("at_delivery", "the step is called at the destination's attachment too"),
        flag("waits_for_routes", "a port that is down stays a candidate"),
        flag("layer_by_word", "the packet's word chooses its layer of routes, not its entropy"),
        _PARAMS,
        record_bytes("state", "of a switch at the start, which only its step reads"),
        record_bytes("port_state", "of one port at the start; empty: none, and only its step reads it"),
    ),
)
STATE_FIELD_ROW: Final = RowType(
    struct="StateField",
    text="One number of the state of a queue pair's policies that is recorded.",
    fields=(
        flag("of_path", "of the path selection's state, else of the congestion control's at the sender"),
        flag("is_float", "else an int64"),
        whole("place", "in the record, in numbers of eight bytes"),
    ),
)
SERIES_REQUEST: Final = Input(
    struct="SeriesRequest",
    text="What is recorded over time: ports, queue pairs, events, a timeline of all ports, and paths.",
    members=(
        whole("every_ps", "between two samples; 0: none"),
        flag("all_flows", "all queue pairs are recorded"),
        whole("row_limit", "of samples; beyond it every second instant is dropped"),
        whole("event_limit", "of recorded events"),
        whole("timeline_bins", "the most that are kept; 0: no timeline"),
        whole("path_sample", "every so many data packets are followed; 0: none", type="uint32"),
        ArrayField(name="ports", item="int32", holds="PortId", text="whose queues are recorded"),
        ArrayField(name="flows", item="uint64", text="identities of recorded flows"),
        ArrayField(name="state", item="", rows=STATE_FIELD_ROW, text="more of these flows"),
    ),
)
CAPTURE_REQUEST: Final = Input(
    struct="CaptureRequest",
    text="Ports whose frames are captured; none: nothing.",
    members=(
        ArrayField(name="ports", item="int32", holds="PortId", text="whose frames are captured"),
        whole("row_limit", "of each port"),
    ),
)
HEADER: Final = Header(
    name="packet_run",
    text="A packet run as its engine takes it.",
    includes=(
        "base/ids.hpp",
        "base/record_bytes.hpp",
        "packet/ids.hpp",
        "rows/fabric.hpp",
        "rows/job.hpp",
        "rows/policies.hpp",
    ),
    parts=(
        ROUTE_TABLE,
        PACKET_INPUT,
        CONGESTION,
        PATH_CHOICE,
        PORT_CHOICE,
        STATE_FIELD_ROW,
        SERIES_REQUEST,
        CAPTURE_REQUEST,
    ),
)
