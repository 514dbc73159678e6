"""NVLink far faster than any, without latency; where servers have NVLink."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.study.answer.improvement import Improvement
from weftwork.study.prepare import what_if

if TYPE_CHECKING:
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["CASE", "IMPROVEMENT"]

CASE: Final = "infinitely fast NVLink"


def _case(prepared: Prepared) -> str | None:
    return CASE if any(server.nvlink_rate_bps for server in prepared.fabric.servers) else None


IMPROVEMENT: Final = Improvement(rank=30, case=_case, make=what_if.with_fast_nvlink)
