"""Slots of the processes that share an address.

Each process takes a slot, 0 to 255, and gives it to the numbers of its queue pairs and communication IDs as their top
eight bits. So a packet tells the process that it is for; a request tells it by its service. Slots and
services are sockets of the Unix domain with abstract names, which the system frees when a process ends.
Source: unix(7) (abstract names, SCM_CREDENTIALS); the fields of a message as in ``weftwork.wire.cm``.
Leaves out: how packets come to their process, see `steering` and `ethernet`.
"""

from __future__ import annotations

import errno
import socket
from typing import Final, NamedTuple

from weftwork.base.errors import UsageError
from weftwork.wire.cm import (
    CmDisconnectReply,
    CmDisconnectRequest,
    CmReject,
    CmRequest,
    CmServiceReply,
    CmServiceRequest,
)
from weftwork.wire.ib import BTH_BYTES
from weftwork.wire.mad import GENERAL_SERVICES_QP
from weftwork.wire.rdma_ip_cm import PortSpace, port_of_service, service_of_port

__all__ = ["SLOTS", "Addressee", "ProcessSlot", "addressee", "may_be_last"]

SLOTS: Final = 256  # the top eight bits of a queue pair number
# Behind BTH and DETH (8 bytes) of a management datagram: attribute, then the fields that all messages of the CM have.
_MAD_AT: Final = BTH_BYTES + 8
_ATTRIBUTE: Final = slice(_MAD_AT + 16, _MAD_AT + 18)
_REQUEST_ID: Final = _MAD_AT + 24  # top byte; of a SIDR_REP the only ID
_REMOTE_ID: Final = _MAD_AT + 28  # top byte
_SERVICE: Final = slice(_MAD_AT + 32, _MAD_AT + 40)  # of a REQ and of a SIDR_REQ
_SHORTEST: Final = _MAD_AT + 40
_REQUESTS: Final = frozenset(kind.ATTRIBUTE.to_bytes(2, "big") for kind in (CmRequest, CmServiceRequest))
_LAST: Final = frozenset(
    kind.ATTRIBUTE.to_bytes(2, "big") for kind in (CmReject, CmDisconnectRequest, CmDisconnectReply, CmServiceReply)
)
_SERVICE_REPLY: Final = CmServiceReply.ATTRIBUTE.to_bytes(2, "big")
_NAMES: Final = "\0weftwork-rdma/"  # of the network namespace, see unix(7)


class Addressee(NamedTuple):
    """Receiver of a packet among the processes, or devices, of one address.

    Parameters
    ----------
    slot : of the receiver; None where the packet names none
    service : of a request, whose receiver is who listens for this service ID; None of other packets
    """

    slot: int | None
    service: int | None = None


def addressee(payload: bytes | memoryview) -> Addressee:
    """Find the receiver of a packet that starts with a whole BTH."""
    if int.from_bytes(payload[5:8], "big") != GENERAL_SERVICES_QP:
        return Addressee(payload[5])
    if len(payload) < _SHORTEST:
        return Addressee(None)
    attribute = bytes(payload[_ATTRIBUTE])
    if attribute in _REQUESTS:
        return Addressee(None, int.from_bytes(payload[_SERVICE], "big"))
    return Addressee(payload[_REQUEST_ID if attribute == _SERVICE_REPLY else _REMOTE_ID])


def may_be_last(payload: bytes | memoryview) -> bool:
    """Whether a management datagram closes a conversation, so that its sender may end."""
    return bytes(payload[_ATTRIBUTE]) in _LAST


def _listener(service: int) -> str:
    """Name of the socket of the process that listens for a service."""
    port = port_of_service(service)
    return f"listen/{port}" if port is not None else f"listen/{service:#x}"


class ProcessSlot:
    """The slot of this process behind an address, and the services that it listens for.

    Parameters
    ----------
    prefix : names the wire and the address

    Attributes
    ----------
    number : 0 to 255
    doors : sockets with the names of the slot and of the services

    Raises
    ------
    UsageError : 256 processes are there already
    """

    def __init__(self, prefix: str) -> None:
        self._prefix: Final = f"{_NAMES}{prefix}/"
        self._listens: Final[set[int]] = set()
        self.doors: Final[list[socket.socket]] = []
        self.number: Final = self._take()

    def _take(self) -> int:
        for slot in range(SLOTS):
            if self._open_door(str(slot)) is not None:
                return slot
        raise UsageError(f"address: found {SLOTS} processes behind it, which is the most")

    def _open_door(self, name: str) -> socket.socket | None:
        door = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        door.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        try:
            door.bind(self._prefix + name)
        except OSError as error:
            door.close()
            if error.errno == errno.EADDRINUSE:
                return None
            raise
        self.doors.append(door)
        return door

    def listen(self, service_port: int, space: PortSpace = PortSpace.TCP) -> socket.socket | None:
        """Register a service, and return its door; UsageError if another process has it.

        None if this process has it, since the door stays open until `close`.
        """
        service = service_of_port(service_port, space)
        if service in self._listens:
            return None
        door = self._open_door(_listener(service))
        if door is None:
            raise UsageError(f"port: found {service_port}, on which another process listens")
        self._listens.add(service)
        return door

    def owner(self, payload: bytes | memoryview) -> str | None:
        """Socket name of the process that a packet is for.

        None for this process, or for an unknown process.

        Parameters
        ----------
        payload : from BTH on, at least BTH
        """
        to = addressee(payload)
        if to.service is not None:
            return None if to.service in self._listens else f"{self._prefix}{_listener(to.service)}"
        return None if to.slot in {None, self.number} else f"{self._prefix}{to.slot}"

    def owner_at(self, address: str, payload: bytes | memoryview) -> str | None:
        """Socket name that the receiver of a packet has, if it is on this machine.

        None for this process, or for a packet that names nobody.

        Parameters
        ----------
        address : of the receiver
        payload : as for `owner`
        """
        prefix = f"{_NAMES}{address}/"
        if prefix == self._prefix:
            return self.owner(payload)
        to = addressee(payload)
        if to.service is not None:
            return f"{prefix}{_listener(to.service)}"
        return None if to.slot is None else f"{prefix}{to.slot}"

    def life_name(self, address: str | None = None, slot: int | None = None) -> str:
        """Name of the socket whose end tells that a process has ended: of this one, or of another behind an address."""
        prefix = self._prefix if address is None else f"{_NAMES}{address}/"
        return f"{prefix}{self.number if slot is None else slot}/life"

    def is_there(self, name: str) -> bool:
        """Whether a process has a name that `owner` gives."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(name)
            except ConnectionRefusedError:
                return False
        return True

    def is_first(self) -> bool:
        """Whether no other process has a lower slot; it answers for all where nobody else does."""
        return not any(self.is_there(f"{self._prefix}{slot}") for slot in range(self.number))

    def close(self) -> None:
        """Free the slot and the services."""
        for door in self.doors:
            door.close()
        self.doors.clear()
