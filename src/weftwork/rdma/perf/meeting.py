"""How the ends of a tool meet: one device without a thread, and one connection.

Whoever waits moves the packets, so that no thread disturbs a measurement.
Source: own.
Leaves out: what the ends say to each other, see `session`.
"""

from __future__ import annotations

import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Self

from weftwork.base.errors import ConfigError, Mistake, PeerError, UsageError
from weftwork.rdma.device import RdmaDevice
from weftwork.rdma.rendezvous import Rendezvous
from weftwork.rdma.wires import source_towards

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from weftwork.rdma.connection import RdmaConnection

__all__ = ["Door", "host_address", "meet"]

_LINGER_S: Final = 0.2  # chosen: far more than a packet takes on one machine
_PORTS: Final = 1000  # chosen: ports that are tried where any port will do


def host_address(text: str) -> str:
    """Address of a host that is given by its address or name.

    Raises
    ------
    ConfigError : no such host
    """
    try:
        found = socket.getaddrinfo(text, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no host name"
        text = f"found {text!r}, for which no address is known ({why}); wanted an IP address or a host name"
        raise ConfigError("address", [Mistake(path="ADDRESS", text=text)]) from error
    return str(found[0][4][0])


@contextmanager
def meet(
    address: str, port: int, private_data: bytes, *, remedy: str, source: str | None, wire: str
) -> Iterator[tuple[RdmaConnection, Callable[[bytes], RdmaConnection]]]:
    """Connect to a server; the device closes behind the block.

    Gives the connection, and a function that makes another one with its private data.

    Parameters
    ----------
    address, port : of the server
    private_data : for the server, at most 56 bytes
    remedy : what to do where no such server answers
    source : address of this machine, or None for the one from which the system would send
    wire : one of ``weftwork.rdma.wires.WIRES``

    Raises
    ------
    PeerError : nobody answers or the server refuses, with the remedy
    """
    device = RdmaDevice(source if source is not None else source_towards(address), wire=wire)
    try:
        rendezvous = Rendezvous(device)

        def another(data: bytes) -> RdmaConnection:
            try:
                return rendezvous.connect(address, port, data).wait()
            except PeerError as error:
                raise PeerError(f"no connection to {address} port {port}: {error}. {remedy}") from error

        connection = another(private_data)
        yield connection, another
        connection.disconnect().wait()
    finally:
        device.close()


class Door:
    """A listening server, open within a ``with`` block.

    Parameters
    ----------
    address : of this machine
    port : to listen on
    wire : one of ``weftwork.rdma.wires.WIRES``
    takes_other : another port will do where this one is taken

    Raises
    ------
    UsageError : the address or the port is not to be had

    Attributes
    ----------
    device, port : as opened
    """

    def __init__(self, address: str, port: int, *, wire: str, takes_other: bool = False) -> None:
        self.device: Final = RdmaDevice(address, wire=wire)
        self.port = port
        try:
            self._rendezvous: Final = Rendezvous(self.device)
            self._listen(takes_other=takes_other)
        except BaseException:
            self.device.close()
            raise

    def _listen(self, *, takes_other: bool) -> None:
        last = self.port + (_PORTS if takes_other else 0)
        while True:
            try:
                self._rendezvous.listen(self.port)
            except UsageError:
                if self.port >= last:
                    raise
                self.port += 1
            else:
                return

    def next_request(self) -> RdmaConnection:
        """Wait for a client."""
        return self._rendezvous.get_request(self.port).wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # The last answer may lie in a socket of this process, which hands it on; see `drivers.steering`.
        self.device.wait(lambda: False, _LINGER_S)
        self.device.close()
