"""One line of progress on standard error.

It has the share of the simulated work, the packet rate and the time left; or the counts of a search.

Of a run nothing is written in the first second, and nothing at all where standard error is not a terminal.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

from weftwork.report.words import amount

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

    from weftwork.study.run.execute import Progress

__all__ = ["CountLine", "ProgressLine", "clock_words", "line"]

_QUIET_S = 1.0  # what is done in a second needs no progress
_EVERY_S = 0.1


class ProgressLine:
    """Use as a context manager; call it with every `Progress`."""

    def __init__(self, stream: TextIO | None = None) -> None:
        chosen = sys.stderr if stream is None else stream
        self._is_on = chosen is not None and chosen.isatty()  # None: the caller has closed it
        self._stream = chosen
        self._made_s = self._last_s = time.monotonic()
        self._first: tuple[float, Progress] | None = None
        self._hops = 0  # that it was told of last
        self._width = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove the line before other output."""
        if self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._stream.flush()
            self._width = 0

    def __call__(self, now: Progress) -> None:
        """Update the line, at most ten times a second."""
        at_s = time.monotonic()
        if self._first is None or now.packet_hops < self._hops:
            self._first = at_s, now  # the run begins, or that of the next seed, or is repeated
        self._hops = now.packet_hops
        if not self._is_on or at_s - self._made_s < _QUIET_S or at_s - self._last_s < _EVERY_S:
            return
        self._last_s = at_s
        text = line(now, self._first[1], at_s - self._first[0])
        self._stream.write("\r" + text.ljust(self._width))
        self._stream.flush()
        self._width = max(self._width, len(text))


class CountLine:
    """Progress of a search on one line; use as a context manager.

    Parameters
    ----------
    kinds : words for each part of the search, by its name
    """

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self._kinds = kinds
        self._is_on = sys.stderr is not None and sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_on:
            sys.stderr.write("\r\033[K")

    def __call__(self, what: str, done: int, of: int) -> None:
        """Update the line."""
        if self._is_on:
            sys.stderr.write(f"\r\033[K{done:,} of {of:,} {self._kinds[what]}")
            sys.stderr.flush()


def line(now: Progress, before: Progress, elapsed_s: float) -> str:
    """Progress of a run, and its speed since ``before``.

    ``before`` was ``elapsed_s`` seconds ago.
    """
    parts = ["a step failed; it is repeated to find its line"] if now.is_repeat else []
    if now.share is not None:
        parts.append(f"{100 * now.share:.1f} %")
    parts.append(f"{amount(now.simulated_ps, 'ps')} simulated")
    hops = now.packet_hops - before.packet_hops
    if hops > 0 and elapsed_s > 0:
        parts.append(f"{hops / elapsed_s / 1e6:.2f} M packet-hops/s")
    if now.share is not None and before.share is not None and now.share > before.share:
        parts.append(f"{clock_words(elapsed_s * (1 - now.share) / (now.share - before.share))} left")
    if now.estimate is not None:
        parts.append(f"({now.estimate})")
    return "  ".join(parts)


def clock_words(seconds: float) -> str:
    """Write a time as on a clock, with hours if needed."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
