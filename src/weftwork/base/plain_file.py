"""Read regular files only.

Opening a FIFO waits for a writer, and a device may never end.
"""

from __future__ import annotations

import os
import stat
from errno import EINVAL
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_ends", "read_plain"]

_KINDS: Final = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def read_plain(path: Path, most_bytes: int | None = None) -> bytes:
    """Return the content of a regular file.

    Parameters
    ----------
    path : links are followed
    most_bytes : how many are read at most; None: all of them

    Raises
    ------
    OSError : as of `open`, links that go round in a circle included; also where it is a FIFO, a socket or a device,
        which ``strerror`` says
    ValueError : a name that no file can have
    """
    with _opened(path) as file:
        return file.read(-1 if most_bytes is None else most_bytes)


def read_ends(path: Path, size_bytes: int) -> tuple[bytes, bytes]:
    """Return the first and last ``size_bytes`` of a file, or fewer.

    Raises
    ------
    OSError, ValueError : as `read_plain`
    """
    with _opened(path) as file:
        head = file.read(size_bytes)
        file.seek(max(len(head), file.seek(0, os.SEEK_END) - size_bytes))
        return head, file.read()


def _opened(path: Path) -> BinaryIO:
    _want_plain(path.stat().st_mode, path)  # before it is opened: that alone moves a tape
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    _want_plain(os.fstat(descriptor).st_mode, path)
    return open(descriptor, "rb")  # noqa: PTH123 - of a descriptor; the callers close it


def _want_plain(mode: int, path: Path) -> None:
    if (kind := _KINDS.get(stat.S_IFMT(mode))) is not None:
        raise OSError(EINVAL, f"it is {kind}, wanted a file", str(path))
