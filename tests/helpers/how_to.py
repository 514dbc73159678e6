"""A how-to page followed to the letter: its files are written, its commands and programs run, its claims looked for."""

from __future__ import annotations

import contextlib
import io
import shlex
from pathlib import Path

import page_blocks
import pytest
from page_blocks import Block

from weftwork.cli import main

DOCS = Path(__file__).parents[2] / "docs" / "howto"


def steps(page: str) -> list[Block]:
    """The blocks of a page in order."""
    return list(page_blocks.blocks((DOCS / page).read_text(encoding="utf-8")))


def follow(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Block]:
    """Follow a page in an empty folder; AssertionError where what it claims is not so."""
    monkeypatch.chdir(folder)
    done = steps(page)
    for step in done:
        if step.kind == "file":
            (folder / step.name).write_text(step.text + "\n", encoding="utf-8")
            continue
        text, code = _printed(step)
        assert code == int(step.options.get("code", "0")), f"{step.title}: exit code {code}\n{text}"
        assert page_blocks.lacking(step, text) == [], f"{step.title}\n{text}"
    return done


def _printed(step: Block) -> tuple[str, int]:
    code = 0
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(printed):
        if step.is_command:
            try:
                main(shlex.split(step.text))
            except SystemExit as leaving:
                code = leaving.code if isinstance(leaving.code, int) else 1
        else:
            exec(compile(step.text, "how-to", "exec"), {"__name__": "__main__"})  # noqa: S102 - our own page
    return printed.getvalue(), code
