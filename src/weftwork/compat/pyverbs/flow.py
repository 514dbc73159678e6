"""Flow steering, which a software NIC does not have.

Source: pyverbs, flow.pyx (names).
Leaves out: the steering itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.compat.pyverbs.base import PyverbsCM, PyverbsObject
from weftwork.compat.pyverbs.pyverbs_error import not_supported

if TYPE_CHECKING:
    from weftwork.compat.pyverbs.queue_pair import QP

__all__ = ["Flow", "FlowAction", "FlowAttr"]


class FlowAttr(PyverbsObject):
    """Attributes of a rule.

    Parameters
    ----------
    num_of_specs, flow_type, priority, port, flags : see ibv_create_flow(3)
    """

    def __init__(
        self, num_of_specs: int = 0, flow_type: int = 0, priority: int = 0, port: int = 1, flags: int = 0
    ) -> None:
        self.num_of_specs = num_of_specs
        self.type = flow_type
        self.priority = priority
        self.port = port
        self.flags = flags
        self.specs: list[object] = []


class Flow(PyverbsCM):
    """A rule that is refused."""

    def __init__(self, qp: QP, flow_attr: FlowAttr) -> None:  # noqa: ARG002 - as pyverbs
        raise not_supported("Flow steering")


class FlowAction(PyverbsObject):
    """An action that is refused."""

    def __init__(self) -> None:
        raise not_supported("Flow steering")
