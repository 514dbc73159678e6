"""Operations that can be measured."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["PerfVerb"]


class PerfVerb(StrEnum):
    """Operation of a measurement."""

    WRITE = "write"
    READ = "read"
    SEND = "send"
    ATOMIC = "atomic"
