"""Descriptors by which threads wake each other, and times for poll(2).

Source: eventfd(2), poll(2).
Leaves out: who waits for which bell, see `device`.
"""

from __future__ import annotations

import os
from typing import Final

__all__ = ["close_all", "make_bell", "milliseconds", "ring", "silence"]

_LONGEST_WAIT_S: Final = 3600.0  # chosen: a bound that select(2) takes


def make_bell() -> int:
    """Make a descriptor that is readable once it has rung."""
    return os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)


def ring(bell: int) -> None:
    """Make a bell readable."""
    os.eventfd_write(bell, 1)


def silence(bell: int) -> None:
    """Make a bell wait again, whether it has rung or not."""
    try:
        os.eventfd_read(bell)
    except BlockingIOError:
        return  # it has not rung


def close_all(*descriptors: int) -> None:
    """Close descriptors."""
    for descriptor in descriptors:
        os.close(descriptor)


def milliseconds(wait_s: float | None) -> float:
    """Time for poll(2), rounded up.

    A timer is then due when it returns.
    """
    return min(_LONGEST_WAIT_S, _LONGEST_WAIT_S if wait_s is None else wait_s) * 1000
