"""Rows of a flow run's results, and of the paths that its router finds.

`weftwork.engine.flow.outcome` says how the tables are ordered.
"""

from __future__ import annotations

from typing import Final

from weftwork.engine.rows.declare import Enum, Header, RowType, identity, real, whole

__all__ = [
    "ACTIVITY_DTYPE",
    "ACTIVITY_ROW",
    "ACTOR_DTYPE",
    "ACTOR_ROW",
    "CARRIED_DTYPE",
    "CARRIED_ROW",
    "FLOW_ENDS_DTYPE",
    "FLOW_ENDS_ROW",
    "FLOW_MILESTONE_DTYPE",
    "FLOW_MILESTONE_ROW",
    "FLOW_PROGRESS_DTYPE",
    "FLOW_PROGRESS_ROW",
    "FLUID_REPORT_DTYPE",
    "FLUID_REPORT_ROW",
    "FOLDED_DTYPE",
    "FOLDED_ROW",
    "HEADER",
    "HOP_DTYPE",
    "HOP_ROW",
    "LANE_DTYPE",
    "LANE_ROW",
    "ROUTE_DTYPE",
    "ROUTE_ROW",
    "SEGMENT_DTYPE",
    "SEGMENT_ROW",
    "SPENT",
    "TIER_BYTES_DTYPE",
    "TIER_BYTES_ROW",
]  # fmt: skip

SPENT: Final = ("computing", "waiting", "communicating")  # SEGMENT_ROW.code

ACTOR_ROW: Final = RowType(
    struct="ActorRow",
    space="python",
    text="What ran: a rank, or the one that stands for ranks that are alike.",
    fields=(
        whole("rank", "that ran"),
        whole("ranks", "that are alike"),
        whole("program", "that they run"),
    ),
)
TIER_BYTES_ROW: Final = RowType(
    struct="TierRow",
    space="python",
    text="Traffic of a tier in a bin of time.",
    fields=(
        whole("start_ps", "begin of the bin"),
        whole("at_ps", "end of the bin"),
        whole("tier", "index of the tier's name"),
        real("bytes", "headers and gaps included"),
        real("flows", "mean number in progress; inside servers of ranks that communicate"),
    ),
)
LANE_ROW: Final = RowType(
    struct="LaneRow",
    space="python",
    text="Packets of a connection at an egress port.",
    fields=(
        whole("source", "rank"),
        whole("destination", "rank"),
        whole("channel", "of the job"),
        whole("port", "egress"),
        whole("packets", "of the connection"),
    ),
)
CARRIED_ROW: Final = RowType(
    struct="Carried",
    space="flow",
    text="What went over a port.",
    fields=(
        real("bytes", "headers and gaps included"),
        real("packets", "a fraction where a message was spread"),
    ),
)
FLOW_MILESTONE_ROW: Final = RowType(
    struct="MilestoneRow",
    space="flow",
    text="A milestone that an actor has passed.",
    fields=(whole("actor", "that passed it"), whole("name", "index of its name"), whole("at_ps", "when")),
)
SEGMENT_ROW: Final = RowType(
    struct="SegmentRow",
    space="flow",
    text="Time of an actor's first stream.",
    fields=(
        whole("actor", "whose time it is"),
        whole("label", "index of a label, -1: none"),
        whole("code", "index into SPENT"),
        whole("start_ps", "begin"),
        whole("end_ps", "end"),
    ),
)
ACTIVITY_ROW: Final = RowType(
    struct="ActivityRow",
    space="flow",
    text="A whole collective, or a message that has a label.",
    fields=(
        whole("label", "index of a label"),
        whole("channel", "of the job"),
        whole("pattern", "index into PATTERNS, -1: a message"),
        whole("actor", "who posted first"),
        whole("ranks", "members"),
        whole("instances", "how many alike are folded into it"),
        whole("flows", "of the network, of one instance"),
        whole("operation", "index of the operation's name, -1: a message"),
        whole("size_bytes", "of the collective or message"),
        whole("posted_ps", "when the first member came"),
        whole("start_ps", "begin"),
        whole("end_ps", "end"),
    ),
)
HOP_ROW: Final = RowType(
    struct="Hop",
    space="flow",
    text="One link that an activity crosses.",
    fields=(
        identity("link", "LinkId", "that is crossed: the port that sends on it, or the port that stands for a bundle"),
        real("weight", "bytes on the link for each byte (unit of service) of the activity"),
    ),
)
ROUTE_ROW: Final = RowType(
    struct="RouteRow",
    space="python",
    text="What a path is besides its hops.",
    fields=(
        whole("reachable", "0: no path; the rest is then 0 and there are no hops"),
        whole("links", "crossed one after the other"),
        whole("latency_ps", "of several paths the longest"),
        real("rate_bps", "that the path carries for one flow alone"),
    ),
)
FLOW_ENDS_ROW: Final = RowType(
    struct="FlowEndsRow",
    space="python",
    text="A flow whose path is asked for.",
    fields=(
        whole("source_port", "NIC_ROW port"),
        whole("destination_port", "NIC_ROW port"),
        whole("entropy", "that switches hash"),
        whole("destination_qp", "that switches hash"),
        whole("queue_pair_hash", "that draws its detour"),
    ),
)
FLOW_PROGRESS_ROW: Final = RowType(
    struct="FlowProgressRow",
    space="python",
    text="How far a flow run has come.",
    fields=(
        whole("simulated_ps", "instant that was reached"),
        whole("end_ps", "of the last completion"),
        whole("events", "of the run"),
        whole("solves", "new shares"),
        whole("delivered_bytes", "payload"),
    ),
)
FOLDED_ROW: Final = RowType(
    struct="FoldedRow",
    space="python",
    text="What a job was folded to; all 0 where every message was posted by itself.",
    fields=(
        whole("ranks", "of the job"),
        whole("actors", "that run"),
        whole("activities", "of the job"),
        whole("activity_cells", "of activities that are alike"),
        whole("links", "of the fabric and inside servers"),
        whole("link_cells", "of links that are alike"),
        whole("kept", "activities of the critical core"),
        whole("rounds", "of refinement"),
    ),
)
FLUID_REPORT_ROW: Final = RowType(
    struct="FluidReportRow",
    space="python",
    text="How a whole run of the fluid solver went.",
    fields=(
        real("worst_rate_error", "of the comparisons with textbook filling, relative"),
        real("cpu_s", "of the thread, from the first start to the last completion"),
        whole("most_alive", "activities at one time"),
        whole("events", "repairs after starts, ends and changes of one instant"),
        whole("full", "of which by filling from scratch"),
        whole("links", "constraints brought to a new share"),
        whole("rates", "of variables that a repair changed"),
        whole("moves", "variables that got another bottleneck"),
    ),
)

ACTOR_DTYPE: Final = ACTOR_ROW.dtype
TIER_BYTES_DTYPE: Final = TIER_BYTES_ROW.dtype
LANE_DTYPE: Final = LANE_ROW.dtype
CARRIED_DTYPE: Final = CARRIED_ROW.dtype
FLOW_MILESTONE_DTYPE: Final = FLOW_MILESTONE_ROW.dtype
SEGMENT_DTYPE: Final = SEGMENT_ROW.dtype
ACTIVITY_DTYPE: Final = ACTIVITY_ROW.dtype
HOP_DTYPE: Final = HOP_ROW.dtype
ROUTE_DTYPE: Final = ROUTE_ROW.dtype
FLOW_ENDS_DTYPE: Final = FLOW_ENDS_ROW.dtype
FLOW_PROGRESS_DTYPE: Final = FLOW_PROGRESS_ROW.dtype
FOLDED_DTYPE: Final = FOLDED_ROW.dtype
FLUID_REPORT_DTYPE: Final = FLUID_REPORT_ROW.dtype
HEADER: Final = Header(
    name="flow_outcome",
    text="Results of a flow run, and paths.",
    includes=("flow/ids.hpp",),
    parts=(
        ACTOR_ROW,
        TIER_BYTES_ROW,
        LANE_ROW,
        CARRIED_ROW,
        FLOW_MILESTONE_ROW,
        Enum.of_words(SPENT, name="Spent", text="Uses of an actor's time.", space="flow"),
        SEGMENT_ROW,
        ACTIVITY_ROW,
        HOP_ROW,
        ROUTE_ROW,
        FLOW_ENDS_ROW,
        FLOW_PROGRESS_ROW,
        FOLDED_ROW,
        FLUID_REPORT_ROW,
    ),
)
