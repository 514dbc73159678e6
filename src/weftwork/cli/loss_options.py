"""The options of ``weftwork topology`` about losses.

Leaves out: what they do (`weftwork.cli.topology_without`).
"""

from typing import Annotated

import typer

__all__ = ["LossIteration", "LossSeeds", "Lost"]

Lost = Annotated[
    list[str] | None,
    typer.Option(
        "--without",
        help="Remove leaf3, leaf3-spine1, leaf3-spine1.all, leaf3/up, host3/nic2, plane1, network2 or random:2%, and "
        "measure the rest; may be repeated.",
    ),
]
LossSeeds = Annotated[
    int | None,
    typer.Option("--seeds", min=1, help="With --without random:2%: number of seeds, from 0; 100 by default."),
]
LossIteration = Annotated[
    bool,
    typer.Option("--iteration", help="With --without: run the scenario's job before and after on the flow engine."),
]
