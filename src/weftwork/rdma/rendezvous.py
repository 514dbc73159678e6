"""Listen and connect: context managers for threads and asyncio.

Two programs find each other by them.
Source: rdma-core librdmacm (rdma_listen, rdma_get_request, rdma_connect).
Leaves out: what a connection does, see `connection`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Self

from weftwork.base.errors import PeerError, UsageError
from weftwork.rdma.cm_records import CmEventType, ConnParam
from weftwork.rdma.connection import PEER_MAY, RdmaConnection
from weftwork.rdma.device import RdmaDevice
from weftwork.rdma.drivers.udp import parse_address
from weftwork.rdma.wires import source_towards
from weftwork.rdma.work import Work

if TYPE_CHECKING:
    from types import TracebackType

    from weftwork.rdma.cm_id import CmId
    from weftwork.rdma.cm_records import CmEvent

__all__ = ["RdmaConnector", "RdmaListener", "Rendezvous", "connect", "listen"]

_BACKLOG: Final = 1024  # requests that may wait for an answer; max_backlog in Linux ucma.c, where none is asked for


class Rendezvous:
    """Connections of one device, and the ports on which it listens.

    Parameters
    ----------
    device : that has none yet
    """

    def __init__(self, device: RdmaDevice) -> None:
        self.device: Final = device
        with device.lock:
            self._manager: Final = device.make_manager()
            device.after_step(self._dispatch)
            device.on_close(self, self._close)
        self._connections: Final[dict[CmId, RdmaConnection]] = {}
        self._requests: Final[dict[int, deque[RdmaConnection]]] = {}
        self._waiting: Final[dict[int, deque[Work[RdmaConnection]]]] = {}

    def listen(self, port: int, backlog: int = _BACKLOG) -> None:
        """Accept requests on a port, 1 to 65,535.

        UsageError if this or another process listens there.
        """
        with self.device.lock:
            self._manager.listen(port, backlog)
            self.device.port.listen(port)
            self._requests[port] = deque()
            self._waiting[port] = deque()

    def get_request(self, port: int) -> Work[RdmaConnection]:
        """Take the oldest or next request on a port.

        It is then accepted or rejected. Once a wait for it was cancelled or took too long, the work takes no request
        any more: ask for another one.
        """
        work: Work[RdmaConnection] = Work(self.device)
        with self.device.lock:
            if port not in self._waiting:
                raise UsageError(f"port: found {port}, wanted one on which this device listens")
            if self._requests[port]:
                work.succeed(self._requests[port].popleft())
            elif self.device.is_closed:
                raise UsageError("device: found it closed, wanted it open")
            else:
                self._waiting[port].append(work)
        return work

    def connect(
        self, address: str, port: int, private_data: bytes = b"", *, selective_repeat: bool = False
    ) -> Work[RdmaConnection]:
        """Ask for a connection.

        Parameters
        ----------
        address, port : where the peer listens
        private_data : for the peer, at most 56 bytes
        selective_repeat : repeat lost packets alone, where the peer wants so too

        Returns
        -------
        the connection, when it is established; PeerError where it is refused or nobody answers
        """
        packed = self.device.port.resolve(parse_address(address).packed, port)
        param = ConnParam(private_data=private_data, qp_access_flags=PEER_MAY, selective_repeat=selective_repeat)
        with self.device.lock:
            made = RdmaConnection(self.device, packed)
            try:
                made.cm_id = self._manager.connect(packed, port, made.qp, param)
            except UsageError:
                made.close()
                raise
            self._add(made.cm_id, made)
            self.device.kick()
        return made.established

    def _dispatch(self) -> None:
        """Give the events of the manager to their connections."""
        while (event := self._manager.next_event()) is not None:
            if event.event_type is CmEventType.CONNECT_REQUEST:
                self._take_request(event)
            elif event.id in self._connections:
                self._connections[event.id].take(event)

    def _take_request(self, event: CmEvent) -> None:
        try:
            made = RdmaConnection(self.device, event.id.address, event.id)
        except UsageError:  # a limit of the NIC, which a peer may not pass
            self.device.port.counters["requests_refused"] += 1
            event.id.reject()
            return
        made.private_data = event.private_data
        self._add(event.id, made)
        waiting = self._waiting[event.id.port]
        while waiting and waiting[0].is_left:  # its waiter has given up
            waiting.popleft().fail(UsageError("request: found a wait for it given up, wanted another get_request()"))
        if waiting:
            waiting.popleft().succeed(made)
        else:
            self._requests[event.id.port].append(made)

    def _add(self, cm_id: CmId, made: RdmaConnection) -> None:
        """Register a connection until it has ended."""
        self._connections[cm_id] = made

        def forget() -> None:
            del self._connections[cm_id]
            requests = self._requests.get(cm_id.port, deque())
            if made in requests:  # the peer has withdrawn it
                requests.remove(made)

        made.closed.when_done(forget)

    def _close(self) -> None:
        """End all waits for requests, since the device closes."""
        for waiting in self._waiting.values():
            while waiting:
                waiting.popleft().fail(PeerError("the device was closed here"))


class RdmaListener:
    """A port with a device, on which requests are accepted.

    Parameters
    ----------
    device : to be opened by ``with`` or ``async with``, and closed behind it
    port : 1 to 65,535
    backlog : requests that may wait
    """

    def __init__(self, device: RdmaDevice, port: int, backlog: int = _BACKLOG) -> None:
        self.device: Final = device
        self.port: Final = port
        self._rendezvous: Final = Rendezvous(device)
        self._rendezvous.listen(port, backlog)

    def get_request(self) -> Work[RdmaConnection]:
        """Take the next request: accept or reject it."""
        return self._rendezvous.get_request(self.port)

    def __enter__(self) -> Self:
        self.device.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.device.close()

    async def __aenter__(self) -> Self:
        await self.device.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.device.close()


class RdmaConnector:
    """A connection with its device, within a ``with`` or ``async with`` block.

    Parameters
    ----------
    device : to be opened
    address, port, private_data, selective_repeat : as in `Rendezvous.connect`
    """

    def __init__(
        self, device: RdmaDevice, address: str, port: int, private_data: bytes = b"", *, selective_repeat: bool = False
    ) -> None:
        self._device: Final = device
        self._rendezvous: Final = Rendezvous(device)
        self._ask: Final = (address, port, private_data)
        self._selective_repeat: Final = selective_repeat
        self._connection: RdmaConnection | None = None

    def _connect(self) -> Work[RdmaConnection]:
        return self._rendezvous.connect(*self._ask, selective_repeat=self._selective_repeat)

    def __enter__(self) -> RdmaConnection:
        self._device.__enter__()
        try:
            self._connection = self._connect().wait()
        except BaseException:
            self._device.close()
            raise
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._connection is not None:
                self._connection.__exit__(kind, error, trace)
        finally:
            self._device.close()

    async def __aenter__(self) -> RdmaConnection:
        await self._device.__aenter__()
        try:
            self._connection = await self._connect()
        except BaseException:
            self._device.close()
            raise
        return self._connection

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._connection is not None:
                await self._connection.__aexit__(kind, error, trace)
        finally:
            self._device.close()


def listen(address: str, port: int, *, backlog: int = _BACKLOG, wire: str = "rocev2") -> RdmaListener:
    """Accept connections: ``with`` or ``async with`` opens the port.

    Parameters
    ----------
    address : of this machine
    port : 1 to 65,535, of requests; packets of RoCEv2 come to UDP port 4791
    backlog : requests that may wait
    wire : how packets reach the peer, one of ``weftwork.rdma.wires.WIRES``
    """
    return RdmaListener(RdmaDevice(address, wire=wire), port, backlog)


def connect(
    address: str,
    port: int,
    private_data: bytes = b"",
    *,
    source: str | None = None,
    selective_repeat: bool = False,
    wire: str = "rocev2",
) -> RdmaConnector:
    """Connect to a peer: ``with`` or ``async with`` gives the `RdmaConnection`.

    Parameters
    ----------
    address, port : where the peer listens
    private_data : for the peer, at most 56 bytes
    source : address of this machine to connect from; None takes the one from which the system would send
    selective_repeat : repeat lost packets alone, where the peer wants so too
    wire : how packets reach the peer, as that of the listener
    """
    return RdmaConnector(
        RdmaDevice(source if source is not None else source_towards(address), wire=wire),
        address,
        port,
        private_data,
        selective_repeat=selective_repeat,
    )
