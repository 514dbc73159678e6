"""Who wants to hear that a process of this machine has ended: conversations, and queue pairs that were joined by hand.

Source: own.
Leaves out: how a port hears of the end, see ``drivers.lives``; peers on other machines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from weftwork.rdma.number_prefix import prefix_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

__all__ = ["PeerProcesses", "PeerWatch"]


class PeerWatch(Protocol):
    """Port that hears when a process of its machine ends.

    Attributes
    ----------
    on_end : called with the address and the slot of a process that has ended
    """

    on_end: Callable[[bytes, int], None] | None

    def watch(self, address: bytes, qp_num: int) -> None:
        """Watch the process of a queue pair, if it is on this machine."""

    def leave_watch(self, address: bytes, qp_num: int) -> None:
        """Forget one call of `watch`."""


class PeerProcesses:
    """The processes of peers, and who is told of their end.

    Parameters
    ----------
    port : that hears of it; None where no peer is on this machine
    """

    def __init__(self, port: PeerWatch | None = None) -> None:
        self._port: Final = port
        self._watching: Final[dict[Hashable, tuple[bytes, int, Callable[[], None]]]] = {}
        if port is not None:
            port.on_end = self._end

    def watch(self, who: Hashable, address: bytes, qp_num: int, on_end: Callable[[], None]) -> None:
        """Call a function once, when the process of a queue pair has ended.

        Parameters
        ----------
        who : wants to hear; of one process at a time
        address, qp_num : of the queue pair
        on_end : the function
        """
        self.leave(who)
        if self._port is not None:
            self._watching[who] = address, qp_num, on_end
            self._port.watch(address, qp_num)

    def leave(self, who: Hashable) -> None:
        """Forget who wanted to hear."""
        watched = self._watching.pop(who, None)
        if watched is not None and self._port is not None:
            address, qp_num, _ = watched
            self._port.leave_watch(address, qp_num)

    def _end(self, address: bytes, slot: int) -> None:
        for who, (of, qp_num, on_end) in tuple(self._watching.items()):
            if (of, prefix_of(qp_num)) == (address, slot) and who in self._watching:
                self.leave(who)
                on_end()
