"""The options of ``weftwork plan``.

What a command needs is imported when it runs, so that ``weftwork --help`` answers at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from weftwork.cli import completed
from weftwork.cli.options import Json, NoUserCode, Settings

__all__ = ["plan_command"]


def plan_command(  # noqa: PLR0913 - the options, all by name
    *,
    file: Annotated[
        Path | None,
        typer.Argument(help="Scenario; missing keys of training are searched.", show_default=False),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Without FILE: model of the catalogue, or a config.json.", autocompletion=completed.models),
    ] = None,
    node: Annotated[
        str | None,
        typer.Option(help="Without FILE: server of the catalogue, such as dgx-h100.", autocompletion=completed.nodes),
    ] = None,
    gpus: Annotated[int | None, typer.Option(help="Without FILE: number of GPUs.")] = None,
    global_batch: Annotated[
        int | None, typer.Option(help="Without FILE: sequences of an iteration; 4 Mi tokens by default.")
    ] = None,
    sequence: Annotated[int | None, typer.Option(help="Without FILE: tokens of a sequence; 8,192 by default.")] = None,
    megatron: Annotated[
        str | None,
        typer.Option(
            metavar="ARGUMENTS",
            help="Without FILE: arguments of Megatron-LM; their plan is compared with the best.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Folder to write; runs/plan-<name>-<time> by default.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("-j", "--jobs", min=1, help="Parallel processes; all cores by default.")
    ] = None,
    settings: Settings = None,
    headroom: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Share of a GPU's memory that plans leave free, such as 5% or 0; 10% by default.",
        ),
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Wall time that the search may take, such as 60s; it takes all by default."),
    ] = None,
    trainer: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="TRAINER",
            help="Only plans that this trainer can run: megatron, torchtitan or any.",
            autocompletion=completed.trainers,
        ),
    ] = "any",
    confirms: Annotated[
        bool, typer.Option("--confirm", help="Also run the best plan packet by packet, as much of it as fits.")
    ] = False,
    no_user_code: NoUserCode = False,
    as_json: Json = False,
) -> None:
    """Find the fastest parallel plans for a model on so many GPUs."""
    from weftwork.cli.plan import SearchLimits, plan
    from weftwork.cli.plan_question import question, refuse_options

    options: dict[str, Any] = {
        "model": model,
        "node": node,
        "gpus": gpus,
        "global_batch": global_batch,
        "sequence": sequence,
        "megatron": megatron,
    }
    if file is not None:
        refuse_options(options)
    plan(
        file or question(**options),
        out=out,
        jobs=jobs,
        settings=settings,
        user_code=not no_user_code,
        as_json=as_json,
        confirms=confirms,
        limits=SearchLimits(headroom=headroom, within=within, trainer=trainer),
    )
