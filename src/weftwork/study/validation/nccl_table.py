"""The table of nccl-tests: its head, and its rows by the columns of the head.

Versions differ in columns (``root``, ``#wrong`` or ``error``, times of iterations, a time of day), and a half of a row
may be blank. Cells are right below their heads, so a lone half is told by its place.
Source: NVIDIA/nccl-tests, src/util.cu, writeResultHeader and writeBenchmarkLineBody; microsoft/mscclpp,
test/mscclpp-test.
Leaves out: times in place, but for rows that have no others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

__all__ = ["ROW_LIKE", "NcclRow", "TableHead", "table_head", "table_row", "word_bytes"]

_TYPE: Final = r"(?:u?int(?:8|32|64)|char|half|float|double|bfloat16|f(?:p)?8_?e\w+)"
ROW_LIKE: Final = re.compile(rf"(?:^|\s|\D)\d+\s+\d+\s+{_TYPE}\s")
_WORD_BYTES: Final = {
    "int8": 1, "uint8": 1, "char": 1, "half": 2, "bfloat16": 2, "int32": 4, "uint32": 4, "float": 4, "int64": 8,
    "uint64": 8, "double": 8,
}  # fmt: skip
_SHOWN: Final = 60
_FIRST: Final = ("size", "count", "type", "redop", "root")
_TIME_SHARE: Final = 0.02  # chosen: nccl-tests prints three digits or more, so that size over time is algbw
_GBYTE_PER_S: Final = 1e3  # bytes per us


@dataclass(frozen=True, kw_only=True, slots=True)
class TableHead:
    """Columns of a table.

    Attributes
    ----------
    first : columns before the times
    halves : columns of each half, from ``time`` on
    ends : where the word ``time`` of each half ends, from the end of the word ``size`` on
    out_of_place : which half is out of place
    extra : words behind the halves in each row
    """

    first: tuple[str, ...]
    halves: tuple[tuple[str, ...], ...]
    ends: tuple[int, ...]
    out_of_place: int
    extra: int


@dataclass(frozen=True, kw_only=True, slots=True)
class NcclRow:
    """One row.

    Attributes
    ----------
    line : of the text
    size_bytes, elements, type, reduction, root : as printed; None where there is no such column
    time_us, algorithm_gbyte_per_s, bus_gbyte_per_s : of the half that counts, with what half a digit is
    is_in_place : whether that half is in place
    """

    line: int
    size_bytes: int
    elements: int
    type: str | None
    reduction: str | None
    root: int | None
    time_us: float
    algorithm_gbyte_per_s: tuple[float, float]
    bus_gbyte_per_s: tuple[float, float]
    all_bus_gbyte_per_s: tuple[float, ...]
    is_in_place: bool

    @property
    def kind(self) -> tuple[str | None, str | None, int | None]:
        """All by which sweeps of a program differ."""
        return (self.type, self.reduction, self.root)


def table_head(text: str, groups: str) -> TableHead | str:
    """Read the head, or say what is wrong.

    Parameters
    ----------
    text : the line with ``size`` and ``count``
    groups : the line above it, which names the halves; empty: there is none
    """
    words = [(match.group().lstrip("#"), match.end()) for match in re.finditer(r"\S+", text.replace("#", " ", 1))]
    names = [name for name, _ in words]
    times = [place for place, name in enumerate(names) if name == "time"]
    if "cputime" in names:
        return "found cputime, the CPU's time to launch; wanted the time of the operation: run without -C"
    if not times:
        return f"found no column time: {' '.join(names)[:_SHOWN]}"
    known = tuple(name for name in names[: times[0]] if name in _FIRST)
    if known != tuple(names[: times[0]]) or known[:2] != ("size", "count"):
        return f"found {', '.join(names[: times[0]])} before time, wanted size, count and what of type, redop and root"
    tail = names[times[-1] :]
    extra = 2 * tail.count("timestamp")  # a day and a time
    tail = [name for name in tail if name != "timestamp"]
    halves = [tuple(names[begin:end]) for begin, end in pairwise(times)] + [tuple(tail)]
    if len(halves) > 2 or any(half[:3] != ("time", "algbw", "busbw") for half in halves):
        return "wanted time, algbw and busbw, once or twice: out of place and in place"
    out, inside = groups.find("out-of-place"), groups.find("in-place")
    if len(halves) == 2 and "type" not in known and (out < 0 or inside < 0):
        return "wanted a line above it that says which half is out-of-place and which in-place"
    is_swapped = 0 <= inside < out
    end = words[0][1]
    return TableHead(
        first=known,
        halves=tuple(halves),
        ends=tuple(words[place][1] - end for place in times),
        out_of_place=1 if is_swapped and len(halves) == 2 else 0,
        extra=extra,
    )


def table_row(text: str, head: TableHead, line: int) -> NcclRow | str:
    """Read a row, or say what is wrong.

    Parameters
    ----------
    text : of the line
    head : above it
    line : its number
    """
    cells = [(match.group(), match.end()) for match in re.finditer(r"\S+", text)]
    wanted = f"wanted {', '.join(head.first)} and a time above 0 us, in the columns of the head above"
    wrong = f"found {text.strip()[:_SHOWN]!r}, {wanted}"
    words = [word for word, _ in cells]
    first: dict[str, str | None] = dict.fromkeys(_FIRST)
    place = 0
    for name in head.first:
        word = words[place] if place < len(words) else ""
        is_number = re.fullmatch(r"-?\d+", word) is not None
        if name in {"type", "redop"} and (is_number or not re.fullmatch(r"[A-Za-z]\w*", word)):
            continue  # left empty
        if name not in {"type", "redop"} and not is_number:
            return wrong
        first[name] = word
        place += 1
    halves = _halves(cells[place:], head, cells[0][1])
    if not halves:
        return wrong
    chosen = head.out_of_place if head.out_of_place in halves else min(halves)
    is_in_place = len(head.halves) == 2 and chosen != head.out_of_place
    values = dict(zip(head.halves[chosen], halves[chosen], strict=True))
    numbers = {name: _number(values[name]) for name in ("time", "algbw", "busbw")}
    size_bytes = int(first["size"] or 0)
    time = numbers["time"]
    if any(number is None for number in numbers.values()) or time is None or (time[0] <= 0 and size_bytes):
        return wrong
    count_wrong = values.get("wrong")
    wrong_values = _number(count_wrong) if count_wrong not in {None, "N/A"} else (0.0, 0.0)
    if wrong_values is None:
        return wrong
    if wrong_values[0] > 0:
        return f"found {count_wrong} wrong values at {size_bytes:,} B: the time of a wrong result measures nothing"
    algorithm, bus = numbers["algbw"] or (0.0, 0.0), numbers["busbw"] or (0.0, 0.0)
    if text_of := _contradiction(size_bytes, time, algorithm):
        return text_of
    others = [_number(half[2]) for half in halves.values()]
    return NcclRow(
        line=line,
        size_bytes=size_bytes,
        elements=int(first["count"] or 0),
        type=first["type"],
        reduction=first["redop"],
        root=None if first["root"] is None else int(first["root"]),
        time_us=time[0],
        algorithm_gbyte_per_s=algorithm,
        bus_gbyte_per_s=bus,
        all_bus_gbyte_per_s=tuple(other[0] for other in others if other is not None),
        is_in_place=is_in_place,
    )


def word_bytes(name: str | None) -> int | None:
    """Bytes of an element; None where nobody knows the type."""
    if name is not None and re.fullmatch(r"f(?:p)?8_?e\w+", name):
        return 1
    return _WORD_BYTES.get(name or "")


def _halves(cells: list[tuple[str, int]], head: TableHead, end: int) -> dict[int, list[str]]:
    """Cells of each half that is there; empty where their number is wrong."""
    if head.extra and len(cells) > head.extra:
        cells = cells[: -head.extra]
    words = [word for word, _ in cells]
    lengths = [len(half) for half in head.halves]
    if len(words) == sum(lengths):
        return {place: words[sum(lengths[:place]) : sum(lengths[: place + 1])] for place in range(len(lengths))}
    if len(lengths) == 2 and words and len(words) in lengths:
        far = [abs(cells[0][1] - end - other) for other in head.ends]
        place = far.index(min(far))
        return {place: words} if len(words) == lengths[place] else {}
    return {}


def _number(word: str | None) -> tuple[float, float] | None:
    """A printed number, and half of its last digit; None where it is none."""
    match = re.fullmatch(r"(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,2}))?", word or "")
    if match is None:
        return None
    exponent = int(match.group(3) or 0)
    return float(word or ""), 0.5 * 10.0 ** (exponent - len(match.group(2) or ""))


def _contradiction(size_bytes: int, time_us: tuple[float, float], algorithm: tuple[float, float]) -> str | None:
    """What is wrong where size over time is not the printed bandwidth."""
    if not size_bytes:
        return None
    taken_us, half_us = time_us
    expected = size_bytes / taken_us / _GBYTE_PER_S
    room = expected * (_TIME_SHARE + half_us / taken_us) + 2 * algorithm[1]
    if abs(expected - algorithm[0]) <= room:
        return None
    found = f"found {size_bytes:,} B in {taken_us:g} us, which is {expected:.4g} GB/s, and algbw {algorithm[0]:g} GB/s"
    return f"{found}: the row contradicts itself"
