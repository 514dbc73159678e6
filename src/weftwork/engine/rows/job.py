"""Rows of a job: operations, terms of part numbers, GPUs, streams, and the collectives that flows run whole.

Source: `weftwork.spec.job`; docs/models/packet-engine.md. `weftwork.engine.programs` fills them.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from weftwork.engine.rows.declare import Enum, Header, RowType, real, whole

__all__ = [
    "AXIS_DTYPE",
    "AXIS_ROW",
    "COLLECT_DTYPE",
    "COLLECT_ROW",
    "DIGIT_DTYPE",
    "DIGIT_ROW",
    "GPU_DTYPE",
    "GPU_ROW",
    "HEADER",
    "OP_DTYPE",
    "OP_ROW",
    "PATTERNS",
    "STREAM_DTYPE",
    "STREAM_ROW",
    "Op",
    "Rule",
]  # fmt: skip


class Op(IntEnum):
    """Codes of ``OP_DTYPE.code``."""

    STOP = 0
    COMPUTE = 1  # value: duration_ps
    AT = 2  # value: at_ps
    SEND = 3
    RECEIVE = 4
    WAIT = 5
    NOTIFY = 6  # value: token, after_ps
    AWAIT = 7  # value: token
    MILESTONE = 8  # value: name
    LOOP = 9  # value: count, target: index after the matching END
    END = 10  # target: index of the first operation of the body
    COLLECT = 11  # value: row of COLLECT_DTYPE; only for the flow engine


class Rule(IntEnum):
    """Codes of ``OP_DTYPE.rule``; see `weftwork.spec.job.Peer`."""

    SHIFT = 0
    XOR = 1
    TABLE = 2
    RANK = 3


PATTERNS: Final = ("ring", "all-to-all")  # COLLECT_DTYPE.pattern, and ACTIVITY_DTYPE.pattern, where -1 is a message

_MEMBERS: Final = "-1, or index in the tables: coordinate of each rank, then rank of each coordinate"

OP_ROW: Final = RowType(
    struct="OpRow",
    text="An operation of a program.",
    fields=(
        whole("code", "of the operation"),
        whole("value", "as the code says: a duration, an instant, a token, a name, a count or a row"),
        whole("target", "index of an operation: behind the end of a loop, or the first one of its body"),
        whole("rule", "of the peer"),
        whole("stride", "of the peer's group in ranks"),
        whole("size", "of the peer's group in ranks"),
        whole("members", _MEMBERS),
        whole("shift", "of the peer in its group, at the first turn of a loop"),
        whole("step", "added to the shift at each further turn"),
        whole("table", "rule TABLE: index in the tables of the first entry, one for each rank"),
        whole("total_bytes", "of which a message is a span of parts, or all where there are no parts"),
        whole("parts", "of the total; 0: it is not divided"),
        whole("part_offset", "number of the first part, before the digits"),
        whole("first_digit", "of the part's number, in the digits of the job"),
        whole("digits", "of the part's number"),
        whole("span", "parts in a message"),
        whole("span_stride", "from one part of a message to the next"),
        whole("copies", "of the span in a message"),
        whole("channel", "of the message"),
        whole("data_class", "class index of the message's packets"),
        whole("nic", "column of the ranks' ports"),
        whole("peer_rail", "1: the receiver's port numbers hold at both ends"),
        whole("after_ps", "NOTIFY: delay of the token"),
        whole("label", "of the time that the operation takes; -1: none; only the flow engine reads it"),
    ),
)
DIGIT_ROW: Final = RowType(
    struct="DigitRow",
    text="A term of the number of a part.",
    fields=(
        whole("rule", "SHIFT or XOR"),
        whole("stride", "of the group in ranks"),
        whole("size", "of the group in ranks"),
        whole("members", _MEMBERS),
        whole("shift", "of the coordinate, at the first turn of a loop"),
        whole("step", "added to the shift at each further turn"),
        whole("weight", "by which the coordinate is multiplied"),
    ),
)
GPU_ROW: Final = RowType(
    struct="GpuRow",
    text="Ports of a rank inside its server.",
    fields=(
        whole("nvlink_domain", "unique in its server; -1: none"),
        whole("nvlink_rate_bps", "of the rank's port, one direction"),
        whole("nvlink_latency_ps", "from GPU_ROW to GPU_ROW"),
        whole("pcie_rate_bps", "of the rank's port, one direction"),
        whole("pcie_latency_ps", "from GPU_ROW to GPU_ROW"),
        whole("slice_bytes", "in which messages take turns"),
    ),
)
STREAM_ROW: Final = RowType(
    struct="StreamRow",
    text="A stream of a program, ordered by program.",
    fields=(
        whole("rank_program", "to which the stream belongs"),
        whole("first_op", "index of its first operation"),
    ),
)
COLLECT_ROW: Final = RowType(
    struct="CollectRow",
    space="flow",
    text="A collective as one operation, see weftwork.spec.job.Collect; only the flow engine reads it.",
    fields=(
        whole("first_axis", "of its grid, in the axes of the job"),
        whole("axes", "of its grid"),
        whole("pattern", "of its transfers"),
        whole("amount_bytes", "that a member sends"),
        whole("size_bytes", "of the collective, as its name says it"),
        whole("overhead_ps", "of software"),
        real("local_efficiency", "share of the rate inside servers"),
        real("network_efficiency", "share of the rate of the network"),
        real("network_share", "share of the bytes that crosses the network"),
        whole("queue_pairs", "over which the bytes between two ranks are split evenly"),
    ),
)
AXIS_ROW: Final = RowType(
    struct="AxisRow",
    space="flow",
    text="An axis of the grid of a collective.",
    fields=(whole("stride", "in ranks"), whole("size", "in ranks")),
)

OP_DTYPE: Final = OP_ROW.dtype
DIGIT_DTYPE: Final = DIGIT_ROW.dtype
GPU_DTYPE: Final = GPU_ROW.dtype
STREAM_DTYPE: Final = STREAM_ROW.dtype
COLLECT_DTYPE: Final = COLLECT_ROW.dtype
AXIS_DTYPE: Final = AXIS_ROW.dtype
HEADER: Final = Header(
    name="job",
    text="A job as both engines take it.",
    parts=(
        Enum.of(Op, name="OpCode", text="Codes of operations."),
        Enum.of(Rule, name="PeerRule", text="Rules of the peer of an operation."),
        OP_ROW,
        DIGIT_ROW,
        GPU_ROW,
        STREAM_ROW,
        Enum.of_words(PATTERNS, name="Pattern", text="Transfers of a collective.", space="flow"),
        COLLECT_ROW,
        AXIS_ROW,
    ),
)
