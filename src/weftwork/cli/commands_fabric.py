"""The options of the commands about a planned fabric: ``cost`` and ``design``.

What a command needs is imported when it runs, so that ``weftwork --help`` answers at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weftwork.cli.options import Json, NoUserCode, Settings

__all__ = ["cost_command", "design_command"]


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
            help="street-2025 (default), deepseek-2025, slim-fly-2014, or your own .toml file.",
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option("-o", "--out", "--csv", metavar="FILE", help="Also write the rows as CSV, with their sources."),
    ] = None,
    template: Annotated[
        bool, typer.Option("--template", help="Print a price book of Weftwork as a start for your own, and stop.")
    ] = False,
    settings: Settings = None,
    no_user_code: NoUserCode = False,
    as_json: Json = False,
) -> None:
    """Print the parts of a fabric with their price and power.

    Parts are switches, NICs, optics and cables.
    """
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


def design_command(  # noqa: PLR0913 - the options, all by name
    *,
    file: Annotated[Path, typer.Argument(help="Scenario with the job, a YAML file.")],
    gpus: Annotated[
        int | None, typer.Option("--gpus", min=1, help="GPUs of all servers; by default fabric.gpus of the file.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="DOLLARS", help="Highest cost of a fabric, such as 80M.")
    ] = None,
    most_power: Annotated[
        str | None, typer.Option("--power", metavar="WATTS", help="Highest power of a fabric, such as 1.5MW.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="KEY=VALUE,VALUE",
            help="Allowed values of topology, switch, link_rate (of a GPU), planes, oversubscription (of the leaves)"
            " or upper (oversubscription of the tier above); may be repeated.",
        ),
    ] = None,
    prices: Annotated[
        str | None,
        typer.Option("--prices", metavar="BOOK", help="Price book, as in `weftwork cost`; street-2025 by default."),
    ] = None,
    closed_only: Annotated[
        bool, typer.Option("--closed-forms", help="Run nothing: the front is by closed forms alone.")
    ] = False,
    criterion: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What the choice is by: work-per-dollar of the whole cluster, knee (of network money and time), time,"
            " money or power.",
        ),
    ] = "work-per-dollar",
    gpu_hour: Annotated[
        str | None,
        typer.Option("--gpu-hour", metavar="DOLLARS", help="Price of a GPU-hour, in place of the price book's."),
    ] = None,
    confirms: Annotated[
        str | None,
        typer.Option("--confirm", metavar="NAME", help="Also run this fabric, or take, or knee, packet by packet."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", help="Folder of the design, new or to continue; runs/<file>-design-<time> by default."
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("-j", "--jobs", min=1, help="Parallel processes; all cores by default.")
    ] = None,
    settings: Settings = None,
    no_user_code: NoUserCode = False,
    as_json: Json = False,
) -> None:
    """Find the fabrics that no other fabric beats in money, power and time."""
    from weftwork.cli.design import design_command as command

    raise typer.Exit(
        command(
            file,
            gpus=gpus,
            budget=budget,
            most_power=most_power,
            only=only,
            prices=prices,
            closed_only=closed_only,
            confirms=confirms,
            out=out,
            jobs=jobs,
            settings=settings,
            user_code=not no_user_code,
            as_json=as_json,
            criterion=criterion,
            gpu_hour=gpu_hour,
        )
    )
