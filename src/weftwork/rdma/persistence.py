"""Persistent memory: a shared mapping of a file.

The system writes its bytes to the file on demand.
Source: IBTA vol. 1, annex A19 (placement of a FLUSH); Linux, mmap(2), msync(2) and proc_pid_maps(5).
Leaves out: persistent memory of its own kind; what the file system makes of the file, such as tmpfs, which a restart
empties.
"""

from __future__ import annotations

from mmap import PAGESIZE, mmap
from pathlib import Path
from typing import Final

import numpy as np

__all__ = ["PersistentFile"]

_MAPPINGS: Final = Path("/proc/self/maps")


class PersistentFile:
    """A mapped file; a region covers a part of it.

    Parameters
    ----------
    mapping : shared, of a file
    addr : of the region, in the mapping
    """

    def __init__(self, mapping: mmap, addr: int) -> None:
        self._mapping: Final = mapping
        self._offset: Final = addr - _address(mapping)

    @classmethod
    def of_view(cls, view: memoryview, addr: int) -> PersistentFile | None:
        """File behind a buffer; None for memory without a shared mapping.

        Other memory and private mappings reach no file.
        """
        mapping = view.obj
        if not isinstance(mapping, mmap):
            return None
        try:
            mapping.size()  # of the file; memory without a file has none
            mappings = _MAPPINGS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        except OSError:
            return None
        return cls(mapping, addr) if any(_is_shared_at(line, addr) for line in mappings) else None

    def persist(self, start: int, length: int) -> bool:
        """Write bytes of the region to the file, and wait.

        False if the system cannot.
        """
        begin = self._offset + start
        low = begin - begin % PAGESIZE  # msync takes whole pages
        try:
            self._mapping.flush(low, begin + length - low)
        except OSError:
            return False
        return True


def _address(mapping: mmap) -> int:
    return int(np.frombuffer(mapping, np.uint8).ctypes.data)


def _is_shared_at(line: str, addr: int) -> bool:
    """Whether a line of proc_pid_maps(5) is a shared mapping at an address."""
    addresses, rights = line.split()[:2]
    low, high = (int(part, 16) for part in addresses.split("-"))
    return low <= addr < high and rights.endswith("s")
