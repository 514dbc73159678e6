"""The options of ``weftwork topology --limits``."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["Limits", "LimitsRadix", "LimitsRatio", "LimitsSwitch"]

Limits = Annotated[
    bool,
    typer.Option(
        "--limits",
        help="Largest size of the fabric, its free ports and the next steps; without FILE, largest sizes of trees.",
    ),
]
LimitsRadix = Annotated[
    int | None, typer.Option(min=2, max=65_536, help="For --limits without FILE: ports of a switch.")
]
LimitsSwitch = Annotated[
    str | None, typer.Option(metavar="NAME", help="For --limits without FILE: a switch, see `weftwork list switch`.")
]
LimitsRatio = Annotated[
    str | None,
    typer.Option(metavar="RATIO", help="For --limits without FILE: oversubscription of the leaves, such as 3:1."),
]
