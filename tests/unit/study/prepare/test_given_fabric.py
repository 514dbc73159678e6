"""A fabric that was built in Python, run through the front door; the example is that of docs/models/fabrics.md."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import weftwork
from weftwork.base.errors import ConfigError, UsageError
from weftwork.spec.fabric import Fabric

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
    assert run.about["fabric"] == "three on a switch: 3 hosts, 1 switches, 3 links"
    assert run.provenance["fabric"] == "given in Python, kept as fabric.json"
    again = weftwork.run(run.path / "scenario.yaml", out=tmp_path / "again")
    assert again.provenance["digest"] == run.provenance["digest"]
    assert "fabric" not in again.provenance


def test_it_takes_the_place_of_the_section_and_serves_all_seeds(tmp_path: Path) -> None:
    fabric, file = written(tmp_path)
    file.write_text(file.read_text(encoding="utf-8") + "fabric: {radix: 16}\n", encoding="utf-8")
    run = weftwork.run(file, out=tmp_path / "run", seeds=2, fabric=fabric, overrides={"fabric.radix": "8"})
    assert run.provenance["fabric"] == "given in Python, kept as fabric.json"
    assert "3 hosts" in run.about["fabric"]
    assert weftwork.read_scenario(run.path / "scenario.yaml").fabric.file == str(run.path / "fabric.json")
    assert weftwork.prepare(weftwork.read_scenario(file), fabric=fabric).plan.rank_ports.size == 3


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
