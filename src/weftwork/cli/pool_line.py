"""Progress of a pool of runs on standard error.

It is a sentence, then one line that changes.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from weftwork.base.grammar import plural
from weftwork.cli.progress import LongIntervals, clock_words

if TYPE_CHECKING:
    from weftwork.study.pool.pool import PoolProgress

__all__ = ["PoolLine"]


class PoolLine:
    """Finished runs and the time left, on one line of a terminal.

    Without a terminal there is a whole line at long intervals.

    Parameters
    ----------
    is_silent : sentences are left out, as where the answer is one JSON object
    """

    def __init__(self, *, is_silent: bool) -> None:
        self._is_on = sys.stderr is not None and sys.stderr.isatty()
        self._is_silent = is_silent
        self._intervals = LongIntervals()
        self._width = 0

    def say(self, text: str) -> None:
        """Print a sentence in place of the line."""
        if not self._is_silent:
            self.clear()
            typer.echo(text, err=True)

    def progress(self, now: PoolProgress) -> None:
        """Update the line with finished runs and the time left."""
        left = "" if now.left_s is None else f"  {clock_words(now.left_s)} left"
        self.show(f"{now.ended:,} of {plural(now.wanted, 'run')}{left}")

    def show(self, text: str) -> None:
        """Write another text in place of the line."""
        if not self._is_on:
            if sys.stderr is not None and (elapsed_s := self._intervals.elapsed_s()) is not None:
                sys.stderr.write(f"after {clock_words(elapsed_s)}: {text}\n")
                sys.stderr.flush()
            return
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = max(self._width, len(text))

    def clear(self) -> None:
        """Remove the line before other output."""
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
            self._width = 0
