"""Moves datagrams between a NIC and a port, and fires its timers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.rdma.datagram import Datagram
    from weftwork.rdma.drivers.port import DatagramPort

__all__ = ["PS_PER_NS", "DrivenNic", "NicDriver"]

PS_PER_NS: Final = 1000
_NS_PER_S: Final = 1_000_000_000
_MOST_ARRIVALS: Final = 16  # chosen: datagrams taken before it is the turn of those to send
_MOST_DEPARTURES: Final = 4  # chosen: datagrams sent before arrivals are looked for


class DrivenNic(Protocol):
    """The calls of `RdmaNic` by which it is driven; a NIC behind a script has them too."""

    def receive(self, datagram: Datagram, now_ps: int) -> None:
        """Take a datagram that arrived."""

    def datagrams_to_send(self, now_ps: int, most: int) -> list[Datagram]:
        """Take the datagrams to send now."""

    def next_timer_ps(self) -> int | None:
        """When to call `on_timer`, or None."""

    def on_timer(self, now_ps: int) -> None:
        """Do all due work."""


class NicDriver:
    """A NIC behind a port.

    Parameters
    ----------
    nic : of the address of the port
    port : where datagrams come from and go to
    clock_ns : time that never goes back
    """

    def __init__(self, nic: DrivenNic, port: DatagramPort, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.nic: Final = nic
        self.port: Final = port
        self._clock_ns: Final = clock_ns

    def progress(self) -> bool:
        """Receive, fire timers, and send; returns whether there was work."""
        nic, port = self.nic, self.port
        now_ps = self._clock_ns() * PS_PER_NS
        found = 0
        while found < _MOST_ARRIVALS:
            arrived = port.receive()
            if arrived is None:
                break
            nic.receive(arrived, now_ps)
            found += 1
        due_ps = nic.next_timer_ps()
        if due_ps is not None and due_ps <= now_ps:
            nic.on_timer(now_ps)
        return self._send(now_ps) or found > 0

    def send(self) -> None:
        """Send only, after something was posted."""
        while self._send(self._clock_ns() * PS_PER_NS):
            pass

    def _send(self, now_ps: int) -> bool:
        made = self.nic.datagrams_to_send(now_ps, _MOST_DEPARTURES)
        for datagram in made:
            self.port.send(datagram)
        return bool(made)

    def wait_s(self) -> float | None:
        """Seconds until a timer is due, or None.

        It is asked after `progress` found nothing to do.
        """
        due_ps = self.nic.next_timer_ps()
        if due_ps is None:
            return None
        return max(0.0, (due_ps / PS_PER_NS - self._clock_ns()) / _NS_PER_S)
