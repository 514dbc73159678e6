"""Listen and connect: context managers for threads and asyncio.

Two programs find each other by them.
Source: rdma-core librdmacm (rdma_listen, rdma_get_request, rdma_connect).
Leaves out: what a connection does, see `connection`.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final, Self

from weftwork.base.errors import PeerError, UsageError
from weftwork.rdma.cm_records import CmEventType, ConnParam
from weftwork.rdma.connection import PEER_MAY, RdmaConnection
from weftwork.rdma.device import RdmaDevice
from weftwork.rdma.drivers.host_names import numeric_address
from weftwork.rdma.drivers.udp import parse_address
from weftwork.rdma.wires import source_towards
from weftwork.rdma.work import Work

if TYPE_CHECKING:
    from types import TracebackType

    from weftwork.rdma.cm_id import CmId
    from weftwork.rdma.cm_records import CmEvent

__all__ = ["RdmaConnector", "RdmaListener", "Rendezvous", "connect", "listen"]

_FIRST_DYNAMIC: Final = 0xC000  # RFC 6335, 6: 49,152 to 65,535
_DYNAMIC_BITS: Final = 14
_MOST_TRIED: Final = 64  # chosen: with half of the ports taken, chance finds none once in 2^64 times
_PS_PER_S: Final = 1_000_000_000_000
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

    def listen(self, port: int, backlog: int = _BACKLOG) -> int:
        """Accept requests on a port.

        Parameters
        ----------
        port : 1 to 65,535; 0 for any that is free
        backlog : requests that may wait for an answer

        Returns
        -------
        the port

        Raises
        ------
        UsageError : this or another process listens there
        """
        with self.device.lock:
            if port:
                self._listen(port, backlog)
            else:
                port = self._listen_anywhere(backlog)
            self._requests[port] = deque()
            self._waiting[port] = deque()
        return port

    def _listen(self, port: int, backlog: int) -> None:
        listener = self._manager.listen(port, backlog)
        try:
            self.device.port.listen(port)
        except UsageError:
            listener.close()
            raise

    def _listen_anywhere(self, backlog: int) -> int:
        """Listen on a dynamic port, such as nobody has."""
        refused: UsageError | None = None
        for _ in range(_MOST_TRIED):
            port = _FIRST_DYNAMIC | self.device.nic.random_bits(_DYNAMIC_BITS)
            try:
                self._listen(port, backlog)
            except UsageError as error:
                refused = error
            else:
                return port
        raise UsageError(f"port: found {_MOST_TRIED} dynamic ports taken, wanted a free one") from refused

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
        self,
        address: str,
        port: int,
        private_data: bytes = b"",
        *,
        selective_repeat: bool = False,
        timeout_s: float | None = None,
        retries: int | None = None,
    ) -> Work[RdmaConnection]:
        """Ask for a connection.

        Parameters
        ----------
        address, port : where the peer listens
        private_data : for the peer, at most 56 bytes
        selective_repeat : repeat lost packets alone, where the peer wants so too
        timeout_s : seconds in which the peer has to answer, all tries together, within some per cent; None: 4.3 s, and
            10 s over a stream
        retries : how many times the request goes again meanwhile, 0 to 15; None: as many as the time allows. A stream
            repeats nothing

        Returns
        -------
        the connection, when it is established; PeerError where it is refused or nobody answers
        """
        packed = self.device.port.resolve(parse_address(numeric_address(address)).packed, port)
        param = ConnParam(
            private_data=private_data,
            qp_access_flags=PEER_MAY,
            selective_repeat=selective_repeat,
            answer_wait_ps=_wait_ps(timeout_s),
            cm_retries=retries,
        )
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


def _wait_ps(timeout_s: float | None) -> int | None:
    if timeout_s is None:
        return None
    if not 0 < timeout_s < float("inf"):
        raise UsageError(f"timeout_s: found {timeout_s}, wanted seconds above 0, or None")
    return max(1, round(timeout_s * _PS_PER_S))


class RdmaListener:
    """A port with a device, on which requests are accepted.

    Parameters
    ----------
    device : to be opened by ``with`` or ``async with``, and closed behind it
    port : 1 to 65,535; 0 for any that is free, which `port` says then
    backlog : requests that may wait
    """

    def __init__(self, device: RdmaDevice, port: int, backlog: int = _BACKLOG) -> None:
        self.device: Final = device
        self._rendezvous: Final = Rendezvous(device)
        self.port: Final = self._rendezvous.listen(port, backlog)

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
    address, port, private_data, selective_repeat, timeout_s, retries : as in `Rendezvous.connect`
    """

    def __init__(
        self,
        device: RdmaDevice,
        address: str,
        port: int,
        private_data: bytes = b"",
        *,
        selective_repeat: bool = False,
        timeout_s: float | None = None,
        retries: int | None = None,
    ) -> None:
        self._device: Final = device
        self._rendezvous: Final = Rendezvous(device)
        self._ask: Final = partial(
            self._rendezvous.connect,
            address,
            port,
            private_data,
            selective_repeat=selective_repeat,
            timeout_s=timeout_s,
            retries=retries,
        )
        self._connection: RdmaConnection | None = None

    def __enter__(self) -> RdmaConnection:
        self._device.__enter__()
        try:
            self._connection = self._ask().wait()
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
            self._connection = await self._ask()
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
    address : of this machine, or a name of it such as localhost
    port : 1 to 65,535, of requests; 0 for any that is free, see `RdmaListener.port`. Packets of RoCEv2 come to UDP port
        4791
    backlog : requests that may wait
    wire : how packets reach the peer, one of ``weftwork.rdma.wires.WIRES``
    """
    return RdmaListener(RdmaDevice(numeric_address(address), wire=wire), port, backlog)


def connect(
    address: str,
    port: int,
    private_data: bytes = b"",
    *,
    source: str | None = None,
    selective_repeat: bool = False,
    timeout_s: float | None = None,
    retries: int | None = None,
    wire: str = "rocev2",
) -> RdmaConnector:
    """Connect to a peer: ``with`` or ``async with`` gives the `RdmaConnection`.

    Parameters
    ----------
    address, port : where the peer listens; a name such as localhost is looked up, and its IPv4 address comes first
    private_data : for the peer, at most 56 bytes
    source : address of this machine to connect from; None takes the one from which the system would send
    selective_repeat : repeat lost packets alone, where the peer wants so too
    timeout_s, retries : as in `Rendezvous.connect`
    wire : how packets reach the peer, as that of the listener
    """
    numeric = numeric_address(address)
    return RdmaConnector(
        RdmaDevice(source if source is not None else source_towards(numeric), wire=wire),
        numeric,
        port,
        private_data,
        selective_repeat=selective_repeat,
        timeout_s=timeout_s,
        retries=retries,
    )
