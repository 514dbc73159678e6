"""Functions that a device calls when packets have moved: of completion queues, and of connections.

Leaves out: when packets move, see `device`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.rdma.completion import CompletionChannel

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.rdma.completion import CompletionQueue

__all__ = ["Callbacks"]


class Callbacks:
    """Functions by what calls them; the lock of the device is held for all calls.

    Attributes
    ----------
    channel : tells of completion queues that have a function
    after : functions that are called after packets have moved
    is_calling : a function is being called
    """

    def __init__(self) -> None:
        self.channel: Final = CompletionChannel()
        self.after: Final[list[Callable[[], None]]] = []
        self.is_calling = False
        self._of_queues: Final[dict[CompletionQueue, Callable[[], None]]] = {}
        self._has_more = False

    def set_for(self, cq: CompletionQueue, function: Callable[[], None] | None) -> None:
        """Call a function for the completions of a queue; None: no more."""
        if function is None:
            self._of_queues.pop(cq, None)
        else:
            self._of_queues[cq] = function
            cq.request_notify()

    def call(self) -> None:
        """Call the functions, until none has brought about something new.

        A function that posts work comes here again: that call returns at once, and the first one goes on. Otherwise
        each of many requests that wait would be taken inside the one before it.
        """
        self._has_more = True
        if self.is_calling:
            return
        self.is_calling = True
        try:
            while self._has_more:
                self._has_more = False
                self._call_all()
        finally:
            self.is_calling = False

    def _call_all(self) -> None:
        while (cq := self.channel.get_event()) is not None:
            function = self._of_queues.get(cq)
            if function is not None:
                function()
                cq.request_notify()
        for function in self.after:
            function()
