"""Names that a stranger chose: a page shows them as text, and a terminal gets no control characters from them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.gallery import Gallery
from helpers.training_run import Plan, training_run

from weftwork.base.caveat import Caveat
from weftwork.cli import main
from weftwork.cli.topology import topology
from weftwork.report.page import run_page
from weftwork.store.runs import Run, open_run

MARKUP = "<script>alert(1)</script>\"'&amp;<img src=x onerror=alert(1)>]]><!--"
ESCAPE = "\x1b]0;title\x07\x1b[2J\x9b2J\x7f"
TRAFFIC = """schema: 3
fabric: {file: fabric.json}
transport: {congestion_control: fixed-window}
traffic: {pattern: permutation, size: 50KB}
engine: {record: {flows: all, ports: all, every: 1us}}
"""


class Elements(HTMLParser):
    """The elements and attributes of a page, each counted: what a browser would make of it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found[" ".join([tag, *sorted(name for name, _ in attrs)])] += 1

    def handle_comment(self, data: str) -> None:  # noqa: ARG002 - as HTMLParser has it
        self.found["comment"] += 1

    def handle_data(self, data: str) -> None:
        self.text += data


def fabric(word: str) -> str:
    """The file of a fabric of four hosts on two switches whose names all hold a word."""
    hosts, switches = [f"h{i}{word}" for i in range(4)], [f"s{i}{word}" for i in range(2)]
    nodes = [{"id": name, "kind": "host"} for name in hosts]
    nodes += [{"id": name, "kind": "switch", "tier": 1} for name in switches]
    pairs = [(host, switches[place % 2]) for place, host in enumerate(hosts)] + [(switches[0], switches[1])]
    links = [{"source": a, "target": b, "rate": "100Gbps", "delay": "500ns"} for a, b in pairs]
    graph = {"name": f"fabric{word}", "caveats": [{"subject": f"subject{word}", "kind": "note", "text": f"text{word}"}]}
    return json.dumps({"graph": graph, "nodes": nodes, "links": links})


def ran(gallery: Gallery, word: str) -> Run:
    text = TRAFFIC + f"name: {json.dumps('run' + word)}\n"
    run: Run = gallery.run(text, files={"fabric.json": fabric(word)})
    return run


def test_a_page_has_the_same_elements_whatever_the_names_of_a_scenario_are(gallery: Gallery) -> None:
    plain, marked = (Elements(run_page(ran(gallery, word))) for word in ("", MARKUP))
    assert marked.found == plain.found
    assert f"s0{MARKUP}" in marked.text


@pytest.mark.parametrize("ending", ["svg", "html"])
def test_a_picture_has_the_same_elements_whatever_the_names_of_a_fabric_are(tmp_path: Path, ending: str) -> None:
    found = []
    for word in ("", MARKUP):
        (tmp_path / "fabric.json").write_text(fabric(word))
        topology(tmp_path / "fabric.json", picture=tmp_path / f"p.{ending}")
        found.append(Elements((tmp_path / f"p.{ending}").read_text(encoding="utf-8")))
    assert found[0].found == found[1].found
    assert "s0<script>" in found[1].text


# Texts of a run folder that are names or sentences, whoever handed it on may have changed; others choose what is shown.
COLUMNS = {
    "nodes": ("name", "role"),
    "links": ("name", "link"),
    "flows": ("source", "destination"),
    "events": ("place", "detail"),
    "series": ("place",),
    "jobs": ("model", "plan"),
    "what_if": ("change", "text"),
    "tiers": ("tier",),
    "activities": ("operation",),
}


def change(run: Run, word: str) -> Run:
    """Put a word behind every name and sentence of a run's folder."""
    for name, columns in COLUMNS.items():
        file = run.path / f"{name}.parquet"
        if file.is_file():
            table = pq.read_table(file)
            for column in columns:
                values = [one if not one or one.isdecimal() else one + word for one in table[column].to_pylist()]
                at = table.schema.get_field_index(column)
                table = table.set_column(at, table.schema.field(at), pa.array(values, pa.string()))
            pq.write_table(table, file)
    for name, keys in (("summary.json", ("about", "numbers")), ("provenance.json", ("caveats", "notes", "machine"))):
        document = json.loads((run.path / name).read_text())
        document |= {key: spoilt(document[key], word) for key in keys if key in document}
        (run.path / name).write_text(json.dumps(document))
    scenario = f"{json.dumps('key' + word)}: {json.dumps(word)}\n" + run.scenario
    (run.path / "scenario.yaml").write_text(scenario)
    return open_run(run.path)


def spoilt(tree: Any, word: str) -> Any:
    """Put a word behind the texts of a tree, but for units and kinds, by which numbers and caveats are shown."""
    if isinstance(tree, dict):
        return {key: value if key in {"unit", "kind"} else spoilt(value, word) for key, value in tree.items()}
    if isinstance(tree, list):
        return [spoilt(value, word) for value in tree]
    return tree + word if isinstance(tree, str) else tree


def traffic_run(gallery: Gallery, folder: Path) -> Run:
    return gallery.copy(ran(gallery, ""), folder)


def jobs_run(_: Gallery, folder: Path) -> Run:
    return training_run(
        folder,
        Plan(),
        Plan(job="second", stages=2),
        caveats=[Caveat(subject="routing", kind="approximate", text="5 %.")],
    )


@pytest.mark.parametrize("made", [traffic_run, pytest.param(jobs_run, marks=pytest.mark.deep)])
def test_a_page_has_the_same_elements_whatever_texts_a_run_folder_holds(
    gallery: Gallery, tmp_path: Path, made: Callable[[Gallery, Path], Run]
) -> None:
    plain, marked = (
        Elements(run_page(change(made(gallery, tmp_path / kind), word))) for kind, word in (("a", ""), ("b", MARKUP))
    )
    assert marked.found == plain.found
    assert marked.text.count(MARKUP) > 10


@pytest.mark.deep
def test_a_comparison_has_the_same_elements_whatever_texts_a_run_folder_holds(
    gallery: Gallery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = []
    for word in ("", MARKUP):
        for name in ("first", "second"):
            change(traffic_run(gallery, Path(f"{name}{len(word)}")), word)
        with pytest.raises(SystemExit):
            main(["report", f"first{len(word)}", f"second{len(word)}", "-o", "page.html"])
        found.append(Elements(Path("page.html").read_text(encoding="utf-8")))
    assert found[0].found == found[1].found
    assert found[1].text.count(MARKUP) > 2


def test_a_terminal_gets_no_control_character_from_names(
    gallery: Gallery, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").mkdir()
    file = tmp_path / "a" / "fabric.json"
    tree = json.loads(fabric(""))
    tree["graph"] = {"name": ESCAPE, "caveats": [{"subject": ESCAPE, "kind": "chosen", "text": ESCAPE}]}
    file.write_text(json.dumps(tree))
    (tmp_path / "a" / "a.yaml").write_text(TRAFFIC)
    (tmp_path / "wrong.json").write_text(json.dumps({**tree, "links": [{"name": ESCAPE}]}))
    first, second = (
        change(traffic_run(gallery, tmp_path / name), word) for name, word in (("b", ESCAPE), ("c", f"{ESCAPE}2"))
    )
    for words in (
        ["run", str(tmp_path / "a" / "a.yaml"), "-o", str(tmp_path / "run")],
        ["topology", str(file)],
        ["topology", str(tmp_path / "wrong.json")],
        ["collective", "all-reduce", "--fabric", str(file), "--sizes", "1KB"],
        ["compare", str(first.path), str(second.path)],
    ):
        with pytest.raises(SystemExit):
            main(words)
        out, err = capsys.readouterr()
        told = out + err
        assert r"\x1b]0;title" in told, words
        assert [character for character in told if not character.isprintable() and character != "\n"] == [], words
