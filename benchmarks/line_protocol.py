"""How a process that measures talks to `packet_engine`: a line of JSON when ready, and one for each line it reads."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["peak_rss_bytes", "serve"]


def serve(prepared: dict[str, Any], run: Callable[[], dict[str, Any]]) -> None:
    """Say that all is prepared, then run once for each line of the standard input, until it ends.

    Parameters
    ----------
    prepared : figures of the preparation
    run : makes one run and gives its figures
    """
    _answer(prepared)
    for _ in sys.stdin:
        _answer({**run(), "peak_rss_bytes": peak_rss_bytes()})


def peak_rss_bytes() -> int:
    """Largest resident set of this process; getrusage would give its parent's where that was larger."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def _answer(figures: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()
