"""The numbers that a port counts over a run: name, unit and meaning of each.

From a row here come the field of a port's record between Python and the core (`weftwork.engine.rows.outcome`), the
counter of the same name in both packet engines, and the column of the table ``links`` with its unit and text.
Leaves out: when an engine counts (docs/models/packet-engine.md, section Counters of a port).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["PORT_COUNTS", "PortCount"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PortCount:
    """One number, an int64.

    Attributes
    ----------
    name : of the counter and of the column
    unit : of the column
    text : its meaning, one sentence
    is_column : whether the table ``links`` has it; else only the outcome of an engine does
    """

    name: str
    unit: str
    text: str
    is_column: bool = True


def _count(name: str, unit: str, text: str, *, is_column: bool = True) -> PortCount:
    return PortCount(name=name, unit=unit, text=text, is_column=is_column)


PORT_COUNTS: Final = (
    _count("frames", "count", "Packets sent, flow-control frames not counted."),
    _count("bytes", "B", "Bytes of those frames, gaps not counted."),
    _count("drops", "count", "Packets dropped that wanted to leave here or came in here."),
    _count("marks", "count", "Packets marked by ECN."),
    _count("pauses_sent", "count", "PFC frames that ask the other end to pause, refreshes included."),
    _count("resumes_sent", "count", "PFC frames that let the other end go on."),
    _count("paused_ps", "ps", "Time for which this port was paused, summed over priorities."),
    _count("max_queue_bytes", "B", "Longest egress queue of one priority."),
    _count("max_ingress_bytes", "B", "Largest memory that one priority of this port took, headroom included."),
    _count("trims", "count", "Packets cut because they found no room towards this port.", is_column=False),
    _count("credit_frames", "count", "Frames of credit sent.", is_column=False),
    _count("nic_state_bytes", "B", "Memory that the ends of connections took at a NIC port.", is_column=False),
    _count(
        "max_early_packets",
        "count",
        "Most packets that the receivers at a NIC port kept behind gaps at once.",
        is_column=False,
    ),
)
