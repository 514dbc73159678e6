"""Ctrl-C as a wish: the first one asks the run to stop where it is and keep what it has, a second one ends it.

Leaves out: threads other than the main one, where Python delivers no signals; there nothing is changed.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = ["Interrupt", "interrupts"]


@dataclass(slots=True)
class Interrupt:
    """Whether somebody has asked the run to stop."""

    is_wanted: bool = False

    def check(self) -> None:
        """Raise KeyboardInterrupt where an engine can stop cleanly, if that is wanted."""
        if self.is_wanted:
            raise KeyboardInterrupt


@contextmanager
def interrupts() -> Iterator[Interrupt]:
    """Catch SIGINT while the body runs; the handler that was there returns at the first one."""
    wish = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield wish
        return
    before = signal.getsignal(signal.SIGINT)

    def ask(_signal: int, _frame: FrameType | None) -> None:
        wish.is_wanted = True
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, ask)
    try:
        yield wish
    finally:
        signal.signal(signal.SIGINT, before)
