"""Slots of the processes that share an address.

Each process takes a slot, 0 to 255, and gives it to the numbers of its queue pairs and communication IDs as their top
eight bits. So a packet tells the process that it is for; a request tells it by its service. Slots and
services are the names of doors of the Unix domain, which the system frees when a process ends.
Source: unix(7) (abstract names); the fields of a message as in ``weftwork.wire.cm``.
Leaves out: how packets come to their process, see `steering` and `ethernet`.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from weftwork.base.errors import UsageError
from weftwork.rdma.drivers.lines import line_to, open_door
from weftwork.rdma.drivers.netlink import listening_users
from weftwork.rdma.number_prefix import PREFIXES
from weftwork.wire.cm import (
    CmRequest,
    CmServiceReply,
    CmServiceRequest,
)
from weftwork.wire.ib import BTH_BYTES
from weftwork.wire.mad import GENERAL_SERVICES_QP
from weftwork.wire.rdma_ip_cm import PortSpace, port_of_service, service_of_port

if TYPE_CHECKING:
    import socket

__all__ = ["Addressee", "ProcessSlot", "addressee"]

# Behind BTH and DETH (8 bytes) of a management datagram: attribute, then the fields that all messages of the CM have.
_MAD_AT: Final = BTH_BYTES + 8
_ATTRIBUTE: Final = slice(_MAD_AT + 16, _MAD_AT + 18)
_REQUEST_ID: Final = _MAD_AT + 24  # top byte; of a SIDR_REP the only ID
_REMOTE_ID: Final = _MAD_AT + 28  # top byte
_SERVICE: Final = slice(_MAD_AT + 32, _MAD_AT + 40)  # of a REQ and of a SIDR_REQ
_SHORTEST: Final = _MAD_AT + 40
_REQUESTS: Final = frozenset(kind.ATTRIBUTE.to_bytes(2, "big") for kind in (CmRequest, CmServiceRequest))
_SERVICE_REPLY: Final = CmServiceReply.ATTRIBUTE.to_bytes(2, "big")
_MOST_TURNED_AWAY: Final = 256  # chosen: lines closed at a time, since anybody may ask for many
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
    doors : with the names of the slot and of the services, see `lines`

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
        for slot in range(PREFIXES):
            if self._open_door(str(slot)) is not None:
                return slot
        raise UsageError(f"address: found {PREFIXES} processes behind it, which is the most")

    def _open_door(self, name: str) -> socket.socket | None:
        door = open_door(self._prefix + name)
        if door is not None:
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
        """Name of the door of the process that a packet is for.

        None for this process, or for an unknown process.

        Parameters
        ----------
        payload : from BTH on, at least BTH
        """
        to = addressee(payload)
        if to.service is not None:
            return None if to.service in self._listens else f"{self._prefix}{_listener(to.service)}"
        return None if to.slot in {None, self.number} else f"{self._prefix}{to.slot}"

    @staticmethod
    def door_of_service(address: str, service: int) -> str:
        """Name of the door of the process that listens for a service behind an address."""
        return f"{_NAMES}{address}/{_listener(service)}"

    @staticmethod
    def door_of_slot(address: str, slot: int) -> str:
        """Name of the door of a process behind an address."""
        return f"{_NAMES}{address}/{slot}"

    def life_name(self, address: str | None = None, slot: int | None = None) -> str:
        """Name of the socket whose end tells that a process has ended: of this one, or of another behind an address."""
        prefix = self._prefix if address is None else f"{_NAMES}{address}/"
        return f"{prefix}{self.number if slot is None else slot}/life"

    def is_there(self, name: str) -> bool:
        """Whether a process of this user has a name that `owner` gives."""
        line = line_to(name)
        if line is not None:
            line.close()
        return line is not None or self.is_full(name)

    @staticmethod
    def is_full(name: str) -> bool:
        """Whether a process of this user has a name at which no line could be opened: too many wait there.

        Where the kernel does not tell, a process is taken to be there: its peer asks again.
        """
        try:
            return os.getuid() in listening_users(name)
        except OSError:
            return True

    def turn_away(self) -> None:
        """Close the lines that have come to the doors, where nobody takes them."""
        for door in self.doors:
            with suppress(BlockingIOError):
                for _ in range(_MOST_TURNED_AWAY):
                    door.accept()[0].close()

    def is_first(self) -> bool:
        """Whether no other process has a lower slot; it answers for all where nobody else does."""
        return not any(self.is_there(f"{self._prefix}{slot}") for slot in range(self.number))

    def close(self) -> None:
        """Free the slot and the services."""
        for door in self.doors:
            door.close()
        self.doors.clear()
