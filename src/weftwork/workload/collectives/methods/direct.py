"""Direct exchange of NCCL: a message to every other member at once.

Source: NVIDIA/nccl; the file of the algorithm.
Leaves out: what NCCL's tuner expects, since an all-to-all has one method.
"""

from __future__ import annotations

from typing import Final

from weftwork.workload.collectives.figures import CollectiveFigures
from weftwork.workload.collectives.method import MethodCall, SoftwareTimes, TimedMethod
from weftwork.workload.collectives.method_bytes import GroupShape, MethodBytes, SentCall

__all__ = ["METHOD"]


def _bytes_of(shape: SentCall) -> MethodBytes:
    """A message to every other member at once."""
    group = shape.group
    near, far = group.per_domain - 1, group.members - group.per_domain
    piece = shape.size_bytes / group.members / shape.channels
    return MethodBytes(
        local_bytes=shape.size_bytes * near / group.members,
        network_bytes=shape.size_bytes * far / group.members,
        local_steps=1 if far == 0 else 0,
        local_hops=1 if far == 0 else 0,
        network_steps=1 if far else 0,
        local_piece_bytes=piece,
        network_piece_bytes=piece,
    )


def _software(times: SoftwareTimes, call: MethodCall) -> SoftwareTimes:
    """Each peer takes its time between domains."""
    if not call.is_far:
        return times
    base_ps = times.base_ps + (call.group.members - 1) * call.figures.peer_ps
    return SoftwareTimes(base_ps=base_ps, local_step_ps=times.local_step_ps, nic_ps=times.nic_ps)


def _offers(operation: str, group: GroupShape, figures: CollectiveFigures) -> bool:  # noqa: ARG001 - as of any method
    return operation == "all-to-all"


METHOD: Final = TimedMethod(
    source="NVIDIA/nccl",
    bytes_of=_bytes_of,
    software=_software,
    offers=_offers,
)
