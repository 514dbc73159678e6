"""The options of the commands about measurements: ``validate`` and ``calibrate``.

What a command needs is imported when it runs, so that ``weftwork --help`` answers at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weftwork.cli.options import Json

__all__ = ["calibrate_command", "validate_command"]

Operation = Annotated[
    str | None, typer.Option("--operation", help="Operation of the nccl-tests output, such as all-reduce.")
]
Gpus = Annotated[int | None, typer.Option("--gpus", min=2, help="GPUs of the nccl-tests output.")]
Node = Annotated[
    str | None, typer.Option("--node", help="Server of the nccl-tests output, by its name in the catalogue.")
]

Sets = Annotated[
    list[str] | None,
    typer.Argument(metavar="SET", help="Set of the scorecard, such as sc21; all by default.", show_default=False),
]


def validate_command(  # noqa: PLR0913 - the options, all by name
    *,
    sets: Sets = None,
    is_full: Annotated[bool, typer.Option("--full", help="All rows; takes more than a minute.")] = False,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Score your own rows: CSV with the columns of a set, or the output of nccl-tests."),
    ] = None,
    operation: Operation = None,
    gpus: Gpus = None,
    node: Node = None,
    template: Annotated[
        str | None,
        typer.Option(
            "--template", metavar="SET", help="Print a table of a set's columns, or of iterations or curves, and stop."
        ),
    ] = None,
    calibration: Annotated[
        Path | None, typer.Option("--calibration", help="With --data: constants of `weftwork calibrate`.")
    ] = None,
    tolerance: Annotated[
        str | None,
        typer.Option("--tolerance", help="Allowed mean absolute error, such as 10%; exit code 1 if a set exceeds it."),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option("-o", "--out", "--page", help="Also write the scores as a Markdown page to this file."),
    ] = None,
    scenarios: Annotated[
        Path | None,
        typer.Option("--write-scenarios", help="Predict nothing; write the scenario of every row into this folder."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Compare predictions with published measurements, or with your own."""
    from weftwork.cli import validate as command
    from weftwork.study.validation.nccl_rows import NcclAsked

    keys = sets or []
    asked = NcclAsked(operation=operation, gpus=gpus, node=node)
    if template is not None:
        command.print_template(template)
        return 0
    if data is None and calibration is not None:
        command.refuse_calibration()
    if data is None and asked.options:
        command.refuse_asked(asked)
    if scenarios is not None and data is not None:
        command.write_own_rows(keys, data=data, asked=asked, calibration=calibration, as_json=as_json, folder=scenarios)
        return 0
    if scenarios is not None:
        command.write_rows(keys, is_full=is_full, as_json=as_json, folder=scenarios)
        return 0
    if data is not None:
        return command.validate_own(
            keys, data=data, asked=asked, calibration=calibration, as_json=as_json, to=page, tolerance=tolerance
        )
    return command.validate_sets(keys, is_full=is_full, as_json=as_json, to=page, tolerance=tolerance)


def calibrate_command(  # noqa: PLR0913 - the options, all by name
    *,
    file: Annotated[
        Path | None,
        typer.Argument(help="Measured matrix products, iterations or curves as CSV, or the output of nccl-tests."),
    ] = None,
    out: Annotated[Path, typer.Option("-o", "--out", help="File to write.")] = Path("calibration.toml"),
    template: Annotated[
        str | None,
        typer.Option("--template", metavar="SET", help="Print a table of gemm, iterations, curves or a set, and stop."),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option("--like", metavar="SET", help="Set with the columns of FILE, if the head of FILE is not enough."),
    ] = None,
    constants: Annotated[
        str | None,
        typer.Option(
            "--constants", help="Names of constants with commas; by default all that such rows can determine."
        ),
    ] = None,
    held: Annotated[
        Path | None,
        typer.Option("--with", help="Calibration whose constants stay; the rows fit others, and both are written."),
    ] = None,
    operation: Operation = None,
    gpus: Gpus = None,
    node: Node = None,
    gpu: Annotated[str | None, typer.Option("--gpu", help="GPU of matrix products without a gpu column.")] = None,
    as_json: Json = False,
) -> None:
    """Fit Weftwork's constants to your own measurements."""
    from weftwork.cli import calibrate as command
    from weftwork.study.validation.nccl_rows import NcclAsked

    if template is not None:
        command.print_template(template)
        return
    if file is None:
        command.refuse_nothing()
        return
    command.calibrate_file(
        file, out=out, like=like, constants=constants, held=held,
        asked=NcclAsked(operation=operation, gpus=gpus, node=node), usual_gpu=gpu, as_json=as_json,
    )  # fmt: skip
