"""Memory that RDMA may use: protection domains, regions, windows, and checks.

A region lies over a buffer of the user's, at its real address, and copies nothing. A key is random and has no
structure: who knows one key learns nothing about another. Every access, local or remote, goes through `MemoryTable`.
Source: IBTA vol. 1, 10.6 (memory management) and 9.4.1.1 (checks of the responder).
Leaves out: on-demand paging, fast registration, zero-based addresses.
"""

from __future__ import annotations

import ctypes
from enum import Enum
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.errors import UsageError
from weftwork.base.grammar import plural
from weftwork.rdma.attributes import check_rights
from weftwork.rdma.persistence import PersistentFile
from weftwork.rdma.verbs import AccessFlags

if TYPE_CHECKING:
    from array import array
    from mmap import mmap
    from random import Random
    from typing import Any

    from numpy.typing import NDArray

    from weftwork.rdma.verbs import Sge

    WritableBuffer = bytearray | memoryview | mmap | array[Any] | NDArray[Any] | ctypes.Array[Any]

__all__ = ["AccessRefusal", "MemoryRegion", "MemoryTable", "MemoryWindow", "ProtectionDomain"]

_KEYS: Final = 1 << 32
_OWN_BITS: Final = 8  # IBTA vol. 1, 10.6.7.2: of a key, the consumer's; the others are the index
_REMOTE: Final = AccessFlags.REMOTE_WRITE | AccessFlags.REMOTE_READ | AccessFlags.REMOTE_ATOMIC
_WRITES: Final = AccessFlags.REMOTE_WRITE | AccessFlags.REMOTE_ATOMIC


class AccessRefusal(Enum):
    """Reason why a peer has no right."""

    UNKNOWN_KEY = "no such key, or of an unbound window"
    OTHER_OWNER = "the key belongs to another domain or queue pair"
    NO_RIGHT = "the key does not give this right"
    OUT_OF_BOUNDS = "the range is not inside"


class ProtectionDomain:
    """Queue pairs, regions and windows that may work together.

    For them the objects of another domain do not exist.
    """


class MemoryRegion:
    """A registered buffer.

    Attributes
    ----------
    pd : its protection domain
    addr, length : bytes of this process
    access : rights
    lkey, rkey : the keys for local and for remote use
    is_pinned : the system keeps the pages in memory
    windows : bound to it; a region with windows cannot be deregistered
    file : that its bytes reach, of a region with the right ``FLUSH_PERSISTENT``
    """

    def __init__(self, pd: ProtectionDomain, buffer: WritableBuffer, access: AccessFlags, lkey: int, rkey: int) -> None:
        view = buffer.data if isinstance(buffer, np.ndarray) else memoryview(buffer)
        if view.readonly or not view.c_contiguous:
            raise UsageError("buffer: found a read-only or scattered one, wanted writable bytes in one piece")
        self.view: Final = view.cast("B") if view.nbytes else memoryview(bytearray())
        self.pd: Final = pd
        self.addr: Final = int(np.frombuffer(self.view, np.uint8).ctypes.data) if view.nbytes else 0
        self.length: Final = view.nbytes
        self.access: Final = access
        self.lkey: Final = lkey
        self.rkey: Final = rkey
        self.windows = 0
        self.file: PersistentFile | None = None
        if access & AccessFlags.FLUSH_PERSISTENT:
            self.file = PersistentFile.of_view(self.view, self.addr)
            if self.file is None:
                raise UsageError("access: found FLUSH_PERSISTENT for other memory, wanted a shared mmap of a file")
        self.is_pinned = False
        self.pin()

    def pin(self) -> None:
        """Keep the pages in memory, where the system allows it."""
        self.is_pinned = _lock_pages("mlock", self.addr, self.length)

    def unpin(self) -> None:
        """Allow the system to page the buffer out again."""
        if self.is_pinned:
            _lock_pages("munlock", self.addr, self.length)
            self.is_pinned = False


class MemoryWindow:
    """A range of a region under a separate key.

    It can be taken back without the region.

    Attributes
    ----------
    pd : its protection domain
    window_type : 1, which every queue pair of the domain may use; or 2, of one queue pair
    rkey : valid while it is bound
    region : None while it is not bound
    addr, length, access : of the range
    qp_num : of type 2, the queue pair that bound it
    """

    def __init__(self, pd: ProtectionDomain, window_type: int, rkey: int) -> None:
        self.pd: Final = pd
        self.window_type: Final = window_type
        self.rkey = rkey
        self.region: MemoryRegion | None = None
        self.addr = 0
        self.length = 0
        self.access = AccessFlags(0)
        self.qp_num = 0

    def unbind(self) -> None:
        """Revoke the range."""
        if self.region is not None:
            self.region.windows -= 1
            self.region = None


class MemoryTable:
    """All regions and windows of a NIC, by key.

    Parameters
    ----------
    random : draws the keys
    max_regions : regions and windows together

    Attributes
    ----------
    revocations : keys that have become invalid so far; a view that was given before the last has to be asked for again
    """

    def __init__(self, random: Random, max_regions: int) -> None:
        self._random = random
        self._max_regions = max_regions
        self.revocations = 0
        self._local: dict[int, MemoryRegion] = {}
        self._remote: dict[int, MemoryRegion | MemoryWindow] = {}
        self._indexes: set[int] = set()  # of the remote keys

    def __len__(self) -> int:
        """Number of regions and windows."""
        return len(self._remote)

    def regions(self) -> tuple[MemoryRegion, ...]:
        """Registered regions, in the order of registration."""
        return tuple(self._local.values())

    def register(self, pd: ProtectionDomain, buffer: WritableBuffer, access: AccessFlags) -> MemoryRegion:
        """Register a buffer without a copy.

        Raises
        ------
        UsageError : read-only or scattered, remote writing without local writing, persistence of memory without a file,
            or too many regions
        """
        _check_rights(access)
        lkey = self._random.randrange(1, _KEYS)
        while lkey in self._local:
            lkey = self._random.randrange(1, _KEYS)
        region = MemoryRegion(pd, buffer, access, lkey, self._new_rkey())
        self._local[region.lkey] = region
        self._admit(region.rkey, region)
        return region

    def deregister(self, region: MemoryRegion) -> None:
        """Forget a region.

        UsageError while windows are bound to it, or if it is not registered.
        """
        if region.windows:
            raise UsageError(f"region: found {plural(region.windows, 'window')} bound to it, wanted none")
        if self._local.pop(region.lkey, None) is None:
            raise UsageError("region: found one that is not registered here")
        self.revocations += 1
        self._forget(region.rkey)
        region.unpin()

    def reregister(
        self, region: MemoryRegion, pd: ProtectionDomain, buffer: WritableBuffer, access: AccessFlags
    ) -> MemoryRegion:
        """Give a region another domain, buffer or rights under its keys (IBTA vol. 1, 11.2.8.7).

        Parameters
        ----------
        region : as it is; it is not valid any more
        pd, buffer, access : as `register`

        Returns
        -------
        the region as it is from now on

        Raises
        ------
        UsageError : as `register` and `deregister`; nothing has changed
        """
        if region.windows or self._local.get(region.lkey) is not region:
            raise UsageError("region: found one that is not registered here or has windows, wanted neither")
        _check_rights(access)
        changed = MemoryRegion(pd, buffer, access, region.lkey, region.rkey)
        region.unpin()
        changed.pin()
        self.revocations += 1
        self._local[region.lkey] = changed
        self._remote[region.rkey] = changed
        return changed

    def unpin_all(self) -> None:
        """Allow the system to page all buffers out again; the regions stay."""
        for region in self._local.values():
            region.unpin()

    def allocate_window(self, pd: ProtectionDomain, window_type: int) -> MemoryWindow:
        """Make an unbound window.

        UsageError for a type other than 1 and 2, or too many.
        """
        if window_type not in {1, 2}:
            raise UsageError(f"window_type: found {window_type}, wanted 1 or 2")
        window = MemoryWindow(pd, window_type, self._new_rkey())
        self._admit(window.rkey, window)
        return window

    def free_window(self, window: MemoryWindow) -> None:
        """Forget a window, bound or not."""
        window.unbind()
        self.revocations += 1
        self._forget(window.rkey)

    def persist(self, rkey: int, addr: int, length: int | None) -> bool:
        """Write a permitted range to its file; False on failure.

        `remote` has allowed the range; None is the whole region.
        """
        region = self._remote.get(rkey)
        if not isinstance(region, MemoryRegion) or region.file is None:
            return False
        if length is None:
            return region.file.persist(0, region.length)
        return region.file.persist(addr - region.addr, length)

    def draw_rkey(self) -> int:
        """A random unused key."""
        rkey = self._random.randrange(1, _KEYS)
        while rkey >> _OWN_BITS in self._indexes:
            rkey = self._random.randrange(1, _KEYS)
        return rkey

    def bind(
        self,
        window: MemoryWindow,
        region: MemoryRegion,
        place: tuple[int, int],
        access: AccessFlags,
        qp: int,
        *,
        rkey: int | None = None,
    ) -> bool:
        """Bind a window to a range of a region under a new key.

        An empty range unbinds a window of type 1.

        Parameters
        ----------
        window, region : of one protection domain
        place : address and length of the range
        access : rights of the peer, no more than the region allows locally
        qp : number of the queue pair that binds
        rkey : the new key; None draws one

        Returns
        -------
        False, with nothing changed, where the window may not be bound so
        """
        addr, length = place
        is_known = self._local.get(region.lkey) is region and self._remote.get(window.rkey) is window
        is_inside = region.addr <= addr and addr + length <= region.addr + region.length
        may_write = not access & _WRITES or region.access & AccessFlags.LOCAL_WRITE
        if not is_known or window.pd is not region.pd or not region.access & AccessFlags.MW_BIND or not may_write:
            return False
        if (length and not is_inside) or (window.window_type == 2 and (window.region is not None or not length)):
            return False
        if rkey is not None and rkey in self._remote:  # of type 2 the old key too: it must not be valid again
            return False
        self.revocations += 1
        self._forget(window.rkey)
        window.unbind()
        window.rkey = rkey if rkey is not None else self.draw_rkey()
        self._admit(window.rkey, window)
        if length:
            window.region, window.addr, window.length = region, addr, length
            window.access, window.qp_num = access & _REMOTE, qp
            region.windows += 1
        return True

    def invalidate(self, pd: ProtectionDomain, rkey: int, qp: int) -> bool:
        """Invalidate the key of a window of type 2.

        False if there is none that this queue pair may invalidate.
        """
        window = self._remote.get(rkey)
        if not isinstance(window, MemoryWindow) or window.window_type != 2 or window.pd is not pd:
            return False
        if window.region is None or window.qp_num != qp:
            return False
        window.unbind()
        self.revocations += 1
        return True

    def local(self, pd: ProtectionDomain, sge: Sge, access: AccessFlags) -> memoryview | None:
        """Bytes of a scatter-gather element; None if not permitted.

        The domain must own them for this use.
        """
        region = self._local.get(sge.lkey)
        if region is None or region.pd is not pd or int(access) & ~int(region.access):
            return None
        start = sge.addr - region.addr
        if start < 0 or start + sge.length > region.length:
            return None
        return region.view[start : start + sge.length]

    def remote(
        self, pd: ProtectionDomain, rkey: int, addr: int, length: int, access: AccessFlags, qp: int
    ) -> memoryview | None:
        """Bytes requested by a peer, or None if it has no right.

        Parameters
        ----------
        pd, qp : domain and number of the queue pair by which it asks
        rkey, addr, length : what it asks for
        access : how it wants to use them
        """
        found = self._remote.get(rkey)
        if found is None or found.pd is not pd or int(access) & ~int(found.access):
            return None
        region = found
        if isinstance(region, MemoryWindow):
            if region.region is None or (region.window_type == 2 and region.qp_num != qp):
                return None
            region = region.region
        if addr < found.addr or addr + length > found.addr + found.length:
            return None
        start = addr - region.addr
        return region.view[start : start + length]

    def refusal(
        self, pd: ProtectionDomain, rkey: int, addr: int, length: int, access: AccessFlags, qp: int
    ) -> AccessRefusal | None:
        """Why `remote` refuses a request, or None if it does not; parameters as there."""
        found = self._remote.get(rkey)
        if found is None or (isinstance(found, MemoryWindow) and found.region is None):
            return AccessRefusal.UNKNOWN_KEY
        if found.pd is not pd or (isinstance(found, MemoryWindow) and found.window_type == 2 and found.qp_num != qp):
            return AccessRefusal.OTHER_OWNER
        if int(access) & ~int(found.access):
            return AccessRefusal.NO_RIGHT
        return None if self.remote(pd, rkey, addr, length, access, qp) is not None else AccessRefusal.OUT_OF_BOUNDS

    def _new_rkey(self) -> int:
        if len(self._remote) >= self._max_regions:
            raise UsageError(
                f"memory: found {plural(len(self._remote), 'region')} and windows, wanted fewer than max_mr"
            )
        return self.draw_rkey()

    def _admit(self, rkey: int, of: MemoryRegion | MemoryWindow) -> None:
        self._remote[rkey] = of
        self._indexes.add(rkey >> _OWN_BITS)

    def _forget(self, rkey: int) -> None:
        if self._remote.pop(rkey, None) is not None:
            self._indexes.discard(rkey >> _OWN_BITS)


def _check_rights(access: AccessFlags) -> None:
    check_rights("access", access)
    if access & _WRITES and not access & AccessFlags.LOCAL_WRITE:  # IBTA vol. 1, 10.6.3.1
        raise UsageError("access: found remote write or atomic alone, wanted local write with it")


def _lock_pages(call: str, addr: int, length: int) -> bool:
    """Call mlock or munlock; False on failure.

    The system may have none, or refuse beyond RLIMIT_MEMLOCK.
    """
    function = getattr(ctypes.CDLL(None), call, None)
    if function is None or length == 0:
        return False
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    return int(function(addr, length)) == 0
