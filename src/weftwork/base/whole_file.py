"""Files that are either complete or absent.

They are written under a temporary name in the same folder, then renamed.
Leaves out: what a loss of power does to files that the system has not yet written out.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from weftwork.base.stop import unfinished

__all__ = ["temporary_beside", "write_whole"]


def temporary_beside(path: Path, name: str = "") -> Path:
    """A temporary name for a file or folder being written.

    It begins with a dot and ends in ``.unfinished``.

    Parameters
    ----------
    path : what it becomes
    name : what it shows of that; short, since the length of names is limited
    """
    return path.parent / f".{name or 'weftwork'}-{secrets.token_hex(4)}.unfinished"


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file completely, or leave the old file as it was.

    Text is written in UTF-8.

    A link stays one and its target is replaced. What is no file, such as ``/dev/stdout``, is written as it is.

    Raises
    ------
    OSError : as of `open`
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        _write(path, content)
        return
    target = Path(os.path.realpath(path))
    with unfinished(temporary_beside(target)) as temporary:
        _write(temporary, content)
        if mode is not None:
            temporary.chmod(stat.S_IMODE(mode))
        temporary.replace(target)


def _write(path: Path, content: str | bytes) -> None:
    if isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    else:
        path.write_bytes(content)
