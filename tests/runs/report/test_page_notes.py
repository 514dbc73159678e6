"""Notes of a page: flagged at the top where numbers are partial, folded at the end; no path of the machine."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from helpers.gallery import Gallery
from helpers.pages import Page, leaf_spine, plain

from weftwork.report.page import run_page
from weftwork.store.runs import open_run
from weftwork.study.record.run import run_scenario


def test_events_that_were_not_kept_are_flagged_at_the_top_and_told_at_the_end(gallery: Gallery, tmp_path: Path) -> None:
    run = gallery("short-incast")
    gallery.copy(run, tmp_path / "copy")
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
    (folder / "own_window.py").write_text(
        (Path(__file__).parents[3] / "examples" / "my_cc.py").read_text(encoding="utf-8"), encoding="utf-8"
    )
    file = folder / "tiny.yaml"
    text = leaf_spine("traffic: {pattern: incast, senders: 3, size: 64KB}")
    file.write_text(text.replace("fixed-window", str(folder / "own_window.py")), encoding="utf-8")
    run = run_scenario(file, out=folder / "my-run")
    html = run_page(run)
    assert str(tmp_path) not in html
    assert "own_window.py" in html
    assert "<dt>run</dt><dd>my-run</dd>" in html
