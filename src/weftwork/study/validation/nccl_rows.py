"""Runs of nccl-tests as rows of curves: what the text states and what is asked have to agree.

A program, a number of ranks, hosts and GPUs that contradict the question or the server are refused with their lines.
Columns testify too: bus bandwidth over algorithm bandwidth, and bytes over elements, tell operations and ranks apart.
Leaves out: how a text becomes runs (`weftwork.study.validation.nccl_text`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.findings import Findings
from weftwork.base.grammar import number_ranges, plural
from weftwork.base.nearest import nearest
from weftwork.hardware.catalogue import SERVERS, node
from weftwork.study.validation.nccl_programs import (
    MOST_HOST_GPUS,
    PROGRAMS,
    NcclProgram,
    accepted_programs,
    gpu_of_device,
    nodes_with,
)
from weftwork.study.validation.nccl_table import NcclRow, word_bytes
from weftwork.study.validation.nccl_text import NcclRun, RankLine, nccl_runs
from weftwork.study.validation.row_table import TableRow

__all__ = ["NcclAsked", "NcclRows", "read_nccl_rows"]

_OTHER_TIMES: Final = ("seconds", "time_ns", "algorithm_bandwidth_gbyte_per_s", "bus_bandwidth_gbyte_per_s")
_FACTOR_ROOM: Final = 0.01  # of bus over algorithm bandwidth, besides the digits; programs differ by a half or more
_AVERAGE_ROOM: Final = 0.02  # chosen: the average has six digits, the rows three
_MOST_NAMES: Final = 4  # of hosts or servers that a sentence lists
_MOST_GPUS: Final = 1 << 20  # chosen: more GPUs than any cluster has


@dataclass(frozen=True, kw_only=True, slots=True)
class NcclAsked:
    """What the user says of a text: ``--operation``, ``--gpus`` and ``--node``; None: as the text says."""

    operation: str | None = None
    gpus: int | None = None
    node: str | None = None

    @property
    def options(self) -> list[str]:
        """Options with a value."""
        return list(self._values())

    @property
    def words(self) -> list[str]:
        """Options with their values, as on a command line."""
        return [f"{name} {value}" for name, value in self._values().items()]

    def _values(self) -> dict[str, str | int]:
        values = {"--operation": self.operation, "--gpus": self.gpus, "--node": self.node}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, kw_only=True, slots=True)
class NcclRows:
    """Rows in the columns of the format ``curves``, and what was read.

    Attributes
    ----------
    rows : of all runs
    notes : what each run is, and what the text leaves open
    """

    rows: tuple[TableRow, ...]
    notes: tuple[str, ...]


def read_nccl_rows(text: str, asked: NcclAsked, *, source: str) -> NcclRows:
    """Read a text of nccl-tests.

    Parameters
    ----------
    text : as a launcher delivers it
    asked : what the user says of it
    source : what errors call the file

    Raises
    ------
    ConfigError : with every line that cannot be read, what the text does not say, and where it contradicts itself, the
        question or the server
    """
    findings = Findings(source=source)
    runs = nccl_runs(text, findings)
    whole = [run for run in runs if not run.is_mixed]
    if len(whole) == len(runs):
        _check_asked(asked, findings)
        for run in whole:
            _check_run(run, asked, findings.reserved(), several=len(runs) > 1)
    if not runs and not findings.has_mistakes:
        findings.wrong("file", "has no run of nccl-tests")
    if findings.has_mistakes:
        raise ConfigError(source, list(dict.fromkeys(findings.mistakes)))  # runs say the same of what was asked
    rows = tuple(row for run in runs for row in _rows(run, asked))
    if not rows:
        raise ConfigError(source, [Mistake(path="file", text="has only rows of 0 B, wanted a size above 0")])
    return NcclRows(rows=rows, notes=tuple(note for run in runs for note in _notes(run, asked)))


def _check_asked(asked: NcclAsked, findings: Findings) -> None:
    """Find options that no text can make right."""
    operations = _operations()
    if asked.operation is not None and asked.operation not in operations:
        text = f"found '{asked.operation}', wanted {', '.join(operations)}"
        findings.wrong("--operation", text, nearest(asked.operation, operations))
    if asked.gpus is not None and not 2 <= asked.gpus <= _MOST_GPUS:
        findings.wrong("--gpus", f"found {asked.gpus}, wanted 2 to {_MOST_GPUS:,}")
    names = [name for name, row in SERVERS.items() if "gpu" in row.figures]
    if asked.node is not None and asked.node not in names:
        text = f"found '{asked.node}', wanted {', '.join(names)}"
        findings.wrong("--node", text, nearest(asked.node, names))


def _operations() -> list[str]:
    """Operations that Weftwork has, as ``--operation`` names them."""
    return [made.operation for made in PROGRAMS.values() if made.operation]


def _check_run(run: NcclRun, asked: NcclAsked, findings: Findings, *, several: bool) -> None:
    """Find what is wrong with a run; the findings are those of this run alone."""
    where = f" of the run of line {run.line}" if several else ""
    _check_ranks(run, findings)
    if not findings.has_mistakes:
        _check_gpus(run, asked, where, findings)
    _check_operation(run, asked, where, findings)
    _check_node(run, asked, where, findings, has_ranks=not findings.has_mistakes)


def _check_ranks(run: NcclRun, findings: Findings) -> None:
    """Find ranks that contradict each other."""
    listed: dict[str, RankLine] = {}
    for rank in run.ranks:
        for what in (f"rank {rank.rank}", f"device {rank.device} of {rank.host}"):
            before = listed.setdefault(what, rank)
            if before is not rank:
                text = f"{what} is listed by line {before.line} too: ranks that share a GPU, or two runs in one text"
                findings.wrong("rank", text, line=rank.line)
    groups = sorted({rank.group for rank in run.ranks})
    if len(groups) > 1:
        text = f"lists {len(groups)} groups of ranks, which ran at once and share links; wanted one group"
        findings.wrong("rank", text, line=run.ranks[0].line)
    each = run.threads * run.thread_gpus
    if each > 1 and run.ranks and not findings.has_mistakes and not _gaps(run) and len(run.ranks) % each:
        text = (
            f"lists {plural(len(run.ranks), 'rank')}, but {plural(run.threads, 'thread')} of"
            f" {plural(run.thread_gpus, 'GPU')} make {each} in each process: lines are missing"
        )
        findings.wrong("rank", text, line=run.ranks[-1].line)


def _gaps(run: NcclRun) -> list[int]:
    """Ranks below the last one that the text does not list."""
    listed = {rank.rank for rank in run.ranks}
    return [rank for rank in range(min(max(listed, default=-1) + 1, _MOST_GPUS)) if rank not in listed]


def _check_gpus(run: NcclRun, asked: NcclAsked, where: str, findings: Findings) -> None:
    """Find a number of GPUs that is missing, or contradicts the ranks."""
    listed = len(run.ranks)
    last = max((rank.rank for rank in run.ranks), default=-1)
    line = run.ranks[-1].line if run.ranks else None
    if not listed:
        if not asked.gpus:
            findings.wrong("--gpus", f"is missing: the text has no line for each rank{where}")
        return
    if gaps := _gaps(run):
        missing = number_ranges(gaps, " to ")
        missing = missing if len(missing) <= 60 else f"{missing[:60]}..."
        if asked.gpus is None:
            text = f"is missing: the text lists rank {last}, but not {missing}, and more may be missing{where}"
            findings.wrong("--gpus", text, line=line)
            return
        if asked.gpus > last:
            return
    elif asked.gpus in {None, listed}:
        if listed == 1:
            text = f"lists one rank{where}, which sends nothing; wanted at least 2 (nccl-tests built without MPI?)"
            findings.wrong("rank", text, line=line)
        return
    text = f"found {asked.gpus}, but the text lists {plural(listed, 'rank')} up to rank {last}{where}"
    findings.wrong("--gpus", text, str(last + 1) if not _gaps(run) else None, line=line)


def _check_operation(run: NcclRun, asked: NcclAsked, where: str, findings: Findings) -> None:
    """Find the first mistake of the program, by its name and by its columns."""
    program, line = run.program, run.program_line
    if isinstance(program, str):
        text = f"found '{program}', which is no program of nccl-tests that Weftwork knows{where}"
        findings.wrong("program", f"{text}; wanted {accepted_programs()}", line=line)
        return
    if program is not None:
        _check_program(run, asked, program, where, findings)
        return
    _check_unnamed(run, asked, where, findings)


def _check_program(run: NcclRun, asked: NcclAsked, program: NcclProgram, where: str, findings: Findings) -> None:
    """Find the first mistake of a program that the text names."""
    line, ranks = run.program_line, _ranks(run, asked)
    if not program.operation:
        text = f"{program.name}_perf measures {program.measures}{where}; Weftwork has no such operation"
        if program.simulated:
            text = text.removesuffix("Weftwork has no such operation")
            text += f"'weftwork collective {program.simulated}' simulates it, but no constant is fitted or scored on it"
        findings.wrong("program", f"{text}; wanted {accepted_programs()}", line=line)
    elif asked.operation in _operations() and asked.operation != program.operation:
        text = f"found '{asked.operation}', but the text is of {program.name}_perf, which is {program.operation}"
        findings.wrong("--operation", f"{text}{where}", program.operation, line=line)
    elif not all(_fits(row, program, ranks) for row in run.rows):
        text = f"names {program.name}_perf, but its columns are not those of {program.operation}{where}"
        findings.wrong("program", f"{text}: {_columns_say(run, _likely(run, ranks))}", line=_telling_line(run))


def _check_unnamed(run: NcclRun, asked: NcclAsked, where: str, findings: Findings) -> None:
    """Find the first mistake of a program that the text does not name, by its columns."""
    ranks = _ranks(run, asked)
    likely = _likely(run, ranks)
    fitting = [made for made in likely if made.operation]
    says = _columns_say(run, likely)
    if asked.operation is None:
        fix = fitting[0].operation if len(fitting) == 1 == len(likely) else None
        text = f"is missing: the text names no program such as all_reduce_perf{where}; {says}"
        findings.wrong("--operation", text, fix)
    elif asked.operation in _operations() and not any(
        made.operation == asked.operation and all(_fits(row, made, ranks) for row in run.rows)
        for made in PROGRAMS.values()
    ):
        text = f"found '{asked.operation}', but {says}{where}"
        fix = fitting[0].operation if len(fitting) == 1 == len(likely) else None
        findings.wrong("--operation", text, fix, line=_telling_line(run))


def _columns_say(run: NcclRun, likely: Sequence[NcclProgram]) -> str:
    """What the columns tell of the program."""
    if not run.rows:
        return "there is no row that would tell it"
    if not likely:
        return "its columns fit no program of nccl-tests: bus bandwidth, bytes and elements contradict each other"
    if len(likely) == len(PROGRAMS):
        return f"its columns fit any; wanted {accepted_programs()}"
    names = [f"{made.name}_perf ({made.operation})" if made.operation else f"{made.name}_perf" for made in likely]
    return f"its columns fit {', '.join(names)}; Weftwork has {accepted_programs()}"


def _ranks(run: NcclRun, asked: NcclAsked) -> int | None:
    """Ranks that the text lists in full, else those of ``--gpus``."""
    listed = len(run.ranks) if not _gaps(run) else 0
    return listed if listed > 1 else asked.gpus


def _likely(run: NcclRun, ranks: int | None) -> list[NcclProgram]:
    """Programs that print such columns."""
    fitting = [program for program in PROGRAMS.values() if all(_fits(row, program, ranks) for row in run.rows)]
    by_elements = [program for program in fitting if all(_has_elements(row, program, ranks) for row in run.rows)]
    return by_elements or fitting


def _fits(row: NcclRow, program: NcclProgram, ranks: int | None) -> bool:
    """Whether bus bandwidth, reduction and root of a row are those of a program."""
    low, high = _ratio(row)
    factors = [program.bus_factor(count) for count in ([ranks] if ranks else [2, _MOST_GPUS])]
    if high < min(factors) * (1 - _FACTOR_ROOM) or low > max(factors) * (1 + _FACTOR_ROOM):
        return False
    if row.root is not None and (row.root >= 0) != program.has_root:
        return False
    if row.reduction in {None, "none"}:
        return row.reduction is None or not program.reduces
    return program.reduces or program.name == "sendrecv"  # which has none and prints one


def _has_elements(row: NcclRow, program: NcclProgram, ranks: int | None) -> bool:
    """Whether the elements of a row are those of a program, in versions that print those of a rank."""
    element_bytes = word_bytes(row.type)
    if element_bytes is None or not row.elements or not row.size_bytes or program.name == "alltoallv":
        return True
    parts = row.size_bytes / (row.elements * element_bytes)
    return parts == ranks if program.is_split and ranks else (parts > 1) == program.is_split


def _ratio(row: NcclRow) -> tuple[float, float]:
    """Bounds of bus bandwidth over algorithm bandwidth."""
    (algorithm, half), (bus, bus_half) = row.algorithm_gbyte_per_s, row.bus_gbyte_per_s
    if algorithm <= half * 10 or bus <= bus_half * 10:
        return 0.0, float("inf")  # too few digits
    return (bus - bus_half) / (algorithm + half), (bus + bus_half) / (algorithm - half)


def _telling_line(run: NcclRun) -> int | None:
    """A row whose digits tell the program."""
    told = [row for row in run.rows if _ratio(row)[0] > 0] or run.rows
    return told[-1].line if told else None


def _check_node(run: NcclRun, asked: NcclAsked, where: str, findings: Findings, *, has_ranks: bool) -> None:
    """Find mistakes of the server: its GPU, and how many of them a host has."""
    per_host = _per_host(run.ranks)
    names = sorted({rank.name for rank in run.ranks})
    if asked.node is None:
        text = "is missing, wanted the catalogue's name of the server that nccl-tests ran on"
        gpus = {gpu_of_device(name) for name in names}
        (gpu,) = gpus if len(gpus) == 1 else (None,)
        fitting = nodes_with(gpu, max(per_host.values(), default=0)) if gpu else []
        if fitting:
            text += f"; with {_words(names)}{where}: {_words(fitting)}"
        elif names:
            text += f"; the text lists {_words(names)}{where}, which no server of the catalogue has"
        findings.wrong("--node", text)
        return
    row = SERVERS.get(asked.node)
    if row is None or "gpu" not in row.figures:
        return  # told once, by `_check_asked`
    for name in names:
        gpu = gpu_of_device(name)
        if gpu != row.value("gpu") and not _is_unnamed(name):
            line = next(rank.line for rank in run.ranks if rank.name == name)
            fitting = nodes_with(gpu, max(per_host.values(), default=0)) if gpu else []
            hint = f"; servers with it are {_words(fitting)}" if fitting else "; no server of the catalogue has it"
            text = f"found '{asked.node}' with GPUs {row.value('gpu')}, but the text lists {name}{where}{hint}"
            findings.wrong("--node", text, line=line)
    if has_ranks and run.ranks:
        _check_places(run, asked.node, per_host, where, findings)


def _check_places(run: NcclRun, name: str, per_host: dict[str, int], where: str, findings: Findings) -> None:
    """Find hosts that have other GPUs than the server."""
    domain = node(name).server.gpus
    ranks, line = len(run.ranks), run.ranks[0].line
    hosts = _hosts(per_host)
    if domain > MOST_HOST_GPUS:  # a domain spans hosts
        if ranks <= domain or ranks % domain == 0:
            return
        text = f"lists {plural(ranks, 'rank')}{where}, wanted at most {domain} or a multiple: whole domains of '{name}'"
        findings.wrong("rank", text, line=line)
        return
    if len(per_host) == 1 and ranks <= domain:
        return
    if len(per_host) > 1 and set(per_host.values()) == {domain}:
        return
    if len(per_host) == 1:
        text = f"lists {plural(ranks, 'rank')} on one host{where}, but a server '{name}' has {plural(domain, 'GPU')}"
    else:
        wanted = "Weftwork compares one server, or servers all of whose GPUs take part"
        text = f"lists {hosts}{where}; '{name}' has {plural(domain, 'GPU')}, and {wanted}"
    if not _gaps(run):
        findings.wrong("rank", text, line=line)


def _rows(run: NcclRun, asked: NcclAsked) -> Iterable[TableRow]:
    program = run.program
    operation = program.operation if isinstance(program, NcclProgram) else asked.operation
    gpus = asked.gpus or len(run.ranks)
    for row in run.rows:
        if not row.size_bytes:
            continue  # nccl-tests prints a size of 0 where a size is less than a byte for each rank
        cells = {"operation": operation, "gpus": gpus, "size_bytes": row.size_bytes, "server": asked.node}
        yield TableRow(line=row.line, cells={**cells, "time_us": row.time_us, **dict.fromkeys(_OTHER_TIMES)})


def _notes(run: NcclRun, asked: NcclAsked) -> Iterable[str]:
    """What was read, and what the text leaves open."""
    program = run.program
    name = f"{program.name}_perf" if isinstance(program, NcclProgram) else f"{asked.operation}, as --operation says"
    per_host, names = _per_host(run.ranks), sorted({rank.name for rank in run.ranks})
    gpus = (
        f", {_hosts(per_host)} ({_words(names)})"
        if run.ranks
        else f", {plural(asked.gpus or 0, 'GPU')}, as --gpus says"
    )
    yield f"read from line {run.line} on: {name}{gpus}, {plural(len(run.rows), 'row')}"
    if run.ranks and asked.node is not None and node(asked.node).server.gpus > MOST_HOST_GPUS and len(per_host) > 1:
        domains = -(-len(run.ranks) // node(asked.node).server.gpus)
        words = plural(domains, "NVLink domain")
        yield f"assumed: these {len(per_host)} hosts are {words} of {asked.node}; the text does not say it"
    if gaps := _gaps(run):
        wanted = plural(asked.gpus or 0, "GPU")
        yield f"assumed: {wanted}, as --gpus says; the text lists {len(run.ranks)} and leaves out {len(gaps)}"
    if any(_is_unnamed(name) for name in names):
        yield f"not checked: the GPU, which the text calls {_words(names)}"
    if any(row.is_in_place for row in run.rows):
        count = sum(row.is_in_place for row in run.rows)
        yield f"times of {plural(count, 'row')} are those in place, as the text has none out of place"
    if run.graph:
        yield "the operations ran in a CUDA graph: times are without the launch that Weftwork adds"
    if run.head is not None and "type" not in run.head.first:
        yield "the table is not of NCCL but of MSCCL++, whose algorithms differ: Weftwork predicts NCCL's"
    if run.least_bytes is not None and run.most_bytes is not None:
        sizes = [row.size_bytes for row in run.rows if row.size_bytes]
        if sizes and (max(sizes) > run.most_bytes or min(sizes) < _least(run) or max(sizes) < run.most_bytes // 2):
            yield (
                f"rows have {min(sizes):,} to {max(sizes):,} B, the run was asked for {run.least_bytes:,} to"
                f" {run.most_bytes:,} B: lines are missing, or of another run"
            )
    stated = run.average_gbyte_per_s
    every = [value for row in run.rows for value in row.all_bus_gbyte_per_s]
    if stated is not None and every and abs(fmean(every) - stated) > _AVERAGE_ROOM * stated + _digits_room(run):
        yield (
            f"bus bandwidth is {fmean(every):.4g} GB/s on average over the rows, {stated:.4g} GB/s as the text states"
            " it: lines are missing, or of another run"
        )


def _digits_room(run: NcclRun) -> float:
    return max(row.bus_gbyte_per_s[1] for row in run.rows)


def _least(run: NcclRun) -> int:
    """The least size that a sweep prints: parts are rounded down."""
    return (run.least_bytes or 0) // 2


def _per_host(ranks: Sequence[RankLine]) -> dict[str, int]:
    found: dict[str, int] = {}
    for rank in ranks:
        found[rank.host] = found.get(rank.host, 0) + 1
    return found


def _hosts(per_host: dict[str, int]) -> str:
    """Hosts and their GPUs in words."""
    counts = sorted(set(per_host.values()))
    each = " or ".join(map(str, counts[:_MOST_NAMES])) if counts else "0"
    hosts = plural(len(per_host), "host")
    gpus = "GPU" if counts == [1] else "GPUs"
    return f"{hosts} with {each} {gpus}{' each' if len(per_host) > 1 else ''} ({_words(list(per_host))})"


def _is_unnamed(device: str) -> bool:
    """Whether CUDA's name of a device says nothing, as before its launch."""
    return device in {"", "NVIDIA Graphics Device", "Graphics Device"}


def _words(names: Sequence[str]) -> str:
    if len(names) <= _MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: _MOST_NAMES - 1])} and {len(names) - _MOST_NAMES + 1} more"
