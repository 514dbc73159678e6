"""Training jobs in miniature: every kind of communication of a parallel plan, for tests of the flow engine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weftwork.spec.job import (
    Collect,
    Compute,
    Grid,
    Group,
    Job,
    Loop,
    Milestone,
    Operation,
    Peer,
    Placement,
    Program,
    Receive,
    Send,
    Size,
    Wait,
)

__all__ = ["Degrees", "parallel_job"]

FORWARD, BACKWARD, TENSOR, CONTEXT, DATA, EXPERT, EMBEDDING = range(7)  # channels


@dataclass(frozen=True, kw_only=True)
class Degrees:
    """How many ranks share what; ``near``: the stages of a pipeline are neighbours, else its replicas."""

    tensor: int = 1
    context: int = 1
    pipeline: int = 1
    data: int = 1
    expert: int = 1
    near: bool = True

    @property
    def ranks(self) -> int:
        return self.tensor * self.context * self.pipeline * self.data

    @property
    def strides(self) -> tuple[int, int]:
        """Of the pipeline and of data."""
        inner = self.tensor * self.context
        return (inner, inner * self.pipeline) if self.near else (inner * self.data, inner)


def parallel_job(
    degrees: Degrees,
    placement: Placement,
    *,
    micro_batches: int = 2,
    network_share: float = 1.0,
    has_two_shapes: bool = False,
) -> Job:
    """A job of one iteration: micro batches one after the other, then gradients; a program for each stage.

    Parameters
    ----------
    degrees, placement : of the ranks
    micro_batches : of a pipeline
    network_share : of all-to-all
    has_two_shapes : tensor groups do a second collective, with another efficiency, on the same channel
    """
    pipeline_stride, _ = degrees.strides
    ranks: NDArray[np.int64] = np.arange(degrees.ranks)
    programs = [
        _stage(degrees, stage, micro_batches, network_share, has_two_shapes=has_two_shapes)
        for stage in range(degrees.pipeline)
    ]
    return Job(
        name="in miniature",
        ranks=degrees.ranks,
        programs=tuple(programs),
        rank_program=(ranks // pipeline_stride % degrees.pipeline).astype(np.int32),
        placement=placement,
        milestone_names=("computed",),
    )


def _stage(degrees: Degrees, stage: int, micro_batches: int, network_share: float, *, has_two_shapes: bool) -> Program:
    pipeline_stride, data_stride = degrees.strides
    line = Group(stride=pipeline_stride, size=degrees.pipeline)
    last = degrees.pipeline - 1
    size = Size(total_bytes=1 << 20)

    def collect(
        axes: tuple[tuple[int, int], ...], channel: int, *, is_ring: bool = True, efficiency: float = 0.8
    ) -> Operation:
        return Collect(
            operation="all-reduce" if is_ring else "all-to-all",
            size_bytes=1 << 20,
            group=Grid(axes=axes),
            channel=channel,
            pattern="ring" if is_ring else "all-to-all",
            amount_bytes=1 << 20,
            overhead_ps=1000,
            local_efficiency=efficiency,
            network_efficiency=0.9,
            network_share=network_share,
        )

    def layer() -> list[Operation]:
        body: list[Operation] = [Compute(duration_ps=1_000_000)]
        if degrees.tensor > 1:
            body += [collect(((1, degrees.tensor),), TENSOR), Wait()]
            if has_two_shapes:
                body += [collect(((1, degrees.tensor),), TENSOR, efficiency=1.6), Wait()]
        if degrees.context > 1:
            body += [collect(((degrees.tensor, degrees.context),), CONTEXT), Wait()]
        if degrees.expert > 1:
            body += [collect(((data_stride, degrees.expert),), EXPERT, is_ring=False), Wait()]
        return body

    forward: list[Operation] = []
    if stage > 0:
        forward += [Receive(peer=Peer(rule="shift", group=line, shift=-1), channel=FORWARD), Wait()]
    forward += layer()
    if stage < last:
        forward.append(Send(peer=Peer(rule="shift", group=line, shift=1), size=size, channel=FORWARD))
    backward: list[Operation] = []
    if stage < last:
        backward += [Receive(peer=Peer(rule="shift", group=line, shift=1), channel=BACKWARD), Wait()]
    backward += layer()
    if stage > 0:
        backward.append(Send(peer=Peer(rule="shift", group=line, shift=-1), size=size, channel=BACKWARD))
    end: list[Operation] = [Wait(), Milestone(name=0)]
    if degrees.data > 1:
        end += [collect(((data_stride, degrees.data),), DATA), Wait()]
    if degrees.pipeline > 1 and stage in {0, last}:  # tied embeddings: of each pipeline only these two take part
        end += [collect(((pipeline_stride, degrees.pipeline),), EMBEDDING), Wait()]
    loops = (Loop(count=micro_batches, body=tuple(forward)), Loop(count=micro_batches, body=tuple(backward)))
    return Program(streams=((*loops, *end),))
