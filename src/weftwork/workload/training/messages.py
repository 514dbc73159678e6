"""Messages between pipeline stages, as streams beside the computing stream.

Activations go forward and their gradients backward, over a lane each; with DualPipe a second pair of lanes carries the
micro batches that go up the pipeline. Where two stages hold the same weights, they send each other gradients: of a
table that the first and the last stage share, and with DualPipe of all that a rank and its mirror hold. Those two also
share Adam's state under ZeRO: each updates its own stage, whose weights it then sends to its mirror.
Source: Narayanan et al., arXiv:2104.04473; DeepSeek-V3, arXiv:2412.19437, section 3.2.1 (both directions, two copies).
Leaves out: gradients of the mirrored stage that go out before the last backward pass is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from weftwork.spec.job import Await, Loop, Notify, Operation, Peer, Receive, Send, Size, Wait
from weftwork.spec.training import Parallelism
from weftwork.workload.training.communication import Communication, label

__all__ = ["MIRROR_DONE", "MIRROR_GO", "TIED_DONE", "TIED_GO", "PipelineLane", "StageMessages", "lane_of"]

FORWARD, BACKWARD, TIED, MIRRORED_FORWARD, MIRRORED_BACKWARD, MIRROR = range(6)  # channels
# Tokens; 0 and 1 are those of `weftwork.workload.training.stage`, 8 to 11 of `weftwork.workload.training.programs`.
TIED_GO, TIED_DONE = 12, 13
_FIRST_TOKEN: Final = {FORWARD: 2, BACKWARD: 5, MIRRORED_FORWARD: 14, MIRRORED_BACKWARD: 17}  # of three
MIRROR_GO, MIRROR_DONE = 20, 21


@dataclass(frozen=True, kw_only=True, slots=True)
class PipelineLane:
    """One direction of messages between neighbours.

    Attributes
    ----------
    channel : of its messages
    towards : 1 where they go to the next stage, -1 to the one before
    is_forward : whether they are activations
    virtual_stages : whose passes use it
    micro_batches : of each of them
    """

    channel: int
    towards: int
    is_forward: bool
    virtual_stages: tuple[int, ...]
    micro_batches: int

    @property
    def arrived(self) -> int:
        """Token: a message has arrived."""
        return _FIRST_TOKEN[self.channel]

    @property
    def ready(self) -> int:
        """Token: a message may go."""
        return _FIRST_TOKEN[self.channel] + 1

    @property
    def sent(self) -> int:
        """Token: the awaited part of a message is sent.

        A stage waits for this part.
        """
        return _FIRST_TOKEN[self.channel] + 2


def lane_of(plan: Parallelism, virtual_stage: int, *, is_forward: bool) -> PipelineLane:
    """The lane of the passes of a virtual stage in one direction."""
    if not plan.has_mirror:
        return PipelineLane(
            channel=FORWARD if is_forward else BACKWARD,
            towards=1 if is_forward else -1,
            is_forward=is_forward,
            virtual_stages=tuple(range(plan.virtual_stages)),
            micro_batches=plan.micro_batches,
        )
    channels = (MIRRORED_FORWARD, MIRRORED_BACKWARD) if virtual_stage else (FORWARD, BACKWARD)
    return PipelineLane(
        channel=channels[0 if is_forward else 1],
        towards=1 if is_forward == (virtual_stage == 0) else -1,
        is_forward=is_forward,
        virtual_stages=(virtual_stage,),
        micro_batches=plan.micro_batches // 2,
    )


@dataclass(frozen=True, kw_only=True)
class StageMessages:
    """Messages of one stage's ranks to and from other stages."""

    calls: Communication
    stage: int

    @property
    def plan(self) -> Parallelism:
        """The stage's plan."""
        return self.calls.plan

    @property
    def lanes(self) -> tuple[PipelineLane, ...]:
        """All lanes of the schedule."""
        virtual_stages = (0, 1) if self.plan.has_mirror else (0,)
        return tuple(
            lane_of(self.plan, virtual_stage, is_forward=is_forward)
            for virtual_stage in virtual_stages
            for is_forward in (True, False)
        )

    def gives(self, lane: PipelineLane, virtual_stage: int) -> bool:
        """Whether a pass sends on.

        All passes do except the last part of the model forward and the first part backward.
        """
        if self.plan.pipeline == 1:
            return False
        part = self._part(virtual_stage)
        return part != (self._last_part if lane.is_forward else 0)

    def takes(self, lane: PipelineLane, virtual_stage: int) -> bool:
        """Whether a pass waits for another stage."""
        if self.plan.pipeline == 1:
            return False
        part = self._part(virtual_stage)
        return part != (0 if lane.is_forward else self._last_part)

    def _part(self, virtual_stage: int) -> int:
        """Part of the model in a virtual stage, counted from the start."""
        if self.plan.has_mirror:
            return self.plan.pipeline - 1 - self.stage if virtual_stage else self.stage
        return virtual_stage * self.plan.pipeline + self.stage

    @property
    def _last_part(self) -> int:
        return self.plan.pipeline * self.plan.virtual_stages - 1

    def streams(self, lane: PipelineLane) -> Iterator[tuple[Operation, ...]]:
        """The streams that send to one neighbour and receive from the other."""
        sent = lane.micro_batches * sum(self.gives(lane, one) for one in lane.virtual_stages)
        taken = lane.micro_batches * sum(self.takes(lane, one) for one in lane.virtual_stages)
        blocking = 1 - self.plan.overlap.pipeline
        sizes = [size for size in _split(self.calls.message_bytes, blocking) if size]
        if sent:
            body: list[Operation] = [Await(token=lane.ready)]
            sends = [
                Send(
                    peer=self._peer(lane.towards),
                    size=Size(total_bytes=size),
                    channel=lane.channel,
                    label=label("pipeline"),
                )
                for size in sizes
            ]
            if blocking > 0:
                waits = round(blocking * self._latency_ps(lane.towards))
                body += [sends[0], Wait(), Notify(token=lane.sent, after_ps=waits), *sends[1:]]
            else:
                body += sends
            yield (Loop(count=sent, body=tuple(body)),)
        if taken:
            receive = Receive(peer=self._peer(-lane.towards), channel=lane.channel)
            arrived = Notify(token=lane.arrived, after_ps=self._latency_ps(-lane.towards))
            yield (Loop(count=taken, body=(*[receive] * len(sizes), Wait(), arrived)),)

    def tied(self, size_bytes: int) -> tuple[Operation, ...]:
        """Exchange of the whole tied table between first and last stage.

        An all-reduce of two ranks does the same.
        """
        towards = -1 if self.stage == 0 else 1
        return self._exchanged(size_bytes, towards, TIED, (TIED_GO, TIED_DONE))

    def mirrored(self, sizes_bytes: Sequence[int]) -> tuple[Operation, ...]:
        """Exchanges of a rank with its mirror, one after the other.

        Each has a start and an end.
        """
        towards = self.plan.pipeline - 1 - 2 * self.stage
        return tuple(
            operation
            for size in sizes_bytes
            for operation in self._exchanged(size, towards, MIRROR, (MIRROR_GO, MIRROR_DONE))
        )

    def _exchanged(self, size_bytes: int, towards: int, channel: int, tokens: tuple[int, int]) -> tuple[Operation, ...]:
        peer = self._peer(towards)
        return (
            Await(token=tokens[0]),
            Send(peer=peer, size=Size(total_bytes=size_bytes), channel=channel, label=label("data")),
            Receive(peer=peer, channel=channel),
            Wait(),
            Notify(token=tokens[1], after_ps=self._latency_ps(towards)),
        )

    def _peer(self, towards: int) -> Peer:
        return Peer(rule="shift", group=self.calls.groups.pipeline, shift=towards)

    def _latency_ps(self, towards: int) -> int:
        """Latency of a message: longer to another server than over NVLink."""
        other = self.calls.groups.rank_at((self.stage + towards) % self.plan.pipeline)
        far = self.calls.is_far(self.calls.groups.rank_at(self.stage), other)
        return self.calls.message_latency_ps(far=far)


def _split(size_bytes: int, blocking: float) -> tuple[int, int]:
    """Bytes of a message that a stage waits for, and the other bytes."""
    waited = round(size_bytes * blocking)
    return waited, size_bytes - waited
