"""What both ends are asked to do, and the content of their messages.

Every message of a key-value read is checked: a value begins with its key.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final

from weftwork.base.errors import PeerError

__all__ = ["KEY", "KEYS", "LARGEST_BYTES", "PATIENCE_S", "TABLE_BYTES", "Task", "check_value", "fill_table", "key_at"]

LARGEST_BYTES: Final = 1 << 20  # chosen: of a message; larger ones no longer change the goodput
KEYS: Final = 64  # chosen: values of the table
TABLE_BYTES: Final = KEYS << 16  # the largest value has 64 KiB
KEY: Final = Struct("<Q")
PATIENCE_S: Final = 60.0  # chosen: an end that waits longer has lost its peer
_STEP: Final = 29  # chosen: prime to KEYS, so that all keys have their turn, not in order


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """A load.

    Attributes
    ----------
    name : ``ping``, ``stream``, ``get``, ``idle``, ``register``
    way : ``tcp``, ``send``, ``write`` or ``read``
    size_bytes, count : of messages
    is_counted : the remote program sleeps between messages, so that its wake-ups can be counted
    """

    name: str
    way: str
    size_bytes: int
    count: int
    is_counted: bool = False


def key_at(number: int) -> int:
    """Key of the read with that number."""
    return number * _STEP % KEYS


def fill_table(table: memoryview, size_bytes: int) -> None:
    """Write the key of each value to its beginning."""
    for key in range(KEYS):
        KEY.pack_into(table, key * size_bytes, key)


def check_value(value: memoryview, number: int) -> None:
    """Check that a value is that of its key; PeerError otherwise."""
    (key,) = KEY.unpack_from(value)
    if key != key_at(number):
        raise PeerError(f"read {number} of the measurement: found the value of key {key}, wanted {key_at(number)}")
