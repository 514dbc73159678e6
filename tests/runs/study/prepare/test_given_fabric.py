"""A fabric that was built in Python, run through the front door; the example is that of docs/models/fabrics.md."""

import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weftwork
from weftwork.base.errors import ConfigError, UsageError
from weftwork.hardware.catalogue import switch
from weftwork.spec.fabric import Fabric
from weftwork.study.prepare.given_fabric import with_fabric

PAGE = Path(__file__).parents[4] / "docs" / "models" / "fabrics.md"


def example() -> tuple[Fabric, str]:
    text = PAGE.read_text(encoding="utf-8").split("## From Python")[1]
    python = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    (scenario,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(python, names)  # noqa: S102 - the page's own example
    return names["fabric"], scenario


def written(tmp_path: Path) -> tuple[Fabric, Path]:
    fabric, text = example()
    file = tmp_path / "three.yaml"
    file.write_text(text, encoding="utf-8")
    return fabric, file


def test_a_scenario_runs_on_a_fabric_from_python_and_its_folder_says_so(tmp_path: Path) -> None:
    fabric, file = written(tmp_path)
    run = weftwork.run(file, out=tmp_path / "run", fabric=fabric)
    assert run.is_complete
    assert run.value("flows") == 2
    assert run.about["fabric"] == "three on a switch: 3 hosts, 1 switch, 3 links"
    assert run.provenance["fabric"] == "given in Python, kept as fabric.json"
    again = weftwork.run(run.path / "scenario.yaml", out=tmp_path / "again")
    assert again.provenance["digest"] == run.provenance["digest"]
    assert "fabric" not in again.provenance


def test_it_takes_the_place_of_the_section_and_serves_all_seeds(tmp_path: Path) -> None:
    fabric, file = written(tmp_path)
    file.write_text(file.read_text(encoding="utf-8") + "fabric: {radix: 16}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"--set fabric.radix  means nothing with topology file"):
        weftwork.run(file, out=tmp_path / "run", fabric=fabric, overrides={"fabric.radix": "8"})
    with pytest.raises(ConfigError, match=r"fabric.file  means nothing beside a fabric from Python"):
        weftwork.run(file, out=tmp_path / "run", fabric=fabric, overrides={"fabric.file": "two.json"})
    larger = {"fabric.switch.buffer": "128MB"}
    run = weftwork.run(file, out=tmp_path / "run", seeds=2, fabric=fabric, overrides=larger)
    assert weftwork.prepare(run.path / "scenario.yaml").fabric.switches[0].buffer_bytes == 128_000_000
    _, changed = with_fabric(file, fabric, larger)
    assert changed.fabric.switches[0].buffer_bytes == 128_000_000
    assert run.provenance["fabric"] == "given in Python, kept as fabric.json"
    assert "3 hosts" in run.about["fabric"]
    assert weftwork.read_scenario(run.path / "scenario.yaml").fabric.file == str(run.path / "fabric.json")
    assert weftwork.prepare(weftwork.read_scenario(file), fabric=fabric).engine_input.rank_ports.size == 3


def test_a_wrong_fabric_or_a_scenario_that_was_read_is_refused(tmp_path: Path) -> None:
    fabric, file = written(tmp_path)
    links = fabric.links.copy()
    links["rate_bps"] = 0
    with pytest.raises(ConfigError, match="fabric, given in Python") as caught:
        weftwork.run(file, out=tmp_path / "run", fabric=replace(fabric, links=links))
    assert len(caught.value.mistakes) == 3
    run = weftwork.run(file, out=tmp_path / "run", fabric=fabric)
    with pytest.raises(UsageError, match="pass the scenario's file"):
        weftwork.run(weftwork.read_scenario(run.path / "scenario.yaml"), fabric=fabric)


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("node_kind", np.array([0, 0, 0, 7]), "found 7, wanted 0"),
        ("node_kind", np.array([0.0, 0.0, 0.0, 1.0]), "wanted an array of whole numbers"),
        ("node_tier", [0, 0, 0, 1], "wanted an array of whole numbers"),
        ("node_tier", np.array([0, 0, 0]), r"the shape \(3,\), wanted \(4,\)"),
        ("node_tier", np.array([0, 0, 0, 1_000]), "found 0 to 1000, wanted 0 to 127"),
        ("node_device", np.array([0, 0, 5, 0]), "found 0 to 5 for hosts, wanted 0 to 0"),
        ("node_device", np.array([0, 0, 0, -1]), "found -1 to -1 for switches, wanted 0 to 0"),
        ("node_server", np.array([0, 0, 1, 0]), "found 0 to 1 for hosts, wanted 0 to 0"),
        ("switches", (), "found switches, but no device for them"),
        ("nics", ("connectx-7",), "found 'connectx-7', wanted a Nic"),
        ("link_names", ("a", "b"), "found 2 names, wanted 3"),
        ("node_names", ("a", "b", "c", 4), "found 4, wanted text"),
        ("links", np.zeros(3, [("a", np.int32)]), "wanted an array of links with a, b, rate_bps"),
        ("caveats", {"a": "b"}, "found 'b', wanted a Caveat"),
    ],
)
def test_columns_and_devices_that_fit_nothing_are_refused(tmp_path: Path, column: str, value: Any, told: str) -> None:
    fabric, file = written(tmp_path)
    with pytest.raises(ConfigError, match=told) as refused:
        weftwork.run(file, out=tmp_path / "run", fabric=replace(fabric, **{column: value}))
    assert refused.value.source == "fabric, given in Python"


def test_a_fabric_of_wider_types_runs_as_itself_and_no_file_is_written_to_check_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fabric, file = written(tmp_path)
    wide = replace(fabric, node_kind=fabric.node_kind.astype(np.int64), node_tier=fabric.node_tier.astype(np.int64))
    plain = weftwork.run(file, out=tmp_path / "plain", fabric=fabric)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert weftwork.run(file, out=tmp_path / "wide", fabric=wide).provenance["digest"] == plain.provenance["digest"]


def test_links_faster_than_their_switch_are_refused(tmp_path: Path) -> None:
    fabric, file = written(tmp_path)
    links = fabric.links.copy()
    links["rate_bps"] = 100 * 10**12
    crowded = replace(fabric, links=links, switches=(switch("tomahawk-5").model_copy(update={"radix": 64}),))
    with pytest.raises(ConfigError, match=r"together, but 'tomahawk-5' switches 51\.2Tbps"):
        weftwork.run(file, out=tmp_path / "run", fabric=crowded)
