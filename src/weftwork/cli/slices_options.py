"""Options of ``weftwork topology --slices``."""

from __future__ import annotations

from typing import Annotated, Final

import typer

__all__ = ["USUAL_AVAILABILITY", "CubeAvailability", "Slices"]

# chosen: 16 hosts of a cube, each up 99.9 % of the time, the best of the three cases of Jouppi et al., ISCA 2023
USUAL_AVAILABILITY: Final = 0.984

Slices = Annotated[
    bool,
    typer.Option(
        "--slices", help="Of a TPU pod: slices that run with the failed cubes, and how often one is available."
    ),
]
CubeAvailability = Annotated[
    float | None,
    typer.Option(
        "--cube-availability",
        min=0.0,
        max=1.0,
        help=f"With --slices: share of the time in which a cube is up; {USUAL_AVAILABILITY} by default.",
        show_default=False,
    ),
]
