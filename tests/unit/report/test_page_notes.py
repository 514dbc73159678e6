"""Notes of a page: flagged at the top where numbers are partial, folded at the end; no path of the machine."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.pages import Page, plain, simulated
from hypothesis import given
from hypothesis import strategies as st

from weftwork.report.page import run_page
from weftwork.report.page_elements import Tile, tiles
from weftwork.report.page_notes import without_folders
from weftwork.store.runs import open_run
from weftwork.study.run.run import run_scenario

INCAST = "traffic: {pattern: incast, senders: 3, size: 64KB}"
OWN = '''"""A window that never moves."""

from weftwork.policies.congestion_control.fixed_window import PLUGIN

__all__ = ["PLUGIN"]
'''


def test_events_that_were_not_kept_are_flagged_at_the_top_and_told_at_the_end(tmp_path: Path) -> None:
    run = simulated(tmp_path, INCAST)
    shutil.copytree(run.path, tmp_path / "copy")
    table = run.table("events")
    row = dict.fromkeys(table.column_names) | {"event": "left out", "detail": "", "place": "all", "count": 1234}
    more = pa.Table.from_pylist([*table.to_pylist(), row], table.schema)
    pq.write_table(more, tmp_path / "copy" / "events.parquet")
    text = plain(Page(run_page(open_run(tmp_path / "copy"))).text)
    assert text.count("1,234 events came after the last event that was kept") == 2
    assert text.index("Partial: 1,234 events") < text.index("How long it took")
    assert text.rindex("1,234 events") > text.index("Where this comes from")
    assert "Partial" not in Page(run_page(run)).text


def test_a_page_has_no_absolute_path_and_the_name_of_the_run(tmp_path: Path) -> None:
    folder = tmp_path / "somewhere"
    folder.mkdir()
    simulated(folder, INCAST)
    (folder / "own_window.py").write_text(
        (Path(__file__).parents[3] / "examples" / "my_cc.py").read_text(encoding="utf-8"), encoding="utf-8"
    )
    file = folder / "tiny.yaml"
    text = file.read_text(encoding="utf-8").replace("fixed-window", str(folder / "own_window.py"))
    file.write_text(text, encoding="utf-8")
    run = run_scenario(file, out=folder / "my-run")
    html = run_page(run)
    assert str(tmp_path) not in html
    assert "own_window.py" in html
    assert "<dt>run</dt><dd>my-run</dd>" in html


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
