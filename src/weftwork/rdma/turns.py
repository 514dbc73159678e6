"""A lock that serves requests in their order.

A thread that moves packets takes and leaves the lock all the time; Python's own lock would let it take the lock back
before a thread that posts work wakes up.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Final

__all__ = ["FairLock"]


class FairLock:
    """Mutual exclusion, first come first served.

    The thread that has it may take it again.

    Attributes
    ----------
    waiting : threads that have asked, in that order, each by a lock of its own
    depth : how many times the thread that has it has taken it
    """

    def __init__(self) -> None:
        self._guard: Final = threading.Lock()
        self.waiting: Final[deque[threading.Lock]] = deque()
        self._owner: int | None = None
        self.depth = 0

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self._guard:
            if self._owner in {None, me}:
                self._owner = me
                self.depth += 1
                return
            turn = threading.Lock()
            turn.acquire()
            self.waiting.append(turn)
        try:
            turn.acquire()  # released by the thread that has the lock now
        except BaseException:  # a signal such as Ctrl-C: nobody may hand the lock to who has left
            with self._guard:
                if turn in self.waiting:
                    self.waiting.remove(turn)
                else:
                    self._hand_on()
            raise
        self._owner = me
        self.depth = 1

    def __exit__(self, *_: object) -> None:
        with self._guard:
            self.depth -= 1
            if self.depth:
                return
            self._hand_on()

    def _hand_on(self) -> None:
        if self.waiting:
            self._owner = 0  # nobody's, and not free: it is the next one's
            self.waiting.popleft().release()
        else:
            self._owner = None
