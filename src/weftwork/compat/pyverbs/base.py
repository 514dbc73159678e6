"""Bases of the objects of pyverbs: logging, context managers, closing of children.

Source: pyverbs, base.pyx (names).
Leaves out: nothing.
"""

from __future__ import annotations

import ctypes
import logging
from typing import TYPE_CHECKING, ClassVar, Self
from weakref import WeakSet

from weftwork.compat.pyverbs.pyverbs_error import PyverbsRDMAError
from weftwork.rdma.verbs import inc_rkey

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["PyverbsCM", "PyverbsObject", "PyverbsRDMAErrno", "inc_rkey"]


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

    Closing it twice does no harm, and it closes itself when nobody refers to it any more.

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
        while self._children:
            for child in sorted(self._children, key=lambda child: child.closes):
                self._children.discard(child)
                child.close()
