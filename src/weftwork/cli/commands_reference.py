"""The options of ``list``, ``explain``, ``schema`` and ``new``.

What a command needs is imported when it runs, so that ``weftwork --help`` answers at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weftwork.cli import completed
from weftwork.cli.options import Json

__all__ = ["explain_command", "list_command", "new_command", "schema_command"]


def new_command(
    *,
    kind: Annotated[
        str,
        typer.Argument(
            help="congestion-control, path-selection, port-selection, collective, topology, traffic, transport, "
            "or recipe.",
            autocompletion=completed.templates,
        ),
    ],
    name: Annotated[
        str,
        typer.Argument(
            help="Of the files, such as my_cc or my_cc.py: a name of Python. Of a recipe its name in weftwork list "
            "recipe."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="FOLDER", help="Folder of the files; by default the current one."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a start for your own file and its scenario, or a recipe."""
    from weftwork.cli.new import new_file

    new_file(kind, name, folder=out, as_json=as_json)


def list_command(
    *,
    kind: Annotated[
        str | None,
        typer.Argument(
            help="Kind, such as model or congestion_control; without it, all kinds are listed.",
            autocompletion=completed.kinds,
        ),
    ] = None,
    with_sources: Annotated[bool, typer.Option("--sources", help="Print the source of each choice.")] = False,
    as_json: Json = False,
) -> None:
    """List the choices of a kind."""
    from weftwork.cli.list import list_kind

    list_kind(kind, as_json=as_json, with_sources=with_sources)


def explain_command(
    *,
    key: Annotated[
        str | None,
        typer.Argument(
            help="Key, such as training.tensor; without it, all sections are listed.", autocompletion=completed.keys
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Explain a key of a scenario, with unit and default."""
    from weftwork.cli.explain import explain

    explain(key, as_json)


def schema_command(
    *,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="File to write; standard output by default.")
    ] = None,
) -> None:
    """Print the JSON Schema of a scenario, for editors."""
    from weftwork.cli.schema import schema

    schema(out)
