"""A user's own rows as sets of the scorecard.

The rules of the packaged rows apply, and each row is scored.

Leaves out: columns and templates (`weftwork.study.validation.row_formats`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.base.nearest import nearest
from weftwork.spec.scenario.training import TrainingSection
from weftwork.study.validation.curves import CurveRow, Operation, size_words
from weftwork.study.validation.foreign_texts import foreign_mistake
from weftwork.study.validation.llm_foundry import foundry_case
from weftwork.study.validation.mlperf import mlperf_case
from weftwork.study.validation.nccl_rows import NcclAsked, read_nccl_rows
from weftwork.study.validation.nccl_streams import has_nccl_tests
from weftwork.study.validation.published_cases import (
    Case,
    PublishedCluster,
    bridge_family,
    bridge_of,
    sc21_case,
    vtrain_case,
)
from weftwork.study.validation.row_columns import Format
from weftwork.study.validation.row_formats import CURVE_TIMES, FORMATS, format_of_head
from weftwork.study.validation.row_table import TableRow, head_of, read_rows, read_text
from weftwork.study.validation.scorecard import Excluded
from weftwork.study.validation.signs import SignRow, sign_row
from weftwork.study.validation.training_runs import deepseek_case, lumi_case
from weftwork.study.validation.ultra_ethernet import UetRow, permutation_row, small_row
from weftwork.workload.collectives.call import bus_bandwidth_factor
from weftwork.workload.models.huggingface import model_of
from weftwork.workload.models.software import software
from weftwork.workload.parallelism.refuse import refuse

__all__ = ["OwnRow", "OwnRows", "curve_rows", "format_named", "own_rows", "own_sets"]

OwnRow = Case | CurveRow | SignRow | UetRow
_ONE_SERVER_GPUS: Final = 8
_SMALL_HOSTS: Final = 1_024  # of the fat tree of `uet-small`
_AZURE: Final = {"a100": "azure-nd-a100-v4", "h100": "azure-nd-h100-v5"}
_COLUMNS: Final = {"virtual_stages": "chunks"}  # of the bridge's table, where they differ from the keys of a plan


@dataclass(frozen=True, kw_only=True, slots=True)
class _Read:
    """A row with its format and its file."""

    row: TableRow
    name: str
    file: Path


_Made = tuple[list[OwnRow], list[Excluded]]


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnRows:
    """Rows of a file.

    Attributes
    ----------
    file : of the user's
    format : whose columns it has
    rows : to be scored, in the order of the file
    lines : of the file, one for each row
    excluded : rows left out, with reasons
    notes : what was read of a text that is no table, and what it leaves open
    """

    file: Path
    format: Format
    rows: tuple[OwnRow, ...]
    lines: tuple[int, ...]
    excluded: tuple[Excluded, ...] = ()
    notes: tuple[str, ...] = ()


def format_named(key: str) -> Format:
    """The format of a set.

    Parameters
    ----------
    key : of the scorecard, or ``iterations`` or ``curves``

    Raises
    ------
    ConfigError : there is no such format; names the nearest
    """
    if key not in FORMATS:
        text = f"found '{key}', wanted {', '.join(FORMATS)}"
        raise ConfigError("validate", [Mistake(path="set", text=text, fix=nearest(key, FORMATS))])
    return FORMATS[key]


def own_sets(file: Path, key: str | None = None, asked: NcclAsked | None = None) -> tuple[OwnRows, ...]:
    """Read a user's rows.

    Without a named set, rows in Megatron-Bridge's columns form a set of each family. The text that nccl-tests prints
    is read too.

    Parameters
    ----------
    file, key : as for `own_rows`
    asked : what the user says of a text of nccl-tests

    Raises
    ------
    ConfigError : with all mistakes of the file, each with its line and column
    """
    asked = asked or NcclAsked()
    text = read_text(file, option="--data")
    if has_nccl_tests(text) and (key is None or _builder_of(format_named(key).name) == "curves"):
        return (_nccl_set(text, asked, file),)
    if asked.options:
        words = "is for the text that nccl-tests prints; a table has a column for it"
        raise ConfigError("command line", [Mistake(path=name, text=words) for name in asked.options])
    if key is not None:
        return (own_rows(file, key),)
    found = format_of_head(head_of(text))
    if found is None or not found.name.startswith("bridge"):
        return (own_rows(file),)
    rows = read_rows(text, found.columns, source=str(file))
    families = dict.fromkeys(bridge_family(row.cells) for row in rows)
    sets = [own_rows(file, f"bridge-{family}") for family in families]
    return tuple(replace(one, excluded=()) for one in sets) if len(sets) > 1 else tuple(sets)


def own_rows(file: Path, key: str | None = None) -> OwnRows:
    """Read a user's rows.

    Parameters
    ----------
    file : CSV
    key : set whose columns it has; None: the first one that fits its head

    Raises
    ------
    ConfigError : with all mistakes of the file, each with its line and column
    """
    text = read_text(file, option="--data")
    made = _format_of(text, file) if key is None else format_named(key)
    read = read_rows(text, made.columns, source=str(file))
    kept: list[OwnRow] = []
    lines: list[int] = []
    excluded: list[Excluded] = []
    mistakes: list[Mistake] = []
    for row in read:
        try:
            rows, left_out = _BUILDERS[_builder_of(made.name)](_Read(row=row, name=made.name, file=file))
        except ConfigError as error:
            mistakes += error.mistakes
            continue
        kept += rows
        lines += [row.line] * len(rows)
        excluded += left_out
    if mistakes:
        raise ConfigError(str(file), mistakes)
    if not kept:
        text = f"has no row of '{made.name}': {excluded[0].reason}"
        raise ConfigError(str(file), [Mistake(path="file", text=text)])
    named = [replace(row, source=str(file)) if isinstance(row, Case) else row for row in kept]
    return OwnRows(file=file, format=made, rows=tuple(named), lines=tuple(lines), excluded=tuple(excluded))


def _format_of(text: str, file: Path) -> Format:
    """The format of a table by its head."""
    names = head_of(text)
    found = format_of_head(names)
    if found is None:
        raise ConfigError(str(file), [foreign_mistake(text) or _unknown_head(names)])
    if (
        found.name == "nccl-one-server"
        and "server" not in names
        and not {f"{gpu}_bus_bandwidth_gbyte_per_s" for gpu in _AZURE} & set(names)
    ):
        sets = [name for name in FORMATS if name.startswith("nccl")]
        wanted = (
            "wanted the columns operation and server, or a set before --data, such as 'weftwork validate"
            f" nccl-p5-all-reduce --data {file}'; sets of curves: {', '.join(sets)}"
        )
        raise ConfigError(str(file), [Mistake(path="head", text=f"does not name its operation; {wanted}")])
    return found


def curve_rows(rows: Sequence[TableRow], made: Format, file: Path) -> list[CurveRow]:
    """Rows of a format of curves that another reader has read.

    Parameters
    ----------
    rows : with the columns of the format
    made, file : the format, and where they were read

    Raises
    ------
    ConfigError : with all mistakes of the rows
    """
    found: list[CurveRow] = []
    mistakes: list[Mistake] = []
    for row in rows:
        try:
            found += [one for one in _curve(_Read(row=row, name=made.name, file=file))[0] if isinstance(one, CurveRow)]
        except ConfigError as error:
            mistakes += error.mistakes
    if mistakes:
        raise ConfigError(str(file), mistakes)
    return found


def _nccl_set(text: str, asked: NcclAsked, file: Path) -> OwnRows:
    """The text of nccl-tests as rows of curves."""
    read = read_nccl_rows(text, asked, source=str(file))
    rows = curve_rows(read.rows, FORMATS["curves"], file)
    lines = tuple(row.line for row in read.rows)
    return OwnRows(file=file, format=FORMATS["curves"], rows=tuple(rows), lines=lines, notes=read.notes)


def _unknown_head(names: Sequence[str]) -> Mistake:
    """The mistake of an unknown head, with the format closest to it."""

    def misses(made: Format) -> tuple[int, list[str], list[str]]:
        known = [column.name for column in made.columns]
        missing = [column.name for column in made.columns if not column.optional and column.name not in names]
        strange = [name for name in names if name not in known]
        return len(missing) + len(strange), missing, strange

    near = min(FORMATS.values(), key=lambda made: misses(made)[0])
    _, missing, strange = misses(near)
    parts = [f"{', '.join(missing)} missing"] if missing else []
    parts += [f"{', '.join(strange) or 'nothing'} unknown"] if strange else []
    text = f"no set has these columns; nearest is '{near.name}' ({'; '.join(parts) or 'an empty file'})"
    return Mistake(path="head", text=f"{text}; wanted one of {', '.join(FORMATS)}, which --template SET prints")


def _builder_of(name: str) -> str:
    prefix = next(
        (prefix for prefix in ("vtrain", "bridge", "nccl", "curves", "mlperf", "foundry") if name.startswith(prefix)),
        name,
    )
    return "curves" if prefix == "nccl" else prefix


def _vtrain(read: _Read) -> _Made:
    row = read.row
    cells = row.cells
    _want_product(row, ("tensor", "data", "pipeline"))
    _want_heads(row)
    case = vtrain_case(
        cells, "39.1B, 512 GPUs" if read.name == "vtrain-39b" and cells["parameters_billion"] == 39.1 else ""
    )
    return [_feasible(row, case)], []


def _sc21(read: _Read) -> _Made:
    row = read.row
    _want_multiple(row, ("tensor", "pipeline"))
    _want_heads(row)
    return [_feasible(row, sc21_case(row.cells))], []


def _bridge(read: _Read) -> _Made:
    row = read.row
    cells = row.cells
    _want_multiple(row, ("tensor", "context", "pipeline"))
    family = bridge_family(cells)
    if f"bridge-{family}" != read.name:
        text = f"line {row.line}: {cells['model']} in {cells['precision']}"
        return [], [Excluded(name=text, reason=f"it is a row of the set bridge-{family}")]
    try:
        cases, excluded = bridge_of([cells], family)
    except ConfigError as error:
        raise _wrong([row.wrong(each.path, each.text, fix=each.fix) for each in error.mistakes]) from error
    return [_feasible(row, case) for case in cases], list(excluded)


def _iteration(read: _Read) -> _Made:
    row = read.row
    cells = row.cells
    is_own = str(cells["model"]).endswith(".json")
    place = read.file.parent / cells["model"]
    try:
        made = model_of(str(place) if is_own else cells["model"], path="model")
    except ConfigError as error:
        texts = [f"{one.path} {one.text}" if is_own else one.text for one in error.mistakes]
        raise _wrong([row.wrong("model", "; ".join(texts), error.mistakes[0].fix)]) from error
    degrees = {key: cells[key] or 1 for key in ("tensor", "context", "pipeline", "expert", "virtual_stages")}
    divisor = degrees["tensor"] * degrees["context"] * degrees["pipeline"]
    if cells["gpus"] % divisor:
        raise _wrong([row.wrong("gpus", _no_multiple(cells["gpus"], divisor, ("tensor", "context", "pipeline")))])
    given: dict[str, Any] = {key: cells[key] for key in ("sequence", "recompute", "precision", "gradients")}
    given |= {"zero": None if cells["zero"] is None else int(cells["zero"])}
    given |= {"sequence_parallel": None if cells["sequence_parallel"] is None else cells["sequence_parallel"] == "true"}
    given |= {"model": cells["model"], "data": cells["gpus"] // divisor, **degrees}
    given |= {key: cells[key] for key in ("global_batch", "micro_batch")}
    kept: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    section = TrainingSection.model_construct(**kept)
    plan = section.parallelism(made)
    words = f"t{plan.tensor} c{plan.context} p{plan.pipeline} d{plan.data} micro batch {plan.micro_batch}"
    job = (
        f"{made.name} on {plural(cells['gpus'], 'GPU')} of {cells['node']}, batch {plan.global_batch} x {plan.sequence}"
    )
    case = Case(
        name=f"{job}: {words}, {plan.precision} (line {row.line})",
        source=str(read.file),
        measured_s=cells["seconds"],
        model=made,
        plan=plan,
        cluster=PublishedCluster(node=cells["node"], gpus=cells["gpus"]),
        software=software(cells["software"] or "plain"),
        plan_set=job,
        config=read_text(place, option="model", reader="model") if is_own else "",
    )
    return [_feasible(row, case)], []


def _curve(read: _Read) -> _Made:
    row = read.row
    cells = row.cells
    operation = cells["operation"] or read.name.removeprefix("nccl-p5-")
    operation = "all-reduce" if operation == "nccl-one-server" else operation
    gpus = cells["gpus"] or _ONE_SERVER_GPUS
    if gpus < 2:
        raise _wrong([row.wrong("gpus", f"found {gpus}, wanted at least 2, since one GPU sends nothing")])
    bus = float(bus_bandwidth_factor(operation, gpus))
    found: list[tuple[str, float]] = []
    time = next((column for column in CURVE_TIMES if cells[column] is not None), None)
    if time is not None:
        server = cells["server"] or ("p5" if read.name.startswith("nccl-p5") else "")
        if not server:
            raise _wrong([row.wrong("server", "found nothing, wanted a server of the catalogue")])
        found.append((server, _seconds(time, cells[time], cells["size_bytes"], bus)))
    for gpu, server in _AZURE.items():
        value = cells.get(f"{gpu}_bus_bandwidth_gbyte_per_s")
        if value is not None:
            found.append((server, _seconds("bus_bandwidth_gbyte_per_s", value, cells["size_bytes"], bus)))
    if not found:
        raise _wrong([row.wrong("seconds", f"found no time, wanted one of {', '.join(CURVE_TIMES)}")])
    rows: list[OwnRow] = [
        CurveRow(
            name=f"{operation}, {plural(gpus, 'GPU')} of {server}, {size_words(cells['size_bytes'])}",
            server=server,
            operation=cast("Operation", operation),
            gpus=gpus,
            size_bytes=cells["size_bytes"],
            measured_s=taken_s,
        )
        for server, taken_s in found
    ]
    for one in rows:
        if isinstance(one, CurveRow) and one.gpus > one.domain_gpus and one.gpus % one.domain_gpus:
            text = f"found {one.gpus}, wanted at most {one.domain_gpus} or a multiple: whole servers of {one.server}"
            raise _wrong([row.wrong("gpus", text)])
    return rows, []


def _seconds(column: str, value: float, size_bytes: int, bus: float) -> float:
    if column == "algorithm_bandwidth_gbyte_per_s":
        return size_bytes / value / 1e9
    if column == "bus_bandwidth_gbyte_per_s":
        return size_bytes * bus / value / 1e9
    return value * CURVE_TIMES[column]


def _uet_small(read: _Read) -> _Made:
    row = read.row
    cells, wrong = row.cells, []
    if cells["hosts"] != _SMALL_HOSTS:
        text = f"found {cells['hosts']}, wanted {_SMALL_HOSTS}, the hosts of this set's fat tree"
        wrong.append(row.wrong("hosts", text, str(_SMALL_HOSTS)))
    wanted = {"lone": (1, 1), "incast": (2, _SMALL_HOSTS - 1), "permutation": (_SMALL_HOSTS, _SMALL_HOSTS)}
    least, most = wanted[cells["pattern"]]
    if not least <= cells["flows"] <= most:
        span = f"{least} to {most}" if most > least else str(least)
        wrong.append(row.wrong("flows", f"found {cells['flows']}, wanted {span} for {cells['pattern']}"))
    if cells["least_tail_us"] > cells["most_tail_us"]:
        wrong.append(row.wrong("most_tail_us", "is below least_tail_us, wanted at least that value"))
    if wrong:
        raise _wrong(wrong)
    return [small_row(cells)], []


def _uet(read: _Read) -> _Made:
    row = read.row
    least = 8  # Gb/s, so that a queue holds two packets (link_gbps // 4), see `permutation_row`
    if row.cells["link_gbps"] < least:
        text = f"found {row.cells['link_gbps']}, wanted at least {least}: queues have a packet for 4 Gb/s"
        raise _wrong([row.wrong("link_gbps", text)])
    cells = {**row.cells, "min_fct_us": row.cells["min_fct_us"] or 0.0}
    made = permutation_row(cells)
    return [made], []


def _mlperf(read: _Read) -> _Made:
    row = read.row
    _want_multiple(row, ("tensor", "pipeline", "context"))
    _want_batch(row)
    return [_feasible(row, mlperf_case(row.cells))], []


def _foundry(read: _Read) -> _Made:
    row = read.row
    _want_batch(row)
    return [_feasible(row, foundry_case(row.cells))], []


def _lumi(read: _Read) -> _Made:
    row = read.row
    missing = [name for name in ("layers", "hidden", "attention_heads") if row.cells[name] is None]
    if missing:
        raise _wrong([row.wrong(name, "missing, wanted the shape of a GPT") for name in missing])
    cells = {**row.cells, "tensor": row.cells["tensor"] or 1, "micro_batch": row.cells["micro_batch"] or 1}
    _want_multiple(replace(row, cells=cells), ("tensor", "pipeline"))
    _want_heads(row)
    return [_feasible(row, lumi_case(cells))], []


def _deepseek(read: _Read) -> _Made:
    row = read.row
    _want_multiple(row, ("pipeline",))
    return [_feasible(row, deepseek_case({**row.cells, "expert": row.cells["expert"] or 1}))], []


def _sign(read: _Read) -> _Made:
    return [sign_row(read.row.cells)], []


def _want_batch(row: TableRow) -> None:
    micro, batch = row.cells["micro_batch"], row.cells["global_batch"]
    if batch % micro:
        raise _wrong([row.wrong("global_batch", f"found {batch}, wanted a multiple of micro_batch, {micro}")])


_BUILDERS: Final[Mapping[str, Callable[[_Read], _Made]]] = {
    "vtrain": _vtrain, "sc21": _sc21, "bridge": _bridge, "iterations": _iteration, "curves": _curve,
    "uet-small": _uet_small, "uet": _uet, "mlperf": _mlperf, "foundry": _foundry, "lumi": _lumi,
    "deepseek-v3": _deepseek, "fabric-signs": _sign,
}  # fmt: skip


def _feasible(row: TableRow, case: Case) -> Case:
    """The case, if its plan is feasible.

    Raises
    ------
    ConfigError : with every reason at its column
    """
    try:
        refuse(
            case.model,
            case.plan,
            gpus=case.cluster.gpus,
            gpu=case.gpu,
            memory_bytes=case.memory_bytes or None,  # as the scenario of a row has it
            has_flash_attention=case.software.has_flash_attention,
        )
    except ConfigError as error:
        found = []
        for mistake in error.mistakes:
            key = mistake.path.rpartition(".")[2]
            found.append(row.wrong(key if key in row.cells else _COLUMNS.get(key, "row"), mistake.text))
        raise _wrong(found) from error
    return case


def _want_heads(row: TableRow) -> None:
    hidden, heads = row.cells["hidden"], row.cells["attention_heads"]
    if hidden % heads:
        text = f"found {heads}, wanted a divisor of hidden, {hidden}"
        raise _wrong([row.wrong("attention_heads", text)])


def _want_product(row: TableRow, columns: Sequence[str]) -> None:
    product = 1
    for column in columns:
        product *= row.cells[column]
    if product != row.cells["gpus"]:
        text = f"found {row.cells['gpus']}, wanted {product}, the product of {', '.join(columns)}"
        raise _wrong([row.wrong("gpus", text, str(product))])


def _want_multiple(row: TableRow, columns: Sequence[str]) -> None:
    product = 1
    for column in columns:
        product *= row.cells[column]
    if row.cells["gpus"] % product:
        raise _wrong([row.wrong("gpus", _no_multiple(row.cells["gpus"], product, columns))])


def _no_multiple(gpus: int, product: int, columns: Sequence[str]) -> str:
    return f"found {gpus}, wanted a multiple of {product}, the product of {', '.join(columns)}"


def _wrong(mistakes: Sequence[Mistake]) -> ConfigError:
    return ConfigError("row", list(mistakes))
