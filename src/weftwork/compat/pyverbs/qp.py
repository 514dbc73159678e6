"""Queue pairs: all names of the module of pyverbs.

Source: pyverbs, qp.pyx (names).
Leaves out: see `queue_pair`, `qp_ex` and `qp_attr`.
"""

from __future__ import annotations

from weftwork.compat.pyverbs.qp_attr import ECE, DataBuffer, QPAttr, QPCap, QPInitAttr, QPInitAttrEx
from weftwork.compat.pyverbs.qp_ex import QPEx
from weftwork.compat.pyverbs.queue_pair import QP

__all__ = ["ECE", "QP", "DataBuffer", "QPAttr", "QPCap", "QPEx", "QPInitAttr", "QPInitAttrEx"]
