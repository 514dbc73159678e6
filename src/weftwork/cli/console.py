"""Where commands write: standard output, as wide as the terminal, or 120 columns where there is none."""

from __future__ import annotations

import sys

from rich.console import Console

__all__ = ["console"]

WIDTH = 120  # chosen: of a file or a pipe, so that output does not depend on who reads it


def console() -> Console:
    """Make a console for standard output."""
    is_terminal = sys.stdout.isatty()
    return Console(file=sys.stdout, width=None if is_terminal else WIDTH, highlight=False, emoji=False, markup=False)
