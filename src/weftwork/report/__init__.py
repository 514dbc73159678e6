"""Floor 5: tables and figures from the store.

The package can be called: it is the function `weftwork.report` too, whose code is in `weftwork.cli.surface`. The import
of any part of a package puts the package in the place of a function of its name, so both have to be one thing.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from weftwork.base import above

if TYPE_CHECKING:
    from pathlib import Path


class _Report(ModuleType):
    """A package that can be called."""

    def __call__(self, runs: object, path: str | Path | None = None, *, prices: str | None = None) -> Path:
        """Write a page about a run, or about several that are compared; see `weftwork.cli.surface.report`."""
        file: Path = above.call("report", runs, path, prices=prices)
        return file


sys.modules[__name__].__class__ = _Report
