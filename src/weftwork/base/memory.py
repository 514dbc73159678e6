"""The memory limit of this process, and memory sizes in words.

The limit is the least of the machine's memory, the limits of the process's control groups and those that ``ulimit``
set. Source: the Linux kernel's documentation, cgroup-v2 (``memory.max``), cgroup-v1/memory
(``memory.limit_in_bytes``), proc(5); getrlimit(2).
Leaves out: what other processes use at the moment, which may end before a run does; swap, on which a run would crawl.
"""

from __future__ import annotations

import math
import os
import resource
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MemoryLimit", "memory_limit", "memory_words", "peak_memory_bytes"]

_ROOT: Final = Path("/")
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryLimit:
    """A memory limit in bytes, and who set it, in words."""

    limit_bytes: int
    owner: str

    def __str__(self) -> str:
        return f"{memory_words(self.limit_bytes)}, {self.owner}"


def memory_limit(root: Path = _ROOT) -> MemoryLimit:
    """Find the lowest memory limit of this process.

    Parameters
    ----------
    root : of the file system whose ``proc`` and ``sys`` are read; another than ``/`` is for tests
    """
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    found = [MemoryLimit(limit_bytes=machine, owner="the memory of this machine")]
    found += [
        MemoryLimit(limit_bytes=size, owner="the limit of this process's control group") for size in _cgroups(root)
    ]
    found += [MemoryLimit(limit_bytes=size, owner=f"the limit that {name} set") for size, name in _process_limits()]
    return min(found, key=lambda one: one.limit_bytes)


def peak_memory_bytes() -> int:
    """Peak memory of this process in bytes.

    It is the kernel's ``VmHWM``, proc(5): what getrusage(2) tells counts the process from which this one was started.
    """
    return _status_bytes()["VmHWM"]


def memory_words(size_bytes: float) -> str:
    """Format a memory size for people.

    Examples
    --------
    >>> memory_words(900), memory_words(1.5 * 2**30), memory_words(2**62)
    ('900 B', '1.5 GiB', '4,096 PiB')
    """
    power = min(len(_UNITS) - 1, max(0, int(math.log2(max(1.0, size_bytes))) // 10))
    size = size_bytes / 1024**power
    return f"{size:.1f} {_UNITS[power]}" if size < 10 and power else f"{size:,.0f} {_UNITS[power]}"


def _cgroups(root: Path) -> Iterator[int]:
    """Memory limits of this process's control groups and of their parents."""
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        base = root / "sys/fs/cgroup" / ("memory" if controllers else "")
        name = "memory.limit_in_bytes" if controllers else "memory.max"
        group = PurePosixPath(path.strip().lstrip("/"))
        for one in (group, *group.parents):
            for text in _lines(base / one / name):
                if text.strip().isdigit():  # else `max`: no limit
                    yield int(text)


def _lines(path: Path) -> list[str]:
    """Lines of a kernel file; empty if the file is missing or not readable."""
    try:
        return path.read_text(encoding="ascii").splitlines()
    except OSError:
        return []


def _process_limits() -> Iterator[tuple[int, str]]:
    """Limits of ulimit, less memory that is reserved but not used.

    Thread stacks are such memory; no run grows them.
    """
    for kind, field, name in (
        (resource.RLIMIT_AS, "VmSize", "ulimit -v"),
        (resource.RLIMIT_DATA, "VmData", "ulimit -d"),
    ):
        limit, _ = resource.getrlimit(kind)
        if limit == resource.RLIM_INFINITY:
            continue
        sizes = _status_bytes()
        unused = sizes.get(field, 0) - sizes.get("VmRSS", 0)
        yield max(0, limit - max(0, unused)), name


def _status_bytes() -> dict[str, int]:
    """Memory sizes of this process, by the kernel's names."""
    lines = (line.split() for line in _lines(Path("/proc/self/status")))
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines if words[-1] == "kB"}
