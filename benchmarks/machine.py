"""When, on what and of which commit a benchmark made its figures."""

from __future__ import annotations

import datetime as dt
import platform
import subprocess
from pathlib import Path
from typing import Any, Final

__all__ = ["circumstances"]

HERE: Final = Path(__file__).resolve().parent


def circumstances(rounds: int) -> dict[str, Any]:
    """What a table of figures says above itself.

    Parameters
    ----------
    rounds : that were made
    """
    git = ["git", "-C", str(HERE)]
    commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    changed = subprocess.run(
        [*git, "status", "--porcelain", "--", "../native", "../src"], capture_output=True, text=True, check=False
    )
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "commit": commit.stdout.strip() or "unknown",
        "uncommitted_changes": bool(changed.stdout.strip()),
        "python": platform.python_version(),
        "cpu": _cpu(),
        "rounds": rounds,
    }


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
