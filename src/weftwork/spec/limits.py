"""Largest numbers that Weftwork can handle."""

from __future__ import annotations

__all__ = ["MAX_HOSTS"]

MAX_HOSTS = 2**20  # chosen: node indices are 32 bits; a million hosts is the largest fabric that Weftwork plans
