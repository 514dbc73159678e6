"""Running the blocks of pages, each page in a folder and a process of its own.

The folder has a copy of ``examples``; commands and programs of a page run in it in order, and find what earlier ones
wrote. Runs depend on scenario and seed alone, and pages name their run folders. What a machine adds is taken out of the
output: wall times ("packet-hops in 1.2 s"), the page's folder in paths, blanks at the ends of lines, and the command
line of this process, which a program of a page may print as its own. Runs "2 at a time" become "N at a time".
Leaves out: programs other than Weftwork and Python, which a page shows as plain text (```sh).
"""

from __future__ import annotations

import contextlib
import difflib
import io
import math
import multiprocessing
import os
import re
import resource
import shlex
import shutil
import tempfile
import time
import traceback
from collections import deque
from dataclasses import dataclass, field, replace
from html import unescape
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from page_blocks import Block, PageError, blocks, is_same, lacking, rewritten, trimmed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

__all__ = ["DOCS", "ROOT", "PageRun", "name_of", "picture_folder", "run_blocks", "run_pages"]

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
_WALL: Final = re.compile(  # of a run, and of `weftwork plan`
    r"(?<=packet-hops) in [0-9.,]+ m?s\b|(?<=run on the flow engine) \([0-9.,]+ s and [0-9.,]+ s\)"
)
_CORES: Final = re.compile(r"(?<=runs, )(?:one|\d+)(?= at a time)")  # of a sweep or a search, by cores and memory
_COMMAND: Final = 20  # chosen: letters that tell the command line of this process, which may be shown cut
_LABEL: Final = re.compile(r'<svg\b[^>]* aria-label="([^"]*)"|<title>([^<]*)</title>')


@dataclass(frozen=True, kw_only=True)
class PageRun:
    """What the blocks of a page gave.

    Attributes
    ----------
    page : the file
    before, after : its text as committed, and with the outputs of this run
    pictures : content of each picture, by its file
    differences : of each block whose committed output is not the one of this run
    mistakes : sentences: a command with another exit code, a claim that the output lacks
    seconds : time of the processor
    is_broken : the page could not be run; a mistake says why
    """

    page: Path
    before: str
    after: str
    pictures: dict[Path, str] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    is_broken: bool = False


def name_of(page: Path) -> str:
    """Name of a page in messages: its path below the repository, or the whole path elsewhere."""
    return page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else str(page)


# One page


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A new folder with the examples as the current one; removed in the end."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="weftwork-docs-") as name:
        folder = Path(name).resolve()
        shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)


def _printed(arguments: Sequence[str]) -> tuple[str, int]:
    """What a command prints, errors included, and its exit code."""
    from weftwork.cli import main

    code = 0
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(printed):
        try:
            main(list(arguments))
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 1
    return printed.getvalue(), code


def _program(block: Block, page: Path) -> tuple[str, int]:
    """What a program prints, and 1 where it raises."""
    code = 0
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            exec(compile(block.text, page.name, "exec"), {"__name__": "__main__"})  # noqa: S102 - of this repository
        except Exception:  # noqa: BLE001 - a program of a page may raise anything, and the page is reported with it
            printed.write(traceback.format_exc())
            code = 1
    return printed.getvalue(), code


def _masked(text: str, folder: Path) -> str:
    """An output without what the machine adds to it."""
    command = Path("/proc/self/cmdline").read_bytes().decode().replace("\0", " ")
    text = re.sub(re.escape(command[:_COMMAND]) + ".*", "python program.py", text)
    text = _CORES.sub("N", _WALL.sub("", text.replace(f"{folder}/", "")))
    return "\n".join(line.rstrip() for line in text.splitlines())


def run_blocks(page: Path, done: Callable[[Block, Path], None] | None = None, *, last: int | None = None) -> PageRun:
    """Run the blocks of a page, in a new folder.

    Parameters
    ----------
    page : file of Markdown
    done : is called after each block with the block and the folder, while the folder exists
    last : number of the last block that runs, from 0; by default all run

    Raises
    ------
    PageError : a block breaks the form
    """
    before = page.read_text(encoding="utf-8")
    listed = list(blocks(before))
    listed = listed if last is None else listed[: last + 1]
    changes, differences, mistakes, pictures = [], [], [], {}
    begin = time.process_time()
    with _folder() as folder:
        for block in listed:
            where = f"{name_of(page)}:{block.start + 1}: {block.title}"
            result, wrong = _run(block, page, folder)
            mistakes += [f"{where}\n{text}" for text in wrong]
            if "picture" in block.options:
                drawn = folder / block.options["picture"]
                if drawn.is_file():
                    file = picture_folder(page) / drawn.name
                    pictures[file] = drawn.read_text(encoding="utf-8")
                    address = os.path.relpath(file, page.parent)
                    result = replace(result, picture=(_label(pictures[file]) or drawn.stem, address))
                else:
                    mistakes.append(f"{where}\nwrote no picture {block.options['picture']}")
            changes.append(result)
            committed, now = before.splitlines()[block.start : block.end], result.markdown().splitlines()
            if committed != now:
                lines = difflib.unified_diff(committed, now, "committed", "now", lineterm="")
                differences.append("\n".join([f"{where}: its output is not the committed one", *lines]))
            if done is not None:
                done(block, folder)
    for file, text in pictures.items():
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            differences.append(f"{name_of(page)}: the picture {name_of(file)} is not the committed one")
    if not mistakes and last is None:
        unused = sorted(set(picture_folder(page).glob("*.svg")) - pictures.keys())
        differences += [f"{name_of(page)}: no command draws the picture {name_of(file)}" for file in unused]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return PageRun(
        page=page, before=before, after=rewritten(before, changes), pictures=pictures,
        differences=differences, mistakes=mistakes,
        seconds=time.process_time() - begin + used.ru_utime + used.ru_stime,
    )  # fmt: skip


def _run(block: Block, page: Path, folder: Path) -> tuple[Block, list[str]]:
    """A block with its output of now, and what is wrong with it; a wrong output is told and not taken."""
    if block.kind == "file":
        path = folder / block.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text + "\n", encoding="utf-8")
        return block, []
    if block.kind == "copy":
        path = folder / block.name
        if not path.is_file():
            return block, [f"there is no file {block.name} in the folder of the page"]
        return replace(block, text=path.read_text(encoding="utf-8").rstrip()), []
    text, code = _printed(shlex.split(block.text)) if block.is_command else _program(block, page)
    text = _masked(text, folder)
    wrong = [f"the output lacks {claim!r}, which 'expect' claims:\n{text}" for claim in lacking(block, text)]
    if code != int(block.options.get("code", "0")):
        wrong.append(f"ended with exit code {code}; if that is right, write 'code: {code}' in its comment:\n{text}")
    output = trimmed(text, block.options)
    return (block if wrong or is_same(block, output) else replace(block, output=output)), wrong


def picture_folder(page: Path) -> Path:
    """Where the repository has the pictures that commands of a page draw."""
    if not page.is_relative_to(DOCS):
        return page.parent / "outputs" / page.stem
    return DOCS / "outputs" / page.relative_to(DOCS).with_suffix("")


def _label(svg: str) -> str:
    """What a picture says to those who do not see it, as text between brackets."""
    match = _LABEL.search(svg)
    text = unescape(match[1] or match[2]) if match else ""
    return re.sub(r"\s+", " ", text).replace("[", "(").replace("]", ")")


# Many pages


def _child(page: Path, work: Callable[[Path], PageRun], answer: Connection) -> None:
    from weftwork.cli import progress

    # a slow machine adds no line to an output
    progress.FIRST_LINE_S = progress.FIRST_ANSWER_S = math.inf  # type: ignore[misc]
    os.environ["COLUMNS"] = "80"  # chosen: whoever reads; no output depends on the terminal that starts this
    try:
        answer.send(work(page))
    except PageError as error:
        answer.send(PageRun(page=page, before="", after="", mistakes=[f"{name_of(page)}: {error}"], is_broken=True))


def run_pages(pages: Sequence[Path], jobs: int, work: Callable[[Path], PageRun] = run_blocks) -> Iterator[PageRun]:
    """Yield the runs of pages as they end.

    Parameters
    ----------
    pages : files of Markdown
    jobs : pages that run at once, each in a process that is started for it, so that no page sees what another did
    work : what a process does with its page
    """
    import weftwork.cli  # noqa: F401 - read once here, and not in each of the processes

    context = multiprocessing.get_context("fork")
    waiting = deque(pages)
    running: dict[Connection, tuple[Path, BaseProcess]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            page = waiting.popleft()
            answer, end = context.Pipe(duplex=False)
            process: BaseProcess = context.Process(target=_child, args=(page, work, end))
            process.start()
            end.close()
            running[answer] = (page, process)
        for answer in cast("list[Connection]", wait(list(running))):
            page, process = running.pop(answer)
            try:
                run = answer.recv()
            except EOFError:
                process.join()
                text = f"{name_of(page)}: the process that ran it ended with exit code {process.exitcode}"
                run = PageRun(page=page, before="", after="", mistakes=[text], is_broken=True)
            process.join()
            yield run
