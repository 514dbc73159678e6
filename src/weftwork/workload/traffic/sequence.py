"""What patterns share: messages one after the other over several queue pairs, and random starts.

A sender posts its next message when the last one is acknowledged whole; message k travels on channel k mod queue pairs.
"""

from __future__ import annotations

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.random import Stream, draw
from weftwork.spec.job import Loop, Operation, Peer, Send, Size, Wait

__all__ = ["messages", "refuse", "start_ps"]


def messages(peer: Peer, *, size_bytes: int, repeat: int, queue_pairs: int, priority: int) -> tuple[Operation, ...]:
    """Operations that send ``repeat`` messages of ``size_bytes`` to a peer, one after the other."""

    def on(channels: int) -> tuple[Operation, ...]:
        size = Size(total_bytes=size_bytes)
        pairs = ((Send(peer=peer, size=size, channel=index, priority=priority), Wait()) for index in range(channels))
        return tuple(operation for pair in pairs for operation in pair)

    rounds, rest = divmod(repeat, queue_pairs)
    if rounds == 0:
        return on(rest)
    if rounds == 1:
        return on(queue_pairs) + on(rest)
    return (Loop(count=rounds, body=on(queue_pairs)), *on(rest))


def start_ps(seed: int, flow: int, start_jitter_ps: int) -> int:
    """Instant from 0 to ``start_jitter_ps`` at which a flow starts, by the identity of the flow."""
    return draw(seed, Stream.START, flow, 0, 0) * (start_jitter_ps + 1) >> 64


def refuse(**wanted: tuple[int, int, int | None]) -> None:
    """Raise one ConfigError for all arguments out of range, given as ``name=(found, least, most or None)``."""
    mistakes = [
        Mistake(
            path=f"traffic.{name}",
            text=f"found {found:,}, wanted {least:,}" + (" or more" if most is None else f" to {most:,}"),
        )
        for name, (found, least, most) in wanted.items()
        if found < least or (most is not None and found > most)
    ]
    if mistakes:
        raise ConfigError("traffic", mistakes)
