"""Interrupts that keep the results so far.

A first Ctrl-C stops a run at a consistent point of its engine, a second one ends it.

Before there is anything to keep, the first one ends it. SIGTERM does the same in the program (`weftwork.base.stop`).
Leaves out: threads other than the main one, where Python delivers no signals; there nothing is changed.
"""

from __future__ import annotations

import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from weftwork.base.stop import ONE_PRESS_S, SIGNALS, Stopped, state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

__all__ = ["Interrupt", "interrupts"]


class Interrupt:
    """Whether a stop was requested.

    Attributes
    ----------
    is_wanted : somebody has asked, and the run goes on until it can stop
    """

    def __init__(self) -> None:
        self.is_wanted = False
        self._is_raised = False
        self._at_s = 0.0

    def keep(self, *, is_raised: bool = False) -> None:
        """Mark that there are results to keep.

        From now on the first signal is a request, not an end.

        Parameters
        ----------
        is_raised : it is raised all the same, for work that does not look at wishes; whoever calls catches it
        """
        state.is_keeping = True
        self._is_raised = is_raised

    def let_go(self) -> None:
        """Mark that all results are written."""
        state.is_keeping = self.is_wanted  # what was asked for is still told, in its own time

    def check(self) -> None:
        """Raise KeyboardInterrupt at a consistent point, if a stop is wanted."""
        if self.is_wanted:
            raise KeyboardInterrupt

    def hears(self, number: int) -> bool:
        """Whether a signal is a request to stop, or follows one.

        False if it ends the program.
        """
        now_s = time.monotonic()
        if self.is_wanted:
            return now_s - self._at_s <= ONE_PRESS_S
        if not state.is_keeping:
            return False
        self.is_wanted, self._at_s = True, now_s
        state.heard = number
        if self._is_raised:
            raise Stopped(number)
        return True


@contextmanager
def interrupts() -> Iterator[Interrupt]:
    """Handle the signals that end the program, while the body runs.

    A signal that is ignored or kills at once stays so.
    """
    wish = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield wish
        return
    before: dict[int, Callable[[int, FrameType | None], object]] = {
        number: handler for number in SIGNALS if callable(handler := signal.getsignal(number))
    }

    def ask(number: int, frame: FrameType | None) -> None:
        if not wish.hears(number):
            before[number](number, frame)

    state.is_keeping = False
    for number in before:
        signal.signal(number, ask)
    try:
        yield wish
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        wish.let_go()
