"""Forking: memory of a software NIC survives it, since nothing but the process touches it.

Source: pyverbs, fork.pyx (names); ibv_fork_init(3).
Leaves out: nothing.
"""

from __future__ import annotations

from weftwork.compat.pyverbs.libibverbs_enums import ibv_fork_status

__all__ = ["fork_init", "is_fork_initialized"]


def fork_init() -> None:
    """Do nothing: no page is kept from a child."""


def is_fork_initialized() -> ibv_fork_status:
    """Whether `fork_init` was necessary."""
    return ibv_fork_status.IBV_FORK_UNNEEDED
