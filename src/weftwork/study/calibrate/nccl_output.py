"""The output of nccl-tests as rows of a curve.

The rows have sizes and times out of place.

The columns are found by the head that stands above them, so that versions with and without ``root`` or ``#wrong`` are
read alike. Operation and GPUs are taken from the text where it tells them: newer versions print the name of the
program, and all list a line for each rank.
Source: NVIDIA/nccl-tests, src/common.cu and src/util.cu. Leaves out: times in place; other types than the one printed.
"""

from __future__ import annotations

import re
from typing import Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.study.validation.row_table import TableRow

__all__ = ["is_nccl_output", "read_nccl_output"]

_HEAD: Final = re.compile(r"#\s*size\s+count\s+type\b.*\btime\b")
_RANK: Final = re.compile(r"#\s*Rank\s+\d+\b")
_PROGRAM: Final = re.compile(r"\b(all_reduce|all_gather|reduce_scatter|alltoall)_perf\b")
_OPERATIONS: Final = {
    "all_reduce": "all-reduce", "all_gather": "all-gather", "reduce_scatter": "reduce-scatter",
    "alltoall": "all-to-all",
}  # fmt: skip


def is_nccl_output(text: str) -> bool:
    """Whether a text has the head of nccl-tests' table."""
    return any(_HEAD.search(line) for line in text.splitlines())


def read_nccl_output(
    text: str, *, source: str, operation: str | None, gpus: int | None, node: str | None
) -> list[TableRow]:
    """Read rows in the columns of the format ``curves``.

    Parameters
    ----------
    text : as nccl-tests printed it
    source : what errors call the file
    operation, gpus : None: as the text says
    node : server of the catalogue

    Raises
    ------
    ConfigError : with every line that cannot be read, and what the text does not tell
    """
    mistakes: list[Mistake] = []
    named = {_OPERATIONS[found] for found in _PROGRAM.findall(text)}
    if operation is None and len(named) == 1:
        operation = named.pop()
    if operation is None:
        found = f"names {' and '.join(sorted(named))}" if named else "names no program such as all_reduce_perf"
        mistakes.append(Mistake(path="--operation", text=f"is missing: the text {found}", fix="all-reduce"))
    ranks = len({match.group() for line in text.splitlines() if (match := _RANK.match(line.strip()))})
    gpus = gpus or ranks or None
    if gpus is None:
        mistakes.append(Mistake(path="--gpus", text="is missing: the text has no line for each rank"))
    if node is None:
        mistakes.append(
            Mistake(path="--node", text="is missing, wanted the catalogue's name of the server that nccl-tests ran on")
        )
    rows: list[TableRow] = []
    head: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if _HEAD.search(line):
            head = line.replace("#wrong", "wrong").replace("#", " ").split()
            continue
        cells = line.split()
        if not head or not cells or not cells[0].isdigit():
            continue
        time_us = _time_us(head, cells)
        if time_us is None:
            wanted = "wanted size, count, type and a time above 0 us, in the columns of the head above"
            mistakes.append(Mistake(path="row", text=f"found {line.strip()[:60]!r}, {wanted}", line=number))
            continue
        if int(cells[0]) == 0:
            continue  # nccl-tests prints a size of 0 where a size is less than a byte for each rank
        known = {"operation": operation, "gpus": gpus, "size_bytes": int(cells[0]), "server": node}
        others = ("seconds", "time_ns", "algorithm_bandwidth_gbyte_per_s", "bus_bandwidth_gbyte_per_s")
        rows.append(TableRow(line=number, cells={**known, "time_us": time_us, **dict.fromkeys(others)}))
    if not rows and not mistakes:
        mistakes.append(Mistake(path="file", text="has a head and no rows, wanted a line for each size"))
    if mistakes:
        raise ConfigError(source, mistakes)
    return rows


def _time_us(head: list[str], cells: list[str]) -> float | None:
    """The first time of a line.

    An empty cell, as ``redop`` may be, moves the later cells forward.
    """
    place = head.index("time") - (len(head) - len(cells))
    if len(cells) > len(head) or place < 1:
        return None
    try:
        time_us = float(cells[place])
    except ValueError:
        return None
    return time_us if 0 < time_us < float("inf") else None
