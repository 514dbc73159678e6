"""CRC-32 of Ethernet, FCS and ICRC.

It is computed by zlib-ng if the extra ``rdma`` is installed, else by the standard library.
Source: IEEE 802.3, 3.2.9; the values are equal, ``benchmarks/rdma.py`` prints what each costs.
Leaves out: CRC-32C.
"""

from __future__ import annotations

import zlib
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CHECKSUM_LIBRARY", "RESIDUE", "crc32"]

CHECKSUM_LIBRARY: Final = "zlib-ng" if find_spec("zlib_ng") is not None else "zlib"
RESIDUE: Final = 0x2144DF1C  # IEEE 802.3, 3.2.9: of any bytes with their CRC behind, least significant byte first

crc32: Final[Callable[..., int]] = (import_module("zlib_ng.zlib_ng") if CHECKSUM_LIBRARY == "zlib-ng" else zlib).crc32
