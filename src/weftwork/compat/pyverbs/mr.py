"""Memory regions and memory windows.

Source: pyverbs, mr.pyx (names); IBTA vol. 1, 10.6 and 11.2.8; libibverbs, ibv_reg_mr(3), ibv_rereg_mr(3).
Leaves out: device memory, DMA buffers of GPUs, regions of the whole address space.
"""

from __future__ import annotations

import ctypes
import mmap
from errno import EBUSY, EINVAL
from typing import TYPE_CHECKING, Any, Final

from weftwork.compat.pyverbs.base import NicObject, PyverbsCM, close_orphans
from weftwork.compat.pyverbs.libibverbs_enums import ibv_access_flags, ibv_mw_type, ibv_rereg_mr_flags
from weftwork.compat.pyverbs.mem_alloc import MAP_HUGETLB_
from weftwork.compat.pyverbs.pd import PD
from weftwork.compat.pyverbs.pyverbs_error import (
    PyverbsError,
    PyverbsRDMAError,
    PyverbsUserError,
    not_supported,
    refused_as,
)
from weftwork.rdma.verbs import AccessFlags

if TYPE_CHECKING:
    from weftwork.rdma.memory import MemoryRegion

__all__ = ["DMMR", "HUGE_PAGE_SIZE", "MR", "MW", "DmaBufMR", "MWBind", "MWBindInfo", "core_access", "mwtype2str"]

HUGE_PAGE_SIZE: Final = 0x200000
# Linux include/rdma/ib_verbs.h, IB_ACCESS_OPTIONAL: a device ignores those of these bits that it does not know.
_OPTIONAL: Final = 0x3FF00000
_KNOWN: Final = sum(AccessFlags)
_ALLOCATES: Final = int(ibv_access_flags.IBV_ACCESS_HUGETLB)
_REMOTE: Final = AccessFlags.REMOTE_WRITE | AccessFlags.REMOTE_READ | AccessFlags.REMOTE_ATOMIC


def core_access(access: int, what: str) -> AccessFlags:
    """Rights, for the NIC.

    Relaxed ordering changes nothing: a software NIC writes in order, which the right allows.

    Parameters
    ----------
    access : bits of ``ibv_access_flags``
    what : words for the error
    """
    bits = int(access) & ~_OPTIONAL & ~_ALLOCATES
    unknown = bits & ~_KNOWN
    if unknown:
        raise not_supported(f"{what} with access flags {unknown:#x}")
    return AccessFlags(bits)


class MR(NicObject):
    """A memory region.

    Parameters
    ----------
    creator : protection domain, or a communication identifier
    length : bytes
    access : rights
    address : of memory of the program; None lets the region allocate it
    implicit : the whole address space, which a software NIC does not support
    handle : of a region to import, which it does not support either

    Attributes
    ----------
    region : for the NIC
    """

    closes = 5

    def __init__(
        self,
        creator: Any,  # noqa: ANN401 - a domain or an identifier
        length: int = 0,
        access: int = 0,
        address: int | None = None,
        implicit: bool = False,  # noqa: FBT001, FBT002 - the signature of pyverbs
        **kwargs: Any,  # noqa: ANN401 - as pyverbs
    ) -> None:
        if implicit or kwargs.get("handle") is not None:
            raise not_supported("An implicit or imported MR")
        pd = creator if isinstance(creator, PD) else getattr(creator, "pd", None)
        if not isinstance(pd, PD):
            raise PyverbsUserError(f"Cannot create MR from {type(creator)}")
        what = f"Failed to register a MR. length: {length}, access flags: {int(access)}"
        rights = core_access(access, "Registering a MR")
        close_orphans()
        self.nic = pd.nic
        self._memory = self._own_memory(length, access) if not address else _memory_at(address, length)
        if rights & AccessFlags.FLUSH_PERSISTENT:
            raise not_supported("A MR with IBV_ACCESS_FLUSH_PERSISTENT, which needs a shared mapping of a file,")
        with refused_as(what):
            self.region: MemoryRegion = self.nic.device.reg_mr(pd.domain, self._memory, rights)
        self.is_user_addr = bool(address)
        self.pd: PD | None = pd
        self.is_open = True
        pd.add_ref(self)
        if pd is not creator:
            creator.add_ref(self)

    @staticmethod
    def _own_memory(length: int, access: int) -> ctypes.Array[ctypes.c_char]:
        """Allocate pages of zeros."""
        if not length:
            return (ctypes.c_char * 0)()
        is_huge = bool(access & ibv_access_flags.IBV_ACCESS_HUGETLB)
        unit = HUGE_PAGE_SIZE if is_huge else mmap.PAGESIZE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | (MAP_HUGETLB_ if is_huge else 0)
        try:
            pages = mmap.mmap(-1, -(-length // unit) * unit, flags=flags)
        except OSError as error:
            raise PyverbsError(f"Failed to allocate MR buffer of size {length}") from error
        return (ctypes.c_char * length).from_buffer(pages)

    @property
    def buf(self) -> int:
        """Address of the first byte."""
        return self.region.addr if self.pd is not None else 0

    @property
    def lkey(self) -> int:
        """Key for local use."""
        return self.region.lkey

    @property
    def rkey(self) -> int:
        """Key for peers."""
        return self.region.rkey

    @property
    def length(self) -> int:
        """Bytes."""
        return self.region.length

    @property
    def handle(self) -> int:
        """A number of the region in this process."""
        return self.region.lkey

    def write(self, data: str | bytes | bytearray, length: int, offset: int = 0) -> None:
        """Write into the region.

        Parameters
        ----------
        data : bytes, or a text in UTF-8
        length : bytes to write
        offset : of the first one
        """
        self._check(length, offset)
        octets = data.encode() if isinstance(data, str) else bytes(data)
        ctypes.memmove(self.region.addr + offset, octets, min(length, len(octets)))

    def read(self, length: int, offset: int) -> bytes:
        """Read bytes of the region."""
        self._check(length, offset)
        return ctypes.string_at(self.region.addr + offset, length)

    def _check(self, length: int, offset: int) -> None:
        if self.pd is None or length < 0:
            raise PyverbsUserError(f"The MR buffer isn't allocated or length {length} is invalid")
        if offset < 0 or offset + length > self.region.length:
            raise PyverbsUserError(f"Invalid offset {offset}: the MR has {self.region.length} bytes")

    def rereg(self, flags: int, pd: PD | None = None, addr: int = 0, length: int = 0, access: int = 0) -> None:
        """Change domain, memory or rights of the region; its keys stay.

        Parameters
        ----------
        flags : what changes, bits of ``ibv_rereg_mr_flags``
        pd, addr, length, access : the new values
        """
        changes = ibv_rereg_mr_flags(flags)
        memory = self._memory
        if ibv_rereg_mr_flags.IBV_REREG_MR_CHANGE_TRANSLATION in changes:
            memory = _memory_at(addr, length)
        moves = ibv_rereg_mr_flags.IBV_REREG_MR_CHANGE_PD in changes
        if self.pd is None or (moves and pd is None):
            raise PyverbsRDMAError("Failed to rereg MR: IBV_REREG_MR_ERR_INPUT", EINVAL)
        new_pd = pd if moves and pd is not None else self.pd
        rights = self.region.access
        if ibv_rereg_mr_flags.IBV_REREG_MR_CHANGE_ACCESS in changes:
            rights = core_access(access, "Reregistering a MR")
        with refused_as("Failed to rereg MR: IBV_REREG_MR_ERR_CMD"), self.nic.device.lock:
            memory_table = self.nic.device.nic.memory
            self.region = memory_table.reregister(self.region, new_pd.domain, memory, rights)
        self._memory = memory
        self.is_user_addr = self.is_user_addr or memory is not self._memory
        if moves:
            self.pd.remove_ref(self)
            self.pd = new_pd
            new_pd.add_ref(self)

    def close(self) -> None:
        """Deregister the region and free memory that it allocated."""
        if self.is_open:
            self.close_children()
            self.is_open = False
            if self.nic.is_here:
                with refused_as("Failed to dereg MR", EBUSY):
                    self.nic.device.dereg_mr(self.region)
            self.pd = None

    def __str__(self) -> str:
        values = {"lkey": self.lkey, "rkey": self.rkey, "length": self.length, "buf": self.buf, "handle": self.handle}
        return "MR:\n" + "".join(f"{name:22}: {value:<20}\n" for name, value in values.items())


def _memory_at(address: int, length: int) -> ctypes.Array[ctypes.c_char]:
    """Memory of the program, which the program owns."""
    return (ctypes.c_char * length).from_address(address)


def window_access(access: int) -> AccessFlags:
    """Rights of a window, for the NIC."""
    return core_access(access, "Binding a MW") & _REMOTE


class MWBindInfo(PyverbsCM):
    """Range and rights of a binding.

    Parameters
    ----------
    mr : region
    addr, length : range of the region
    mw_access_flags : rights of peers
    """

    def __init__(self, mr: MR, addr: int, length: int, mw_access_flags: int) -> None:
        self.mr = mr
        self.addr = addr
        self.length = length
        self.mw_access_flags = mw_access_flags


class MWBind(PyverbsCM):
    """Binding of a window of type 1.

    Parameters
    ----------
    info : range and rights
    send_flags : options of the request
    wr_id : returned in the completion
    """

    def __init__(self, info: MWBindInfo, send_flags: int, wr_id: int = 0) -> None:
        self.info = info
        self.send_flags = send_flags
        self.wr_id = wr_id


class MW(NicObject):
    """A memory window.

    Parameters
    ----------
    pd : protection domain
    mw_type : 1 or 2

    Attributes
    ----------
    window : for the NIC
    rkey : key for peers; that of type 1 changes when a binding is posted
    """

    closes = 4

    def __init__(self, pd: PD, mw_type: int) -> None:
        with refused_as("Failed to allocate MW"):
            self.window = pd.nic.device.alloc_mw(pd.domain, int(mw_type))
        self.rkey = self.window.rkey
        self.nic = pd.nic
        self.pd: PD | None = pd
        self.is_open = True
        pd.add_ref(self)

    @property
    def handle(self) -> int:
        """A number of the window in this process."""
        return id(self.window) & 0xFFFFFFFF

    @property
    def type(self) -> ibv_mw_type:
        """Type, 1 or 2."""
        return ibv_mw_type(self.window.window_type)

    def close(self) -> None:
        """Free the window; its key is no longer valid."""
        if self.is_open:
            self.is_open = False
            if self.nic.is_here:
                self.nic.device.dealloc_mw(self.window)
            self.pd = None

    def __str__(self) -> str:
        values = {"Rkey": self.rkey, "Handle": self.handle, "MW Type": mwtype2str(self.window.window_type)}
        return "MW:\n" + "".join(f"{name:22}: {value!s:<20}\n" for name, value in values.items())


class DMMR(MR):
    """A region of device memory, which a software NIC does not have."""

    def __init__(self, pd: PD, length: int, access: int, dm: object, offset: int) -> None:  # noqa: ARG002 - as pyverbs
        raise not_supported("Device memory")


class DmaBufMR(MR):
    """A region of a GPU's memory, which a software NIC does not reach."""

    def __init__(
        self,
        pd: PD,  # noqa: ARG002 - as the others
        length: int,  # noqa: ARG002
        access: int,  # noqa: ARG002
        dmabuf: object = None,  # noqa: ARG002
        offset: int = 0,  # noqa: ARG002
        gpu: int = 0,  # noqa: ARG002
        gtt: int = 0,  # noqa: ARG002
    ) -> None:
        raise not_supported("A DMA buffer")


def mwtype2str(mw_type: int) -> str:
    """Name of a type of windows."""
    return {1: "IBV_MW_TYPE_1", 2: "IBV_MW_TYPE_2"}.get(mw_type, f"Unknown MW type ({mw_type})")
