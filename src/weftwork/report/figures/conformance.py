"""Pictures of a conformance kit: goodput of two flows, packets by uplink.

Leaves out: whether that is good, which the kits say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weftwork.base.clock import MS_PS, SECOND_PS
from weftwork.base.grammar import plural
from weftwork.report.figures import cards

__all__ = ["conformance_pictures"]

_BINS: Final = 120  # chosen: 250 us each of a run of 30 ms, some tens of messages
_UPLINK_DEAD: Final = 1  # as `weftwork.testing.network.uplink_findings` runs them: first none, then this one


def conformance_pictures(
    name: str, messages: NDArray[np.void] | None, frames: Sequence[Sequence[int]]
) -> dict[str, str]:
    """Draw the pictures that a report has data for.

    Parameters
    ----------
    name : of the policy
    messages : of flows over one bottleneck, by their source, or None
    frames : packets of each uplink, for each run

    Returns
    -------
    SVG texts by what they show
    """
    found = {}
    if messages is not None and (messages["delivered_at_ps"] > 0).any():
        found["goodput"] = _goodput(name, messages)
    if frames:
        found["uplinks"] = _uplinks(name, frames)
    return found


def _goodput(name: str, messages: NDArray[np.void]) -> str:
    done = messages[messages["delivered_at_ps"] > 0]
    end_ps = int(done["delivered_at_ps"].max())
    edges_ps = np.linspace(0, end_ps, _BINS + 1)
    width_s = end_ps / _BINS / SECOND_PS
    rows, together = [], 0.0
    for number, source in enumerate(np.unique(done["source"]).tolist()):
        own = done[done["source"] == source]
        size_bytes, _ = np.histogram(own["delivered_at_ps"], bins=edges_ps, weights=own["size_bytes"])
        gbps = size_bytes * 8 / width_s / 1e9
        together += float(gbps[_BINS // 2 :].mean())
        middles_ms = (edges_ps[1:] + edges_ps[:-1]) / 2 / MS_PS
        points = tuple(zip(middles_ms.tolist(), gbps.tolist(), strict=True))
        rows.append(cards.Polyline(name=f"flow {number}", points=points))
    share = together / len(rows)
    step_ms = end_ps / MS_PS / 6
    return cards.lines(
        f"{name}: {plural(len(rows), 'flow')} over one link of 100 Gb/s",
        rows,
        x_axis="time (ms)",
        y_axis="goodput (Gb/s)",
        x_ticks=[(step_ms * tick, f"{step_ms * tick:.3g}") for tick in range(7)],
        is_log=False,
        has_dots=False,
        bound=(share, "equal shares"),
    )


def _uplinks(name: str, frames: Sequence[Sequence[int]]) -> str:
    rows = []
    for run, counts in enumerate(frames):
        total = max(1, sum(counts))
        for uplink, count in enumerate(counts):
            state = "all up" if run == 0 else "dead" if uplink == _UPLINK_DEAD else f"{_UPLINK_DEAD} dead"
            rows.append(_bar(f"uplink {uplink}, {state}", count, total, is_first=run == 0))
    equal = 100 / len(frames[0])
    return cards.bars(
        f"{name}: packets of 64 flows over {plural(len(frames[0]), 'uplink')}",
        rows,
        axis="share of the packets (%); below, the same with an uplink dead from the start",
        bound=(equal, "equal shares of all"),
    )


def _bar(name: str, count: int, total: int, *, is_first: bool) -> cards.Bar:
    share = 100 * count / total
    return cards.Bar(name=name, value=share, text=f"{share:.1f} %", colour=cards.BLUE if is_first else cards.ORANGE)
