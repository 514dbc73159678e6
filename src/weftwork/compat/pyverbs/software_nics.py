"""The devices that programs find: software NICs, by name.

By default there is one, ``weft0`` on loopback. The environment variable ``WEFTWORK_PYVERBS_DEVICES`` or `set_devices`
names others. All contexts of a program on one device share one `RdmaDevice`, as they share one adapter.
Source: own.
Leaves out: how packets travel, see ``weftwork.rdma.wires``.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections import deque
from dataclasses import dataclass
from ipaddress import ip_address
from threading import RLock
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from weftwork.base.errors import ConfigError, Mistake
from weftwork.rdma.device import RdmaDevice

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from weftwork.compat.pyverbs.device import Context
    from weftwork.rdma.queue_pair import EventType

__all__ = ["VARIABLE", "SoftwareNic", "device_names", "find_device", "open_nic", "set_devices"]

VARIABLE: Final = "WEFTWORK_PYVERBS_DEVICES"
_DEFAULT: Final = "weft0=127.0.0.1"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """Where a device is."""

    address: str
    wire: str | None


_chosen: dict[str, _Place] | None = None
_lock: Final = RLock()
_Key = tuple[int, int, str, _Place]
_open: Final[dict[_Key, SoftwareNic]] = {}


def set_devices(devices: Mapping[str, str] | None) -> None:
    """Choose the devices of this process.

    Parameters
    ----------
    devices : address by name; ``address@wire`` for another wire than RoCEv2. None for those of the environment
    """
    global _chosen  # noqa: PLW0603 - the list of devices is one for the process, as that of the kernel
    _chosen = None if devices is None else {name: _place("set_devices", name, text) for name, text in devices.items()}


def _places() -> dict[str, _Place]:
    if _chosen is not None:
        return _chosen
    places = {}
    for entry in os.environ.get(VARIABLE, _DEFAULT).split(","):
        name, sign, text = entry.strip().partition("=")
        if not sign or not name:
            text = f"found {entry!r}, wanted NAME=ADDRESS"
            raise ConfigError(VARIABLE, [Mistake(path=VARIABLE, text=text, fix=_DEFAULT)])
        places[name] = _place(VARIABLE, name, text)
    return places


def _place(source: str, name: str, text: str) -> _Place:
    address, _, wire = text.partition("@")
    try:
        ip_address(address)
    except ValueError as error:
        text = f"found address {address!r}, wanted an IP address"
        raise ConfigError(source, [Mistake(path=name, text=text, fix="127.0.0.1")]) from error
    return _Place(address=address, wire=wire or None)


def device_names() -> list[str]:
    """Names of the devices."""
    return list(_places())


def device_address(name: str) -> str:
    """Address of a device; KeyError for an unknown name."""
    return _places()[name].address


def find_device(address: str) -> str | None:
    """Name of the device with an address, or None."""
    for name, place in _places().items():
        if ip_address(place.address) == ip_address(address):
            return name
    return None


class SoftwareNic:
    """A device of this process while a context has it open.

    Parameters
    ----------
    name : of the device
    place : address and wire

    Attributes
    ----------
    name : of the device
    device : the verbs
    owners : contexts of the queue pairs, by number
    """

    def __init__(self, name: str, place: _Place) -> None:
        self.name: Final = name
        self.device: Final = (
            RdmaDevice(place.address) if place.wire is None else RdmaDevice(place.address, wire=place.wire)
        )
        self.owners: Final[WeakValueDictionary[int, Context]] = WeakValueDictionary()
        self._users = 0
        self._key: Final = _key(name, place)
        # Packets move by themselves, as on a NIC: those of other processes of this address may come to this one.
        self.device.__enter__()

    @property
    def is_here(self) -> bool:
        """Whether this process opened the device; a fork of it has no NIC to work with."""
        return self._key[0] == os.getpid() and not self.device.is_closed

    @property
    def address(self) -> bytes:
        """Address of the port, 4 or 16 bytes."""
        return self.device.port.address

    @property
    def gid(self) -> bytes:
        """Address as a GID; that of IPv4 is mapped into IPv6 (IBTA vol. 1, annex A17.4.5.2)."""
        return gid_of(self.address)

    def look(self, until: Callable[[], bool]) -> None:
        """Move packets once, if a condition does not hold yet.

        A program that polls moves its packets itself. The thread of the device rests meanwhile.
        """
        if not until():
            self.device.wait(until, 0.0)

    def collect_events(self) -> None:
        """Hand the events of the device to the contexts of their queue pairs."""
        while (event := self.device.get_async_event()) is not None:
            owner = self.owners.get(event.qp_num)
            if owner is not None:
                owner.events.append(event.event_type)

    def next_event(self, events: deque[EventType]) -> EventType:
        """Wait for an event of one context, as long as it takes."""

        def is_there() -> bool:
            self.collect_events()
            return bool(events)

        self.device.wait(is_there)
        return events.popleft()

    def hold(self) -> None:
        """Count a context that has the device open."""
        self._users += 1

    def release(self) -> None:
        """Count a context that closes; the last one closes the device."""
        if self._key[0] != os.getpid():
            return
        with _lock:
            self._users -= 1
            if self._users:
                return
            if _open.get(self._key) is self:  # and not its successor, where the device was closed before
                del _open[self._key]
        self.device.close()


def gid_of(address: bytes) -> bytes:
    """An address as a GID."""
    return address if len(address) == 16 else bytes(10) + b"\xff\xff" + address


def address_of(gid: bytes, size_bytes: int) -> bytes:
    """Address in a GID.

    Parameters
    ----------
    gid : 16 bytes
    size_bytes : of the addresses of the NIC, 4 or 16
    """
    return gid[-size_bytes:]


def open_nic(name: str) -> SoftwareNic:
    """Open a device, or share it with the contexts that have it open.

    Raises
    ------
    KeyError : there is no such device
    UsageError : its address or port is not to be had
    """
    place = _places()[name]
    key = _key(name, place)
    with _lock:
        nic = _open.get(key)
        if nic is None or nic.device.is_closed:
            nic = _open[key] = SoftwareNic(name, place)
            # After the device was made: what the device registers for the end of the program is then done later.
            atexit.unregister(_close_all)
            atexit.register(_close_all)
        nic.hold()
        return nic


def _close_all() -> None:
    """Close the devices that a program leaves open when it ends."""
    for nic in list(_open.values()):
        if nic.is_here:
            nic.device.close()


def _key(name: str, place: _Place) -> _Key:
    """Key of an open device: process, program, name and place.

    A simulation runs several programs in one process, each with a main module of its own.
    """
    return os.getpid(), id(sys.modules["__main__"]), name, place
