"""Where the culprit is on the page: its rows of the heat maps, its place in the fabric, its bands over time."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow as pa
import pytest
from helpers.culprit_places import outlined
from helpers.gallery import Gallery
from helpers.pages import simulated
from helpers.shown import page_of, section

from weftwork.report.culprit_places import culprit_place
from weftwork.report.page import run_page
from weftwork.spec.answer import Culprit, CulpritIds
from weftwork.store.runs import Run
from weftwork.study.answer.ids import ids_of_stage
from weftwork.study.prepare.prepare import prepare, read_scenario

TRAINING = """schema: 3
fabric: {{topology: rail-optimized, gpus: 32, node: dgx-h100, switch: tomahawk-5}}
training: {{model: llama-3-8b, tensor: 8, pipeline: {pipeline}, global_batch: 16, recompute: none}}
transport: {{load_balancing: switch-spray, reorder_tolerant: true}}
engine: {{fidelity: flow}}
{rest}
"""


PERMUTATION = "traffic: {pattern: permutation, size: 1MB}\n"


def trained(gallery: Gallery, rest: str, *, pipeline: int = 1) -> Run:
    run: Run = gallery.run(TRAINING.format(pipeline=pipeline, rest=rest))
    return run


def culprit(run: Run) -> Culprit:
    assert run.answer is not None
    return run.answer.culprit


def with_culprit(run: Run, culprit: Culprit) -> Run:
    """The run with another culprit in its folder."""
    file = run.path / "summary.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    ids = None if culprit.ids is None else asdict(culprit.ids)
    document["answer"]["culprit"] |= {"kind": culprit.kind, "name": culprit.name, "ids": ids}
    file.write_text(json.dumps(document), encoding="utf-8")
    return Run(run.path)


def ids_at(run: Run, *names: str) -> CulpritIds:
    """Ids of links or nodes by their names."""
    nodes = [row["node"] for name in names for row in run.table("nodes").to_pylist() if row["name"] == name]
    links = run.links.to_pylist()
    of_links = [row["port"] for name in names for row in links if row["link"] == name]
    of_nodes = [row["port"] for node in nodes for row in links if node in (row["node"], row["peer"])]
    return CulpritIds(ports=(*of_links, *of_nodes), nodes=tuple(nodes))


def named(table: pa.Table, key: str, numbers: frozenset[int]) -> set[str]:
    return {row["name"] for row in table.to_pylist() if row[key] in numbers}


def places(run: Run) -> tuple[set[str], set[str]]:
    """Names of the ports and of the nodes that are to blame."""
    found = culprit_place(run)
    assert found is not None
    assert found.name == culprit(run).name
    return named(run.links, "port", found.ports), named(run.table("nodes"), "node", found.nodes)


def test_a_link_to_blame_is_outlined_in_both_heat_maps_and_in_the_fabric(gallery: Gallery) -> None:
    run = gallery("degraded")
    assert culprit(run).name == "leaf0-spine1"
    assert places(run) == ({"leaf0->spine1", "spine1->leaf0"}, set())
    html = run_page(run)
    marked = {}
    for figure in section(html, "links").all("figure"):
        (heat,) = figure.all("div", kind="heat")
        if not heat.all("path", kind="blame"):
            assert not heat.all("span", kind="blame")
            continue
        (outline,), (label,) = heat.all("path", kind="blame"), heat.all("span", kind="blame")
        names = json.loads(heat.all("i", kind="cells")[0].attributes["data-rows"])
        drawn = re.fullmatch(r"M2 ([\d.]+)H998V([\d.]+)H2Z", outline.attributes["d"])
        assert drawn
        row, end = (round(float(at) * len(names) / 1000) for at in drawn.groups())  # a pixel outside
        assert end == row + 1
        marked[names[row]] = (label.text, figure.all("p", kind="note")[0].text)
    assert marked == {
        "leaf0->spine1": ("to blame", "To blame: leaf0->spine1."),
        "spine1->leaf0": ("to blame", "To blame: spine1->leaf0."),
    }
    assert outlined(section(html, "fabric")) == (["leaf0 to spine1"], ["leaf0-spine1, to blame"])
    assert "An outline marks the culprit." in section(html, "fabric").text


def test_a_slow_nic_is_its_server_and_the_link_of_that_port(gallery: Gallery) -> None:
    run = trained(gallery, "faults: [{at: 0s, nic: host2/nic3, event: slow, fraction: 0.05}]")
    assert (culprit(run).kind, culprit(run).name) == ("nic", "host2/nic3")
    assert places(run) == ({"host2->leaf3", "leaf3->host2"}, {"host2"})
    found = section(run_page(run), "fabric")
    assert outlined(found) == (["host2 to leaf3", "host2"], ["host2/nic3, to blame"])
    assert "3 hosts" in [one.text for one in found.all("span", kind="cl")]


def test_a_switch_to_blame_is_outlined_with_all_its_links(gallery: Gallery, tmp_path: Path) -> None:
    run = gallery.copy(gallery("permutation"), tmp_path / "run")
    run = with_culprit(run, replace(culprit(run), kind="switch", name="spine1", ids=ids_at(run, "spine1")))
    links = {f"{a}->{b}" for leaf in ("leaf0", "leaf1") for a, b in ((leaf, "spine1"), ("spine1", leaf))}
    assert places(run) == (links, {"spine1"})
    lines, names = outlined(section(run_page(run), "fabric"))
    assert sorted(lines) == ["leaf0 to spine1", "leaf1 to spine1", "spine1"]
    assert names == ["spine1, to blame"]


def test_the_server_of_a_slow_gpu_is_outlined(gallery: Gallery) -> None:
    run = trained(gallery, "stragglers: [{gpu: 21, factor: 1.5}]")
    assert culprit(run).name == "GPU 21"
    assert places(run) == (set(), {"host2"})  # eight GPUs each
    assert outlined(section(run_page(run), "fabric")) == (["host2"], ["GPU 21, to blame"])


def test_the_servers_of_a_stage_are_outlined_wherever_its_ranks_are(gallery: Gallery, tmp_path: Path) -> None:
    run = gallery.copy(trained(gallery, "", pipeline=2), tmp_path / "packed")
    prepared = prepare(read_scenario(run.path / "scenario.yaml"))
    blamed = replace(culprit(run), kind="stage", name="stage 1", ids=ids_of_stage(prepared, 0, 1))
    assert places(with_culprit(run, blamed)) == (set(), {"host2", "host3"})
    random = prepare(read_scenario(run.path / "scenario.yaml", {"training.placement": "random"}))
    stages = [ids_of_stage(random, 0, stage) for stage in (0, 1)]
    placement = random.job.placement
    for stage, ids in enumerate(stages):
        ranks = range(16 * stage, 16 * stage + 16)  # the order of ranks has the pipeline last
        assert set(ids.nodes) == {int(random.fabric.hosts[placement.host[rank]]) for rank in ranks}
        assert (ids.stage, ids.jobs, ids.ranks) == (stage, (0,), ())
    assert {len(ids.nodes) for ids in stages} != {2}  # so that packed servers would be wrong


def test_nobody_has_a_place_where_none_is_to_blame(gallery: Gallery, tmp_path: Path) -> None:
    run = gallery.copy(gallery("permutation"), tmp_path / "run")
    ids = ids_at(run, "leaf0-spine1")
    link = with_culprit(run, replace(culprit(run), kind="link", name="leaf0-spine1", ids=ids))
    assert places(link)[0] == {"leaf0->spine1", "spine1->leaf0"}
    both = ids_at(run, "host2", "host1")
    alike = with_culprit(run, replace(culprit(run), kind="nic", name="host2 and 1 like it", ids=both))
    assert places(alike) == ({"host2->leaf0", "leaf0->host2"}, {"host2"})
    html = run_page(with_culprit(run, replace(culprit(run), kind="setting", name="leaf0-spine1", ids=ids)))
    assert outlined(section(html, "fabric")) == ([], [])
    assert "outlined" not in section(html, "fabric").text


def test_charts_of_training_tiers_have_lines_of_faults_and_the_band_of_the_culprit(gallery: Gallery) -> None:
    faults = (
        "faults: [{at: 1ms, link: host2-leaf1, event: degrade, fraction: 0.01, for: 300ms},"
        " {at: 50ms, link: host1-leaf2, event: degrade, fraction: 0.99}]"
    )
    run = trained(gallery, faults)
    assert culprit(run).name == "host2-leaf1"
    end_ps = max(run.table("tiers")["at_ps"].to_pylist())
    part = section(run_page(run), "traffic")
    drawings = part.all("div", kind="two")[0].all("svg", role="img")
    assert len(drawings) > 3
    for drawing in drawings:
        assert len(drawing.all("path", kind="moment")) == 3  # one begins, the other begins and ends
        (band,) = drawing.all("path", kind="band")
        edges = re.fullmatch(r"M([\d.]+) 0H([\d.]+)V1000H([\d.]+)Z", band.attributes["d"])
        assert edges
        begin, end, again = map(float, edges.groups())
        assert begin == again
        if "Rate" in drawing.attributes["aria-label"]:
            assert [begin, end] == pytest.approx([1000 * at * 1e9 / end_ps for at in (1, 301)], abs=0.1)
    words = [one.text for one in part.all("span", kind="moment")]
    assert words == ["host2-leaf1 degrade, to blame", "host1-leaf2 degrade", "host2-leaf1 degrade ends"]


def test_a_fault_that_happens_often_has_its_words_once(gallery: Gallery) -> None:
    flaps = "faults: [{at: 10us, link: leaf0-spine1, event: down, for: 2us, times: 5, every: 10us}]"
    part = section(run_page(simulated(gallery, PERMUTATION + flaps)), "links")
    chart = part.all("svg", role="img")[0]
    assert len(chart.all("path", kind="moment")) == 10
    assert [one.text.removesuffix(", to blame") for one in part.all("span", kind="moment")] == ["leaf0-spine1 down"]


def test_the_picture_without_a_script_has_the_bands(gallery: Gallery) -> None:
    run = trained(gallery, "faults: [{at: 1ms, link: host2-leaf1, event: degrade, fraction: 0.01, for: 300ms}]")
    pieces = run.query("select min(start_ps) as first, max(end_ps) as last from segments").to_pylist()[0]
    (still,) = page_of(run_page(run)).all("div", kind="still")
    (band,) = still.all("div", kind="culprit")
    left, width = (float(one) for one in re.findall(r"([\d.]+)%", band.attributes["style"]))
    span = pieces["last"] - pieces["first"]
    assert [left, width] == pytest.approx([100 * 1e9 / span, 100 * 300e9 / span], abs=0.01)
    assert [one.text for one in still.all("b")] == ["host2-leaf1 degrade, to blame"]
