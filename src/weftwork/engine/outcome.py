"""Results of a packet engine: completions, counters, and their digest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from weftwork.base.clock import NEVER_PS
from weftwork.engine.digest import digest_of
from weftwork.engine.rows.outcome import CAPTURE_DTYPE, EVENT_DTYPE, PATH_DTYPE, TIMELINE_DTYPE
from weftwork.engine.rows.waits import DEADLOCK_DTYPE, WAIT_DTYPE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.base.caveat import Caveat

__all__ = ["Outcome", "ending"]


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
