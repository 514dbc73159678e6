"""Outputs of commands and tables of rows on the pages: written, or held to what Weftwork prints now.

::

    python docs/outputs.py --write [PAGE...]    runs the commands of pages, and writes outputs, pictures and tables
    python docs/outputs.py --check [PAGE...]    the same, but compares; exit code 1 and the differences where one is old
    python docs/outputs.py --list [PAGE...]     the pages with their commands

Without PAGE it takes all pages. A second ``--write`` changes nothing. ``--rows`` leaves the commands out, which takes
seconds; `tests/runs/test_docs_tables.py` checks as much. The form of a block is described in `_ext/page_blocks.py`.
Leaves out: notebooks and HTML pages in frames, which the build of the site makes.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from page_blocks import PageError, blocks, filled, row_kinds
from page_rows import rows
from page_runs import DOCS, PageRun, name_of, picture_folder, run_blocks, run_pages

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["main", "pages", "with_rows"]


def pages() -> list[Path]:
    """All pages that have blocks or rows."""
    listed = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
    texts = {path: path.read_text(encoding="utf-8") for path in listed}
    return [path for path, text in texts.items() if row_kinds(text) or any(_blocks(path))]


def _blocks(page: Path) -> list[str]:
    """The titles of the blocks of a page; one that breaks the form counts as a block."""
    try:
        return [block.title for block in blocks(page.read_text(encoding="utf-8"))]
    except PageError as error:
        return [str(error)]


def with_rows(page: Path, text: str) -> str:
    """The text of a page with the rows of now."""
    return filled(text, lambda kind: rows(kind, page))


def _with_rows(run: PageRun) -> PageRun:
    after = with_rows(run.page, run.after)
    if after == run.after:
        return run
    lines = difflib.unified_diff(run.after.splitlines(), after.splitlines(), "committed", "now", lineterm="")
    text = "\n".join([f"{name_of(run.page)}: its tables are not those of the program", *lines])
    return replace(run, after=after, differences=[*run.differences, text])


def _everything(page: Path) -> PageRun:
    """Commands and rows of a page."""
    return _with_rows(run_blocks(page))


def _rows_alone(page: Path) -> PageRun:
    text = page.read_text(encoding="utf-8")
    return _with_rows(PageRun(page=page, before=text, after=text))


def _write(run: PageRun) -> None:
    if run.after != run.before:
        run.page.write_text(run.after, encoding="utf-8")
    for file, text in run.pictures.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def _remove_unused(listed: Sequence[PageRun]) -> None:
    """Remove committed pictures that no command of their page draws any more; the pages have no mistakes."""
    for run in listed:
        for file in set(picture_folder(run.page).glob("*.svg")) - run.pictures.keys():
            file.unlink()


def _summary(listed: Sequence[PageRun], *, is_check: bool) -> int:
    """Say what is wrong, with its remedy; the exit code."""
    seconds = sum(run.seconds for run in listed)
    old = sorted({run.page for run in listed if run.differences})
    wrong = [text for run in listed for text in run.mistakes]
    for text in [*wrong, *(text for run in listed for text in run.differences if is_check)]:
        print(f"\n{text}")
    print(f"\n{len(listed)} pages, {seconds:.0f} s of CPU; {len(wrong)} mistakes; ", end="")
    if not is_check:
        print(f"{len(old)} pages changed" + (f": {_names(old)}" if old else ""))
        return 1 if wrong else 0
    print(
        f"{len(old)} pages are old" + (f"; to mend them: python docs/outputs.py --write {_names(old)}" if old else "")
    )
    return 1 if wrong or old else 0


def _names(listed: Iterable[Path]) -> str:
    return " ".join(map(name_of, listed))


def main(words: Sequence[str] | None = None) -> int:
    """Do what the command line asks for; gives the exit code."""
    parser = argparse.ArgumentParser(prog="docs/outputs.py", description=__doc__.partition("\n")[0])
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--write", action="store_true", help="write outputs, pictures and tables into the pages")
    task.add_argument("--check", action="store_true", help="compare them; exit code 1 if one is old or a claim fails")
    task.add_argument("--list", action="store_true", help="print the pages with their commands")
    parser.add_argument("--rows", action="store_true", help="tables of rows alone, without running a command")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="pages that run at once")
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE", help="files of docs; by default all pages")
    asked = parser.parse_args(words)
    listed = [path.resolve() for path in asked.pages] or pages()
    if missing := [str(path) for path in asked.pages if not path.is_file()]:
        parser.error(f"there is no page {', '.join(missing)}")
    if asked.jobs < 1:
        parser.error(f"--jobs is {asked.jobs}, wanted 1 or more")
    if asked.list:
        for page in listed:
            print("\n    ".join([name_of(page), *(title for title in _blocks(page))]))
        return 0
    runs = []
    for run in run_pages(listed, asked.jobs, _rows_alone if asked.rows else _everything):
        print(f"{name_of(run.page)}  {run.seconds:.1f} s", flush=True)
        runs.append(run)
        if asked.write and not run.is_broken:
            _write(run)
    runs.sort(key=lambda run: run.page)
    if asked.write and not asked.rows:
        _remove_unused([run for run in runs if not run.mistakes])
    return _summary(runs, is_check=asked.check)


if __name__ == "__main__":
    sys.exit(main())
