"""Texts for the numbers of a device.

Source: pyverbs, device.pyx (names and texts).
Leaves out: nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.compat.pyverbs.libibverbs_enums import (
    ibv_device_cap_flags,
    ibv_event_type,
    ibv_gid_type,
    ibv_port_cap_flags,
    ibv_port_cap_flags2,
)
from weftwork.compat.pyverbs.utils import be64toh

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "guid_format",
    "guid_to_hex",
    "phys_state_to_str",
    "port_state_to_str",
    "speed_to_str",
    "str_from_flags",
    "translate_device_caps",
    "translate_event_type",
    "translate_gid_type",
    "translate_link_layer",
    "translate_mtu",
    "translate_node_type",
    "translate_port_cap_flags",
    "translate_port_cap_flags2",
    "translate_transport_type",
    "width_to_str",
]

_NODES: Final = {1: "CA", 2: "Switch", 3: "Router", 4: "RNIC", 5: "USNIC", 6: "USNIC UDP"}
_STATES: Final = {0: "NOP", 1: "Down", 2: "Init", 3: "Armed", 4: "Active", 5: "Defer"}
_PHYSICAL_STATES: Final = {
    1: "Sleep",
    2: "Polling",
    3: "Disabled",
    4: "Port configuration training",
    5: "Link up",
    6: "Link error recovery",
    7: "Phy test",
}
_SPEEDS_GBPS: Final = {
    0: "0.0",
    1: "2.5",
    2: "5.0",
    4: "5.0",
    8: "10.0",
    16: "14.0",
    32: "25.0",
    64: "50.0",
    128: "100.0",
    256: "200.0",
}
_GID_TYPES: Final = {
    int(ibv_gid_type.IBV_GID_TYPE_IB): "IB",
    int(ibv_gid_type.IBV_GID_TYPE_ROCE_V1): "RoCEv1",
    int(ibv_gid_type.IBV_GID_TYPE_ROCE_V2): "RoCEv2",
}


def _numbered(names: Mapping[int, object], number: int, unknown: str) -> str:
    return f"{names[number]} ({int(number)})" if number in names else unknown


def translate_gid_type(gid_type: int) -> str:
    """Name of a GID's protocol."""
    return _GID_TYPES.get(gid_type, f"Unknown gid_type ({gid_type})")


def guid_format(num: int) -> str:
    """Text of a GUID in network order, with colons."""
    digits = f"{be64toh(num):016x}"
    return ":".join(digits[at : at + 4] for at in range(0, 16, 4))


def guid_to_hex(node_guid: int) -> str:
    """Hexadecimal digits of a GUID."""
    return f"{node_guid:x}"


def translate_transport_type(transport_type: int) -> str:
    """Name of a transport."""
    return {0: "IB", 1: "IWARP", 2: "USNIC", 3: "USNIC UDP"}.get(transport_type, "Unknown")


def translate_node_type(node_type: int) -> str:
    """Name of a kind of node."""
    return _NODES.get(node_type, "Unknown")


def port_state_to_str(port_state: int) -> str:
    """Name of a port's state."""
    return _numbered(_STATES, port_state, f"Invalid state ({port_state})")


def translate_mtu(mtu: int) -> str:
    """Bytes of an MTU, as text."""
    return _numbered({1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096}, mtu, f"Invalid MTU ({mtu})")


def translate_link_layer(link_layer: int) -> str:
    """Name of a link layer."""
    names = {0: "Unspecified", 1: "InfiniBand", 2: "Ethernet"}
    return _numbered(names, link_layer, f"Invalid link layer ({link_layer})")


def phys_state_to_str(phys: int) -> str:
    """Name of a port's physical state."""
    return _numbered(_PHYSICAL_STATES, phys, "Invalid physical state")


def width_to_str(width: int) -> str:
    """Name of a link's width."""
    return _numbered({1: "1X", 2: "4X", 4: "8X", 8: "12X", 16: "2X"}, width, "Invalid width")


def speed_to_str(active_speed: int, active_speed_ex: int) -> str:
    """Speed of a lane; the extended one counts where it is given."""
    speed = active_speed_ex or active_speed
    return f"{_SPEEDS_GBPS[speed]} Gbps ({int(speed)})" if speed in _SPEEDS_GBPS else "Invalid speed"


def str_from_flags(flags: int, dictionary: Mapping[int, str]) -> str:
    """Names of the bits that are set, each on a line of its own."""
    return "\n  " + "".join(f"{name}\n  " for bit, name in dictionary.items() if flags & bit)


def translate_device_caps(flags: int) -> str:
    """Names of abilities of a device."""
    return str_from_flags(flags, {int(flag): str(flag.name) for flag in ibv_device_cap_flags})


def translate_port_cap_flags(flags: int) -> str:
    """Names of abilities of a port."""
    return str_from_flags(flags, {int(flag): str(flag.name) for flag in ibv_port_cap_flags})


def translate_port_cap_flags2(flags: int) -> str:
    """Names of more abilities of a port."""
    return str_from_flags(flags, {int(flag): str(flag.name) for flag in ibv_port_cap_flags2})


def translate_event_type(event_type: int) -> str:
    """Name of an asynchronous event."""
    names = {int(kind): kind.name for kind in ibv_event_type}
    return names.get(event_type, f"Unknown event_type ({event_type})")
