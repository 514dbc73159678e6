"""Standard output of commands, as wide as the terminal, or 120 columns."""

from __future__ import annotations

import sys
from typing import IO, cast

from rich.console import Console

from weftwork.cli.printable import Printable

__all__ = ["console"]

WIDTH = 120  # chosen: of a file or a pipe, so that output does not depend on who reads it


def console() -> Console:
    """Make a console for standard output."""
    file = cast("IO[str]", Printable(sys.stdout))
    width = None if sys.stdout.isatty() else WIDTH
    return Console(file=file, width=width, highlight=False, emoji=False, markup=False)
