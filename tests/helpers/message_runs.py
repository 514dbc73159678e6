"""Runs of messages whose numbers are worth computing again: pauses and marks, drops, and one that was stopped.

Their last bins of time are short, rates differ between tiers, and sizes between messages.
"""

from __future__ import annotations

from helpers.gallery import Gallery

from weftwork.store.runs import Run

GAP_BYTES = 20  # between frames: IEEE 802.3, preamble and delimiter 8, gap 12
STOPPED_PS = 303_000_000  # engine.until of the last
MESSAGE_RUNS = ("paused", "dropped", "stopped")  # of tests/runs/gallery


def message_run(gallery: Gallery, kind: str, *, seeds: int = 1, **settings: str) -> Run:
    """The run of one of `MESSAGE_RUNS`, with other keys by their dotted names with ``__`` for the dot."""
    keys = {name.replace("__", "."): text for name, text in settings.items()}
    run: Run = gallery(kind, overrides=keys, seeds=seeds) if keys or seeds > 1 else gallery(kind)
    return run
