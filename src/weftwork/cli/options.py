"""Options that commands of several files share."""

from __future__ import annotations

from typing import Annotated

import typer

from weftwork.cli.completed import set_keys

__all__ = ["Json", "NoUserCode", "Settings"]

Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Replace a value of the file; may be repeated.", autocompletion=set_keys
    ),
]
NoUserCode = Annotated[
    bool, typer.Option("--no-user-code", help="Refuse every Python file that the scenario names outside the package.")
]
