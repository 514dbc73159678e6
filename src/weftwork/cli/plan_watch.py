"""What a long search for plans says before it ends, and what it knows when it is stopped."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Final

from weftwork.report.words import amount
from weftwork.study.plan.search import BEST, Known
from weftwork.study.plan.words import short_words

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from weftwork.cli.progress import CountLine

__all__ = ["SearchWatch"]

LONG_S: Final = 3.0  # chosen: whoever waits less needs no first plans


class SearchWatch:
    """Progress of a search, and its first plans on standard error once all ways are looked at.

    Parameters
    ----------
    told : line of progress
    as_json : whether standard output is one JSON object; what a stopped search knows then goes to standard error
    """

    def __init__(self, told: CountLine, *, as_json: bool = False) -> None:
        self._told = told
        self._as_json = as_json
        self._begin_s = time.monotonic()
        self._shown: frozenset[str] = frozenset()  # lines of plans that the reader has seen
        self.known = Known(told=self._hear, passes_limit=self._hear_limit)

    def _hear(self, what: str, done: int, of: int) -> None:
        self._told(what, done, of)
        elapsed_s = time.monotonic() - self._begin_s
        if what == "looking" and done == of and elapsed_s > LONG_S and sys.stderr is not None:
            self._told.clear()
            lines = self._closed_lines()
            title = f"After {elapsed_s:.0f} s the fastest plans of those looked at, by closed forms:"
            then = (
                "Now all plans are counted, and the best run on the flow engine; Ctrl-C prints what is known by then."
            )
            _print([title, *lines, then], sys.stderr)
            self._shown = frozenset(lines)
            self._told.hint = "; Ctrl-C prints what is known"

    def _hear_limit(self, least_s: float, most_s: float, left_s: float) -> None:
        if sys.stderr is None:
            return
        self._told.clear()
        passes = "will" if least_s > left_s else "may"
        takes = f"about {least_s:.0f} s where its ranks are alike, up to about {most_s:.0f} s where they are not"
        if f"{least_s:.0f}" == f"{most_s:.0f}":
            takes = f"about {least_s:.0f} s"
        left = f"{left_s:.0f} s of it are left, and one plan always runs on the flow engine, which takes {takes}"
        _print([f"The search {passes} take longer than --within: {left}."], sys.stderr)

    def print_known(self) -> None:
        """Print what a stopped search knows: plans that ran, or the fastest by closed forms.

        Plans that the reader has seen are not repeated.
        """
        self._told.clear()
        stream = sys.stderr if self._as_json else sys.stdout
        if stream is None:
            return
        if self.known.ran:
            ran = sorted(self.known.ran, key=lambda one: one.iteration_ps)[:BEST]
            lines = [_line(one.iteration_ps, short_words(one.candidate.keys)) for one in ran]
            _print(["Stopped. The fastest plans of those that ran on the flow engine:", *lines], stream)
            return
        lines = self._closed_lines()
        if not lines:
            _print(["Stopped before any plan was counted."], stream)
            return
        seen = self._shown if _is_one_place(stream, sys.stderr) else frozenset()
        if seen.isdisjoint(lines):
            _print(["Stopped. The fastest plans so far, by closed forms; none has run:", *lines], stream)
            return
        closed = "Stopped. The plans above are closed forms alone: nothing was simulated."
        new = [line for line in lines if line not in seen]
        _print([closed, *(["Of the plans counted since, these are among the fastest:", *new] if new else [])], stream)

    def _closed_lines(self) -> list[str]:
        return [_line(one.time.total_ps, short_words(one.candidate.keys)) for one in self.known.fastest()]


def _is_one_place(stream: TextIO, other: TextIO | None) -> bool:
    """Whether two streams write to one terminal or file."""
    if other is None:
        return False
    try:
        return os.path.sameopenfile(stream.fileno(), other.fileno())
    except OSError:  # a stream without a file
        return stream is other


def _line(time_ps: int, plan: str) -> str:
    return f"{amount(time_ps, 'ps'):>9}  {plan}"


def _print(lines: Sequence[str], stream: TextIO) -> None:
    stream.write("\n".join(lines) + "\n")
    stream.flush()
