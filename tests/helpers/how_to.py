"""A how-to page followed to the letter: its files are written, its commands and programs run, its claims looked for."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from weftwork.cli import main

DOCS = Path(__file__).parents[2] / "docs" / "howto"
_STEP = re.compile(r"^```\{(weftwork(?:-file|-python)?)\}(?: (.*?))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_OPTION = re.compile(r"^:([a-z]+):(?: (.*))?$")


@dataclass(frozen=True, kw_only=True)
class Step:
    """One block of a page: a file to write, a command line, or a program of Python."""

    kind: str
    argument: str
    options: dict[str, str]
    content: str


def steps(page: str) -> Iterator[Step]:
    """Yield the blocks of a page in order."""
    for kind, argument, body in _STEP.findall((DOCS / page).read_text(encoding="utf-8")):
        lines = body.splitlines()
        options: dict[str, str] = {}
        while lines and (found := _OPTION.match(lines[0])):
            options[found[1]] = found[2] or ""
            lines.pop(0)
        while lines and not lines[0].strip():
            lines.pop(0)
        yield Step(kind=kind, argument=argument.strip(), options=options, content="\n".join(lines))


def follow(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Step]:
    """Follow a page in an empty folder; AssertionError where what it claims is not so."""
    monkeypatch.chdir(folder)
    done = list(steps(page))
    for step in done:
        if step.kind == "weftwork-file":
            (folder / step.argument).write_text(step.content + "\n", encoding="utf-8")
            continue
        text, code = _printed(step)
        assert code == int(step.options.get("code", "0")), f"{step.argument}: exit code {code}\n{text}"
        told = " ".join(text.split())
        for wanted in step.options.get("expect", "").split(";"):
            assert " ".join(wanted.split()) in told, f"{step.argument}: lacks {wanted!r}\n{text}"
    return done


def _printed(step: Step) -> tuple[str, int]:
    code = 0
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(printed):
        if step.kind == "weftwork-python":
            exec(compile(step.content, "how-to", "exec"), {"__name__": "__main__"})  # noqa: S102 - our own page
        else:
            try:
                main(shlex.split(step.argument))
            except SystemExit as leaving:
                code = leaving.code if isinstance(leaving.code, int) else 1
    return printed.getvalue(), code
