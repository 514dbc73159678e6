"""Work queues for receive-side scaling, which a software NIC does not have.

Source: pyverbs, wq.pyx (names).
Leaves out: the queues themselves.
"""

from __future__ import annotations

from typing import Any

from weftwork.compat.pyverbs.base import PyverbsCM, PyverbsObject
from weftwork.compat.pyverbs.pyverbs_error import not_supported

__all__ = ["WQ", "RwqIndTable", "RwqIndTableInitAttr", "RxHashConf", "WQAttr", "WQInitAttr"]


class _Attributes(PyverbsObject):
    """Attributes by their names in pyverbs."""

    def __init__(self, **values: Any) -> None:  # noqa: ANN401 - as pyverbs
        self.__dict__.update(values)


class WQInitAttr(_Attributes):
    """Attributes of a work queue to be made."""


class WQAttr(_Attributes):
    """Attributes of a work queue."""


class RwqIndTableInitAttr(_Attributes):
    """Attributes of a table of work queues."""


class RxHashConf(_Attributes):
    """How packets are spread over work queues."""


class WQ(PyverbsCM):
    """A work queue that is refused."""

    def __init__(self, ctx: object, attr: WQInitAttr) -> None:  # noqa: ARG002 - as pyverbs
        raise not_supported("A work queue")


class RwqIndTable(PyverbsCM):
    """A table of work queues that is refused."""

    def __init__(self, ctx: object, attr: RwqIndTableInitAttr) -> None:  # noqa: ARG002 - as pyverbs
        raise not_supported("A table of work queues")
