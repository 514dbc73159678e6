"""Pages of topologies: each name has one, with its picture, its end and its cost, and the index names it."""

from __future__ import annotations

import re
from pathlib import Path

import page_blocks
import pytest

from weftwork.spec.scenario.choices import TOPOLOGIES
from weftwork.topology.tree_topology import TreeTopology

FOLDER = Path(__file__).parents[3] / "docs" / "topologies"
INDEX = (FOLDER / "index.md").read_text(encoding="utf-8")


def test_there_are_no_other_pages() -> None:
    assert {path.stem for path in FOLDER.glob("*.md")} == {*TOPOLOGIES.names, "index"}


@pytest.mark.parametrize("name", TOPOLOGIES.names)
def test_a_name_has_a_page_with_picture_end_and_cost(name: str) -> None:
    page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    assert f"`{name}`" in page.splitlines()[0]
    assert f"topology: {name}" in page
    commands = {block.text: block for block in page_blocks.blocks(page) if block.is_command}
    assert commands[f"topology {name}.yaml --picture {name}.svg"].options["picture"] == f"{name}.svg"
    for command in ("topology \\S+ --limits", "cost \\S+"):
        assert any(re.fullmatch(command, text) for text in commands)
    is_tree = isinstance(TOPOLOGIES.load(name), TreeTopology)
    assert not is_tree or re.search(r"^expect: .*PGFT\(", page, re.MULTILINE)
    for heading in ("## Left out", "## Validation"):
        assert heading in page
    assert f"[{name}]({name}.md)" in INDEX
    assert not is_tree or f'"{name}":' in INDEX


@pytest.mark.parametrize("name", TOPOLOGIES.names)
def test_the_tests_that_a_page_names_exist(name: str) -> None:
    page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tests/\S+\.py)`", page))
    assert named
    for path in named:
        assert (FOLDER.parents[1] / path).is_file()
