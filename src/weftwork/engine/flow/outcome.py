"""Results of the flow engine: completions, time of ranks, bytes of links."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.engine.rows.flow_outcome import TIER_BYTES_DTYPE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.base.caveat import Caveat
    from weftwork.engine.outcome import Outcome

__all__ = ["TIER_DTYPE", "FlowOutcome"]

TIER_DTYPE: Final = np.dtype([*TIER_BYTES_DTYPE.descr, ("entropy", np.float64)])  # not a number: not known


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
