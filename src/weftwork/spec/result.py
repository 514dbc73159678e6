"""The tables of a run: each column with type, unit and description.

Writer, reader, documents and tests share this. Leaves out: how a run is stored (`weftwork.store.runs`) and how it is
told (`weftwork.report`).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from weftwork.spec.port_counts import PORT_COUNTS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["TABLES", "Column", "Quantity"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One column of a table; ``optional`` columns may hold null."""

    name: str
    type: Literal["int64", "float64", "string"]
    unit: str
    text: str
    optional: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Quantity:
    """One number of a run's summary, with unit and description.

    It is None if there is nothing to measure.
    """

    value: float | int | None
    unit: str
    text: str


def _column(
    name: str, type_: Literal["int64", "float64", "string"], unit: str, text: str, *, optional: bool = False
) -> Column:
    return Column(name=name, type=type_, unit=unit, text=text, optional=optional)


_FLOWS = (
    _column("flow", "int64", "number", "Number of the message, by source, destination, channel and order."),
    _column("queue_pair", "int64", "number", "Number of its queue pair, by source, destination and channel."),
    _column("source", "string", "name", "Host that sends."),
    _column("destination", "string", "name", "Host that receives."),
    _column("source_rank", "int64", "number", "Rank that sends."),
    _column("destination_rank", "int64", "number", "Rank that receives."),
    _column("carrier", "string", "name", "packets between servers; nvlink or pcie inside one, by message."),
    _column("channel", "int64", "number", "Channel of the job."),
    _column("size_bytes", "int64", "B", "Payload."),
    _column("wire_bytes", "int64", "B", "The same on a link: headers and gaps included, each packet once."),
    _column("start_ps", "int64", "ps", "Instant at which the message was posted."),
    _column("delivered_ps", "int64", "ps", "Instant of its last byte at the receiver.", optional=True),
    _column("acked_ps", "int64", "ps", "Instant at which the sender knew that it was there.", optional=True),
    _column("fct_ps", "int64", "ps", "Flow completion time: delivered_ps - start_ps.", optional=True),
    _column("ideal_fct_ps", "int64", "ps", "The same on an empty fabric at line rate.", optional=True),
    _column("slowdown", "float64", "ratio", "fct_ps / ideal_fct_ps.", optional=True),
    _column("goodput_bps", "float64", "b/s", "8 x size_bytes / fct.", optional=True),
)
_LINKS = (
    _column("port", "int64", "number", "Number of the sending port."),
    _column("name", "string", "name", "Direction of the link, such as leaf0->spine1."),
    _column("link", "string", "name", "The link."),
    _column("node", "int64", "number", "Node that sends."),
    _column("peer", "int64", "number", "Node that receives."),
    _column("rate_bps", "int64", "b/s", "Rate."),
    _column("mean_rate_bps", "int64", "b/s", "Rate over the time of the run, with the faults that changed it."),
    _column("utilisation", "float64", "share", "Bytes sent, gaps included, over what the mean rate carries."),
    *(_column(each.name, "int64", each.unit, each.text) for each in PORT_COUNTS if each.is_column),
)
_RATES = (
    _column("port", "int64", "number", "Number of the sending port; only those whose rate a fault changed."),
    _column("at_ps", "int64", "ps", "Instant from which its link had this rate."),
    _column("rate_bps", "int64", "b/s", "Rate; 0 while the link is down."),
)
_COLLECTIVES = (
    _column("operation", "string", "name", "Collective operation."),
    _column("repetition", "int64", "number", "Number of the repetition, from 0."),
    _column("ranks", "int64", "count", "GPUs that took part."),
    _column("size_bytes", "int64", "B", "Bytes that each GPU brought."),
    _column("start_ps", "int64", "ps", "Instant at which the first rank began."),
    _column("end_ps", "int64", "ps", "Instant at which the last rank had its result.", optional=True),
    _column("duration_ps", "int64", "ps", "end_ps - start_ps.", optional=True),
    _column("first_end_ps", "int64", "ps", "Instant at which the first rank had its result.", optional=True),
    _column("last_rank", "int64", "number", "Rank that had its result last; the others waited for it.", optional=True),
    _column("algorithm_bandwidth_bps", "float64", "b/s", "8 x size / duration.", optional=True),
    _column(
        "bus_bandwidth_bps",
        "float64",
        "b/s",
        "As nccl-tests defines it: for an all-reduce 2 (n - 1) / n times that.",
        optional=True,
    ),
)
_SERIES = (
    _column("at_ps", "int64", "ps", "Instant of the sample."),
    _column(
        "kind",
        "string",
        "name",
        "rate_bps, window_bytes and fields of its policies of a queue pair, queue_bytes of a port.",
    ),
    _column("place", "string", "name", "Number of the queue pair, or name of the port."),
    _column("value", "float64", "as kind", "The sample; its unit is the end of the kind's name."),
)
_EVENTS = (
    _column("event", "string", "name", "pause, mark, drop, retransmission and so on; or a fault."),
    _column("detail", "string", "name", "Reason of a drop, or effect of a fault."),
    _column("place", "string", "name", "Port, link or switch; 'all' for a count over the fabric."),
    _column("at_ps", "int64", "ps", "Instant of the event (count 1); null: the total over the run.", optional=True),
    _column("count", "int64", "count", "Number of events."),
)
_TIMELINE = (
    _column("start_ps", "int64", "ps", "Begin of a bin of time."),
    _column("at_ps", "int64", "ps", "End of the bin."),
    _column("port", "int64", "number", "Number of the sending port."),
    _column("bytes", "int64", "B", "Bytes of the packets whose transmission began in the bin, gaps not counted."),
    _column("queue_bytes", "int64", "B", "Egress queue of all priorities at the end; the largest of bins made one."),
    _column("marks", "int64", "count", "Packets marked by ECN."),
    _column("drops", "int64", "count", "Packets dropped that wanted to leave here or came in here."),
    _column("pauses", "int64", "count", "PFC frames sent that ask the other end to pause, refreshes included."),
    _column("paused_ps", "int64", "ps", "Time for which this port was paused within the bin, summed over priorities."),
)
_PATHS = (
    _column("queue_pair", "int64", "number", "Number of the queue pair, by source, destination and channel."),
    _column("port", "int64", "number", "Number of a sending port on its path."),
    _column("packets", "int64", "count", "Data packets that took it, of those that were followed."),
    _column("mean_queue_bytes", "float64", "B", "Bytes that were queued there ahead of them, mean; 0 at a host."),
)
_NODES = (
    _column("node", "int64", "number", "Number of the node."),
    _column("name", "string", "name", "Host or switch."),
    _column("kind", "string", "name", "host or switch."),
    _column("role", "string", "name", "Name for the nodes of its tier, such as leaf."),
    _column("tier", "int64", "number", "0 for hosts, 1 for leaves and so on upwards."),
)
_SEGMENTS = (
    _column("job", "string", "name", "Training job."),
    _column("stage", "int64", "number", "Stage of its pipeline, from 0."),
    _column("rank", "int64", "number", "A rank of the job that did this; it stands for all that did the same."),
    _column("ranks", "int64", "count", "Ranks that did the same at the same time, itself included."),
    _column("gpu", "int64", "number", "GPU of that rank, counted over all servers from 0."),
    _column("micro_batch", "int64", "number", "Micro batch, from 0; -1 where the time belongs to none."),
    _column(
        "virtual_stage", "int64", "number", "Virtual stage on the stage, from 0; -1 where the time belongs to none."
    ),
    _column("pass", "string", "name", "Pass of the stage: forward, backward, update and so on."),
    _column(
        "kind",
        "string",
        "name",
        "Use of the time: compute, recompute, optimizer, launch; exposed communication by its kind (tensor, "
        "context, expert, pipeline, data); offload (activations that go to the host and return); bubble, skew (others "
        "were late); checkpoint, loading.",
    ),
    _column("start_ps", "int64", "ps", "Begin."),
    _column("end_ps", "int64", "ps", "End. The segments of a rank follow each other without gaps."),
)
_ACTIVITIES = (
    _column("job", "string", "name", "Training job."),
    _column("kind", "string", "name", "tensor, context, expert, pipeline, data, checkpoint or loading."),
    _column("operation", "string", "name", "Operation, such as all-reduce or send."),
    _column("ranks", "int64", "count", "Ranks that took part in one operation."),
    _column("instances", "int64", "count", "Equal operations at the same time, this operation included."),
    _column("flows", "int64", "count", "Network flows of one operation; 0 inside a server."),
    _column("size_bytes", "int64", "B", "Buffer of one operation, as nccl-tests counts it; of a message its payload."),
    _column("posted_ps", "int64", "ps", "Instant at which the first member wanted it."),
    _column("start_ps", "int64", "ps", "Instant at which the last member had come and it began."),
    _column("end_ps", "int64", "ps", "Instant at which every member had its result."),
)
_TIERS = (
    _column("start_ps", "int64", "ps", "Begin of a bin of time."),
    _column("at_ps", "int64", "ps", "End of the bin."),
    _column("tier", "string", "name", "nvlink, host, or links between two tiers such as host->leaf."),
    _column("bytes", "float64", "B", "Bytes that the links of the tier carried in the bin, headers included."),
    _column("flows", "float64", "count", "Flows that were under way on the tier, mean over the bin."),
    _column(
        "entropy",
        "float64",
        "bit",
        "Shannon entropy of how the bytes of the bin spread over flows: n equal flows have log2 n.",
        optional=True,
    ),
)
_JOBS = (
    _column("job", "string", "name", "Training job."),
    _column("model", "string", "name", "Model that the job trains."),
    _column("plan", "string", "name", "Its parallel plan, in words."),
    _column("gpus", "int64", "count", "GPUs that it has."),
    _column("start_ps", "int64", "ps", "Instant at which the measured iteration began."),
    _column("iteration_ps", "int64", "ps", "Time of one iteration.", optional=True),
    _column("tokens", "int64", "count", "Tokens of one iteration."),
    _column("tokens_per_s", "float64", "1/s", "Tokens over the time of the iteration.", optional=True),
    _column("tokens_per_s_per_gpu", "float64", "1/s", "The same for each GPU.", optional=True),
    _column("model_flops", "float64", "FLOP", "Work of one iteration without recomputation."),
    _column("mfu", "float64", "share", "Model FLOP utilisation: model_flops over what the GPUs could.", optional=True),
    _column(
        "compute_ps",
        "int64",
        "ps",
        "Time of an average rank that went to computing, recomputation included.",
        optional=True,
    ),
    _column(
        "exposed_ps",
        "int64",
        "ps",
        "Time of an average rank that went to communication which did not hide.",
        optional=True,
    ),
    _column("bubble_ps", "int64", "ps", "Time of an average rank that the pipeline left it idle.", optional=True),
    _column("exposed_share", "float64", "share", "exposed_ps / iteration_ps.", optional=True),
    _column("bubble_share", "float64", "share", "bubble_ps / iteration_ps.", optional=True),
    _column("memory_bytes", "int64", "B", "Memory of the GPU that needs most."),
    _column(
        "memory_share", "float64", "share", "memory_bytes over the memory of a GPU that may be used.", optional=True
    ),
    _column(
        "memory_likely_share",
        "float64",
        "share",
        "The same if memory is predicted as low as for the nearest measured rows.",
        optional=True,
    ),
)
_WHAT_IF = (
    _column("job", "string", "name", "Training job."),
    _column("change", "string", "name", "Imagined case, such as infinite network, no bubble or perfect overlap."),
    _column("iteration_ps", "int64", "ps", "Time of an iteration in this case."),
    _column("text", "string", "name", "Source of the time: simulated again, or a bound by a sum."),
)
_WAITS = (
    _column("job", "string", "name", "Job."),
    _column("rank", "int64", "number", "Rank that waits."),
    _column("host", "string", "name", "Host of the rank."),
    _column("ranks", "int64", "count", "Ranks that it stands for where ranks are folded, itself included."),
    _column("stream", "int64", "number", "Stream of its program, from 0."),
    _column("operation", "string", "name", "Operation, such as all-reduce, or data all-reduce of training."),
    _column("pass", "string", "name", "Training: pass of the pipeline that the rank has begun; empty: none."),
    _column("micro_batch", "int64", "number", "Training: its micro batch; -1: none."),
    _column("step", "int64", "number", "Turn of the innermost loop, from 0: the step of a collective."),
    _column("waits_for", "string", "name", "send, receive, token, collective, or time."),
    _column(
        "peer", "int64", "number", "Other end of the message; of a collective the first missing rank.", optional=True
    ),
    _column("peer_host", "string", "name", "Host of the peer.", optional=True),
    _column("channel", "int64", "number", "Channel of the message or collective.", optional=True),
    _column("ordinal", "int64", "number", "Number of message, call or token, from 0.", optional=True),
    _column("size_bytes", "int64", "B", "Payload of the message; buffer of the collective.", optional=True),
    _column("state", "string", "name", "not posted, under way, arrived (and not acknowledged) or failed."),
    _column("missing", "int64", "count", "Members of a collective that have not come; of a send unrequested messages."),
    _column("blocked_by", "int64", "number", "Rank whose own wait has to end first.", optional=True),
    _column(
        "stopped_by",
        "string",
        "name",
        "Cause of the stop: dead link, no path, no route, deadlock, retries exhausted, receive missing, held back,"
        " never sent, never joined or never notified.",
        optional=True,
    ),
    _column("place", "string", "name", "Link of a fault that stopped it.", optional=True),
    _column("since_ps", "int64", "ps", "Instant of that fault.", optional=True),
)
_DEADLOCK = (
    _column("step", "int64", "number", "Place in the cycle, from 0."),
    _column("port", "int64", "number", "Number of a sending port at which packets wait."),
    _column("name", "string", "name", "Its direction of the link; the next row's port belongs to the node at its end."),
    _column("paused_by", "string", "name", "Switch at the other end, which has paused it, or gives it no credit."),
    _column("priority", "int64", "number", "Priority that is paused."),
    _column("waiting_bytes", "int64", "B", "Packets of that priority that wait at the port."),
    _column("held_bytes", "int64", "B", "Bytes that this switch holds of packets from this link, headroom included."),
)
_VICTIMS = (
    _column("flow", "int64", "number", "Flow that PFC held back, though it does not use the port of the root."),
    _column(
        "lost_share",
        "float64",
        "share",
        "Part of its time beyond its time alone and beyond all traffic of its own NICs; at least a half.",
    ),
    _column("paused_port", "int64", "number", "Port of its path that was paused longest."),
    _column("root_port", "int64", "number", "Port at which the pauses begin."),
    _column(
        "is_root_paused",
        "int64",
        "count",
        "1: the root was paused itself, since a NIC takes packets too slowly; 0: it was full and not paused.",
    ),
)

TABLES: Final[Mapping[str, tuple[Column, ...]]] = MappingProxyType(
    {
        "flows": _FLOWS,
        "links": _LINKS,
        "rates": _RATES,
        "collectives": _COLLECTIVES,
        "series": _SERIES,
        "events": _EVENTS,
        "timeline": _TIMELINE,
        "paths": _PATHS,
        "nodes": _NODES,
        "segments": _SEGMENTS,
        "activities": _ACTIVITIES,
        "tiers": _TIERS,
        "jobs": _JOBS,
        "what_if": _WHAT_IF,
        "waits": _WAITS,
        "deadlock": _DEADLOCK,
        "victims": _VICTIMS,
    }
)
