"""Functions that worker processes call; they stand in a module that a worker finds by its name."""

from __future__ import annotations

import os
import signal

from weftwork.base.errors import ConfigError, Mistake

__all__ = ["dying", "refused", "squared"]


def squared(number: int) -> tuple[int, int]:
    """The square, and who worked it out."""
    return number * number, os.getpid()


def refused(number: int) -> int:
    """A number below three."""
    if number >= 3:
        raise ConfigError("numbers", [Mistake(path="number", text=f"found {number}, wanted less than 3")])
    return number


def dying(number: int) -> int:
    """Nothing: the process is killed, as by the kernel where memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)
    return number
