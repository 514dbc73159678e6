"""Pages for developers name what is there: each path, each test, and each text of the picture of the map."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs/dev").glob("*.md"))]
# Code of a page, in the line or in a block of commands.
_CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
# What begins with a folder or a file of the repository, up to a space or another end.
_PATH = re.compile(
    r"(?<![\w/.-])((?:src|tests|docs|native|benchmarks|examples|changes\.d|\.ci)/[\w./*{},\[\]-]*[\w*}\]])"
)
_TEST = re.compile(r"\b(tests/[\w/]+\.py)((?:::\w+)+)")
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([\w-]+))?\)")
_MADE = ("docs/_build", ".ci/base")  # by a command or by who checks; in no commit, or not in each
_CHOSEN = ("NAME", "FILE", "FOLDER", "test_x.py")  # a name that the reader chooses


def code_of(page: Path) -> str:
    return "\n".join(_CODE.findall(page.read_text(encoding="utf-8")))


def missing_paths(code: str) -> list[str]:
    """Paths that are not in the repository; a pattern has to fit a file."""
    names = {name for name in _PATH.findall(code) if not any(word in name for word in _CHOSEN)}
    return sorted(name for name in names if not name.startswith(_MADE) and not any(ROOT.glob(name)))


def missing_tests(code: str) -> list[str]:
    """Tests that the named file does not define."""
    lost = []
    for file, names in _TEST.findall(code):
        if any(file.endswith(word) for word in _CHOSEN):
            continue
        text = (ROOT / file).read_text(encoding="utf-8") if (ROOT / file).is_file() else ""
        lost += [
            f"{file}::{name}" for name in names.split("::")[1:] if not re.search(rf"\b(?:def|class) {name}\b", text)
        ]
    return sorted(set(lost))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_of_a_page_exists(page: Path) -> None:
    assert missing_paths(code_of(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_of_a_page_exists(page: Path) -> None:
    assert missing_tests(code_of(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page: Path) -> None:
    links = _LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not leads(page, *link)] == []


def leads(page: Path, file: str, anchor: str) -> bool:
    """Whether a link of a page leads somewhere; headings have the anchors of code hosts and of the site."""
    target = page.parent / file if file else page
    if not target.is_file():
        return False
    headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
    return not anchor or anchor in {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}


def test_what_is_not_there_is_noticed() -> None:
    assert missing_paths("`src/weftwork/spec/none.py` and `native/none*.cpp`, `tests/unit`") == [
        "native/none*.cpp",
        "src/weftwork/spec/none.py",
    ]
    assert missing_tests("`tests/unit/test_dev_pages.py::test_none`") == ["tests/unit/test_dev_pages.py::test_none"]
    assert not leads(PAGES[0], "docs/dev/none.md", "")
    assert not leads(PAGES[0], "docs/dev/index.md", "none")
    assert missing_tests("`tests/unit/test_dev_pages.py::test_what_is_not_there_is_noticed`") == []


def test_every_page_is_in_the_navigation() -> None:
    text = (ROOT / "docs/dev/index.md").read_text(encoding="utf-8")
    listed = text.partition("{toctree}")[2].partition("-->")[0].split()
    assert {page.stem for page in PAGES[1:]} - {"index"} == {name for name in listed if not name.startswith(":")}
    assert "\ndev/index\n" in (ROOT / "docs/index.md").read_text(encoding="utf-8")


def test_the_picture_of_the_map_is_that_of_its_script_and_its_texts_are_in_the_files() -> None:
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        from map_picture import ROAD, drawing
    finally:
        sys.path.remove(str(ROOT / "docs"))
    assert drawing() == (ROOT / "docs/dev/map.svg").read_text(encoding="utf-8"), "python docs/map_picture.py"
    places = [place for station in ROAD for place in station.places if place.file]
    assert places
    lost = [p.file for p in places if p.text not in (ROOT / p.file).read_text(encoding="utf-8")]
    assert lost == []


def test_contributing_is_one_page() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()) <= 60  # chosen: a screen or two
