"""The options of the commands about a fabric before it is simulated: ``cost``.

What a command needs is imported when it runs, so that ``weftwork --help`` answers at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weftwork.cli.options import Json

__all__ = ["cost_command"]

# as in `weftwork.cli.commands`, which imports this file
_Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="In place of the file's value; may be repeated."),
]
_NoUserCode = Annotated[
    bool, typer.Option("--no-user-code", help="Refuse every Python file that the scenario names outside the package.")
]


def cost_command(
    *,
    file: Annotated[
        Path | None, typer.Argument(help="Scenario, or a fabric as .json or .graphml.", show_default=False)
    ] = None,
    prices: Annotated[
        str | None,
        typer.Option(
            "--prices",
            metavar="BOOK",
            help="street-2025 (by default), deepseek-2025, slim-fly-2014, or a file of yours, .toml.",
        ),
    ] = None,
    table: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Also write the rows as CSV, with their sources.")
    ] = None,
    template: Annotated[
        bool, typer.Option("--template", help="Print a price book that comes with Weftwork, to start yours, and stop.")
    ] = False,
    settings: _Settings = None,
    no_user_code: _NoUserCode = False,
    as_json: Json = False,
) -> None:
    """Say what a fabric is built from: switches, NICs, optics and cables, their price and their power."""
    from weftwork.cli import cost as command
    from weftwork.cli.settings import overrides

    if template:
        command.print_template(prices)
        return
    if file is None:
        command.refuse_nothing()
        return
    command.cost(
        file, prices=prices, as_json=as_json, to=table, overrides=overrides(settings), user_code=not no_user_code
    )
