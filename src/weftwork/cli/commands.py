"""The names and options of all commands, whose code is in other files.

What a command needs is imported when it runs, so that ``weftwork --help`` answers at once.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from weftwork.cli import completed
from weftwork.cli.commands_fabric import cost_command, design_command
from weftwork.cli.commands_measured import calibrate_command, validate_command
from weftwork.cli.commands_plan import plan_command
from weftwork.cli.commands_rdma import rdma
from weftwork.cli.commands_reference import explain_command, list_command, new_command, schema_command
from weftwork.cli.commands_runs import runs
from weftwork.cli.import_options import ImportNode, ImportSettings, ImportVariables
from weftwork.cli.late_commands import LateGroup, late_group
from weftwork.cli.limits_options import Limits, LimitsRadix, LimitsRatio, LimitsSwitch
from weftwork.cli.loss_options import LossIteration, LossSeeds, Lost
from weftwork.cli.options import FabricFile, Json, NoUserCode, Settings, Suspects
from weftwork.cli.slices_options import CubeAvailability, Slices

if TYPE_CHECKING:
    from typer.core import TyperGroup

__all__ = ["OPTION_ERROR", "root_command"]

# What the parser of the options raises. Typer gives it no name of its own, and not every version has click's.
OPTION_ERROR: Final[Any] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

TRUST = (
    "A scenario can run code: the Python files that it names run with all your rights. Of a scenario that you do not "
    "trust read these files first, or give --no-user-code."
)

TEST_TRUST = "The file is a program: it runs with all your rights. Of a file that you do not trust read it first."

app = typer.Typer(
    name="weftwork",
    cls=LateGroup,
    help="Plan, simulate and operate the network that trains large models.",
    epilog=TRUST,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.add_typer(rdma, name="rdma")
app.add_typer(runs, name="runs")

# lists are named here: `weftwork.cli.list` hides the built-in once it is imported, and typer reads annotations later
Tuned = Annotated[list[Path], typer.Argument(metavar="FILE...", help="Scenarios to tune together, YAML files.")]
Compared = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN...", help="Run folders, two or more; others of a workload are measured against the first."
    ),
]
Reported = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN...",
        help="Run folder, or several to compare them; or one folder of weftwork plan, design, sweep, cross or tune.",
    ),
]
Prices = Annotated[
    str | None,
    typer.Option(help="Price book of the fabrics compared: a name or a file; see weftwork cost.", show_default=False),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--parameter",
        metavar="KEY",
        help="Parameter to tune: a key, SECTION.*, KEY=LOW..HIGH or KEY=A,B,C; may be repeated.",
    ),
]


class WhatIf(StrEnum):
    """Amount of what-if runs, see `weftwork.study.answer.worlds.Extent`."""

    AUTO = "auto"
    ALL = "all"
    NONE = "none"


@app.callback(invoke_without_command=True)
def _weftwork(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and its commit, and stop.", is_eager=True)
    ] = False,
) -> None:
    if version:
        from weftwork.base.commit import version_text

        typer.echo(f"weftwork {version_text()}")
        raise typer.Exit


@app.command("run", epilog=TRUST)
def _run(  # noqa: PLR0913 - the options, all by name
    *,
    file: Annotated[Path, typer.Argument(help="Scenario, a YAML file.")],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Folder to write; runs/<name>-<time> by default.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Of the run, in place of the scenario's; weftwork runs prune keeps named runs.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="In place of engine.seed.")] = None,
    seeds: Annotated[int, typer.Option(help="Runs, with consecutive seeds; means and 95 % intervals.")] = 1,
    what_if: Annotated[
        WhatIf,
        typer.Option(
            help="Simulate again without each suspect and with better hardware; auto if cheaper than the run."
        ),
    ] = WhatIf.AUTO,
    sources: Annotated[bool, typer.Option("--sources", help="Print the source of each figure.")] = False,
    suspects: Suspects = None,
    capture: Annotated[
        str | None,
        typer.Option(
            metavar="LINK", help="Write the packets of a link (leaf0-spine1) or port (leaf0->spine1): pcapng."
        ),
    ] = None,
    capture_packets: Annotated[
        int | None, typer.Option(metavar="N", help="Number of first packets that --capture keeps; 10,000 by default.")
    ] = None,
    settings: Settings = None,
    no_user_code: NoUserCode = False,
    as_json: Json = False,
) -> None:
    """Simulate a scenario and write its run folder."""
    from weftwork.cli.run import run

    raise typer.Exit(
        run(
            file,
            out=out,
            name=name,
            seed=seed,
            seeds=seeds,
            what_if=what_if.value,
            has_sources=sources,
            settings=settings,
            user_code=not no_user_code,
            capture=capture,
            capture_packets=capture_packets,
            suspects=suspects or (),
            as_json=as_json,
        )
    )


app.command("plan", epilog=TRUST)(plan_command)


@app.command("sweep", epilog=TRUST)
def _sweep(  # noqa: PLR0913 - the options, all by name
    *,
    file: Annotated[Path, typer.Argument(help="Scenario, a YAML file, with or without a section sweep.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", help="Folder of the sweep, new or to continue; runs/<name>-sweep-<time> by default."
        ),
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Runs of each point, with consecutive seeds.")] = None,
    by: Annotated[
        str | None, typer.Option(help="Number of the summary that ranks points; the time of an iteration by default.")
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Key that groups points, such as training.model: one winner for each value."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("-j", "--jobs", min=1, help="Parallel runs; all cores by default.")
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(metavar="CLUSTER", help="Run on a Ray cluster: ray, or ray://HOST:PORT; this machine by default."),
    ] = None,
    what_if: Annotated[
        WhatIf | None,
        typer.Option(
            help="What-if runs, as in `weftwork run`; none by default, auto with --suspect.", show_default=False
        ),
    ] = None,
    suspects: Suspects = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE,VALUE", help="Values of a key; may be repeated, for all combinations."
        ),
    ] = None,
    no_user_code: NoUserCode = False,
    as_json: Json = False,
) -> None:
    """Run all combinations of some keys on all cores: a table, a page, a verdict."""
    from weftwork.cli.sweep import sweep

    raise typer.Exit(
        sweep(
            file,
            out=out,
            seeds=seeds,
            by=by,
            within=within,
            jobs=jobs,
            on=on,
            what_if=None if what_if is None else what_if.value,
            suspects=suspects or (),
            settings=settings,
            user_code=not no_user_code,
            as_json=as_json,
        )
    )


@app.command("cross", epilog=TRUST)
def _cross(  # noqa: PLR0913 - the options, all by name
    *,
    controls: Annotated[
        list[str] | None,
        typer.Option(
            "--control",
            metavar="NAME",
            help="Congestion control, or your own Python file; may be repeated; all by default.",
            autocompletion=completed.controls,
        ),
    ] = None,
    path_selections: Annotated[
        list[str] | None,
        typer.Option(
            "--path-selection",
            metavar="NAME",
            help="Path selection at the NIC, or your own Python file; may be repeated; all by default.",
            autocompletion=completed.path_selections,
        ),
    ] = None,
    port_selections: Annotated[
        list[str] | None,
        typer.Option(
            "--port-selection",
            metavar="NAME",
            help="Port selection at the switch, or your own Python file; may be repeated; all by default.",
            autocompletion=completed.port_selections,
        ),
    ] = None,
    workloads: Annotated[
        list[str] | None,
        typer.Option("--workload", metavar="NAME", help="all-reduce, all-to-all, training or mixed; all by default."),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each cell, with consecutive seeds.")] = 5,
    is_all: Annotated[bool, typer.Option("--all", help="Every control with every balancer; takes many hours.")] = False,
    jobs: Annotated[
        int | None, typer.Option("-j", "--jobs", min=1, help="Parallel runs; all cores by default.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Folder, new or to continue; runs/crossing-<time> by default."),
    ] = None,
    no_user_code: NoUserCode = False,
    as_json: Json = False,
) -> None:
    """Cross congestion controls with load balancers, and name the winner."""
    from weftwork.cli.cross import cross

    raise typer.Exit(
        cross(
            out=out,
            controls=controls or (),
            path_selections=path_selections or (),
            port_selections=port_selections or (),
            workloads=workloads or (),
            seeds=seeds,
            is_all=is_all,
            jobs=jobs,
            user_code=not no_user_code,
            as_json=as_json,
        )
    )


@app.command("tune", epilog=TRUST)
def _tune(  # noqa: PLR0913 - the options, all by name
    *,
    files: Tuned,
    parameters: Parameters = None,
    objective: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Number of the summary, or an expression such as 'fct_p99_ps + 1e6*pauses'; by default the time of an "
            "iteration, a collective or all messages.",
        ),
    ] = None,
    maximises: Annotated[bool, typer.Option("--maximise", help="Maximise the objective.")] = False,
    trials: Annotated[int, typer.Option(help="Number of trials, including the values of the file.")] = 60,
    seeds: Annotated[int, typer.Option(help="Runs of each trial in the search, with consecutive seeds.")] = 3,
    fresh: Annotated[
        int, typer.Option(help="Runs that measure the gain, with seeds that the search has not seen.")
    ] = 5,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Folder to write, new or to continue; runs/<name>-tune-<time> by default."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("-j", "--jobs", min=1, help="Parallel runs; all cores by default.")
    ] = None,
    settings: Settings = None,
    no_user_code: NoUserCode = False,
    as_json: Json = False,
) -> None:
    """Tune parameters of a scenario, and measure the gain on fresh seeds."""
    from weftwork.cli.tune import tune

    raise typer.Exit(
        tune(
            files,
            parameters=parameters,
            objective=objective,
            maximises=maximises,
            trials=trials,
            seeds=seeds,
            fresh=fresh,
            out=out,
            jobs=jobs,
            settings=settings,
            user_code=not no_user_code,
            as_json=as_json,
        )
    )


@app.command("collective", epilog=TRUST)
def _collective(  # noqa: PLR0913 - the options, all by name
    *,
    operation: Annotated[
        str,
        typer.Argument(
            help="Such as all-reduce; see `weftwork explain collective.operation`.", autocompletion=completed.operations
        ),
    ],
    gpus: Annotated[int | None, typer.Option(help="GPUs that take part; all of the fabric by default.")] = None,
    sizes: Annotated[str, typer.Option(help="Sizes: FROM:TO, or a list with commas.")] = "1MiB:256MiB",
    factor: Annotated[int, typer.Option(help="Factor between two sizes of a range.")] = 2,
    fabric: Annotated[
        Path | None,
        typer.Option(
            help="Scenario without its workload, or a .json or .graphml fabric; rails of DGX H100 by default."
        ),
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(help="Algorithm, such as ring, tree or nvls; by default auto, the choice of NCCL at each size."),
    ] = None,
    channels: Annotated[int | None, typer.Option(help="Rings or trees that share the bytes.")] = None,
    repeat: Annotated[int | None, typer.Option(help="Repetitions of each size; the mean is shown.")] = None,
    settings: Settings = None,
    no_user_code: NoUserCode = False,
    as_json: Json = False,
) -> None:
    """Time a collective, in the columns of nccl-tests."""
    from weftwork.cli.collective import collective

    given = {"operation": operation, "gpus": gpus, "algorithm": algorithm, "channels": channels, "repeat": repeat}
    keys = {key: value for key, value in given.items() if value is not None}
    raise typer.Exit(
        collective(
            keys,
            sizes=sizes,
            factor=factor,
            file=fabric,
            settings=settings,
            user_code=not no_user_code,
            as_json=as_json,
        )
    )


@app.command("topology", epilog=TRUST)
def _topology(  # noqa: PLR0913 - the options, all by name
    *,
    context: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(help="Scenario, or a fabric as .json or .graphml.", show_default=False)
    ] = None,
    export: FabricFile = None,
    picture: Annotated[Path | None, typer.Option(help="Draw it: .svg or .html.")] = None,
    without: Lost = None,
    seeds: LossSeeds = None,
    has_iteration: LossIteration = False,
    limits: Limits = False,
    radix: LimitsRadix = None,
    switch: LimitsSwitch = None,
    oversubscription: LimitsRatio = None,
    slices: Slices = False,
    cube_availability: CubeAvailability = None,
    settings: Settings = None,
    no_user_code: NoUserCode = False,
    as_json: Json = False,
) -> None:
    """Show a fabric: counts, bisection, paths, a picture."""
    from weftwork.cli.settings import overrides
    from weftwork.cli.topology import topology

    if file is None and (slices or not limits):
        context.fail("Missing argument 'FILE'.")
    if slices and file is not None:
        from weftwork.cli.topology_slices import topology_slices

        others = {"--export": export, "--picture": picture, "--without": without, "--limits": limits, "--seeds": seeds,
                  "--iteration": has_iteration, "--radix": radix, "--switch": switch,
                  "--oversubscription": oversubscription}  # fmt: skip
        topology_slices(
            file, availability=cube_availability, overrides=overrides(settings), user_code=not no_user_code,
            as_json=as_json, others=others,
        )  # fmt: skip
        return
    if cube_availability is not None:
        context.fail("--cube-availability means nothing without --slices.")
    topology(
        file,
        as_json=as_json,
        export=export,
        picture=picture,
        overrides=overrides(settings),
        without=without or (),
        seeds=seeds,
        has_iteration=has_iteration,
        limits=limits,
        radix=radix,
        switch=switch,
        oversubscription=oversubscription,
        user_code=not no_user_code,
    )


app.command("new")(new_command)


@app.command("import")
def _import(
    *,
    file: Annotated[
        Path, typer.Argument(help="Launch script or settings of a job: Megatron-LM or a relative, such as torchtitan.")
    ],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="Scenario to write; NAME.yaml by default.")
    ] = None,
    gpus: Annotated[
        int | None, typer.Option("--gpus", "--world-size", help="Number of GPUs, in place of the launcher's.")
    ] = None,
    node: ImportNode = None,
    variables: ImportVariables = None,
    settings: ImportSettings = None,
    no_user_code: NoUserCode = False,
    as_json: Json = False,
) -> None:
    """Write the scenario of a job for another program, and list its arguments."""
    from weftwork.cli.import_job import import_job

    import_job(
        file,
        out=out,
        gpus=gpus,
        node=node,
        variables=variables,
        settings=settings,
        user_code=not no_user_code,
        as_json=as_json,
    )


@app.command("test", epilog=TEST_TRUST)
def _test(
    *,
    file: Annotated[Path, typer.Argument(help="Your own Python file: a policy, topology, collective and so on.")],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FOLDER", help="Write pictures of the test runs as SVG.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter or key of the file; may be repeated."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Hold a file of your own to the rules of its kind."""
    from weftwork.cli.test import test_file

    raise typer.Exit(test_file(file, out=out, settings=settings, as_json=as_json))


@app.command("compare")
def _compare(
    *,
    runs: Compared,
    prices: Prices = None,
    as_json: Json = False,
) -> None:
    """Compare runs: their differences, the effects, and the best-value fabric."""
    from weftwork.cli.compare import compare

    compare(runs, prices=prices, as_json=as_json)


@app.command("report")
def _report(
    *,
    runs: Reported,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            help="File to write, .html or .json (a trace for Perfetto); by default <run>.html beside the run.",
        ),
    ] = None,
    prices: Prices = None,
    is_opened: Annotated[bool, typer.Option("--open", help="Show it in a browser.")] = False,
    as_json: Json = False,
) -> None:
    """Write a page about a run, several runs, or a folder of runs."""
    from weftwork.cli.report import report

    report(runs, out=out, prices=prices, is_opened=is_opened, as_json=as_json)


app.command("cost", epilog=TRUST)(cost_command)
app.command("design", epilog=TRUST)(design_command)
app.command("validate")(validate_command)
app.command("calibrate")(calibrate_command)


app.command("list")(list_command)
app.command("explain")(explain_command)
app.command("schema")(schema_command)


@cache
def root_command() -> TyperGroup:
    """Return all commands as the parser has them.

    Each is built from its function when it is asked for: to build all takes as long as a small run.
    """
    return late_group(app)
