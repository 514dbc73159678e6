"""``weftwork collective OPERATION``: a collective at several sizes, in the columns of nccl-tests."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

import typer

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.base.units import SIZE, UnitError, format_quantity, parse_quantity
from weftwork.cli.leave import FAILED, INTERRUPTED
from weftwork.cli.printable import printable
from weftwork.cli.progress import ProgressLine
from weftwork.cli.settings import overrides
from weftwork.study.prepare.prepare import prepare
from weftwork.study.record.collective import Measured, collective_scenario, measure_collective
from weftwork.study.results.record import about
from weftwork.workload.collectives.closed_form import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["collective", "parse_sizes"]

ELEMENT_BYTES: Final = 4  # of float, the type that nccl-tests takes where none is given
MOST_SIZES: Final = 64  # chosen: a doubling from a byte to 2^63 is no more
_REDUCES: Final = {"all-reduce": "sum", "reduce-scatter": "sum", "reduce": "sum"}
_ROOTED: Final = frozenset({"broadcast", "reduce"})
_COLUMNS: Final = ("size", "count", "type", "redop", "root", "time", "algbw", "busbw", "proto", "algorithm")
_UNITS: Final = ("(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "")
_WIDTHS: Final = (12, 11, 6, 6, 5, 11, 8, 8, 7)  # of all but the last, which is not padded


def collective(
    keys: Mapping[str, Any],
    *,
    sizes: str,
    factor: int,
    file: Path | None,
    settings: Sequence[str] | None,
    user_code: bool,
    as_json: bool,
) -> int:
    """Run a collective at each size, and print each line at once.

    Parameters
    ----------
    keys : of the section ``collective``
    sizes : see `parse_sizes`
    factor : from one size to the next
    file : a scenario or a fabric; None for a rail-optimized fabric of H100 servers
    settings : ``key=value`` texts of ``--set``
    user_code : False refuses every Python file of the user's own
    as_json : one JSON object instead of the table

    Returns
    -------
    exit code: 0; 1 where a size did not end; 130 after Ctrl-C

    Raises
    ------
    ConfigError : with all mistakes
    """
    found = parse_sizes(sizes, factor)
    own = overrides(settings)
    if not {"collective", "collective.algorithm"} & own.keys():
        keys = {"algorithm": "auto", **keys}
    if file is None and "gpus" not in keys and not any(key.startswith("fabric.") for key in own):
        text = "is missing: give the number of GPUs, or a fabric with --fabric"
        raise ConfigError("command line", [Mistake(path="--gpus", text=text)])
    try:
        scenario = collective_scenario({**keys, "size": found[-1]}, file=file, overrides=own, user_code=user_code)
        prepared = prepare(scenario)
    except ConfigError as error:
        options = {f"--set collective.{key}": f"--{key}" for key in keys if f"collective.{key}" not in own}
        options["--set collective.operation"] = "operation"
        if file is None:
            options["fabric.gpus"] = "--gpus"  # it made the fabric
        raise _by_option(error, options) from error
    words = about(prepared)
    if not as_json:
        _print_head(prepared, words)
    rows: list[Measured] = []
    with ProgressLine() as line:
        for row in measure_collective(scenario, prepared.fabric, found, line):
            rows.append(row)
            if not as_json:
                line.clear()
                typer.echo(_line(scenario, row))
    if as_json:
        typer.echo(json.dumps(_document(prepared, words, rows), indent=2))
    else:
        _print_foot(rows)
    if len(rows) < len(found):
        return INTERRUPTED
    return FAILED if any(row.time_ps is None for row in rows) else 0


def parse_sizes(text: str, factor: int = 2) -> list[int]:
    """Sizes in bytes from ``1MiB:256MiB``, ``1MiB,3MiB`` or ``1MiB``.

    In a range each size is ``factor`` times the one before.

    Parameters
    ----------
    text : as it is written behind ``--sizes``
    factor : from one size to the next of a range

    Raises
    ------
    ConfigError : no size, none in ascending order, or too many

    Examples
    --------
    >>> parse_sizes("1KiB:4KiB"), parse_sizes("1KiB:9KB", 3), parse_sizes("3B,2MiB")
    ([1024, 2048, 4096], [1024, 3072], [3, 2097152])
    """
    parts = text.split(":") if ":" in text else text.split(",")
    mistakes: list[Mistake] = []
    sizes: list[int] = []
    for part in parts:
        try:
            sizes.append(int(parse_quantity(SIZE, part.strip())))
        except UnitError as error:
            mistakes.append(Mistake(path="--sizes", text=error.text, fix=error.fix))
    if ":" in text and not mistakes:
        if len(sizes) != 2 or sizes[0] > sizes[1] or sizes[0] == 0:
            wanted = "the smallest and the largest size, such as 1MiB:256MiB"
            mistakes.append(Mistake(path="--sizes", text=f"found '{text}', wanted {wanted}"))
        elif factor < 2:
            mistakes.append(Mistake(path="--factor", text=f"found {factor}, wanted 2 or more"))
        else:
            first, last = sizes
            sizes = [first]
            while sizes[-1] * factor <= last:
                sizes.append(sizes[-1] * factor)
    if not mistakes and len(sizes) > MOST_SIZES:
        mistakes.append(
            Mistake(path="--sizes", text=f"found {plural(len(sizes), 'size')}, wanted at most {MOST_SIZES}")
        )
    if mistakes:
        raise ConfigError("command line", mistakes)
    return sizes


def _by_option(error: ConfigError, options: Mapping[str, str]) -> ConfigError:
    """Name a key that the user gave by an option by its option."""
    mistakes = [
        replace(mistake, path=options[mistake.path], line=None) if mistake.path in options else mistake
        for mistake in error.mistakes
    ]
    return ConfigError(error.source, mistakes)


def _print_head(prepared: Prepared, words: Mapping[str, str]) -> None:
    section = prepared.scenario.collective_section
    what = prepared.job.name
    if section.algorithm == "auto" and section.operation in OPERATIONS:
        chooses = "NCCL chooses" if prepared.fabric.direct is None else "auto chooses"
        what = f"{section.operation} as {chooses}"
    typer.echo(f"# {what} among {plural(prepared.job.gpus, 'GPU')}; simulated, not measured")
    for key in ("fabric", "transport", "calibrated"):
        if key not in words:
            continue
        typer.echo(f"# {key:<11}{printable(words[key])}")
    if "collective.placement" in prepared.notes:
        typer.echo(f"# note       {prepared.notes['collective.placement'].text}")
    if section.repeat > 1:
        typer.echo(f"# mean of {plural(section.repeat, 'repetition')}")
    for row in (_COLUMNS, _UNITS):
        typer.echo("#" + _in_columns(row)[1:])


def _line(scenario: Scenario, row: Measured) -> str:
    section = scenario.collective_section
    root = section.root or 0
    missing = "never" if row.time_ps is None else "-"  # a barrier has a time and no bandwidth
    times = (
        (row.time_ps, 1e6),
        (row.algorithm_bandwidth_bps, 8e9),
        (row.bus_bandwidth_bps, 8e9),
    )
    shown = (
        str(row.size_bytes),
        str(row.size_bytes // ELEMENT_BYTES),
        "float",
        _REDUCES.get(section.operation, "none"),
        str(root if section.operation in _ROOTED else -1),
        *(missing if value is None else f"{value / unit:.2f}" for value, unit in times),
        row.protocol,
        row.algorithm,
    )
    return _in_columns(shown)


def _in_columns(cells: Sequence[str]) -> str:
    padded = "".join(f" {text}".rjust(width) for text, width in zip(cells[:-1], _WIDTHS, strict=True))
    return f"{padded} {cells[-1]}".rstrip()


def _print_foot(rows: Sequence[Measured]) -> None:
    known = [row.bus_bandwidth_bps for row in rows if row.bus_bandwidth_bps is not None]
    if known:
        typer.echo(f"# average bus bandwidth {sum(known) / len(known) / 8e9:.2f} GB/s")
    for row in rows:
        if row.low_ps is not None and row.high_ps is not None:
            size = format_quantity(SIZE, row.size_bytes)
            ends = f"{row.low_ps / 1e6:.2f} to {row.high_ps / 1e6:.2f} us"
            typer.echo(f"# {size}: {ends}, 5 to 95 % of the calibration")
    hops, wall_s = sum(row.packet_hops for row in rows), sum(row.wall_s for row in rows)
    typer.echo(f"# simulated {plural(hops, 'packet-hop')} in {wall_s:.1f} s")
    for row in rows:
        if row.time_ps is None:
            size = format_quantity(SIZE, row.size_bytes)
            typer.echo(f"# {size} did not end: a queue pair gave up, or nothing was left to do", err=True)


def _document(prepared: Prepared, words: Mapping[str, str], rows: Sequence[Measured]) -> dict[str, Any]:
    section = prepared.scenario.collective_section
    return {
        "about": dict(words),
        "operation": section.operation,
        "algorithm": section.algorithm,
        "gpus": prepared.job.gpus,
        "sizes": [asdict(row) for row in rows],
    }
