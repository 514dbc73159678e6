"""Pages hold what the program says: tables are its rows, blocks have the form that runs, pictures belong to commands.

`python docs/outputs.py --check` runs the commands besides; this runs none.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import page_blocks
import page_rows
import pytest
from page_blocks import Block, PageError

ROOT = Path(__file__).parents[2]


DOCS = ROOT / "docs"


COMMAND = "<!-- run\nexpect: rocev2\n-->\n```console\n$ weftwork list transport\n```\n"


def outputs(*words: str) -> tuple[str, int]:
    done = subprocess.run(
        [sys.executable, str(DOCS / "outputs.py"), *words], capture_output=True, text=True, check=False,
        env={**os.environ, "COLUMNS": "40"},
    )  # fmt: skip
    return done.stdout + done.stderr, done.returncode


def test_an_output_is_written_once_and_then_held(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# A page\n\n{COMMAND}\n<!-- rows: transport -->\n<!-- end rows -->\n", encoding="utf-8")
    said, code = outputs("--write", str(page))
    assert (code, "1 pages changed" in said) == (0, True), said
    written = page.read_text(encoding="utf-8")
    assert "\n$ weftwork list transport\n" in written
    assert "| `rocev2` |" in written
    assert outputs("--write", str(page))[1] == 0
    assert page.read_text(encoding="utf-8") == written
    assert outputs("--check", str(page))[1] == 0
    page.write_text(written.replace("RoCE", "ROCE"), encoding="utf-8")
    said, code = outputs("--check", str(page))
    assert code == 1
    assert f"{page}:3: weftwork list transport: its output is not the committed one\n--- committed\n+++ now\n" in said
    assert f"python docs/outputs.py --write {page}" in said


def test_a_claim_that_fails_and_a_command_that_fails_are_both_told(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    wrong = COMMAND.replace("rocev2", "token-ring") + "\n<!-- run -->\n```python\nraise ValueError(7)\n```\n"
    page.write_text(f"# A page\n\n{wrong}", encoding="utf-8")
    said, code = outputs("--check", str(page))
    assert code == 1
    assert f"{page}:3: weftwork list transport\nthe output lacks 'token-ring', which 'expect' claims" in said
    assert f"{page}:10: the program 'raise ValueError(7) ...'\nended with exit code 1" in said
    assert "ValueError: 7" in said


def test_the_list_has_pages_with_their_commands() -> None:
    said, code = outputs("--list", str(DOCS / "howto" / "own-policy.md"))
    assert code == 0
    assert said.splitlines()[:2] == ["docs/howto/own-policy.md", "    weftwork new congestion-control my_cc"]


def test_a_page_that_is_not_there_is_refused() -> None:
    said, code = outputs("--check", "nothing.md")
    assert (code, "there is no page nothing.md" in said) == (2, True)


PAGES = {
    path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(DOCS.rglob("*.md"))
    if "_build" not in path.parts
}


@pytest.mark.parametrize("name", [name for name, text in PAGES.items() if page_blocks.row_kinds(text)])
def test_tables_are_the_rows_of_the_program(name: str) -> None:
    now = page_blocks.filled(PAGES[name], lambda kind: page_rows.rows(kind, DOCS / name))
    assert PAGES[name] == now, f"python docs/outputs.py --write --rows docs/{name}"


def test_blocks_are_written_as_the_script_writes_them() -> None:
    for name, text in PAGES.items():
        listed = list(page_blocks.blocks(text))
        assert page_blocks.rewritten(text, listed) == text, f"python docs/outputs.py --write docs/{name}"


def test_a_copied_file_is_that_of_the_repository() -> None:
    for name, text in PAGES.items():
        for block in page_blocks.blocks(text):
            if block.kind == "copy":
                content = (ROOT / block.name).read_text(encoding="utf-8").rstrip()
                assert block.text == content, f"python docs/outputs.py --write docs/{name}"
                assert (DOCS / name).parent.joinpath(block.address).resolve() == ROOT / block.name


def test_a_claim_is_in_the_output_of_the_page() -> None:
    for name, text in PAGES.items():
        for block in page_blocks.blocks(text):
            if not {"lines", "quiet"} & block.options.keys():
                wanted = f"{name}: {block.title}: python docs/outputs.py --write docs/{name}"
                assert page_blocks.lacking(block, block.output) == [], wanted


def test_a_picture_in_the_folder_of_outputs_is_drawn_by_a_command_of_its_page() -> None:
    drawn = {
        (DOCS / name).parent.joinpath(block.picture[1]).resolve()
        for name, text in PAGES.items()
        for block in page_blocks.blocks(text)
        if block.picture is not None
    }
    assert set((DOCS / "outputs").rglob("*.*")) == drawn, "python docs/outputs.py --write"


def test_what_a_code_host_shows_as_text_is_in_a_comment() -> None:
    """Directives show as code and targets as text there; the cells of notebooks are code."""
    shown = ("```{", ":::", "(target)=")
    lines = [
        f"{name}: {line}"
        for name, text in PAGES.items()
        for line in text.splitlines()
        if line.startswith(shown[:2]) or (line.startswith("(") and line.endswith(")="))
    ]
    assert [line for line in lines if "```{code-cell}" not in line] == []


def test_rows_of_an_unknown_kind_are_refused_with_all_kinds() -> None:
    with pytest.raises(PageError, match=r"line 3: no rows 'swich', wanted switch, nic"):
        page_blocks.filled("# A\n\n<!-- rows: swich -->\n<!-- end rows -->\n", lambda kind: page_rows.rows(kind, DOCS))


def test_a_block_is_read_as_it_was_written() -> None:
    run = Block(
        kind="run", language="python", text="print('```')", options={"lines": "2", "measured": "", "picture": "a.svg"},
        output="```", picture=("A picture", "outputs/a/a.svg"), start=0, end=0,
    )  # fmt: skip
    page = f"# A page\n\n{run.markdown()}\n\n![not of the block](b.svg)\n"
    (block,) = page_blocks.blocks(page)
    assert (block.text, block.output, block.picture, block.options) == (run.text, run.output, run.picture, run.options)
    assert page_blocks.rewritten(page, [block]) == page


def test_a_long_command_is_read_back() -> None:
    text = (
        "topology examples/fabrics/two_leaves.json --set fabric.radix=64 --set 'fabric.hosts=4096' -o runs/a-long-name"
    )
    run = Block(kind="run", language="console", text=text, options={}, output="x \\\ny", start=0, end=0)
    (block,) = page_blocks.blocks(run.markdown())
    assert (block.text, block.output) == (text, "x \\\ny")
    assert max(map(len, run.markdown().splitlines())) <= page_blocks.WIDTH


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("```console\n$ weftwork list nic\n```", "line 1: wanted '<!-- run -->' on the line before"),
        ("<!-- run -->\ntext", "line 2: wanted a fenced block"),
        ("<!-- run -->\n```sh\nls\n```", "line 1: '<!-- run' stands before a block of console or python, not of 'sh'"),
        ("<!-- run -->\n```console\nls\n```", "line 2: wanted a console block that begins with '$ weftwork '"),
        ("<!-- run\nexpects: a\n-->", "line 2: wanted 'OPTION: VALUE' or '-->' by itself; 'run' takes code, expect"),
        ("<!-- run expect: a -->", "line 1: a comment of a block is"),
        ("<!-- file -->\n```yaml\na: 1\n```", "line 2: wanted the name of the file by itself on a line"),
        ("<!-- run -->\n```python\nprint(1)", "line 2: this fence has no end"),
    ],
)
def test_a_block_that_breaks_the_form_is_refused_with_its_line(page: str, text: str) -> None:
    with pytest.raises(PageError) as told:
        list(page_blocks.blocks(page))
    assert str(told.value).startswith(text)


def test_measured_numbers_may_differ_and_words_may_not() -> None:
    block = Block(
        kind="run", language="console", text="", options={"measured": ""}, output="took 3.2 us  of 0x1f", start=0, end=0
    )
    assert page_blocks.is_same(block, "took 11 ms of 0xab")
    assert not page_blocks.is_same(block, "lost 3.2 us  of 0x1f")
