"""Registered memory as users name it: local and remote ranges."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Final, Self

from weftwork.base.errors import UsageError
from weftwork.rdma.verbs import Sge

if TYPE_CHECKING:
    from weftwork.rdma.memory import MemoryRegion

__all__ = ["LocalRange", "RemoteRange"]

_HANDLE: Final = Struct(">QQI")


def _range(wanted: slice, length: int) -> tuple[int, int]:
    """First byte and length of a slice; UsageError for a slice with steps."""
    start, stop, step = wanted.indices(length)
    if step != 1:
        raise UsageError(f"slice: found steps of {step} bytes, wanted 1")
    return start, max(0, stop - start)


@dataclass(frozen=True, slots=True)
class LocalRange:
    """Bytes of a registered buffer of this process; ``range[a:b]`` is a part of it.

    Parameters
    ----------
    mr : the region
    addr, length : bytes of it
    """

    mr: MemoryRegion
    addr: int
    length: int

    def __getitem__(self, wanted: slice) -> LocalRange:
        start, length = _range(wanted, self.length)
        return LocalRange(self.mr, self.addr + start, length)

    @property
    def sge(self) -> Sge:
        """The range as a scatter-gather element."""
        return Sge(self.addr, self.length, self.mr.lkey)

    @property
    def remote(self) -> RemoteRange:
        """The range as the peer names it, for `RemoteRange.encode`.

        The encoded range is sent to the peer.
        """
        return RemoteRange(self.addr, self.length, self.mr.rkey)


@dataclass(frozen=True, slots=True)
class RemoteRange:
    """Bytes of registered memory of the peer; ``range[a:b]`` is a part of it.

    Parameters
    ----------
    addr, length : bytes of the peer's process
    rkey : the key that the peer has drawn
    """

    addr: int
    length: int
    rkey: int

    def __getitem__(self, wanted: slice) -> RemoteRange:
        start, length = _range(wanted, self.length)
        return RemoteRange(self.addr + start, length, self.rkey)

    def encode(self) -> bytes:
        """20 bytes for the peer.

        A reader may use the memory as far as its region allows.
        """
        return _HANDLE.pack(self.addr, self.length, self.rkey)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read the 20 bytes at the start; UsageError for fewer."""
        if len(data) < _HANDLE.size:
            raise UsageError(f"range: found {len(data)} bytes, wanted the {_HANDLE.size} of RemoteRange.encode")
        return cls(*_HANDLE.unpack_from(data))
