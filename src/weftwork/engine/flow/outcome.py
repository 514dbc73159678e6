"""Results of the flow engine: completions, time of ranks, bytes of links."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.base.caveat import Caveat
    from weftwork.engine.outcome import Outcome

__all__ = [
    "ACTIVITY_DTYPE",
    "ACTOR_DTYPE",
    "FLOW_MILESTONE_DTYPE",
    "PATTERNS",
    "SEGMENT_DTYPE",
    "SPENT",
    "TIER_DTYPE",
    "FlowOutcome",
]

SPENT: Final = ("computing", "waiting", "communicating")  # SEGMENT_DTYPE.code
PATTERNS: Final = ("ring", "all-to-all")  # ACTIVITY_DTYPE.pattern; -1: a message

ACTOR_DTYPE: Final = np.dtype([("rank", np.int64), ("ranks", np.int64), ("program", np.int64)])
TIER_DTYPE: Final = np.dtype(
    [
        ("start_ps", np.int64),
        ("at_ps", np.int64),  # end of the bin
        ("tier", np.int64),  # index into `FlowInput.tier_names`
        ("bytes", np.float64),  # headers and gaps included
        ("flows", np.float64),  # mean number under way; inside servers of ranks that communicate
        ("entropy", np.float64),  # not a number: not known
    ]
)
FLOW_MILESTONE_DTYPE: Final = np.dtype([("actor", np.int64), ("name", np.int64), ("at_ps", np.int64)])
SEGMENT_DTYPE: Final = np.dtype(
    [
        ("actor", np.int64),
        ("label", np.int64),  # index into `FlowInput.labels`, -1: none
        ("code", np.int64),  # index into SPENT
        ("start_ps", np.int64),
        ("end_ps", np.int64),
    ]
)
ACTIVITY_DTYPE: Final = np.dtype(
    [
        ("label", np.int64),
        ("channel", np.int64),
        ("pattern", np.int64),  # index into PATTERNS, -1: a message
        ("actor", np.int64),  # who posted first
        ("ranks", np.int64),  # members
        ("instances", np.int64),  # how many alike are folded into it
        ("flows", np.int64),  # of the network, of one instance
        ("operation", np.int64),  # index into `FlowInput.operations`, -1: a message
        ("size_bytes", np.int64),
        ("posted_ps", np.int64),
        ("start_ps", np.int64),
        ("end_ps", np.int64),
    ]
)


@dataclass(frozen=True, kw_only=True, slots=True)
class FlowOutcome:
    """Results of one run.

    Attributes
    ----------
    packets : messages, milestones and links in the tables of the packet engine, with nothing in what only packets
        have; no messages where the job was folded
    actors : `ACTOR_DTYPE`, what ran: a rank, or the representative of ``ranks`` that are alike
    milestones : `FLOW_MILESTONE_DTYPE`, in the order of time
    segments : `SEGMENT_DTYPE`, what the time of each actor's first stream went to; without gaps between its begin and
        its end, and none goes on over a milestone
    activities : `ACTIVITY_DTYPE`, whole collectives, and messages that have a label
    link_bytes : shape (ports,), what each port has sent, headers and gaps included
    tiers : `TIER_DTYPE`, traffic over time by what links join, by (bin, tier)
    bracket_milestones : `FLOW_MILESTONE_DTYPE` of the same job for a run that cannot be longer than this one should
        be, and for one that cannot be shorter, where it is approximate; else None
    caveats : what a user should know of this run
    """

    packets: Outcome
    actors: NDArray[np.void]
    milestones: NDArray[np.void]
    segments: NDArray[np.void]
    activities: NDArray[np.void]
    link_bytes: NDArray[np.float64]
    tiers: NDArray[np.void]
    bracket_milestones: tuple[NDArray[np.void], NDArray[np.void]] | None = None
    caveats: dict[str, Caveat] = field(default_factory=dict)
