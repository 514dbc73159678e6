"""Options that commands of several files share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weftwork.cli.completed import set_keys

__all__ = ["FabricFile", "Json", "NoUserCode", "Settings", "Suspects"]

FabricFile = Annotated[
    Path | None, typer.Option("-o", "--out", "--export", help="Write the fabric: .json, .graphml or .dot.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Replace a value of the file; may be repeated.", autocompletion=set_keys
    ),
]
Suspects = Annotated[
    list[str] | None,
    typer.Option(
        "--suspect",
        metavar="FILE",
        help="Python file with a suspect of your own, which is simulated as well; may be repeated.",
    ),
]
NoUserCode = Annotated[
    bool, typer.Option("--no-user-code", help="Refuse every Python file that the scenario names outside the package.")
]
