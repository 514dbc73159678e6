"""Victims on the page: of PFC, of a straggler, and of another job; by how much, with links to their charts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers.gallery import Gallery
from helpers.pages import Page, plain
from helpers.shown import rows, section

from weftwork.report.page import run_page
from weftwork.report.page_victims import flow_victims
from weftwork.report.words import amount

TRAINING = """schema: 3
fabric: {topology: rail-optimized, gpus: 32, node: dgx-h100, switch: tomahawk-5}
training: {model: llama-3-8b, tensor: 4, pipeline: 2, global_batch: 24}
"""


def leads(html: str) -> list[str]:
    """Where the links of the victims lead."""
    part = html[html.index('<section id="victims"') :]
    return re.findall(r'href="#([^"]+)"', part[: part.index("</section>")])


def test_a_flow_that_pfc_held_back_is_a_victim_with_its_full_port(gallery: Gallery) -> None:
    run = gallery("victim")
    assert run.answer is not None
    assert run.answer.culprit.of == "the flow host10->host2, a victim of the pauses"
    html = run_page(run)
    (row,) = rows(section(html, "victims"), "victim")
    (flow,) = run.query("select * from flows where destination = 'host2'").to_pylist()
    assert row["victim"] == "host10 \u2192 host2"
    assert plain(row["took"]) == amount(flow["fct_ps"], "ps")
    assert plain(row["alone"]) == amount(flow["ideal_fct_ps"], "ps")
    assert plain(row["lost to others"]) == amount(1 - flow["ideal_fct_ps"] / flow["fct_ps"], "share")
    assert row["full port"] == "leaf0->host0"
    assert run.answer.culprit.name == "host0-leaf0"
    (paused,) = (one["paused_ps"] for one in run.links.to_pylist() if one["name"] == row["paused at"])
    assert plain(row["for"]) == amount(paused, "ps")
    assert f"was full, so that leaf0 paused {row['paused at']}" in run.answer.culprit.text
    assert set(leads(html)) <= set(Page(html).ids)
    assert len(leads(html)) == 2


def test_the_answer_and_the_page_read_one_table(gallery: Gallery, tmp_path: Path) -> None:
    run = gallery.copy(gallery("victim"), tmp_path / "run")
    (victim,) = run.victims.to_pylist()
    names = dict(zip(run.links["port"].to_pylist(), run.links["link"].to_pylist(), strict=True))
    (flow,) = run.query("select f.* from flows f join victims using (flow)").to_pylist()
    assert (flow["source"], flow["destination"]) == ("host10", "host2")
    assert names[victim["root_port"]] == run.answer.culprit.name == "host0-leaf0"
    assert 0.5 <= victim["lost_share"] <= 1 - flow["ideal_fct_ps"] / flow["fct_ps"]
    assert victim["is_root_paused"] == 0
    # a folder of an earlier version has no such table, and its page no victims
    (run.path / "victims.parquet").unlink()
    assert "victims" not in Page(run_page(run)).ids


def test_without_pauses_there_is_no_victim(gallery: Gallery) -> None:
    run = gallery("victim", overrides={"transport.flow_control": "none"})
    assert run.value("pauses") == 0
    assert flow_victims(run) == []


def test_ranks_that_waited_for_a_slow_gpu_are_its_victims(gallery: Gallery) -> None:
    run = gallery("straggler")
    html = run_page(run)
    part = section(html, "victims")
    assert "GPU 3 computes 1.5 times as long as the others. The cost is" in plain(part.text)
    wanted = run.query("""
        select stage, rank, sum(case when kind = 'skew' then end_ps - start_ps else 0 end)::bigint as skew,
            sum(case when kind = 'bubble' then end_ps - start_ps else 0 end)::bigint as bubble
        from segments where gpu != 3 group by all
    """).to_pylist()
    whole = run.table("jobs")["iteration_ps"][0].as_py()
    found = {row["row of the pipeline"]: row for row in rows(part, "row of the pipeline")}
    worth = [one for one in wanted if one["skew"] + one["bubble"] >= 0.005 * whole]
    assert len(found) == len(worth) > 1
    for one in worth:
        row = found[f"stage {one['stage']}, rank {one['rank']}"]
        for name, ps in (("waited for other ranks", one["skew"]), ("waited in the bubble", one["bubble"])):
            assert plain(row[name]) == f"{amount(ps, 'ps')} ({amount(ps / whole, 'share')})"
    assert set(leads(html)) <= set(Page(html).ids)
    assert len(leads(html)) == len(worth)


def test_jobs_that_others_slow_down_are_victims(gallery: Gallery) -> None:
    run = gallery("two-jobs")
    html = run_page(run)
    found = rows(section(html, "victims"), "job")
    alone = run.query("select job, iteration_ps from what_if where change = 'alone'").to_pylist()
    took = run.query("select job, iteration_ps from jobs").to_pylist()
    shared = {one["job"]: one["iteration_ps"] for one in took}
    slower = {one["job"]: shared[one["job"]] - one["iteration_ps"] for one in alone}
    assert max(slower.values()) > 0
    for row in found:
        lost = slower[row["job"]]
        assert plain(row["lost"]) == f"{amount(lost, 'ps')} ({amount(lost / shared[row['job']], 'share')})"
        assert row["shares the fabric with"] == ("right" if row["job"] == "left" else "left")
    assert {row["job"] for row in found} == {job for job, lost in slower.items() if lost >= 0.005 * shared[job]}


@pytest.mark.parametrize("rest", ["", "name: healthy\n"])
def test_a_healthy_job_has_no_victims(gallery: Gallery, rest: str) -> None:
    html = run_page(gallery.run(TRAINING + rest))
    assert "victims" not in Page(html).ids
