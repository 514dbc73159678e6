"""What a test over all examples has to know of them."""

from __future__ import annotations

from pathlib import Path

__all__ = ["as_a_run"]


def as_a_run(scenario: Path) -> dict[str, str] | None:
    """Overrides with which the scenario of a sweep is a run; None for all others."""
    return {"sweep": "null"} if "\nsweep:" in scenario.read_text(encoding="utf-8") else None
