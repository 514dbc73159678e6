"""The text of nccl-tests as runs: the facts that it states, and its rows.

Columns are those of the head above them, so that all versions are read alike. Runs of several streams, and runs that
follow one another, are told apart; where lines of two runs are mixed nobody knows whose row is whose, and the text is
refused with the line.
Source: NVIDIA/nccl-tests, src/common.cu and src/util.cu; microsoft/mscclpp, test/mscclpp-test.
Leaves out: tags (`weftwork.study.validation.nccl_streams`), and whether the facts agree with what is asked
(`weftwork.study.validation.nccl_rows`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from weftwork.base.errors import Mistake
from weftwork.base.findings import Findings
from weftwork.study.validation.nccl_programs import NcclProgram, named_programs
from weftwork.study.validation.nccl_streams import StreamLine, streams_of
from weftwork.study.validation.nccl_table import ROW_LIKE, NcclRow, TableHead, table_head, table_row

__all__ = ["NcclRun", "RankLine", "nccl_runs"]

_STARTING: Final = re.compile(r"#\s*Collective test starting:\s*(\S+)")
_SETTINGS: Final = re.compile(r"#\s*nThread\s+(\d+)\s+nGpus\s+(\d+)\s+minBytes\s+(\d+)\s+maxBytes\s+(\d+)")
_GRAPH: Final = re.compile(r"\bgraph:\s*(\d+)")
_DEVICES: Final = re.compile(r"#\s*Using devices\b")
_VERSION: Final = re.compile(r"#\s*(?:nccl-tests version\b|Initializing MSCCL)")
_RANK_BEGINS: Final = re.compile(r"#\s*Rank\s+\d+\s")
_RANK: Final = re.compile(
    r"#\s*Rank\s+(\d+)\s+(?:Group\s+(\d+)\s+)?Pid\s+(\d+)\s+on\s+(\S+)\s+device\s+(\d+)\s+\[[^\]]*\]\s*(.*)"
)
_HEAD: Final = re.compile(r"#\s*size\s+count\b")
_GROUPS: Final = re.compile(r"#.*\b(?:out-of-place|in-place)\b")
_UNITS: Final = re.compile(r"#\s*\(B\)\s+\(elements\)(.*)")
_BOUNDS: Final = re.compile(r"#\s*Out of bounds values\s*:\s*(\S+)\s*(\S*)")
_AVERAGE: Final = re.compile(r"#\s*Avg bus bandwidth\s*:\s*(\S+)\s*(\S*)")
_CONCLUDED: Final = re.compile(r"#\s*Collective test concluded:\s*(\S+)")
_KNOWN_UNITS: Final = {"us", "GB/s", "%"}
_SHOWN: Final = 60  # characters of a line that an error repeats


class LineKind(IntEnum):
    """Parts of a run, in the order in which a program prints them."""

    VERSION = 0
    STARTING = 1
    SETTINGS = 2
    DEVICES = 3
    RANK = 4
    GROUPS = 5
    HEAD = 6
    UNITS = 7
    ROW = 8
    BOUNDS = 9
    AVERAGE = 10
    CONCLUDED = 11


_REPEATED: Final = {LineKind.RANK, LineKind.ROW}


@dataclass(frozen=True, kw_only=True, slots=True)
class RankLine:
    """One rank as a text lists it."""

    line: int
    rank: int
    group: int
    process: int
    host: str
    device: int
    name: str


@dataclass(kw_only=True)
class NcclRun:
    """One run of one program.

    Attributes
    ----------
    line : where it begins
    last_line : where it ends
    last_part : that was read
    program : its name; None: the text does not say; text where nobody knows it
    program_line : that names it
    threads, thread_gpus : of a process; 0: not said
    least_bytes, most_bytes : of the sweep; None: not said
    graph : launches of a CUDA graph; 0: none
    ranks : that it lists
    head : of its table
    groups : line above the head, which says which half is in place
    rows : in order
    average_gbyte_per_s : bus bandwidth as it states it; None: not said
    average_line : that states it
    is_mixed : whether lines of another run are among its own
    """

    line: int
    last_line: int
    last_part: LineKind = LineKind.VERSION
    program: NcclProgram | str | None = None
    program_line: int | None = None
    threads: int = 0
    thread_gpus: int = 0
    least_bytes: int | None = None
    most_bytes: int | None = None
    graph: int = 0
    ranks: list[RankLine] = field(default_factory=list)
    head: TableHead | None = None
    groups: str = ""
    rows: list[NcclRow] = field(default_factory=list)
    average_gbyte_per_s: float | None = None
    average_line: int | None = None
    is_mixed: bool = False


def nccl_runs(text: str, findings: Findings) -> list[NcclRun]:
    """Runs of a text.

    Parameters
    ----------
    text : as it was printed, with tags or without
    findings : take what is wrong with it
    """
    streams, others = streams_of(text)
    for line in others:
        if ROW_LIKE.search(line.text):
            found = f"found {line.text.strip()[:_SHOWN]!r}, a row without the tag that the head of the table has"
            findings.wrong("row", found, line=line.number)
    runs: list[NcclRun] = []
    commands = [(line.number, named_programs(line.text)) for line in others]
    for stream in streams:
        reader = _TextReader()
        for line in stream:
            reader.read(line)
        reader.close()
        runs += reader.runs
        findings.include(reader.mistakes)
        commands += reader.commands
    runs.sort(key=lambda run: run.line)
    _name_by_commands(runs, [(line, names) for line, names in sorted(commands, key=lambda at: at[0]) if names])
    return runs


def _name_by_commands(runs: list[NcclRun], commands: list[tuple[int, list[NcclProgram | str]]]) -> None:
    """Name runs that print no name by the command before them; a lone run by any command of the text."""
    before = 0
    for run in runs:
        if run.program is None:
            near = [at for at in commands if len(runs) == 1 or before < at[0] < run.last_line]
            names = list(dict.fromkeys(name for _, named in near for name in named))
            if len(names) == 1:
                run.program, run.program_line = names[0], near[0][0]
        before = run.last_line


class _TextReader:
    """Reads the lines of one stream in order."""

    def __init__(self) -> None:
        self.runs: list[NcclRun] = []
        self.mistakes: list[Mistake] = []
        self.commands: list[tuple[int, list[NcclProgram | str]]] = []
        self._run: NcclRun | None = None

    def read(self, line: StreamLine) -> None:
        """Take the next line."""
        part = _part_of(line.text, self._run)
        if part is None:
            self._foreign(line)
            return
        run = self._run_at(part, line)
        run.last_part, run.last_line = part, line.number
        self._take(run, part, line)

    def close(self) -> None:
        """Judge the last run."""
        if self._run is not None and not self._run.is_mixed:
            self._judge(self._run)

    def _foreign(self, line: StreamLine) -> None:
        self.commands.append((line.number, named_programs(line.text)))
        if self._run is not None and self._run.head is not None and ROW_LIKE.search(line.text):
            found = f"found {line.text.strip()[:_SHOWN]!r}, a row with other text before it"
            self._wrong("row", f"{found}; wanted the row alone on its line", line.number)

    def _run_at(self, part: LineKind, line: StreamLine) -> NcclRun:
        """The run that a line belongs to; a new one where the order begins again."""
        run = self._run
        if run is not None and (
            part > run.last_part or (part == run.last_part and part in _REPEATED and not _is_listed(run, line, part))
        ):
            return run
        is_mixed = run is not None and (part > LineKind.HEAD or not run.rows)
        if run is not None:
            if not run.rows and part <= LineKind.ROW:
                here = f"another run begins here, before the rows of the run of line {run.line}"
                self._wrong("run", f"{here}: lines of two runs are mixed; wanted one run after the other", line.number)
            elif part > LineKind.HEAD:
                here = f"belongs to another run than the lines before it, whose run began at line {run.line}"
                self._wrong("run", f"{here}; wanted one run after the other", line.number)
            if is_mixed:
                run.is_mixed = True
            else:
                self._judge(run)
        self._run = NcclRun(line=line.number, last_line=line.number, is_mixed=is_mixed)
        self.runs.append(self._run)
        return self._run

    def _take(self, run: NcclRun, part: LineKind, line: StreamLine) -> None:
        match part:
            case LineKind.STARTING | LineKind.CONCLUDED:
                self._name(run, line)
            case LineKind.SETTINGS:
                self._settings(run, line)
            case LineKind.RANK:
                self._rank(run, line)
            case LineKind.GROUPS:
                run.groups = line.text
            case LineKind.HEAD:
                self._head(run, line)
            case LineKind.UNITS:
                self._units(line)
            case LineKind.ROW:
                self._row(run, line)
            case LineKind.BOUNDS:
                self._bounds(line)
            case LineKind.AVERAGE:
                self._average(run, line)
            case _:
                pass

    def _name(self, run: NcclRun, line: StreamLine) -> None:
        match = _STARTING.match(line.text) or _CONCLUDED.match(line.text)
        named = named_programs(match.group(1)) if match else []
        name = named[0] if named else (match.group(1) if match else "")
        if run.program is None:
            run.program, run.program_line = name, line.number
        elif name != run.program:
            text = f"the run that ends here is of {_shown(name)}, the one of line {run.line} of {_shown(run.program)}"
            self._wrong("program", f"{text}: lines of two runs are mixed", line.number)

    def _settings(self, run: NcclRun, line: StreamLine) -> None:
        match = _SETTINGS.match(line.text)
        if match is None:
            self._wrong("run", "wanted nThread, nGpus, minBytes and maxBytes with a number each", line.number)
            return
        run.threads, run.thread_gpus, run.least_bytes, run.most_bytes = (int(word) for word in match.groups())
        graph = _GRAPH.search(line.text)
        run.graph = int(graph.group(1)) if graph else 0

    def _rank(self, run: NcclRun, line: StreamLine) -> None:
        match = _RANK.match(line.text)
        if match is None:
            wanted = "wanted a rank with its Pid, host, device and GPU"
            self._wrong("rank", f"found {line.text.strip()[:_SHOWN]!r}, {wanted}", line.number)
            return
        rank, group, process, host, device, name = match.groups()
        run.ranks.append(
            RankLine(
                line=line.number, rank=int(rank), group=int(group or 0), process=int(process), host=host,
                device=int(device), name=name.strip(),
            )
        )  # fmt: skip

    def _head(self, run: NcclRun, line: StreamLine) -> None:
        made = table_head(line.text, run.groups)
        if isinstance(made, str):
            self._wrong("head", made, line.number)
        else:
            run.head = made

    def _units(self, line: StreamLine) -> None:
        match = _UNITS.match(line.text)
        units = set(re.findall(r"\(([^)\s]+)\)", match.group(1) if match else ""))
        if strange := sorted(units - _KNOWN_UNITS):
            self._wrong("head", f"found the unit {', '.join(strange)}, wanted us and GB/s", line.number)

    def _row(self, run: NcclRun, line: StreamLine) -> None:
        if run.head is None:
            return  # told at the head, or by `_judge`
        row = table_row(line.text, run.head, line.number)
        if isinstance(row, str):
            self._wrong("row", row, line.number)
        else:
            run.rows.append(row)

    def _bounds(self, line: StreamLine) -> None:
        match = _BOUNDS.match(line.text)
        count, verdict = match.groups() if match else ("?", "")
        if verdict != "OK" and count != "0":
            text = f"found {count} values out of bounds: results were wrong, and times of wrong results measure nothing"
            self._wrong("results", text, line.number)

    def _average(self, run: NcclRun, line: StreamLine) -> None:
        match = _AVERAGE.match(line.text)
        try:
            run.average_gbyte_per_s = float(match.group(1)) if match else None
        except ValueError:
            self._wrong("results", "wanted the average bus bandwidth as a number", line.number)
        run.average_line = line.number

    def _judge(self, run: NcclRun) -> None:
        """Mistakes of a whole run."""
        if not run.rows and not any(mistake.line in range(run.line, run.last_line + 1) for mistake in self.mistakes):
            text = "the run that begins here has no rows, wanted a line for each size"
            if run.head is None and run.last_part >= LineKind.ROW:
                text = "found rows or an end without the head of their table (size, count, type, time ...)"
            self._wrong("run", text, run.line)
        first = next((row for row in run.rows if row.size_bytes), None)
        for before, row in zip(run.rows, run.rows[1:], strict=False):
            if not row.size_bytes or row.size_bytes > before.size_bytes or first is None:
                continue
            is_same = row.size_bytes == before.size_bytes and row.kind == before.kind
            if row.size_bytes == first.size_bytes and not (is_same and run.rows[-1].size_bytes > first.size_bytes):
                continue  # the sweep begins again: cycles, types
            text = f"{row.size_bytes:,} B follow {before.size_bytes:,} B, but a program prints rising sizes"
            self._wrong("row", f"{text}: lines of two runs are mixed", row.line)
            break

    def _wrong(self, path: str, text: str, line: int) -> None:
        self.mistakes.append(Mistake(path=path, text=text, line=line))


def _is_listed(run: NcclRun, line: StreamLine, part: LineKind) -> bool:
    """Whether a line lists a rank that the run has listed."""
    match = _RANK.match(line.text) if part is LineKind.RANK else None
    return match is not None and any(rank.rank == int(match.group(1)) for rank in run.ranks)


def _part_of(text: str, run: NcclRun | None) -> LineKind | None:
    bare = text.lstrip()
    if bare.startswith("#"):
        for part, pattern in _PATTERNS:
            if pattern.match(bare):
                return part
        return None
    cells = bare.split(None, 2)
    has_begun = run is not None and (run.head is not None or run.last_part >= LineKind.HEAD or ROW_LIKE.match(bare))
    return LineKind.ROW if has_begun and len(cells) > 1 and cells[0].isdigit() and cells[1].isdigit() else None


_PATTERNS: Final = (
    (LineKind.VERSION, _VERSION),
    (LineKind.STARTING, _STARTING),
    (LineKind.SETTINGS, re.compile(r"#\s*nThread\s+\d+\s+nGpus\b")),
    (LineKind.DEVICES, _DEVICES),
    (LineKind.RANK, _RANK_BEGINS),
    (LineKind.HEAD, _HEAD),
    (LineKind.UNITS, _UNITS),
    (LineKind.BOUNDS, _BOUNDS),
    (LineKind.AVERAGE, _AVERAGE),
    (LineKind.CONCLUDED, _CONCLUDED),
    (LineKind.GROUPS, _GROUPS),
)


def _shown(program: NcclProgram | str | None) -> str:
    return f"{program.name}_perf" if isinstance(program, NcclProgram) else str(program)
