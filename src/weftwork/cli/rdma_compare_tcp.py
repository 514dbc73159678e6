"""``weftwork rdma compare-tcp``: TCP sockets and the software NIC, measured side by side.

It prints the answer and tables, and writes a page or a picture.
"""

from __future__ import annotations

import json
import shlex
import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import typer
from pydantic import TypeAdapter, ValidationError
from rich.table import Table
from rich.text import Text

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.whole_file import write_whole
from weftwork.cli.console import console
from weftwork.cli.progress import CountLine
from weftwork.rdma.tcp_comparison.measure import FULL, QUICK, measure_tcp_and_rdma
from weftwork.report.page_tcp import tcp_page, tcp_picture
from weftwork.report.tcp_cited import cited_facts, hardware_by_size
from weftwork.report.tcp_words import (
    ANSWER_LABELS,
    answer_texts,
    machine_facts,
    registration_table,
    remote_table,
    workload_table,
)
from weftwork.spec.tcp_comparison import WORKLOADS, TcpComparison

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from weftwork.report.tcp_words import WordedTable

__all__ = ["compare_tcp"]

_PICTURE: Final = ".svg"
_HEAD_WIDTH: Final = 13  # chosen: letters of a heading's line, so that a table of seven columns has 90
_KINDS: Final = {"load": "loads measured"}


def compare_tcp(*, is_quick: bool, source: Path | None, out: Path | None, as_json: bool) -> None:
    """Measure, or read a measurement, and tell it.

    Parameters
    ----------
    is_quick : few sizes and short rounds
    source : file that ``--json`` has printed; None measures
    out : page to write, or the picture of the goodput if its name ends in .svg; None writes nothing
    as_json : one JSON object instead of words

    Raises
    ------
    ConfigError : the file cannot be read, or is no measurement; both were asked, to measure and to read
    UsageError : UDP port 4791 is not to be had
    PeerError, EngineError : an end of the measurement broke off
    """
    if source is not None:
        result = _read(source, is_quick=is_quick)
    else:
        with CountLine(_KINDS) as line:
            result = measure_tcp_and_rdma(QUICK if is_quick else FULL, lambda done, of: line("load", done, of))
    if out is not None:
        is_picture = out.suffix == _PICTURE
        command = _command(is_quick=is_quick, source=source, out=out)
        write_whole(out, tcp_picture(result) if is_picture else tcp_page(result, command))
    if as_json:
        typer.echo(json.dumps(_document(result), indent=1))
    else:
        _print(result, out)


def _read(source: Path, *, is_quick: bool) -> TcpComparison:
    """Read a measurement, with all mistakes of the file."""
    if is_quick:
        text = "found both --from and --quick, wanted one: a file is read, and nothing is measured"
        raise ConfigError("options", [Mistake(path="--from", text=text)])
    try:
        found: TcpComparison = TypeAdapter(TcpComparison).validate_json(source.read_bytes())
    except OSError as error:
        text = f"cannot be read: {error.strerror}"
        raise ConfigError(str(source), [Mistake(path="file", text=text)]) from error
    except ValidationError as error:
        mistakes = [
            Mistake(path=".".join(map(str, one["loc"])) or "file", text=f"{one['msg']}; wanted what --json prints")
            for one in error.errors()
        ]
        raise ConfigError(str(source), mistakes) from error
    missing = [workload for workload in WORKLOADS if not found.sizes(workload)]
    mistakes = [Mistake(path="transfers", text=f"found no '{workload}', wanted every workload") for workload in missing]
    mistakes += [
        Mistake(path="remote", text=f"found no operations by '{way}', wanted tcp and read")
        for way in ("tcp", "read")
        if way not in {one.way for one in found.remote}
    ]
    if not found.registration:
        mistakes.append(Mistake(path="registration", text="found no buffer, wanted one at least"))
    if mistakes:
        raise ConfigError(str(source), mistakes)
    return found


def _command(*, is_quick: bool, source: Path | None, out: Path) -> str:
    words = ["weftwork", "rdma", "compare-tcp", *(["--quick"] if is_quick else [])]
    words += [] if source is None else ["--from", str(source)]
    return shlex.join([*words, "-o", str(out)])


def _document(result: TcpComparison) -> dict[str, Any]:
    """The measurement, what it says, and the cited figures apart from it."""
    return {
        "said": dict(zip(ANSWER_LABELS, answer_texts(result), strict=True)),
        **asdict(result),
        "cited": {
            "hardware": [{"size_bytes": size, **asdict(point)} for size, point in hardware_by_size().items()],
            "facts": [asdict(fact) for fact in cited_facts()],
        },
    }


def _print(result: TcpComparison, out: Path | None) -> None:
    screen = console()
    width = max(map(len, ANSWER_LABELS)) + 2
    for number, (label, text) in enumerate(zip(ANSWER_LABELS, answer_texts(result), strict=True)):
        screen.print(Text(f"{label:<{width}}{text}", style="" if number else "bold"), soft_wrap=True)
    for workload in WORKLOADS:
        _print_table(screen, workload, workload_table(result, workload))
    _print_table(screen, "work at the remote end", remote_table(result))
    _print_table(screen, "registration", registration_table(result))
    screen.print()
    for name, text in machine_facts(result):
        screen.print(Text(f"{name:<{width + 2}}{text}"), soft_wrap=True)
    screen.print()
    if out is None:
        screen.print(Text("CPU time, system calls and copies of each message: -o page.html, or --json"), soft_wrap=True)
    else:
        screen.print(Text(f"written: {out}"), soft_wrap=True)


def _print_table(screen: Console, title: str, worded: WordedTable) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, name in enumerate(worded.head):
        head = textwrap.fill(name, _HEAD_WIDTH, break_long_words=False)
        table.add_column(head, justify="right" if place else "left", vertical="bottom", no_wrap=True)
    for row in worded.rows:
        table.add_row(*row)
    screen.print()
    screen.print(Text(title, style="bold"))
    screen.print(table)
