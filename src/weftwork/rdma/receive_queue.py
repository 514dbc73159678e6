"""Posted receives of one or several queue pairs, and writing into them.

Source: IBTA vol. 1, 10.2.9 (shared receive queues) and 10.8.3.3 (posting receives).
Leaves out: tag matching.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import UsageError
from weftwork.base.grammar import plural
from weftwork.rdma.verbs import AccessFlags, RecvWr, WcStatus

if TYPE_CHECKING:
    from weftwork.rdma.memory import MemoryTable, ProtectionDomain
    from weftwork.rdma.verbs import Sge

__all__ = ["RecvQueue", "Scatter", "refused_pieces_text"]


def refused_pieces_text(pieces: tuple[Sge, ...]) -> str | None:
    """Why a list of pieces of memory is refused, or None.

    Whether the memory is registered is seen when it is used.
    """
    for piece in pieces:
        if piece.length >> 32 or piece.addr >> 64:  # of a negative number bits are left too; struct ibv_sge
            return f"sg_list: found {piece.length} bytes at {piece.addr}, wanted 32 and 64 bits"
    return None


class RecvQueue:
    """Receives in the order of posting.

    Parameters
    ----------
    max_wr, max_sge : limits
    is_shared : several queue pairs take from it

    Attributes
    ----------
    limit : a shared queue with fewer receives tells so once, see `fell_below_limit`; 0 never
    """

    def __init__(self, max_wr: int, max_sge: int, *, is_shared: bool = False) -> None:
        self.max_wr = max_wr
        self.max_sge: Final = max_sge
        self.is_shared: Final = is_shared
        self.limit = 0
        self._posted: deque[RecvWr] = deque()

    def __len__(self) -> int:
        return len(self._posted)

    def post(self, wr: RecvWr) -> None:
        """Add a receive; UsageError for a full queue, or a list that is too long or names no memory."""
        if len(wr.sg_list) > self.max_sge:
            raise UsageError(f"sg_list: found {plural(len(wr.sg_list), 'element')}, wanted at most {self.max_sge}")
        text = refused_pieces_text(wr.sg_list)
        if text is not None:
            raise UsageError(text)
        if len(self._posted) >= self.max_wr:
            raise UsageError(f"receive queue: found {plural(self.max_wr, 'receive')} posted, which is its limit")
        self._posted.append(wr)

    def resize(self, max_wr: int) -> None:
        """Change the number of receives that it holds; UsageError below those that are posted."""
        if max_wr < len(self._posted):
            raise UsageError(f"max_wr: found {max_wr}, wanted room for {plural(len(self._posted), 'receive')}")
        self.max_wr = max_wr

    def take(self) -> RecvWr | None:
        """Oldest receive, or None."""
        return self._posted.popleft() if self._posted else None

    def peek(self) -> RecvWr | None:
        """Oldest receive, without removing it, or None."""
        return self._posted[0] if self._posted else None

    def clear(self) -> None:
        """Forget all receives."""
        self._posted.clear()

    def fell_below_limit(self) -> bool:
        """Whether the limit has just been passed.

        The limit is then off until it is set again.
        """
        if len(self._posted) >= self.limit:
            return False
        self.limit = 0
        return True


class Scatter:
    """A list of memory pieces that is filled or read from its start.

    Parameters
    ----------
    pieces : views of memory, in order
    """

    def __init__(self, pieces: list[memoryview]) -> None:
        self.pieces: Final = pieces
        self.size_bytes: Final = sum(map(len, pieces))

    @classmethod
    def of_receive(cls, memory: MemoryTable, pd: ProtectionDomain, wr: RecvWr) -> Scatter | WcStatus:
        """Memory of a receive, or an error if it is not writable."""
        pieces = []
        for sge in wr.sg_list:
            view = memory.local(pd, sge, AccessFlags.LOCAL_WRITE)
            if view is None:
                return WcStatus.LOC_PROT_ERR
            pieces.append(view)
        return cls(pieces)

    def write(self, offset: int, data: memoryview | bytes) -> None:
        """Copy ``data`` to ``offset``; the data must fit."""
        if len(self.pieces) == 1:
            self.pieces[0][offset : offset + len(data)] = data
            return
        at = 0
        for piece in self.pieces:
            if offset < len(piece):
                part = data[at : at + len(piece) - offset]
                piece[offset : offset + len(part)] = part
                at += len(part)
                offset = 0
            else:
                offset -= len(piece)

    def read(self, offset: int, size_bytes: int) -> tuple[memoryview, ...]:
        """Views of ``size_bytes`` existing bytes from ``offset`` on."""
        if len(self.pieces) == 1:
            return (self.pieces[0][offset : offset + size_bytes],)
        found = []
        for piece in self.pieces:
            if size_bytes and offset < len(piece):
                part = piece[offset : offset + size_bytes]
                found.append(part)
                size_bytes -= len(part)
                offset = 0
            else:
                offset = max(0, offset - len(piece))
        return tuple(found)
