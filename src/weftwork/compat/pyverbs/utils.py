"""Texts for numbers, and texts of GIDs.

Source: pyverbs, utils.py (names and texts).
Leaves out: nothing.
"""

from __future__ import annotations

from typing import Final

from weftwork.compat.pyverbs.libibverbs_enums import ibv_rereg_mr_err_code
from weftwork.compat.pyverbs.pyverbs_error import PyverbsUserError

__all__ = [
    "access_flags_to_str",
    "be64toh",
    "gid_bytes",
    "gid_str",
    "gid_str_to_array",
    "mig_state_to_str",
    "mtu_to_str",
    "qp_state_to_str",
    "qp_type_to_str",
    "rereg_error_to_str",
]

_GID_WORDS: Final = 8
_QP_TYPES: Final = {
    2: "RC",
    3: "UC",
    4: "UD",
    8: "Raw Packet",
    9: "XRCD_SEND",
    10: "XRCD_RECV",
    0xFF: "Driver QP",
}
_QP_STATES: Final = {0: "Reset", 1: "Init", 2: "RTR", 3: "RTS", 4: "SQD", 5: "SQE", 6: "Error", 7: "Unknown"}
_ACCESS_FLAGS: Final = {
    1: "Local write",
    2: "Remote write",
    4: "Remote read",
    8: "Remote atomic",
    16: "MW bind",
    32: "Zero based",
    64: "On demand",
}


def be64toh(num: int) -> int:
    """Swap the bytes of a 64-bit number in network order."""
    return int.from_bytes(num.to_bytes(8, "little"), "big")


def gid_str(subnet_prefix: int, interface_id: int) -> str:
    """Text of a GID from its halves, which are in network order."""
    digits = f"{be64toh(subnet_prefix):016x}{be64toh(interface_id):016x}"
    return ":".join(digits[at : at + 4] for at in range(0, 32, 4))


def gid_str_to_array(val: str) -> list[str]:
    """The 16 bytes of a GID's text, as hexadecimal digits."""
    words = val.split(":")
    if len(words) != _GID_WORDS or any(len(word) != 4 for word in words):
        raise PyverbsUserError(f"Invalid GID value ({val})")
    return [word[at : at + 2] for word in words for at in (0, 2)]


def gid_bytes(val: str) -> bytes:
    """The 16 bytes of a GID's text."""
    return bytes(int(byte, 16) for byte in gid_str_to_array(val))


def qp_type_to_str(qp_type: int) -> str:
    """Name of a transport service."""
    return _QP_TYPES.get(qp_type, f"Unknown ({qp_type})")


def qp_state_to_str(qp_state: int) -> str:
    """Name of a state."""
    return _QP_STATES.get(qp_state, f"Unknown ({qp_state})")


def mtu_to_str(mtu: int) -> int:
    """Bytes of an MTU; 0 for an unknown number."""
    return {1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096}.get(mtu, 0)


def access_flags_to_str(flags: int) -> str:
    """Names of rights, each with a space behind it."""
    return "".join(f"{name} " for flag, name in _ACCESS_FLAGS.items() if flags & flag)


def mig_state_to_str(mig: int) -> str:
    """Name of a state of path migration."""
    return {0: "Migrated", 1: "Re-arm", 2: "Armed"}.get(mig, f"Unknown ({mig})")


def rereg_error_to_str(error: int) -> str:
    """Name of a failure of rereg_mr."""
    names = {int(code): code.name for code in ibv_rereg_mr_err_code}
    return names.get(error, f"Unknown error ({error})")
