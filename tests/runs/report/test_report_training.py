"""The report of training jobs: sums that add up, numbers that come back as they were packed, and what a page says."""

from __future__ import annotations

import json
import re
import shutil
from base64 import b64decode
from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from helpers.gallery import Gallery
from helpers.pages import Page, plain, simulated
from helpers.training_run import MS, Plan, segments_of, table, training_run
from rich.console import Console

from weftwork.base.caveat import Caveat
from weftwork.cli import main
from weftwork.report.answer import answer, print_answer
from weftwork.report.figures.gantt import packed
from weftwork.report.network_flows import network_flows
from weftwork.report.page import run_page
from weftwork.report.pipeline import KINDS, is_training, read_pipeline, time_by_kind
from weftwork.report.words import amount
from weftwork.spec.scenario.reliability import Reliability
from weftwork.spec.time_kinds import COMMUNICATION
from weftwork.store.runs import Run, open_run
from weftwork.study.record.run import run_scenario
from weftwork.workload.reliability import goodput

ROUTING = Caveat(subject="pretrain.iteration_ps", kind="approximate", text="5 % at most.")


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return training_run(tmp_path_factory.mktemp("one") / "run")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Run:
    plans = (Plan(), Plan(job="fine-tuning", stages=2, slow={1: 1.5}))
    return training_run(tmp_path_factory.mktemp("two") / "run", *plans, caveats=[ROUTING])


def test_the_time_of_an_average_gpu_adds_up_to_the_iteration(two: Run) -> None:
    for job in two.table("jobs").to_pylist():
        spent = time_by_kind(two, job["job"])
        assert sum(spent.values()) == pytest.approx(job["iteration_ps"])
        assert sum(spent.get(kind, 0) for kind in COMMUNICATION) == pytest.approx(job["exposed_ps"], rel=1e-6)
        assert list(spent) == [kind for kind in KINDS if kind in spent]


def unpacked(data: bytes, rows: int) -> list[tuple[int, list[list[int]], list[tuple[int, int]]]]:
    """What `gantt.js` reads: where a row begins, its blocks, and its pieces as length and kind."""
    place = 0

    def number() -> int:
        nonlocal place
        value, weight = 0, 1
        while True:
            value += (data[place] & 127) * weight
            weight *= 128
            place += 1
            if data[place - 1] < 128:
                return value

    found = []
    for _ in range(rows):
        begin, blocks, pieces = number(), number(), number()
        found.append((begin, [[number() for _ in range(4)] for _ in range(blocks)],
                      [divmod(number(), 32) for _ in range(pieces)]))  # fmt: skip
    assert place == len(data)
    return found


def test_a_chart_comes_back_as_it_was_packed(one: Run) -> None:
    found = read_pipeline(one)
    assert found is not None
    assert not found.is_merged
    segments = segments_of(Plan())
    step_ps = (found.end_ps - found.start_ps) / 2.0**27
    for row, (begin, blocks, pieces) in zip(found.rows, unpacked(packed(found), 4), strict=True):
        mine = [segment for segment in segments if segment[0] == row.stage]
        ends = (begin + np.cumsum([length for length, _ in pieces])) * step_ps
        assert ends == pytest.approx([segment[5] for segment in mine], abs=step_ps)
        assert [KINDS[kind] for _, kind in pieces] == [
            segment[2] if segment[3] == "compute" else segment[3] for segment in mine
        ]
        assert sum(block[3] for block in blocks) == len(pieces)
        assert {block[0] - 1 for block in blocks} == {-1, *range(8)}


def test_pieces_that_are_too_many_are_merged_by_kind_and_keep_their_sums(one: Run) -> None:
    whole, merged = read_pipeline(one), read_pipeline(one, most_pieces=10)
    assert whole is not None
    assert merged is not None
    assert merged.is_merged
    for fine, coarse in zip(whole.rows, merged.rows, strict=True):
        assert len(coarse.pieces) < len(fine.pieces)
        assert coarse.pieces["start_ps"][0] == fine.pieces["start_ps"][0]
        assert (coarse.pieces["start_ps"][1:] == coarse.pieces["end_ps"][:-1]).all()
        for kind in range(len(KINDS)):
            sums = [int((row.pieces["end_ps"] - row.pieces["start_ps"])[row.pieces["kind"] == kind].sum())
                    for row in (fine, coarse)]  # fmt: skip
            assert sums[0] == sums[1]


def test_gaps_are_drawn_as_nothing(tmp_path: Path, one: Run) -> None:
    import pyarrow.compute as pc

    shutil.copytree(one.path, tmp_path / "gaps")
    segments = one.table("segments")
    left = segments.filter(pc.field("kind") != "tensor")
    pq.write_table(left, tmp_path / "gaps" / "segments.parquet")
    found = read_pipeline(open_run(tmp_path / "gaps"))
    assert found is not None
    rows = unpacked(packed(found), 4)
    step_ps = (found.end_ps - found.start_ps) / 2.0**27
    lost = sum(end - start for stage, *_, kind, start, end in segments_of(Plan()) if stage == 0 and kind == "tensor")
    # the last piece of all is no tensor communication, so that every gap has something behind it
    assert sum(length for length, kind in rows[0][2] if kind == 31) * step_ps == pytest.approx(lost, rel=1e-6)


def test_the_answer_tells_where_the_time_goes(one: Run) -> None:
    said = answer(one)
    assert said[0].startswith("Took 828 ms an iteration: 633,198 tokens/s, 2,473 for each GPU, MFU 41 %.")
    assert said[-1].startswith("The busiest link is leaf0->spine0 and ")
    assert said[-1].endswith(" like it, in use 62 % of the time.")
    out = StringIO()
    print_answer(one, Console(width=200, file=out))
    lines = [" ".join(line.split()) for line in out.getvalue().splitlines()]
    assert any(line.startswith("tensor, exposed 96 ms") for line in lines)
    assert any(line.startswith("data, exposed 15 ms") for line in lines)
    assert any(line.startswith("pipeline, exposed 6.75 ms") for line in lines)
    assert any(line.endswith("infinite network 710 ms -14.2 %") for line in lines)
    assert any(line.endswith("no bubble >= 676 ms -18.3 %") for line in lines)


def test_several_jobs_have_a_column_each_and_approximations_are_said(two: Run) -> None:
    said = answer(two)
    out = StringIO()
    print_answer(two, Console(width=200, file=out))
    assert "time goes to pretrain fine-tuning what it would be with pretrain fine-tuning" in " ".join(
        out.getvalue().split()
    )
    assert said[-1] == "Approximate: pretrain.iteration_ps: 5 % at most."
    text = plain(Page(run_page(two)).text)
    assert "The jobs side by side" in text
    assert text.index("pretrain stage 3") < text.index("fine-tuning stage 0")


def test_a_page_of_training_has_its_sections_and_loads_nothing(one: Run) -> None:
    html = run_page(one)
    page = Page(html)
    assert [
        name for name in page.ids if name not in {"theme", "tip"} and not name.endswith("-h") and name[:4] != "row-"
    ] == [
        "answer", "pipeline", "time", "traffic", "fabric", "provenance",
    ]  # fmt: skip
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in page.links)
    text = plain(page.text)
    assert "tensor parallel, exposed 96 ms 11.6 %" in text
    assert "data reduce-scatter" in re.sub(r"\s*(?=reduce)", " ", text)
    (data,) = re.findall(r'<script type="text/plain">([^<]*)</script>', html)
    found = read_pipeline(one)
    assert found is not None
    assert b64decode(data) == packed(found)


def test_a_job_that_finished_no_iteration_says_so(tmp_path: Path, one: Run) -> None:
    import pyarrow as pa

    shutil.copytree(one.path, tmp_path / "cut")
    jobs = one.table("jobs").to_pylist()
    for name in ("iteration_ps", "tokens_per_s", "tokens_per_s_per_gpu", "mfu", "exposed_share", "bubble_share"):
        jobs[0][name] = None
    pq.write_table(pa.Table.from_pylist(jobs, one.table("jobs").schema), tmp_path / "cut" / "jobs.parquet")
    provenance = json.loads((one.path / "provenance.json").read_text(encoding="utf-8"))
    provenance["status"] = "interrupted"
    (tmp_path / "cut" / "provenance.json").write_text(json.dumps(provenance), encoding="utf-8")
    summary = json.loads((one.path / "summary.json").read_text(encoding="utf-8"))
    summary["numbers"] = {name: {**number, "value": None} for name, number in summary["numbers"].items()}
    summary["numbers"]["simulated_ps"] = {"value": 5 * MS, "unit": "ps", "text": ""}
    (tmp_path / "cut" / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    run = open_run(tmp_path / "cut")
    told = answer(run)
    assert told[0] == "Took PARTIAL: interrupted at 5 ms of simulated time; what follows is what was done until then."
    assert "No iteration was finished." in told
    assert "No iteration was finished." in plain(Page(run_page(run)).text)


def test_a_comparison_shows_both_and_says_which_is_faster(
    tmp_path: Path, one: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = training_run(tmp_path / "slow", Plan(slow={2: 1.2}))
    for command in ("compare", "report"):
        with pytest.raises(SystemExit):
            main(
                [command, str(one.path), str(slow.path), *(("-o", str(tmp_path / "page.html")) * (command == "report"))]
            )
    printed = capsys.readouterr().out
    assert "(904 ms against 828 ms)" in printed
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert html.count('class="gantt"') == 2
    assert html.count('class="falls"') == 2
    assert html.count('class="stack"') == 2
    assert len(Page(html).ids) == len(set(Page(html).ids))


def test_a_run_without_training_has_none_of_it(gallery: Gallery, one: Run) -> None:
    assert is_training(one)
    assert not is_training(simulated(gallery, "traffic: {pattern: incast, senders: 3, size: 4KB}"))


def test_a_fabric_of_which_only_the_busiest_links_were_kept_is_not_drawn(tmp_path: Path, one: Run) -> None:

    shutil.copytree(one.path, tmp_path / "some")
    pq.write_table(one.links.take([2, 3, 16]), tmp_path / "some" / "links.parquet")
    text = plain(Page(run_page(open_run(tmp_path / "some"))).text)
    assert "kept only the 3 busiest directions of its links" in text


def test_the_goodput_of_weeks_is_told_where_it_was_asked(tmp_path: Path, one: Run) -> None:
    shutil.copytree(one.path, tmp_path / "weeks")
    found = goodput(Reliability(spares=2), gpus=16_384, iteration_s=6.0)
    summary = json.loads((one.path / "summary.json").read_text(encoding="utf-8"))
    summary["numbers"] |= {
        name: {"value": number.value, "unit": number.unit, "text": number.text}
        for name, number in found.quantities(1e6).items()
    }
    (tmp_path / "weeks" / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    run = open_run(tmp_path / "weeks")
    (said,) = [text for text in answer(run) if text.startswith("Over weeks")]
    assert "a failure interrupts training every 3.09 h; with a checkpoint every 5.5 min of training" in said
    assert f"{amount(found.share, 'share')} of the time is useful" in said
    assert "waiting for a spare server" in said
    page = Page(run_page(run))
    assert "goodput" in page.ids
    assert said in plain(page.text)
    assert not [text for text in answer(one) if "weeks" in text]


def activities(run: Run, folder: Path, rows: list[tuple[int, int, int, int, int]]) -> Run:
    """The run with other activities: flows, instances, bytes, begin and end."""

    shutil.copytree(run.path, folder)
    found = [
        {"job": "pretrain", "kind": "data", "operation": "all-reduce", "ranks": 8, "flows": flows,
         "instances": instances, "size_bytes": size, "posted_ps": start, "start_ps": start, "end_ps": end}
        for flows, instances, size, start, end in rows
    ]  # fmt: skip
    pq.write_table(table("activities", found), folder / "activities.parquet")
    return open_run(folder)


def test_equal_flows_have_the_entropy_of_their_number(tmp_path: Path, one: Run) -> None:
    # eight flows all the time, and eight alike in the second half; inside servers there are none
    rows = [(8, 1, 100, 0, 100), (4, 2, 50, 50, 100), (0, 8, 10**9, 0, 100)]
    run = activities(one, tmp_path / "run", rows)
    found = network_flows(run, np.array([0, 50, 100, 150]))
    assert found is not None
    assert found.flows.tolist() == [8, 16, 0]
    assert found.entropy.tolist() == pytest.approx([3, 4, 0])
    assert found.mean_flows == pytest.approx(12)
    assert found.mean_entropy == pytest.approx((3 * 400 + 4 * 800) / 1200)
    assert found.mean_size_bytes == pytest.approx((800 * 100 + 400 * 50) / 1200)


def test_unequal_flows_have_less_entropy_and_gaps_none(tmp_path: Path, one: Run) -> None:
    run = activities(one, tmp_path / "run", [(1, 1, 300, 0, 100), (1, 1, 100, 0, 100), (2, 1, 7, 300, 400)])
    found = network_flows(run, np.array([0, 100, 200, 400]))
    assert found is not None
    assert found.entropy.tolist() == pytest.approx([-0.75 * np.log2(0.75) - 0.25 * np.log2(0.25), 0, 1])
    assert found.flows.tolist() == [2, 0, 1]
    assert found.mean_flows == pytest.approx(2)


def test_operations_of_one_size_stand_in_the_order_of_their_names(tmp_path: Path, one: Run) -> None:

    shutil.copytree(one.path, tmp_path / "run")
    names = ["reduce-scatter", "broadcast", "send", "all-gather", "all-to-all", "reduce", "all-reduce"]
    found = [
        {"job": "pretrain", "kind": "data", "operation": name, "ranks": 8, "flows": 8, "instances": 1,
         "size_bytes": 10**6, "posted_ps": 0, "start_ps": 0, "end_ps": 100}
        for name in names
    ]  # fmt: skip
    pq.write_table(table("activities", found), tmp_path / "run" / "activities.parquet")
    cells = re.findall(r'<td class="text">([a-z-]+)</td>', run_page(open_run(tmp_path / "run")))
    assert [cell for cell in cells if cell in names] == sorted(names)


def test_a_job_inside_one_server_crosses_no_network(tmp_path: Path, one: Run) -> None:
    run = activities(one, tmp_path / "run", [(0, 8, 100, 0, 100)])
    assert network_flows(run, np.array([0, 1])) is None
    assert "Nothing crossed the network." in plain(Page(run_page(run)).text)


def test_a_run_that_was_stopped_says_so_and_has_a_page(tmp_path: Path) -> None:
    example = Path(__file__).parents[3] / "examples" / "quickstart.yaml"
    run = run_scenario(example, out=tmp_path / "run", overrides={"engine.until": "300ms"})
    said = answer(run)
    assert said[0].startswith("Took PARTIAL: stopped at engine.until, 300 ms of simulated time")
    assert "No iteration was finished." in said
    assert 'class="gantt"' in run_page(run)
