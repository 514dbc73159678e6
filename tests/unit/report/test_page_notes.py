"""Notes of a page: flagged at the top where numbers are partial, folded at the end; no path of the machine."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.report.page_elements import Tile, tiles
from weftwork.report.page_notes import without_folders

OWN = '''"""A window that never moves."""

from weftwork.policies.congestion_control.fixed_window import PLUGIN

__all__ = ["PLUGIN"]
'''


@settings(max_examples=8)
@given(st.lists(st.from_regex(r"[a-z][\w.-]{0,8}", fullmatch=True), min_size=2, max_size=6))
def test_folders_of_absolute_paths_are_left_out(parts: list[str]) -> None:
    path = "/" + "/".join(parts)
    assert without_folders(f"key: {path}\n") == f"key: {parts[-1]}\n"
    assert without_folders(f"key: '{path}'") == f"key: '{parts[-1]}'"


@pytest.mark.parametrize("text", ["0.5 b/s", "examples/my_cc.py", "https://example.org/a/b", "and/or", "1 / 2 / 3"])
def test_what_is_no_absolute_path_stays(text: str) -> None:
    assert without_folders(text) == text


@pytest.mark.parametrize("count", range(1, 20))
def test_no_tile_is_alone_in_a_row(count: int) -> None:
    html = tiles([Tile(name=f"number {place}", value=str(place)) for place in range(count)])
    if count == 1:
        assert 'class="tile"' not in html
        assert "Number 0: 0" in html
        return
    columns = [int(html.partition(f"--{name}:")[2].partition(";")[0].partition('"')[0]) for name in ("wide", "middle")]
    assert all(count <= each or count % each != 1 for each in columns)
    assert ('class="tiles odd"' in html) == (count % 2 == 1)  # on a phone, three of them share the last row
