"""Blocks of a page: commands and programs with their outputs, files, and tables of the program's rows.

A page is plain Markdown, which reads the same in a checkout, on a code host and on the site. What a machine has to know
stands in comments before the blocks::

    <!-- run
    expect: took 133 us; Nothing was lost.
    lines: 10
    -->
    ```console
    $ weftwork run examples/permutation.yaml -o runs/ecmp
    Permutation among 64 hosts ...
    ```

A block begins with ``<!-- run -->`` (a command of Weftwork as ``console``, or a program as ``python``, whose output
follows ``<!-- output -->``), ``<!-- file -->`` (a file of the page; its name stands in backticks before it) or
``<!-- copy -->`` (a file of the repository; its name is a link). ``<!-- rows: KIND -->`` and ``<!-- end rows -->``
enclose tables. This module reads blocks and writes them. It runs nothing and needs the standard library alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = [
    "MEASURED",
    "WIDTH",
    "Block",
    "PageError",
    "blocks",
    "claims",
    "filled",
    "is_same",
    "lacking",
    "rewritten",
    "row_kinds",
    "trimmed",
]

WIDTH: Final = 80  # chosen: columns of a block beside the navigation on a small laptop
OPTIONS: Final[dict[str, frozenset[str]]] = {  # of each kind of block
    "run": frozenset({"expect", "lines", "code", "quiet", "measured", "picture", "page"}),
    "file": frozenset(),
    "copy": frozenset(),
}
_BEGIN: Final = re.compile(r"^<!-- (run|file|copy)( -->)?$")
_OPTION: Final = re.compile(r"^([a-z]+):(?: (.*))?$")
_FENCE: Final = re.compile(r"^(`{3,})([^`]*)$")
_NAME: Final = re.compile(r"^(?:`([^`]+)`|\[`([^`]+)`\]\(([^)]+)\)):$")
_OUTPUT: Final = "<!-- output -->"
_PICTURE: Final = re.compile(r"^!\[(.*)\]\((\S+)\)$")
_FRAME: Final = "*The site shows the page `{}` here.*"
MEASURED: Final = "*Numbers of this output depend on the machine and the moment.*"
_NUMBER: Final = re.compile(  # with its unit, since programs choose units by size; hexadecimal ones too
    r"0x[0-9a-f]+|\d[\d.,]*(?: (?:[numpk]?s|[kMGT]?b/s|[kMGT]?i?B)\b)?"
)
_ROWS: Final = re.compile(r"^<!-- rows: (\S+) -->\n(.*?)^<!-- end rows -->$", re.MULTILINE | re.DOTALL)
_BREAK: Final = re.compile(r" (?=--?[a-z])")
_SHELL: Final = "$ weftwork "
_LESS: Final = "..."  # after the first lines of a longer output


class PageError(Exception):
    """A page breaks the form of a block; the text says the line and the remedy."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(f"line {line + 1}: {text}")


@dataclass(frozen=True, kw_only=True)
class Block:
    """A block of a page, from its comment to the last line that its run has written.

    Attributes
    ----------
    kind : `run`, `file` or `copy`
    language : of the fence: `console`, `python`, `yaml` and others
    text : the command line without `weftwork`, the program, or the content of the file
    name : of the file, below the page's folder; empty for a run
    address : of the file of the repository, as the page links to it; empty but for `copy`
    options : of the comment
    output : what the page shows of the output; empty where it shows none
    picture : alternative text and address of the committed picture, or None
    start, end : lines of the page, from 0, the end excluded
    """

    kind: str
    language: str
    text: str
    name: str = ""
    address: str = ""
    options: dict[str, str]
    output: str = ""
    picture: tuple[str, str] | None = None
    start: int
    end: int

    @property
    def is_command(self) -> bool:
        """Whether it is a command line of Weftwork."""
        return self.kind == "run" and self.language == "console"

    @property
    def command(self) -> str:
        """The command as one types it, an option to a line where it is long."""
        if len(self.text) <= WIDTH:
            return _SHELL + self.text
        return _SHELL + _BREAK.sub(" \\\n    ", self.text)

    @property
    def title(self) -> str:
        """What messages call the block."""
        if self.is_command:
            return f"weftwork {self.text}"
        first = self.text.partition("\n")[0]
        return f"the file {self.name}" if self.name else f"the program '{first} ...'"

    def markdown(self) -> str:
        """The block as lines of the page."""
        options = "".join(f"\n{key}: {value}".rstrip() for key, value in self.options.items())
        head = f"<!-- {self.kind}{options}\n-->" if options else f"<!-- {self.kind} -->"
        if self.name:
            shown = f"`{self.name}`"
            head += f"\n[{shown}]({self.address}):\n" if self.address else f"\n{shown}:\n"
        text = self.text
        if self.is_command:
            text = f"{self.command}\n{self.output}" if self.output else self.command
        parts = [f"{head}\n{_fenced(text, self.language)}"]
        if self.output and not self.is_command:
            parts.append(f"{_OUTPUT}\n{_fenced(self.output, 'text')}")
        if "measured" in self.options:
            parts.append(MEASURED)
        if self.picture is not None:
            parts.append("![{}]({})".format(*self.picture))
        if "page" in self.options:
            parts.append(_FRAME.format(self.options["page"]))
        return "\n\n".join(parts)


def _fenced(text: str, language: str) -> str:
    longest = max((len(run) for run in re.findall(r"^`{3,}", text, re.MULTILINE)), default=2)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{text}\n{ticks}" if text else f"{ticks}{language}\n{ticks}"


# Reading


class _Lines:
    """A page, read from its beginning."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.at = 0

    def wrong(self, text: str, at: int | None = None) -> PageError:
        return PageError(self.at if at is None else at, text)

    def next_line(self) -> str:
        """The next line that is not blank, which becomes the current one; empty at the end of the page."""
        while self.at < len(self.lines) and not self.lines[self.at].strip():
            self.at += 1
        return self.lines[self.at] if self.at < len(self.lines) else ""

    def fence(self) -> tuple[str, str]:
        """Language and content of the fence that begins at the next line; the line after it becomes the current one."""
        match = _FENCE.match(self.next_line())
        if match is None:
            raise self.wrong("wanted a fenced block (```) after the comment of a block")
        start = self.at
        try:
            end = self.lines.index(match[1], start + 1)
        except ValueError:
            raise self.wrong("this fence has no end") from None
        self.at = end + 1
        return match[2], "\n".join(self.lines[start + 1 : end])

    def part(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The next line, taken where it has the pattern; else nothing is taken, blank lines included."""
        before = self.at
        match = pattern.match(self.next_line())
        self.at = before if match is None else self.at + 1
        return match


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a page in order.

    Raises
    ------
    PageError : a block breaks the form, or a comment begins like one of a block and is none
    """
    page = _Lines(text)
    while page.at < len(page.lines):
        line = page.lines[page.at]
        if (begin := _BEGIN.match(line)) is not None:
            yield _block(page, begin)
        elif re.match(r"<!-- *(run|file|copy|output)\b", line):
            raise page.wrong(
                "a comment of a block is '<!-- run -->', or '<!-- run' with a line for each option and '-->'"
            )
        elif (fence := _FENCE.match(line)) is not None:
            _plain(page, fence)
        else:
            page.at += 1


def _plain(page: _Lines, fence: re.Match[str]) -> None:
    """Pass a fence that no comment asks to run."""
    start = page.at
    _, content = page.fence()
    if fence[2] == "console" and content.startswith(_SHELL):
        raise page.wrong(
            "wanted '<!-- run -->' on the line before this block; a command that is not run is ```sh", start
        )


def _block(page: _Lines, begin: re.Match[str]) -> Block:
    start, kind = page.at, begin[1]
    options = {} if begin[2] else _options(page, kind)
    page.at += 1
    name = address = ""
    if kind != "run":
        match = _NAME.match(page.next_line())
        if match is None or bool(match[3]) != (kind == "copy"):
            wanted = "`NAME`:" if kind == "file" else "[`NAME`](ADDRESS):"
            raise page.wrong(f"wanted the name of the file by itself on a line, as {wanted}")
        name, address = match[1] or match[2], match[3] or ""
        page.at += 1
    fence = page.at
    language, text = page.fence()
    output, picture = "", None
    if kind == "run" and language == "console":
        text, output = _command(page, fence, text)
    elif kind == "run" and language == "python":
        if page.part(_exactly(_OUTPUT)) is not None:
            output = page.fence()[1]
    elif kind == "run":
        raise page.wrong(f"'<!-- run' stands before a block of console or python, not of '{language}'", start)
    if "measured" in options:
        page.part(_exactly(MEASURED))
    if "picture" in options and (match := page.part(_PICTURE)) is not None:
        picture = (match[1], match[2])
    if "page" in options:
        page.part(_exactly(_FRAME.format(options["page"])))
    return Block(
        kind=kind, language=language, text=text, name=name, address=address, options=options, output=output,
        picture=picture, start=start, end=page.at,
    )  # fmt: skip


def _exactly(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text) + "$")


def _options(page: _Lines, kind: str) -> dict[str, str]:
    """The lines of a comment, whose last line becomes the current one."""
    options: dict[str, str] = {}
    while True:
        page.at += 1
        line = page.lines[page.at] if page.at < len(page.lines) else ""
        if line == "-->":
            return options
        match = _OPTION.match(line)
        if match is None or match[1] not in OPTIONS[kind]:
            names = ", ".join(sorted(OPTIONS[kind])) or "no options"
            raise page.wrong(f"wanted 'OPTION: VALUE' or '-->' by itself; '{kind}' takes {names}")
        options[match[1]] = match[2] or ""


def _command(page: _Lines, fence: int, text: str) -> tuple[str, str]:
    """The command line of a console block and what stands below it."""
    lines = text.splitlines()
    if not lines or not lines[0].startswith(_SHELL):
        raise page.wrong(f"wanted a console block that begins with '{_SHELL}'", fence)
    words = [lines.pop(0).removeprefix(_SHELL)]
    while words[-1].endswith("\\") and lines:
        words[-1] = words[-1].removesuffix("\\").strip()
        words.append(lines.pop(0).strip())
    return " ".join(words), "\n".join(lines)


# What a page shows, and what it claims


def trimmed(output: str, options: dict[str, str]) -> str:
    """What a page shows of an output: nothing if it is to be `quiet`, and at most `lines` lines."""
    lines = output.rstrip().splitlines()
    if "lines" in options and len(lines) > (most := int(options["lines"])):
        lines = [*lines[:most], _LESS]
    return "" if "quiet" in options else "\n".join(lines)


def claims(options: dict[str, str]) -> list[str]:
    """What the prose around a block claims of its output: `expect`, divided at semicolons."""
    return [" ".join(part.split()) for part in options.get("expect", "").split(";") if part.strip()]


def lacking(block: Block, output: str) -> list[str]:
    """The claims that an output does not hold."""
    words = " ".join(output.split())
    return [claim for claim in claims(block.options) if claim not in words]


def is_same(block: Block, output: str) -> bool:
    """Whether an output is that of the page; `measured` numbers may differ, and so the columns and lines they order."""
    if "measured" not in block.options:
        return output == block.output
    first, second = (
        sorted(re.sub(r" +|-{3,}", " ", _NUMBER.sub("#", line)) for line in text.splitlines())
        for text in (block.output, output)
    )
    return first == second


def rewritten(text: str, changes: Iterable[Block]) -> str:
    """A page with some of its blocks changed."""
    lines = text.splitlines()
    for block in sorted(changes, key=lambda block: block.start, reverse=True):
        lines[block.start : block.end] = block.markdown().splitlines()
    return "\n".join(lines) + "\n"


# Rows


def row_kinds(text: str) -> list[str]:
    """The kinds of rows that a page has, in order."""
    return [match[1] for match in _ROWS.finditer(text)]


def filled(text: str, rows: Callable[[str], Iterable[str]]) -> str:
    """A page with the rows of each kind between their comments.

    Parameters
    ----------
    text : the page
    rows : the lines of a kind; KeyError where there is no such kind

    Raises
    ------
    PageError : there is no such kind
    """

    def region(match: re.Match[str]) -> str:
        try:
            lines = "\n".join(rows(match[1])).strip("\n")
        except KeyError as error:
            raise PageError(text.count("\n", 0, match.start()), error.args[0]) from error
        return f"<!-- rows: {match[1]} -->\n\n{lines}\n\n<!-- end rows -->"

    return _ROWS.sub(region, text)
