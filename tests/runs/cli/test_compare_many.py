"""``weftwork compare`` and ``weftwork report`` with many runs: what is printed, written and refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from helpers.command import Command, command_of
from helpers.pages import Page
from helpers.shown import printed, rows, section

import weftwork
from weftwork.report.page_comparison import without_paths

SCENARIO = """schema: 3
name: small
fabric: {topology: leaf-spine, hosts: 12, radix: 12, link_rate: 100Gbps, oversubscription: 1}
transport: {congestion_control: fixed-window}
traffic: {pattern: permutation, size: 64KB}
"""
NAMES = ("p1", "i1", "p2", "i2", "p3", "i3")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three fabrics for two workloads."""
    made = tmp_path_factory.mktemp("many")
    (made / "small.yaml").write_text(SCENARIO)
    for name in NAMES:
        pattern = {"p": "permutation", "i": "incast"}[name[0]]
        keys = {"fabric.oversubscription": name[1], "traffic.pattern": pattern}
        weftwork.run(made / "small.yaml", out=made / name, overrides=keys, what_if="none")
    return made


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path) -> Command:
    monkeypatch.chdir(folder)
    return command_of(capsys)


def test_six_runs_fit_a_hundred_columns_with_the_verdict_first(command: Command) -> None:
    found = command("compare", *NAMES)
    assert found.code == 0
    lines = found.out.splitlines()
    assert " is the cheapest fabric that is at most 2 % slower than the fastest for every workload: $" in lines[0]
    assert lines[1].startswith("For permutation traffic, ")
    assert any(line.startswith("to blame in run") for line in lines)
    tables = lines[lines.index("") :]
    assert max(map(len, tables)) <= 100
    listed = printed(found.out, "#")
    assert [row["#"] for row in listed if row["#"].isdigit()] == ["1", "3", "5", "2", "4", "6"]
    assert [row["run"] for row in listed if row["#"].isdigit()][:3] == [
        f"oversubscription {ratio}:1" for ratio in (1, 2, 3)
    ]
    (key,) = (row for row in printed(found.out, "scenario") if row["scenario"] == "fabric.oversubscription")
    assert key["values, and their runs"].startswith("1 in 1, 2;")
    assert set(printed(found.out, "number")[0]) == {"number", *"123456"}


def test_eight_runs_have_their_numbers_in_blocks(command: Command) -> None:
    found = command("compare", *NAMES, "p1", "p2")
    assert found.out.startswith("p1 is given more than once.\np2 is given more than once.\n")
    heads = [line.split() for line in found.out.splitlines() if line.startswith("number ")]
    assert heads == [["number", *"1234"], ["number", *"5678"]]


def test_json_has_every_run_with_its_time_and_its_fabric(command: Command) -> None:
    document = json.loads(command("compare", *NAMES, "--json").out)
    assert [one["run"] for one in document["runs"]] == list(NAMES)
    assert [group["name"] for group in document["groups"]] == ["permutation traffic", "incast traffic"]
    for one in document["runs"]:
        assert one["value_ps"] == weftwork.open_run(one["run"]).value("completion_ps")
        assert one["fabric"]["oversubscription"] == f"{one['run'][1]}:1"
        price, each = one["fabric"]["price_usd"], one["fabric"]["price_per_gpu_usd"]
        assert each["typical"] == pytest.approx(price["typical"] / 12)
    assert document["price_notes"] == ["All of the money rests on unverified prices (street-2025)."]
    assert len(document["verdict"]) > 4


def test_another_price_book_prices_the_fabrics(command: Command) -> None:
    text = command("cost", "small.yaml", "--template").out
    Path("mine.toml").write_text(re.sub(r"verified = false", "verified = true", text))
    found = json.loads(command("compare", "p1", "p2", "--prices", "mine.toml", "--json").out)
    assert found["prices"] != "street-2025"
    refused = command("compare", "p1", "p2", "--prices", "nowhere")
    assert refused.code == 2
    assert command("report", "p1", "--prices", "mine.toml").code == 2


def test_many_runs_have_a_short_file_name(command: Command, folder: Path) -> None:
    found = json.loads(command("report", *NAMES, "--json").out)
    assert found["page"] == str(folder / "p1-and-5-more.html")
    assert found["runs"] == list(NAMES)
    assert json.loads(command("report", "p1", "p2", "--json").out)["page"] == str(folder / "p1-p2.html")
    assert json.loads(command("report", "p1", "--json").out)["page"] == str(folder / "p1.html")


def test_the_page_of_many_runs_names_runs_and_no_files(command: Command, folder: Path, tmp_path: Path) -> None:
    assert command("report", *NAMES, "-o", str(tmp_path / "page.html")).code == 0
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    page = Page(html)
    assert str(folder) not in html
    assert not re.search(r"docs/|\.md\b|\.py\b|src/", html)
    links = re.findall(r'href="([^"]*)"', html)
    assert links
    assert all(link.startswith("#") and link[1:] in page.ids for link in links)
    assert len(page.ids) == len(set(page.ids))
    listed = rows(section(html, "answer"), "run")
    assert [row["oversubscription"] for row in listed] == ["1:1", "2:1", "3:1"]
    assert {"completion", "change", "FCT p99", "price of the fabric", "per GPU", "to blame"} <= set(listed[0])
    assert "<h1>small: 6 runs compared: permutation traffic and incast traffic</h1>" in html
    basis = section(html, "basis")
    assert [one.text for one in basis.all("summary")] == [
        "Assumptions of permutation traffic", "Assumptions of incast traffic", "Words of this page"
    ]  # fmt: skip
    first, second, words = ({row.all("td")[0].text: row.all("td")[1].text for row in one.all("tr") if row.all("td")}
                            for one in basis.all("details"))  # fmt: skip
    assert first["workload"].startswith("permutation")
    assert second["workload"].startswith("incast")
    assert first["fabric"].count("12 hosts") == 3
    assert "oversubscription" in words
    assert "bubble" not in words
    assert "page of each run" not in page.text
    fabrics = rows(section(html, "fabrics"), "fabric")
    assert [row["switches"].split()[1] for row in fabrics] == ["leaves,"] * 3
    shown = [figure.text for figure in section(html, "answer").all("figure")]
    assert [
        text.startswith(title)
        for text, title in zip(shown, ("Time of all messages", "Price of the fabric"), strict=True)
    ]
    keys = rows(section(html, "scenario"), "key of the scenario")
    assert [row["key of the scenario"] for row in keys] == ["fabric.oversubscription"]
    for name in ("links", "queues"):
        assert {one.text for one in section(html, name).all("h3")} == {"permutation traffic", "incast traffic"}
    assert "p1" in {cell.text for cell in section(html, "provenance").all("td")}


def test_all_folders_that_are_no_runs_are_told_at_once(command: Command) -> None:
    Path("swept/runs").mkdir(parents=True, exist_ok=True)
    Path("swept/sweep.json").write_text("{}")
    for name in ("compare", "report"):
        found = command(name, "p1", "swept", "nowhere", "small.yaml")
        assert (found.code, found.out) == (2, "")
        assert "3 mistakes" in found.err
        assert "swept" in found.err
        assert "is a sweep, which is not compared; wanted the folder of a run" in found.err
        assert found.err.count("there is no such folder") == 1  # small.yaml is a file, whose form is told
        assert "`weftwork run small.yaml` runs it" in found.err


def test_one_run_is_too_few_to_compare(command: Command) -> None:
    found = command("compare", "p1")
    assert found.code == 2
    assert "found 1 run, wanted 2 or more; one run alone is shown by: weftwork report RUN" in found.err
    assert command("compare").code == 2


def test_a_trace_is_of_one_run(command: Command, tmp_path: Path) -> None:
    found = command("report", "p1", "p2", "-o", str(tmp_path / "trace.json"))
    assert found.code == 2
    assert "a trace is of one run" in found.err


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pattern: /home/me/work/mine.py", "pattern: mine.py"),
        ("file: '~/a/b.json'", "file: 'b.json'"),
        ("leaf0/spine1 and 3/4, arXiv:2407.21783/x", "leaf0/spine1 and 3/4, arXiv:2407.21783/x"),
        ("https://example.org/a/b", "https://example.org/a/b"),
        ("100 Gb/s", "100 Gb/s"),
    ],
)
def test_paths_of_a_machine_lose_their_folders(text: str, shown: str) -> None:
    assert without_paths(text) == shown


def test_runs_of_several_seeds_draw_the_series_of_the_first(command: Command, tmp_path: Path) -> None:
    """Ten seeds give percentiles, and one of them the pictures of rates, states and queues."""
    record = {"engine.record": {"flows": [0], "ports": ["leaf0->host0"], "every": "1us"}}
    for control in ("dcqcn", "timely"):
        keys = {"transport.congestion_control": control, "traffic.pattern": "incast", **record}
        weftwork.run("small.yaml", out=tmp_path / control, seeds=2, overrides=keys, what_if="none")
    page = tmp_path / "both.html"
    assert command("report", str(tmp_path / "dcqcn"), str(tmp_path / "timely"), "-o", str(page)).code == 0
    text = section(page.read_text(encoding="utf-8"), "series").text
    assert "Of several seeds, the first one is drawn." in text
    assert {"dcqcn: flow 0", "timely: flow 0"} <= {part[: part.find(",")] for part in re.findall(r"\w+: flow 0,", text)}
