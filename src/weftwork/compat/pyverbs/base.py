"""Bases of the objects of pyverbs: logging, context managers, closing of children.

Source: pyverbs, base.pyx (names).
Leaves out: nothing.
"""

from __future__ import annotations

import ctypes
import logging
from collections import deque
from typing import TYPE_CHECKING, ClassVar, Final, Self
from weakref import WeakSet

from weftwork.compat.pyverbs.pyverbs_error import PyverbsRDMAError
from weftwork.rdma.verbs import inc_rkey

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["NicObject", "PyverbsCM", "PyverbsObject", "PyverbsRDMAErrno", "close_orphans", "inc_rkey"]


def PyverbsRDMAErrno(msg: object) -> PyverbsRDMAError:  # noqa: N802 - the name of pyverbs
    """Make an error with the errno of the last call into C."""
    return PyverbsRDMAError(msg, ctypes.get_errno())


class PyverbsObject:
    """Any object of pyverbs."""

    @property
    def logger(self) -> logging.Logger:
        """Logger named after the class."""
        return logging.getLogger(type(self).__name__)

    def set_log_level(self, val: int | str) -> None:
        """Set the level of the logger."""
        self.logger.setLevel(val)


class PyverbsCM(PyverbsObject):
    """An object that is a context manager.

    Closing it twice does no harm.

    Attributes
    ----------
    closes : place in the order in which the children of one object close
    """

    closes: ClassVar[int] = 0
    _children: WeakSet[PyverbsCM] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the object and all that depends on it."""

    def add_ref(self, obj: PyverbsCM) -> None:
        """Register an object that closes before this one."""
        if self._children is None:
            self._children = WeakSet()
        self._children.add(obj)

    def remove_ref(self, obj: PyverbsCM) -> None:
        """Forget an object that depends on another one now."""
        if self._children is not None:
            self._children.discard(obj)

    def close_children(self) -> None:
        """Close all objects that depend on this one, in their order."""
        while self._children is not None and (alive := list(self._children)):
            for child in sorted(alive, key=lambda child: child.closes):
                self._children.discard(child)
                child.close()


_orphans: Final[deque[NicObject]] = deque()


class NicObject(PyverbsCM):
    """An object that the NIC knows until it is closed.

    Nobody may refer to it any more at any instant, even while the NIC is at work, since Python collects garbage then.
    So it is closed by the next call of the program, see `close_orphans`.

    Attributes
    ----------
    is_open : the NIC knows it
    """

    is_open = False

    def __del__(self, orphans: deque[NicObject] = _orphans) -> None:
        if self.is_open:
            orphans.append(self)


def close_orphans() -> None:
    """Close the objects that nobody refers to any more, in the order in which children close."""
    found = []
    while _orphans:
        found.append(_orphans.popleft())
    for orphan in sorted(found, key=lambda orphan: orphan.closes):
        orphan.close()
