"""Closed-form time of `hierarchical` over the groups of a network.

Phases follow each other: reduce-scatter in the group, exchange across groups, all-gather in the group. Each takes its
steps times a latency, and the bytes of its busiest links.
Source: the file of `hierarchical`; Cho et al., BlueConnect, MLSys 2019.
Leaves out: local links on the way to the link of another group, of which a balanced network has enough; other traffic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.clock import SECOND_PS
from weftwork.workload.collectives.group_form import GroupForm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weftwork.workload.collectives.group_form import GroupRates

__all__ = ["FORM", "group_time_ps"]

_LOOPS: Final = {"all-reduce": 2, "reduce-scatter": 1, "all-gather": 1}
LOCAL_LINKS, GLOBAL_LINKS = 1, 3  # of the longest shortest path in a group of all-to-all links, and between two


def group_time_ps(
    operation: str,
    keys: Mapping[str, str],
    wire_bytes: float,
    rates: GroupRates,
    step_latency_ps: float = 0.0,
    base_latency_ps: float = 0.0,
) -> float:
    """Time of `hierarchical` over groups.

    Parameters
    ----------
    operation : all-reduce, reduce-scatter or all-gather
    keys : of the scenario; ``within`` and ``across`` are ``ring`` or ``direct``
    wire_bytes : of the buffer as the protocol sends it
    rates : of the groups
    step_latency_ps, base_latency_ps : of the software
    """
    members, groups = rates.members, rates.groups
    local_ps, global_ps = (
        rates.end_latency_ps + links * rates.hop_latency_ps + step_latency_ps for links in (LOCAL_LINKS, GLOBAL_LINKS)
    )

    def busy_ps(*loads: tuple[float, float]) -> float:
        return 8 * SECOND_PS * max(size / bps if size else 0.0 for size, bps in loads)

    piece = wire_bytes / members
    if members == 1:
        inside_ps = 0.0
    elif keys["within"] == "direct":
        each = (members - 1) * piece
        inside_ps = local_ps + busy_ps((each, rates.host_bps), (members * each, rates.local_bps or rates.host_bps))
    else:
        inside_ps = (members - 1) * (local_ps + busy_ps((piece, rates.host_bps)))
    part = piece / groups
    if keys["across"] == "direct":
        across_ps = global_ps + busy_ps(((groups - 1) * part, rates.host_bps), (members * part, rates.pair_bps))
    else:
        across_ps = (groups - 1) * (global_ps + busy_ps((part, rates.host_bps), (members * part, rates.pair_bps)))
    return base_latency_ps + _LOOPS[operation] * (inside_ps + across_ps)


FORM: Final = GroupForm(
    ways=tuple(
        {"level": "group", "within": within, "across": across}
        for within in ("direct", "ring")
        for across in ("direct", "ring")
    ),
    time_ps=group_time_ps,
)
