"""Whether this process keeps what runs share, as workers do that run many points.

Leaves out: what is kept (`weftwork.study.prepare.shared_parts`).
"""

from __future__ import annotations

__all__ = ["is_sharing", "share"]

_shares: list[bool] = []


def share() -> None:
    """Keep parts of runs in this process, from this call on."""
    if not _shares:
        _shares.append(True)


def is_sharing() -> bool:
    """Whether this process keeps parts of runs."""
    return bool(_shares)
