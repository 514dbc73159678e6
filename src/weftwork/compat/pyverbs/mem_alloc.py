"""Memory by its address, as programs in C allocate it.

Source: pyverbs, mem_alloc.pyx (names); malloc(3), mmap(2).
Leaves out: nothing.
"""

from __future__ import annotations

import ctypes
import mmap as mappings
from typing import Final

from weftwork.compat.pyverbs.base import PyverbsRDMAErrno

__all__ = [
    "free",
    "madvise",
    "malloc",
    "mmap",
    "munmap",
    "posix_memalign",
    "read",
    "read32",
    "read64",
    "write",
    "writebe32",
    "writebe64",
]

PROT_EXEC_: Final = mappings.PROT_EXEC
PROT_READ_: Final = mappings.PROT_READ
PROT_WRITE_: Final = mappings.PROT_WRITE
PROT_NONE_: Final = 0
MAP_PRIVATE_: Final = mappings.MAP_PRIVATE
MAP_SHARED_: Final = mappings.MAP_SHARED
MAP_FIXED_: Final = 0x10  # Linux include/uapi/asm-generic/mman-common.h, as the next ones
MAP_ANONYMOUS_: Final = mappings.MAP_ANONYMOUS
MAP_STACK_: Final = mappings.MAP_STACK
MAP_LOCKED_: Final = 0x2000
MAP_HUGETLB_: Final = 0x40000
MAP_POPULATE_: Final = mappings.MAP_POPULATE
MAP_NORESERVE_: Final = 0x4000
MAP_GROWSDOWN_: Final = 0x100

_MAP_FAILED: Final = ctypes.c_void_p(-1).value
_libc: Final = ctypes.CDLL(None, use_errno=True)
_libc.malloc.restype = ctypes.c_void_p
_libc.malloc.argtypes = (ctypes.c_size_t,)
_libc.free.argtypes = (ctypes.c_void_p,)
_libc.posix_memalign.argtypes = (ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, ctypes.c_size_t)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (
    *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int),
    *(ctypes.c_int, ctypes.c_int, ctypes.c_long),
)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def mmap(
    addr: int = 0,
    length: int = 100,
    prot: int = PROT_READ_ | PROT_WRITE_,
    flags: int = MAP_PRIVATE_ | MAP_ANONYMOUS_,
    fd: int = 0,
    offset: int = 0,
) -> int:
    """Map memory, see mmap(2); MemoryError if the system refuses."""
    found: int | None = _libc.mmap(addr, length, prot, flags, fd, offset)
    if found is None or found == _MAP_FAILED:
        raise MemoryError("Failed to mmap memory")
    return found


def munmap(addr: int, length: int) -> None:
    """Unmap memory; MemoryError if the system refuses."""
    if _libc.munmap(addr, length):
        raise MemoryError("Failed to munmap requested memory")


def madvise(addr: int, length: int, flags: int = mappings.MADV_DONTNEED) -> None:
    """Advise the system about memory, see madvise(2)."""
    if _libc.madvise(addr, length, flags):
        raise PyverbsRDMAErrno("Failed to madvise memory")


def malloc(size: int) -> int:
    """Allocate memory; MemoryError if there is none."""
    found: int | None = _libc.malloc(size)
    if found is None:
        raise MemoryError("Failed to allocate memory")
    return found


def posix_memalign(size: int, alignment: int = 8) -> int:
    """Allocate aligned memory of zeros; MemoryError if there is none."""
    found = ctypes.c_void_p()
    code = _libc.posix_memalign(ctypes.byref(found), alignment, size)
    if code or found.value is None:
        raise MemoryError(f"Failed to allocate memory ({code})")
    ctypes.memset(found.value, 0, size)
    return found.value


def free(ptr: int) -> None:
    """Free memory of `malloc` or `posix_memalign`."""
    _libc.free(ptr)


def writebe32(addr: int, val: int, offset: int = 0) -> None:
    """Write 32 bits in network order at a word of an array."""
    ctypes.memmove(addr + 4 * offset, val.to_bytes(4, "big"), 4)


def writebe64(addr: int, val: int, offset: int = 0) -> None:
    """Write 64 bits in network order at a word of an array."""
    ctypes.memmove(addr + 8 * offset, val.to_bytes(8, "big"), 8)


def write(addr: int, data: str | bytes, length: int, offset: int = 0) -> None:
    """Write up to ``length`` bytes of data."""
    octets = data.encode() if isinstance(data, str) else bytes(data)
    ctypes.memmove(addr + offset, octets, min(length, len(octets)))


def read32(addr: int, offset: int = 0) -> int:
    """Read a 32-bit word of an array, in the order of this machine."""
    return ctypes.c_uint32.from_address(addr + 4 * offset).value


def read64(addr: int, offset: int = 0) -> int:
    """Read a 64-bit word of an array, in the order of this machine."""
    return ctypes.c_uint64.from_address(addr + 8 * offset).value


def read(addr: int, length: int, offset: int = 0) -> bytes:
    """Read bytes."""
    return ctypes.string_at(addr + offset, length)
