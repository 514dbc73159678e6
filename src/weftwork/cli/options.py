"""Options that commands of several files share."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["Json"]

Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
