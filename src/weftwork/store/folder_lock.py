"""Whether a process writes into a folder: it holds a lock on the folder, which the system releases when it ends.

Leaves out: file systems without locks, on which every folder seems free.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["held", "is_held"]


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; a folder that is renamed meanwhile keeps it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # a file system without locks, or somebody looks just now
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Whether another process, or another part of this one, holds the lock of a folder or file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False
