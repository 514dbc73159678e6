"""What a suspect cost, as people read it: who made a run faster cost nothing."""

from __future__ import annotations

from helpers.gallery import Gallery
from helpers.shown import section

from weftwork.report.page import run_page

UNEVEN = """schema: 3
fabric: {topology: rail-optimized, gpus: 64, node: dgx-h100, switch: tomahawk-5}
training: {model: llama-3-8b, tensor: 8, pipeline: 2, global_batch: 64, recompute: none}
stragglers: [{gpu: 12, factor: 1.25}]
transport: {load_balancing: switch-spray, reorder_tolerant: true}
engine: {fidelity: flow}
"""


def test_the_page_lists_who_made_a_run_faster_as_nothing_and_the_answer_keeps_what_was_found(gallery: Gallery) -> None:
    run = gallery.run(UNEVEN, what_if="all")
    assert run.answer is not None
    (stage,) = (
        one for one in run.answer.others if one.kind == "stage"
    )  # even stages would wait for the slow GPU of the other one
    assert stage.cost_s is not None
    assert stage.cost_share is not None
    assert max(stage.cost_s, stage.cost_share) < 0
    rows = [[cell.text for cell in row.all("td")] for row in section(run_page(run), "answer").all("tr")]
    assert ["stage 1", "nothing", "0 %", stage.text] in rows
