"""Program of the catalogue for each method of NCCL's tuner.

NVLSTree and PAT have no programs of their own. NVLSTree is `hierarchical` with the NVLink switch inside; its trees
between domains are the rings of the rails there, which for two domains are the same. PAT is recursive doubling and
halving, which has as many steps and bytes. A channel of a ring is a thread block of NCCL and gets its share of NVLink,
no more while others wait for the network: on links that give it more, its steps inside a domain are later by the
difference.
Leaves out: CollNet; PAT of other than a power of two, for which a ring is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import Final

from weftwork.base.clock import SECOND_PS
from weftwork.workload.collectives.closed_form import GroupShape, Method, channels, latencies, round_bytes
from weftwork.workload.collectives.figures import CollectiveFigures
from weftwork.workload.collectives.protocols import software

__all__ = ["MethodProgram", "program"]

# Messages of NVLink take turns in slices (spec.device.Server, slice_bytes). Larger ones stay in step by that, but for
# what the latency of the network puts them out of step; chosen: up to two slices, more of which no run needs.
SLICE_BYTES: Final = 512 << 10
HELD_BYTES: Final = 2 * SLICE_BYTES
NVLS_CHANNELS: Final = 16  # NCCL, src/enqueue.cc: NVLS should not need more to get peak bandwidth


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodProgram:
    """Keys of a section ``collective`` for a method.

    Attributes
    ----------
    method : the program, as one that has a closed form
    chunks : pieces of a part that are under way; None for the section's own
    least_chunk_bytes : a piece is not made smaller; None for the section's own
    round_bytes : of a part on the wire in one round; None where there are no rounds
    hold_ps : that a step inside a domain takes longer, since a channel gets its share of NVLink and no more
    note : how the program differs from the method; None where it does not
    """

    method: Method
    chunks: int | None = None
    least_chunk_bytes: int | None = None
    round_bytes: int | None = None
    hold_ps: int = 0
    note: str | None = None


def program(
    method: Method,
    group: GroupShape,
    size_bytes: float,
    figures: CollectiveFigures,
    *,
    own_channels: int | None = None,
) -> MethodProgram:
    """The program of a method.

    Parameters
    ----------
    method : that `chosen_method` took
    group, size_bytes, figures : as for `alone`
    own_channels : of the section, where it says how many
    """
    if method.algorithm == "pat":
        if group.members & (group.members - 1) == 0:
            text = "NCCL takes PAT, here recursive halving and doubling"
            return MethodProgram(method=Method(algorithm="halving-doubling"), note=text)
        text = "NCCL takes PAT, which has a program here only for powers of two: a ring replaces it"
        return replace(
            program(Method(algorithm="ring"), group, size_bytes, figures, own_channels=own_channels), note=text
        )
    if method.algorithm == "nvls-tree":
        rails = Method(algorithm="hierarchical", inner="nvls")
        text = "NCCL takes NVLSTree, here with rings over the rails in place of its trees, which have fewer steps"
        chunk = figures.nvls_tree_chunk_bytes * NVLS_CHANNELS // (own_channels or channels(group, figures))
        return MethodProgram(method=rails, least_chunk_bytes=max(1, chunk), note=text if group.domains > 2 else None)
    if method.algorithm == "ring":
        usual = channels(group, figures)
        count = own_channels or usual
        limit = max(1, round(round_bytes(method, group, figures) * usual / count))
        part = size_bytes / software(method.protocol, "ring").protocol_efficiency / group.members / count
        hold_ps = _hold_ps(method, group, part / max(1, ceil(part / limit)), count, figures)
        return MethodProgram(method=method, chunks=1, round_bytes=limit, hold_ps=hold_ps)
    return MethodProgram(method=method)


def _hold_ps(method: Method, group: GroupShape, piece: float, count: int, figures: CollectiveFigures) -> int:
    """Extra time of a step inside a domain beyond the link's time.

    It is for a piece of one of ``count`` channels.
    """
    others = max(0.0, count * (1 - 1 / group.per_domain if group.domains > 1 else 1) - 1)
    full_ps = others * min(piece, HELD_BYTES) * 8 * SECOND_PS / figures.nvlink_rate_bps
    if piece <= SLICE_BYTES:
        return round(full_ps)
    taken = latencies(method, "all-gather", group, 1, figures)
    apart_ps = max(0.0, taken.step_latency_ps - taken.local_step_latency_ps) if group.domains > 1 else 0.0
    return round(min(full_ps, apart_ps))
