"""Which rank stands for which: on the page of a training run, row by row."""

from __future__ import annotations

import pytest
from helpers.gallery import Gallery
from helpers.pages import plain
from helpers.shown import rows, section

from weftwork.report.page import run_page
from weftwork.store.runs import Run

TRAINING = """schema: 3
name: ranks
fabric: {topology: rail-optimized, gpus: 32, node: dgx-h100, switch: tomahawk-5}
training: {model: llama-3-8b, tensor: 4, pipeline: 2, global_batch: 24%s}
%s"""


def trained(gallery: Gallery, plan: str = "", rest: str = "") -> Run:
    run: Run = gallery.run(TRAINING % (plan, rest))
    return run


def table_of(run: Run) -> list[dict[str, str]]:
    return rows(section(run_page(run), "pipeline"), "row")


@pytest.mark.parametrize(
    ("order", "first", "second"),
    [
        ("tp-cp-dp-pp", "ranks 0\u201315", "ranks 16\u201331"),
        (
            "tp-cp-pp-dp",
            "ranks 0\u20133, 8\u201311, 16\u201319, 24\u201327",
            "ranks 4\u20137, 12\u201315, 20\u201323, 28\u201331",
        ),
    ],
)  # fmt: skip
def test_a_stage_of_equal_ranks_is_told_by_its_ranks(gallery: Gallery, order: str, first: str, second: str) -> None:
    run = trained(gallery, f", order: {order}")
    wanted = [(0, 0, first), (1, 16 if order == "tp-cp-dp-pp" else 4, second)]
    found = table_of(run)
    shown = run.query("select distinct stage, rank, ranks from segments order by stage, rank").to_pylist()
    if [one["ranks"] for one in shown] != [16, 16]:
        pytest.fail(f"the ranks of a stage were expected to be alike: {shown}")
    for row, (stage, rank, stands_for) in zip(found, wanted, strict=True):
        assert row == {
            "row": f"stage {stage}",
            "shows": f"rank {rank} (server {rank // 8}, GPU {rank % 8})",
            "stands for": stands_for,
        }


def test_a_straggler_stands_for_itself_and_has_its_factor(gallery: Gallery) -> None:
    run = trained(gallery, rest="stragglers: [{gpu: 19, factor: 1.25}, {gpu: 3, factor: 1.01}]\n")
    found = {row["shows"]: row for row in table_of(run)}
    assert found["rank 19 (server 2, GPU 3)"]["stands for"] == "only itself"
    assert any(row["stands for"].endswith(" of the 16 ranks 0\u201315") for row in found.values())
    text = plain(section(run_page(run), "pipeline").text)
    assert "rank 19 (\u00d71.25)" in text
    assert "rank 3 (\u00d71.01)" in text
    assert "marks a straggler: it computes so many times as long" in text
    assert "No row shows" not in text


def test_a_training_page_cites_the_flow_engines_page_by_its_title(gallery: Gallery) -> None:
    html = run_page(gallery("training"))
    assert "The flow engine: its rules" in html
    assert "packet engine" not in html
    assert "docs/models" not in html
