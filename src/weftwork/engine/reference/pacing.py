"""Pacing of a sender: packets leave one by one, or in segments.

The packets of a segment follow each other back to back.
Source: `docs/models/packet-engine.md`, section Sending data, step 6.
Leaves out: everything else that holds a packet back, see `sender`.
"""

from __future__ import annotations

from typing import Any, Final

from weftwork.base.clock import NEVER_PS

__all__ = ["Pacer"]

PS_PER_BYTE_SECOND: Final = 8e12


class Pacer:
    """Pacing state, with the names of docs/models/packet-engine.md.

    They are ``next_send_at_ps``, ``segment_at_ps``, ``segment_sent_bytes``.
    """

    def __init__(self) -> None:
        self.next_send_at_ps = 0
        self.segment_at_ps = 0
        self.segment_sent_bytes = 0

    def sent(self, now_ps: int, wire_bytes: int, state: Any) -> None:  # noqa: ANN401 - the class is the policy's
        """Note that a packet starts now.

        Parameters
        ----------
        now_ps : start of the transmission
        wire_bytes : of the frame and what follows it
        state : of the congestion control; its rate and segment hold
        """
        sent_bytes = self.segment_sent_bytes
        has_ended = sent_bytes == 0 or sent_bytes >= state.segment_bytes
        if has_ended or now_ps >= self._segment_end_ps(state.rate_bps):
            self.segment_at_ps = now_ps
            self.segment_sent_bytes = 0
        self.segment_sent_bytes += wire_bytes
        is_full = self.segment_sent_bytes >= state.segment_bytes
        self.next_send_at_ps = self._segment_end_ps(state.rate_bps) if is_full else now_ps

    def move(self, now_ps: int, rate_bps: float) -> None:
        """Move the next departure after a change of rate."""
        if self.next_send_at_ps > now_ps:
            self.next_send_at_ps = max(now_ps, self._segment_end_ps(rate_bps))

    def _segment_end_ps(self, rate_bps: float) -> int:
        """Instant at which the segment's bytes so far have left, at this rate."""
        return self.segment_at_ps + int(min(self.segment_sent_bytes * PS_PER_BYTE_SECOND / rate_bps, float(NEVER_PS)))
