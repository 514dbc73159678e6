"""Names and options of ``weftwork runs``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weftwork.cli.options import Json

__all__ = ["runs"]

runs = typer.Typer(
    rich_markup_mode=None, add_completion=False, help="List, show and delete run folders, with their sizes."
)

# named here: typer reads annotations later
Parent = Annotated[
    Path | None, typer.Argument(metavar="DIR", help="Folder of the run folders; runs by default.", show_default=False)
]


@runs.callback(invoke_without_command=True)
def _runs(context: typer.Context, *, as_json: Json = False) -> None:
    if context.invoked_subcommand is None:
        from weftwork.cli.runs import list_runs

        list_runs(None, as_json=as_json)


@runs.command("list")
def _runs_list(*, folder: Parent = None, as_json: Json = False) -> None:
    """List run folders with their answer, time and size."""
    from weftwork.cli.runs import list_runs

    list_runs(folder, as_json=as_json)


@runs.command("show")
def _runs_show(
    *,
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run folder, or the name of a run in runs.")],
    sources: Annotated[bool, typer.Option("--sources", help="Print the source of each figure.")] = False,
    as_json: Json = False,
) -> None:
    """Print the answer of a run again, with its notes and its files."""
    from weftwork.cli.runs import show_run

    show_run(run, has_sources=sources, as_json=as_json)


@runs.command("prune")
def _runs_prune(
    *,
    folder: Parent = None,
    keep: Annotated[int | None, typer.Option(min=0, metavar="N", help="Keep the newest N folders.")] = None,
    older_than: Annotated[
        str | None, typer.Option(metavar="AGE", help="Only folders older than a time, such as 30d or 12h.")
    ] = None,
    status: Annotated[str | None, typer.Option(help="Only folders of this status, such as interrupted.")] = None,
    larger_than: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Only folders above this size, such as 1GB.")
    ] = None,
    named: Annotated[bool, typer.Option("--named", help="Also runs with a name.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete the folders; without --yes, list them.")] = False,
    as_json: Json = False,
) -> None:
    """Delete folders that fulfil all conditions, and remains of killed runs."""
    from weftwork.cli.runs import prune_runs

    prune_runs(
        folder,
        keep=keep,
        older_than=older_than,
        status=status,
        larger_than=larger_than,
        has_named=named,
        is_done=yes,
        as_json=as_json,
    )
