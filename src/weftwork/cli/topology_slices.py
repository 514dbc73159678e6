"""``weftwork topology FILE --slices``: slices that a TPU pod can run, with and without optical switches."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.cli.console import console
from weftwork.cli.slices_options import USUAL_AVAILABILITY
from weftwork.spec.scenario.choices import TOPOLOGIES
from weftwork.spec.scenario.kinds import either
from weftwork.spec.scenario.topology_growth import CubesOfPod
from weftwork.study.prepare.prepare import read_scenario
from weftwork.topology.slice_availability import SAMPLES, Probability, SliceRow, slice_rows
from weftwork.topology.torus_lattice import shape_text
from weftwork.topology.tpu_slices import grid_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["topology_slices"]


def topology_slices(
    file: Path,
    *,
    availability: float | None,
    overrides: Mapping[str, str] | None,
    user_code: bool,
    as_json: bool,
    others: Mapping[str, object],
) -> None:
    """Print the slices that a pod can run.

    Parameters
    ----------
    file : a scenario whose fabric is a TPU pod
    availability : share of the time in which a cube is up
    overrides : keys of the scenario set from the command line
    user_code : whether the scenario may name Python files
    as_json : print one JSON object
    others : values of options that mean nothing here

    Raises
    ------
    ConfigError : the fabric is no TPU pod, or an option means nothing here
    """
    mistakes = [
        Mistake(path=key, text="means nothing with --slices, which builds no fabric; leave one of the two out")
        for key, value in others.items()
        if value
    ]
    if mistakes:
        raise ConfigError("command line", mistakes)
    scenario = read_scenario(file, overrides, user_code=user_code)
    fabric = scenario.fabric
    cubes_of = None if fabric.file is not None else TOPOLOGIES.load(fabric.topology).cubes
    if cubes_of is None:
        pods = [name for name, offer in TOPOLOGIES.items() if offer.cubes is not None]
        text = f"found '{fabric.topology}', but --slices is about cubes of a TPU pod; wanted {either(pods)}"
        raise scenario.locate(ConfigError(scenario.source, [Mistake(path="fabric.topology", text=text, fix=pods[0])]))
    with TOPOLOGIES.blaming(fabric.topology):
        pod = TOPOLOGIES.want(fabric.topology, cubes_of(fabric.options), CubesOfPod, "cubes")
    cubes, failed = pod.cubes, pod.failed
    up = USUAL_AVAILABILITY if availability is None else availability
    rows = slice_rows(cubes=cubes, failed=failed, up=up, own=pod.slice)
    if as_json:
        typer.echo(json.dumps(_record(cubes, failed, up, rows), indent=2))
        return
    _show(cubes, failed, up, rows)


def _record(cubes: int, failed: frozenset[int], up: float, rows: list[SliceRow]) -> dict[str, Any]:
    return {
        "cubes": cubes,
        "failed_cubes": sorted(failed),
        "cube_availability": up,
        "grid": list(grid_of(cubes)),
        "samples": SAMPLES,
        "slices": [asdict(row) for row in rows],
    }


def _show(cubes: int, failed: frozenset[int], up: float, rows: list[SliceRow]) -> None:
    out = console()
    healthy = cubes - len(failed)
    state = f"{healthy:,} of {plural(cubes, 'cube is', 'cubes are')} healthy"
    out.print(f"{state}; fixed cables join them as {shape_text(grid_of(cubes))} cubes.", soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for heading in ("slice", "cubes", "run at once", "fixed", "available", "fixed", "goodput", "fixed"):
        table.add_column(heading, justify="left" if heading == "slice" else "right")
    for row in rows:
        at_least = "" if row.is_fixed_count_exact else ">= "
        table.add_row(
            shape_text(row.sides) + (" (can twist)" if row.can_twist else ""), f"{row.cubes:,}",
            f"{row.optical_count:,}", f"{at_least}{row.fixed_count:,}", _percent(row.optical_available),
            _share(row.fixed_available), _percent(row.optical_goodput), _percent(row.fixed_goodput),
        )  # fmt: skip
    out.print(table)
    lines = [
        "fixed: without optical switches, where a slice needs healthy cubes next to each other.",
        "run at once: slices of this shape that the healthy cubes can run at the same time.",
        f"available: probability that one slice can run, if each cube is up {up:.2%} of the time.",
        "goodput: mean share of the pod's chips in running slices of this shape; fixed: in blocks that never move.",
    ]
    if any(row.fixed_available.error for row in rows):
        lines.append(f"+-: standard error of {SAMPLES:,} random states; all other figures are exact.")
    for line in lines:
        out.print(line, soft_wrap=True)


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _share(share: Probability) -> str:
    return _percent(share.value) + (f" +- {100 * share.error:.2f}" if share.error else "")
