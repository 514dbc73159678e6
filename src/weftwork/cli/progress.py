"""One line of progress on standard error.

It has the share of the simulated work, the packet rate and the time left; or the counts of a search.

Of a run nothing is written in the first second. Where standard error is not a terminal, there is a whole line at long
intervals instead (`LongIntervals`).
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final, Self

from weftwork.report.words import amount

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

    from weftwork.study.run.execute import Progress

__all__ = ["FIRST_ANSWER_S", "FIRST_LINE_S", "CountLine", "LongIntervals", "ProgressLine", "clock_words", "line"]

FIRST_LINE_S: Final = 30.0  # chosen: whoever reads a log asks no earlier whether a command still works
FIRST_ANSWER_S: Final = 5.0  # chosen: whoever waits less needs no first answer
_MOST_APART_S: Final = 120.0  # chosen: whoever watches a log asks after two minutes whether a command still works
_QUIET_S = 1.0  # what is done in a second needs no progress
_EVERY_S = 0.1
_ESTIMATE_S = 2.0  # chosen: before that the first parts decide too much


class LongIntervals:
    """Instants for lines of progress without a terminal: after half a minute, then at intervals that double."""

    def __init__(self) -> None:
        self._begin_s = time.monotonic()
        self._next_s = FIRST_LINE_S

    def elapsed_s(self) -> float | None:
        """Time since the start if a line is due now, else None."""
        elapsed_s = time.monotonic() - self._begin_s
        if elapsed_s < self._next_s:
            return None
        self._next_s = elapsed_s + min(elapsed_s, _MOST_APART_S)
        return elapsed_s


class ProgressLine:
    """Use as a context manager; call it with every `Progress`."""

    def __init__(self, stream: TextIO | None = None) -> None:
        chosen = sys.stderr if stream is None else stream
        self._intervals = LongIntervals()
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
        if self._first is None or now.packet_hops < self._hops or now.world != self._first[1].world:
            self._first = at_s, now  # the run begins, or that of the next seed, or is repeated
        self._hops = now.packet_hops
        if not self._is_on:
            if self._stream is not None and (elapsed_s := self._intervals.elapsed_s()) is not None:
                text = line(now, self._first[1], at_s - self._first[0])
                self._stream.write(f"after {clock_words(elapsed_s)}: {text}\n")
                self._stream.flush()
            return
        if at_s - self._made_s < _QUIET_S or at_s - self._last_s < _EVERY_S:
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

    Attributes
    ----------
    hint : what the reader can do meanwhile, behind the line; empty: nothing
    """

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self._kinds = kinds
        self._is_on = sys.stderr is not None and sys.stderr.isatty()
        self._intervals = LongIntervals()
        self.hint = ""
        self._begun: tuple[str, int, float] = ("", 0, 0.0)  # what, how much was done when it was told of first, when

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove the line before other output."""
        if self._is_on:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()

    def __call__(self, what: str, done: int, of: int) -> None:
        """Update the line; after some seconds it says how long the rest may take."""
        at_s = time.monotonic()
        if what != self._begun[0]:
            self._begun = what, done, at_s
        elapsed_s = None if self._is_on else self._intervals.elapsed_s()
        if not self._is_on and (elapsed_s is None or sys.stderr is None):
            return
        _, before, begin_s = self._begun
        left = ""
        if done > before and at_s - begin_s > _ESTIMATE_S and done < of:
            left = f", {clock_words((at_s - begin_s) * (of - done) / (done - before))} left"
        text = f"{done:,} of {of:,} {self._kinds[what]}{left}{self.hint}"
        sys.stderr.write(f"\r\033[K{text}" if elapsed_s is None else f"after {clock_words(elapsed_s)}: {text}\n")
        sys.stderr.flush()


def line(now: Progress, before: Progress, elapsed_s: float) -> str:
    """Progress of a run, and its speed since ``before``.

    ``before`` was ``elapsed_s`` seconds ago.
    """
    parts = [now.world] if now.world else []
    parts += ["a step failed; it is repeated to find its line"] if now.is_repeat else []
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
