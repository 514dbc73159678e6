"""The page of a run and of two: whole, self-contained, with every section, and honest about what a run lacks."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from helpers.gallery import Gallery
from helpers.pages import Page, leaf_spine, plain, simulated

from weftwork.cli import main
from weftwork.cli.report import report
from weftwork.report.page import run_page
from weftwork.report.words import amount
from weftwork.store.runs import Run, open_run

INCAST = "traffic: {pattern: incast, senders: 7, size: 256KB}"
SECTIONS = ["answer", "times", "links", "queues", "slow", "fabric", "provenance"]


@pytest.fixture(scope="module")
def incast(gallery: Gallery) -> Run:
    run: Run = gallery("incast")
    return run


def test_a_page_has_every_section_and_loads_nothing(incast: Run) -> None:
    html = run_page(incast)
    page = Page(html)
    assert [one for one in page.ids if one in SECTIONS] == SECTIONS
    assert len(page.ids) == len(set(page.ids))
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in page.links)
    assert "http://" not in html
    assert "https://" not in html
    assert "@import" not in html


def test_the_answer_comes_first_and_names_the_bottleneck(incast: Run) -> None:
    text = plain(Page(run_page(incast)).text)
    assert "Incast 7:1 of 256 KB" in text
    assert f"took{amount(incast.value('completion_ps'), 'ps')}: 1.79 MB of payload" in text  # 7 x 256 kB
    assert incast.answer is not None
    used = amount(incast.answer.limited_by.share, "share")
    assert f"limited byleaf0->host0, in use {used} of the time" in text
    assert f"The bottleneck was leaf0->host0 (leaf \u2192 host): it was in use {used} of the time" in text
    assert text.index("limited by") < text.index("Completion time of flows") < text.index("The bottleneck")


def test_every_direction_of_the_fabric_has_its_chart_and_heat_map(incast: Run) -> None:
    html = run_page(incast)
    for name in ("host \u2192 leaf", "leaf \u2192 spine", "spine \u2192 leaf", "leaf \u2192 host"):
        assert f"<figcaption>{name} <small>" in html
        assert f'aria-label="Heat map of {name}: ' in html


def test_text_of_the_user_is_escaped(gallery: Gallery) -> None:
    text = leaf_spine(INCAST).replace("name: tiny", "name: <script>alert(1)</script>")
    html = run_page(gallery.run(text, name="evil"))
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_the_reference_engine_says_that_it_records_nothing_over_time(gallery: Gallery) -> None:
    run = simulated(gallery, INCAST + "\nengine: {fidelity: reference}")
    assert "The reference engine records nothing over time" in Page(run_page(run)).text


def test_a_run_that_did_not_end_says_so_at_once(gallery: Gallery) -> None:
    text = plain(Page(run_page(simulated(gallery, INCAST + "\nengine: {until: 30us}"))).text)
    assert "PARTIAL: stopped at engine.until" in text
    assert "not done after" in text


def test_a_fault_stands_in_the_charts_and_its_drops_in_the_words(gallery: Gallery) -> None:
    run = gallery("link-down")
    text = Page(run_page(run)).text
    assert "leaf0-spine1 down" in text
    lost = int(run.value("drops") or 0)
    assert lost > 0
    assert f"(link down {lost:,})" in plain(text)


def test_a_collective_has_a_row_for_every_time_with_its_bandwidths(gallery: Gallery) -> None:
    text = plain(Page(run_page(gallery("all-reduce"))).text)
    assert all(f"all-reduce {number}" in text for number in (1, 2, 3))
    assert "bus bandwidth" in text


def test_several_seeds_have_one_page_with_a_curve_for_each(gallery: Gallery) -> None:
    page = Page(run_page(gallery("incast", seeds=2)))
    assert "seeds" in page.ids
    assert "seed 1" in page.text
    assert "seed 2" in page.text


def test_the_command_writes_beside_the_run_and_says_where(
    incast: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(incast.path, folder)
    report([folder], out=None, is_opened=False, as_json=True)
    told = json.loads(capsys.readouterr().out)
    file = Path(told["page"])
    assert file == tmp_path / "run.html"
    assert told["size_bytes"] == file.stat().st_size
    assert sorted(path.name for path in folder.iterdir()) == sorted(path.name for path in incast.path.iterdir())
    report([folder], out=tmp_path / "here.html", is_opened=False, as_json=False)
    assert capsys.readouterr().out.startswith(f"page: {tmp_path / 'here.html'} (")


def test_two_runs_are_compared_on_one_page(gallery: Gallery, incast: Run, tmp_path: Path) -> None:
    other = simulated(gallery, "traffic: {pattern: incast, senders: 7, size: 128KB}", name="smaller")
    report([incast.path, other.path], out=tmp_path / "both.html", is_opened=False, as_json=True)
    html = (tmp_path / "both.html").read_text(encoding="utf-8")
    page = Page(html)
    assert [one for one in page.ids if one in {"answer", "times", "links", "numbers", "provenance"}] == [
        "answer", "times", "links", "numbers", "provenance"
    ]  # fmt: skip
    text = plain(page.text)
    assert "smaller takes" in text
    assert "less time than incast" in text
    assert "What differs in the scenario: name is incast in incast and smaller in smaller; traffic.size is" in text
    assert "Mean utilisation, leaf \u2192 host" in text
    assert "Longest queue, leaf \u2192 host" in text


def test_a_damaged_run_is_told_without_a_page(incast: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    shutil.copytree(incast.path, folder)
    (folder / "timeline.parquet").write_bytes(b"PAR1")
    with pytest.raises(SystemExit) as ended:
        main(["report", str(folder)])
    assert ended.value.code == 2
    assert "timeline.parquet" in capsys.readouterr().err
    assert not (tmp_path / "run.html").exists()


@pytest.mark.parametrize("name", ["page.pdf", "page.png", "page", "page.html.gz"])
def test_a_file_of_a_kind_that_nobody_writes_is_refused(
    incast: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["report", str(incast.path), "-o", str(tmp_path / name)])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "wanted .html (a page) or .json (a trace for Perfetto); did you mean" in said
    assert "page" in said
    assert not (tmp_path / name).exists()
    with pytest.raises(SystemExit):
        main(["report", str(incast.path), "-o", str(tmp_path / "PAGE.HTML")])
    assert (tmp_path / "PAGE.HTML").is_file()


def test_a_page_that_cannot_be_written_is_the_users_mistake(
    incast: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["report", str(incast.path), "-o", str(tmp_path / "nowhere" / "page.html")])
    assert ended.value.code == 2
    assert "--out" in capsys.readouterr().err


def test_figures_without_proof_are_counted_first_and_folded_at_the_end(incast: Run, tmp_path: Path) -> None:
    shutil.copytree(incast.path, tmp_path / "run")
    file = tmp_path / "run" / "provenance.json"
    known = json.loads(file.read_text(encoding="utf-8"))
    known["caveats"] = [
        {"subject": "nic.a_ps", "kind": "unverified", "text": "1us (a chosen talk)"},
        {"subject": "nic.b_ps", "kind": "chosen", "text": "2us, as unverified ones"},
        {"subject": "nic.c_ps", "kind": "chosen", "text": "2us, as unverified ones"},
        {"subject": "nic.d_ps", "kind": "note", "text": "neither chosen nor unverified"},
    ]
    file.write_text(json.dumps(known), encoding="utf-8")
    html = run_page(open_run(tmp_path / "run"))
    page = Page(html)
    text = plain(page.text)
    assert "Rests on 1 unverified figure, 2 chosen figures and 1 note" in text
    assert "#notes" in page.links
    assert text.index("Rests on 1") < text.index("How long it took")
    assert [one for one in page.ids if one in {*SECTIONS, "notes"}][-2:] == ["provenance", "notes"]
    notes = html[html.index('<section id="notes"') :]
    assert notes.count("<details>") == notes.count("<summary>") == 3
    assert "<details open" not in notes
    told = plain(Page(f"<div>{notes[notes.index('<details>') : notes.index('</section>')]}</div>").text)
    assert "Figures that nobody has verified (1)aboutnotenic.a_ps1us (a chosen talk)" in told
    assert "Figures that were chosen (2)aboutnotenic.b_ps, nic.c_ps2us, as unverified ones" in told


@pytest.mark.parametrize(("control", "limited"), [("dcqcn", False), ("fixed-window", True)])
def test_rate_and_window_are_drawn_where_they_were_recorded(gallery: Gallery, *, control: str, limited: bool) -> None:
    keys = {"engine.record": "{flows: all, every: 2us}", "transport.congestion_control": control}
    page = Page(html := run_page(gallery("incast", overrides=keys)))
    assert page.ids.index("queues") < page.ids.index("series") < page.ids.index("slow")
    assert html.count("<figcaption>Rate</figcaption>") == html.count("<figcaption>Window</figcaption>") == 1
    assert ("No window limits the 7 recorded flows." in plain(page.text)) != limited
    assert "were not recorded" not in page.text
    assert page.links.count("#series") > 1  # of the list of sections, and of each slow flow


def test_fields_of_a_policys_state_are_recorded_and_drawn(gallery: Gallery) -> None:
    run = gallery("recorded")
    assert str(run.series.schema.field("value").type) == "double"
    kinds = run.query("select kind, count(*) as n from series where place = '1' group by kind order by kind")
    found = dict(zip(kinds["kind"].to_pylist(), kinds["n"].to_pylist(), strict=True))
    assert set(found) == {"alpha", "rate_bps", "target_bps", "congestion_control.timer_at_ps[0]", "window_bytes"}
    assert len(set(found.values())) == 1
    both = run.query("""
        select max(rate.value - target.value) as most, max(target.value) as peak
        from series as rate join series as target on rate.at_ps = target.at_ps and rate.place = target.place
        where rate.kind = 'rate_bps' and target.kind = 'target_bps' and target.value > 0
    """)
    assert both["most"][0].as_py() == 0  # DCQCN never passes its target
    html = run_page(run)
    for kind in ("alpha", "target_bps", "congestion_control.timer_at_ps[0]"):
        assert html.count(f"<figcaption>{kind} <small>") == 1
    assert f" to {amount(both['peak'][0].as_py(), 'b/s')}" in html


@pytest.mark.parametrize("flows", ["[1, 3, 5]", "all"])
def test_every_flow_that_the_user_named_has_a_line(gallery: Gallery, flows: str) -> None:
    traffic = (
        f"traffic: {{pattern: permutation, size: 256KB, repeat: 2}}\nengine: {{record: {{flows: {flows}, every: 1us}}}}"
    )
    run = simulated(gallery, traffic)
    html = run_page(run)
    pairs = run.query("select distinct place from series where kind = 'rate_bps' order by place")["place"].to_pylist()
    chart = next(one for one in html.split("<figure>") if one.startswith("<figcaption>Rate</figcaption>"))
    assert re.findall(r"</svg>flow (\d+), ", chart) == pairs
    assert len(pairs) == (3 if flows != "all" else 8)
