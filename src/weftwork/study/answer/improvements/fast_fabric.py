"""Links far faster than any, without delay, and switches that forward at once."""

from __future__ import annotations

from typing import Final

from weftwork.study.answer.improvement import Improvement
from weftwork.study.prepare import what_if

__all__ = ["CASE", "IMPROVEMENT"]

CASE: Final = "infinitely fast fabric"
IMPROVEMENT: Final = Improvement(rank=20, case=lambda _: CASE, make=what_if.with_fast_fabric)
