"""Lines of nccl-tests without the tags that launchers put before them.

OpenMPI, Slurm, Ray, Kubernetes, pdsh and many others tag each line with a rank, a pod or a time. A tag is whatever
stands before the ``#`` of a line that nccl-tests always prints, so no list of launchers is needed. Lines of one tag are
a stream; times inside a tag do not count, and neither does a number that counts the lines.
Source: NVIDIA/nccl-tests, src/util.cu, the lines; docs of mpirun --tag-output, srun --label and kubectl logs --prefix.
Leaves out: what the lines say (`weftwork.study.validation.nccl_text`); tags behind a line.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Final

__all__ = ["StreamLine", "has_nccl_tests", "streams_of"]

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# Lines that the programs print in any version, from their first character on
ANCHOR: Final = re.compile(
    r"#\s*(?:nccl-tests version\b|Collective test (?:starting|concluded)\b|nThread\s+\d|Using devices\b|Rank\s+\d+\s"
    r"|size\s+count\b|\(B\)\s+\(elements\)|Out of bounds values\b|Avg bus bandwidth\b|(?:out-of-place|in-place)\s"
    r"|Initializing MSCCL|Setting up the connection in MSCCL)"
)
_TIME: Final = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d(?: \d{4})?"
    r"|\d\d:\d\d:\d\d(?:[.,]\d+)?"
)
_ANY_TIME: Final = f"(?:{_TIME.pattern})"
_LONGEST_TAG: Final = 160  # chosen: a pod's name, a container's and a time; a quoted sentence is no tag
_BRACKET: Final = re.compile(r"\\[\[(<|]|<")  # of an escaped tag: no time or number looks like it
_FEWEST_LINES: Final = 3  # chosen: fewer lines, and a counter cannot be told from the number of a rank


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamLine:
    """A line without its tag.

    Attributes
    ----------
    number : in the text, from 1
    text : what stands behind the tag
    """

    number: int
    text: str


def has_nccl_tests(text: str) -> bool:
    """Whether a text has lines that only nccl-tests and its relatives print.

    The head of the table, or the first lines of a program.
    """
    return _MARK.search(text) is not None


_MARK: Final = re.compile(
    r"#\s*(?:size\s+count\s+(?:type\b.*)?(?:cpu)?time\b|Collective test starting:|nThread\s+\d+\s+nGpus\b)"
)


def streams_of(text: str) -> tuple[list[list[StreamLine]], list[StreamLine]]:
    """Lines by the tag before them, each stream in the order of the text.

    Parameters
    ----------
    text : as a launcher delivers it

    Returns
    -------
    streams with at least one line of nccl-tests, in the order of their first lines, and the lines of no stream; a line
    belongs to the stream with the longest tag that fits it
    """
    lines = [_COLOURS.sub("", line).expandtabs().rstrip() for line in text.splitlines()]
    tag_of = {}
    for number, line in enumerate(lines, start=1):
        match = ANCHOR.search(line)
        if match is not None and match.start() <= _LONGEST_TAG:
            tag_of[number] = line[: match.start()]
    patterns = _patterns(tag_of)
    found: dict[str, list[StreamLine]] = {pattern: [] for pattern in patterns}
    others: list[StreamLine] = []
    longest_first = [(re.compile(pattern), pattern) for pattern in sorted(patterns, key=len, reverse=True)]
    for number, line in enumerate(lines, start=1):
        for compiled, pattern in longest_first:
            match = compiled.match(line)
            if match is not None:
                rest = line[match.end() :]
                # a program that flushes half a row has the second half tagged as well
                whole = compiled.sub("  ", rest) if _BRACKET.search(pattern) else rest
                found[pattern].append(StreamLine(number=number, text=whole))
                break
        else:
            others.append(StreamLine(number=number, text=line))
    return [stream for stream in found.values() if stream], others


def _patterns(tag_of: dict[int, str]) -> list[str]:
    """Expressions of the tags, each once."""
    lines_of: dict[str, list[int]] = defaultdict(list)
    for number, tag in tag_of.items():
        lines_of[_pattern(tag)].append(number)
    of_shape: dict[str, list[str]] = defaultdict(list)
    for pattern in lines_of:
        of_shape[re.sub(r"\d+", r"\\d+", pattern)].append(pattern)
    found: list[str] = []
    for shape, patterns in of_shape.items():
        is_counter = len(patterns) >= _FEWEST_LINES and all(len(lines_of[pattern]) == 1 for pattern in patterns)
        found += [shape] if is_counter else patterns
    return list(dict.fromkeys(found))


def _pattern(tag: str) -> str:
    """An expression for the tag: its words as they are, any time for a time, any space for a space."""
    parts = []
    end = 0
    for match in _TIME.finditer(tag):
        parts += [_literal(tag[end : match.start()]), _ANY_TIME]
        end = match.end()
    return r"\s*" + "".join([*parts, _literal(tag[end:])]).removeprefix(r"\s*")


def _literal(text: str) -> str:
    return re.sub(r"(?:\\?\s)+", lambda _: r"\s*", re.escape(text))
