"""The connection manager of a device, shared by all identifiers of the process.

Source: librdmacm (one event channel serves many identifiers).
Leaves out: the identifiers, see `cmid`; the protocol, see ``weftwork.rdma.connection_manager``.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from errno import EADDRINUSE, EINVAL, ENODEV
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary, WeakSet

from weftwork.base.errors import UsageError
from weftwork.compat.pyverbs.addr import AHAttr
from weftwork.compat.pyverbs.librdmacm_enums import rdma_cm_event_type, rdma_port_space
from weftwork.compat.pyverbs.pyverbs_error import PyverbsRDMAError, not_supported
from weftwork.rdma.cm_id import CmId
from weftwork.rdma.cm_records import CmEventType
from weftwork.rdma.connection_manager import ConnectionManager
from weftwork.wire.rdma_ip_cm import PortSpace

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.compat.pyverbs.software_nics import SoftwareNic
    from weftwork.rdma.cm_records import CmEvent, CmServiceEvent
    from weftwork.rdma.cm_services import CmServiceId
    from weftwork.rdma.device import RdmaDevice
    from weftwork.rdma.device_parts import Listener

__all__ = ["CmAgent", "EventQueue", "Happening", "UdAnswer", "agent_of", "core_space", "event_of"]

_FIRST_FREE_PORT: Final = 0xC000  # RFC 6335, 6: dynamic ports
_MOST_DRAWN: Final = 100  # chosen: all of them are taken with a chance of nothing, unless the device refuses
_TURN_S: Final = 0.01  # chosen: wait at one device of several
_SPACES: Final = {
    rdma_port_space.RDMA_PS_TCP: PortSpace.TCP,
    rdma_port_space.RDMA_PS_UDP: PortSpace.UDP,
    rdma_port_space.RDMA_PS_IPOIB: PortSpace.IPOIB,
}


def core_space(space: rdma_port_space) -> PortSpace:
    """Port space, for the NIC; PyverbsRDMAError for native service IDs."""
    if space not in _SPACES:
        raise not_supported(f"The port space {space.name}")
    return _SPACES[space]


@dataclass(frozen=True, kw_only=True, slots=True)
class UdAnswer:
    """A receiver of datagrams (struct rdma_ud_param).

    Parameters
    ----------
    ah_attr : where it is
    qp_num, qkey : its queue pair
    """

    ah_attr: AHAttr = field(default_factory=AHAttr)
    qp_num: int = 0
    qkey: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Happening:
    """An event for one identifier (struct rdma_cm_event).

    Parameters
    ----------
    kind : what happened
    private_data : of the peer
    status : reason of a refusal, or 0
    conversation : a new one, of a request
    ud : of a datagram service or a group
    """

    kind: rdma_cm_event_type
    private_data: bytes = b""
    status: int = 0
    conversation: CmId | CmServiceId | None = None
    ud: UdAnswer = field(default_factory=UdAnswer)


def event_of(event_type: CmEventType) -> rdma_cm_event_type:
    """Kind of an event, by the name that both lists have."""
    return rdma_cm_event_type[f"RDMA_CM_EVENT_{event_type.name}"]


class EventQueue:
    """Events of identifiers that share a channel, and the devices that bring them."""

    def __init__(self) -> None:
        self._events: Final[deque[Happening]] = deque()
        self._nics: Final[WeakSet[SoftwareNic]] = WeakSet()

    def watch(self, nic: SoftwareNic) -> None:
        """Wait for events of this device too."""
        self._nics.add(nic)

    def put(self, happening: Happening) -> None:
        """Append an event."""
        self._events.append(happening)

    def get(self) -> Happening:
        """Wait for the next event, as long as it takes; PyverbsRDMAError if no device can bring one."""
        while not self._events:
            nics = [nic for nic in self._nics if nic.is_here]
            if not nics:
                raise PyverbsRDMAError("Failed to get an event (no identifier of the channel has a device)", ENODEV)
            for nic in nics:
                try:
                    nic.device.wait(lambda: bool(self._events), None if len(nics) == 1 else _TURN_S)
                except UsageError as error:
                    raise PyverbsRDMAError(f"Failed to get an event ({error})", EINVAL) from error
        return self._events.popleft()


class CmAgent:
    """The connection manager of a device, and who hears its events.

    Parameters
    ----------
    device : that has no manager yet

    Attributes
    ----------
    manager : for the NIC
    """

    def __init__(self, device: RdmaDevice) -> None:
        self.device: Final = device
        self._heard: Final[dict[CmId, Callable[[CmEvent], None]]] = {}
        self._heard_services: Final[dict[CmServiceId, Callable[[CmServiceEvent], None]]] = {}
        self._listeners: Final[dict[tuple[PortSpace, int], tuple[Listener, Callable[[Any], None]]]] = {}
        with device.lock:
            self.manager: Final = device.make_manager()
            device.after_step(self._dispatch)

    @property
    def datagrams(self) -> ConnectionManager:
        """The manager, with datagram services; PyverbsRDMAError where the wire has none."""
        if not isinstance(self.manager, ConnectionManager):
            raise not_supported("A datagram service on this wire")
        return self.manager

    def listen(self, port: int, space: PortSpace, backlog: int, took: Callable[[Any], None]) -> int:
        """Accept requests on a port.

        Parameters
        ----------
        port : 0 takes a free one
        space : in which the port counts
        backlog : requests that may wait
        took : called with the event of a request

        Returns
        -------
        the port

        Raises
        ------
        PyverbsRDMAError : another program listens there
        """
        with self.device.lock:
            for _ in range(1 if port else _MOST_DRAWN):
                chosen = port or random.randrange(_FIRST_FREE_PORT, 1 << 16)
                try:
                    self._listeners[space, chosen] = self._open(chosen, space, backlog), took
                except UsageError as error:
                    reason = error
                else:
                    return chosen
        raise PyverbsRDMAError(f"Listen Failed ({reason})", EADDRINUSE) from reason

    def _open(self, port: int, space: PortSpace, backlog: int) -> Listener:
        listener: Listener
        if space is PortSpace.TCP:
            listener = self.manager.listen(port, backlog)
        else:
            listener = self.datagrams.listen(port, backlog, space)
        try:
            if space is PortSpace.TCP:
                self.device.port.listen(port)
            else:
                self.device.port.listen(port, space)
        except UsageError:
            listener.close()
            raise
        return listener

    def forget_listener(self, port: int, space: PortSpace) -> None:
        """Accept no more requests on a port."""
        with self.device.lock:
            listener, _ = self._listeners.pop((space, port), (None, None))
            if listener is not None and not self.device.is_closed:
                listener.close()

    def hear(self, conversation: CmId | CmServiceId, heard: Callable[[Any], None]) -> None:
        """Call a function with the events of a conversation."""
        if isinstance(conversation, CmId):
            self._heard[conversation] = heard
        else:
            self._heard_services[conversation] = heard

    def forget(self, conversation: CmId | CmServiceId) -> None:
        """Call nobody any more."""
        if isinstance(conversation, CmId):
            self._heard.pop(conversation, None)
        else:
            self._heard_services.pop(conversation, None)

    def _dispatch(self) -> None:
        """Hand events to their identifiers."""
        while (event := self.manager.next_event()) is not None:
            if event.event_type is CmEventType.CONNECT_REQUEST:
                self._hand_over((PortSpace.TCP, event.id.port), event)
            elif event.id in self._heard:
                self._heard[event.id](event)
        if not isinstance(self.manager, ConnectionManager):
            return
        while (asked := self.manager.services.next_event()) is not None:
            if asked.event_type is CmEventType.CONNECT_REQUEST:
                self._hand_over((asked.id.space, asked.id.port), asked)
            elif asked.id in self._heard_services:
                self._heard_services[asked.id](asked)

    def _hand_over(self, place: tuple[PortSpace, int], request: CmEvent | CmServiceEvent) -> None:
        """Hand a request to its listener; that of a closed listener is refused."""
        if place in self._listeners:
            self._listeners[place][1](request)
        else:
            request.id.reject()


_agents: Final[WeakKeyDictionary[SoftwareNic, CmAgent]] = WeakKeyDictionary()


def agent_of(nic: SoftwareNic) -> CmAgent:
    """Connection manager of a device; made at the first call."""
    found = _agents.get(nic)
    if found is None:
        found = _agents[nic] = CmAgent(nic.device)
    return found
