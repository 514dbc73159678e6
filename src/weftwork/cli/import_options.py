"""Options of ``weftwork import``."""

from __future__ import annotations

from typing import Annotated

import typer

from weftwork.cli import completed

__all__ = ["ImportNode", "ImportSettings", "ImportVariables"]

ImportNode = Annotated[
    str | None,
    typer.Option(
        help="Server; see `weftwork list node`. By default dgx-h100.",
        show_default=False,
        autocompletion=completed.nodes,
    ),
]
ImportVariables = Annotated[
    list[str] | None,
    typer.Option("--variable", metavar="NAME=VALUE", help="Variable of the script, which is not run; may be repeated."),
]
ImportSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Key of the scenario, in place of what the arguments say; may be repeated.",
        autocompletion=completed.set_keys,
    ),
]
