"""The wires of a device: by name, and as opened.

A wire is a way for RDMA to reach a peer. Its parts are a NIC, a port, a mover of packets and a connection manager; the
verbs and the connections above them are the same on every wire.
Source: own.
Leaves out: the parts themselves, see `drivers`.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import UsageError
from weftwork.base.nearest import nearest
from weftwork.policies.load import load
from weftwork.rdma.drivers.udp import address_towards

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from weftwork.policies.load import LoadedPolicy
    from weftwork.rdma.device_parts import Conversations, PacketMover, VirtualTime, WirePort
    from weftwork.rdma.nic import RdmaNic
    from weftwork.rdma.queue_pair import NicLimits

__all__ = ["WIRES", "OpenWire", "WireOptions", "carried_by", "open_wire", "source_towards"]

# Who opens a wire, by its name: a module with the function `open_wire(address, options)`. Imported when first used.
WIRES: Final = {
    "rocev2": "weftwork.rdma.drivers.rocev2",
    "rocev2-udp": "weftwork.rdma.drivers.rocev2_udp",
    "rocev2-raw": "weftwork.rdma.drivers.rocev2_raw",
    "rocev1": "weftwork.rdma.drivers.rocev1",
    "iwarp": "weftwork.rdma.drivers.iwarp",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class WireOptions:
    """Wishes of the user for a device.

    Parameters
    ----------
    checks_identification : receive by a raw socket, so that every bit that the ICRC covers is checked
    offload : let the system cut and join packets
    limits : on objects; None for those that fit the port
    congestion_control : for every connection, by its name in the catalogue or as loaded, or None
    line_rate_bps : where congestion control starts
    """

    checks_identification: bool = False
    offload: bool = True
    limits: NicLimits | None = None
    congestion_control: LoadedPolicy | str | None = None
    line_rate_bps: int = 100_000_000_000

    @property
    def loaded_control(self) -> LoadedPolicy | None:
        """The congestion control as loaded; ConfigError for an unknown name."""
        if isinstance(self.congestion_control, str):
            return load("congestion_control", self.congestion_control)
        return self.congestion_control


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenWire:
    """Parts of a device on one wire.

    Parameters
    ----------
    nic : the core, with the objects of the verbs
    port : where packets come from and go to
    mover : moves packets between both
    make_manager : makes the connection manager of the NIC, once
    others_at_port : who else may receive what is sent, where a peer does not answer; an empty text for nobody
    time : lets virtual time pass while programs wait; None for the machine's clock
    """

    nic: RdmaNic
    port: WirePort
    mover: PacketMover
    make_manager: Callable[[], Conversations]
    others_at_port: Callable[[], str] = str
    time: VirtualTime | None = None


_HOME: Final = "127.0.0.1"  # every host names itself so
_carriers: Final[list[Callable[[str, WireOptions], OpenWire]]] = []


def open_wire(name: str, address: str, options: WireOptions) -> OpenWire:
    """Open a wire at an address.

    Parameters
    ----------
    name : one of ``WIRES``
    address : of this machine
    options : wishes of the user

    Raises
    ------
    UsageError : no such wire, or the address or its port is not to be had
    """
    if _carriers:
        return _carriers[-1](address, options)
    if name not in WIRES:
        known = ", ".join(WIRES)
        hint = nearest(name, WIRES)
        raise UsageError(
            f"wire: found {name!r}, wanted one of {known}" + (f"; did you mean {hint}?" if hint is not None else "")
        )
    opened: OpenWire = import_module(WIRES[name]).open_wire(address, options)
    return opened


def source_towards(address: str) -> str:
    """Address of this machine, or of the simulated host, from which packets to an address leave.

    UsageError without a route.
    """
    return _HOME if _carriers else address_towards(address)


@contextmanager
def carried_by(opener: Callable[[str, WireOptions], OpenWire]) -> Iterator[None]:
    """Let another function open the wires of all devices meanwhile.

    A simulation puts the devices of unchanged programs on its fabric so.

    Parameters
    ----------
    opener : takes the address that a program names, and the wishes of the program
    """
    _carriers.append(opener)
    try:
        yield
    finally:
        _carriers.remove(opener)
