"""A scenario as a dict, and overrides with values of Python: the same scenario, and the same mistakes, as from text."""

import json
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import yaml

import weftwork
from weftwork.base.errors import ConfigError, UsageError
from weftwork.base.fix import KeyName
from weftwork.cli.settings import overrides as of_command_line
from weftwork.spec.scenario.written import dump
from weftwork.study.prepare.prepare import fabric_of_scenario, prepare, read_scenario
from weftwork.topology.export import to_json

ROOT = Path(__file__).parents[4]
SMALL: dict[str, Any] = {
    "fabric": {"topology": "fat-tree", "tiers": 2, "radix": 8, "link_rate": "100Gbps"},
    "traffic": {"pattern": "permutation", "size": "64KiB"},
}


def scenario_files() -> list[Path]:
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").rglob("*.yaml"))}
    whole = [path for path, text in texts.items() if "schema:" in text and "sweep:" not in text]
    return whole[:: len(whole) // 8]


@pytest.mark.parametrize("path", scenario_files(), ids=lambda path: path.name)
def test_the_dict_of_a_file_is_the_scenario_of_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = yaml.safe_load(path.read_text(encoding="utf-8"))
    monkeypatch.chdir(path.parent)  # where its files are
    assert read_scenario({"name": path.stem, **given}) == read_scenario(path)


def test_a_dict_needs_no_schema_and_takes_any_kind_of_number() -> None:
    plain = read_scenario(SMALL)
    odd = read_scenario(
        MappingProxyType(
            {
                "fabric": {"topology": "fat-tree", "tiers": np.int64(2), "radix": 8.0, "link_rate": "100Gbps"},
                "traffic": {"pattern": np.str_("permutation"), "size": np.uint32(65536)},
                "faults": (),
            }
        )
    )
    assert plain == odd
    assert plain.source == "the dict given"


def test_what_was_dumped_is_read_back_from_its_dict() -> None:
    scenario = read_scenario(SMALL)
    assert read_scenario(yaml.safe_load(dump(scenario))) == scenario


def test_all_mistakes_of_a_dict_are_told_at_once_by_the_path_of_their_keys() -> None:
    wrong = {
        "fabric": {"topology": "fat-tree", "radixx": 8, "tiers": "2", "link_rate": {1, 2}},
        "traffic": {"pattern": "permutatoin", 7: "seven"},
        "engine": {"seed": 10**50},
    }
    with pytest.raises(ConfigError) as found:
        read_scenario(wrong, {"transport.mtu": True, "engine.until": object()})
    told = {mistake.path: mistake for mistake in found.value.mistakes}
    assert found.value.source == "the dict given"
    assert [mistake.line for mistake in told.values()] == [None] * len(told)
    assert told["fabric.radixx"].fix == KeyName("radix")
    assert "'2' in quotes, wanted a whole number" in told["fabric.tiers"].text
    assert "of type set, wanted a number, bool" in told["fabric.link_rate"].text
    assert told["traffic.pattern"].fix == "permutation"
    assert "the key 7 of type int" in told["traffic"].text
    assert "more than 40 digits" in told["engine.seed"].text
    assert "found 'true'" in told["--set transport.mtu"].text
    assert "of type object" in told["--set engine.until"].text
    assert str(found.value).startswith(f"the dict given: {len(told)} mistakes, nothing was run\n  ")
    assert "line" not in str(found.value).replace("link", "")


def test_a_mistake_that_the_whole_dict_has_is_told_of_the_scenario() -> None:
    with pytest.raises(ConfigError) as found:
        read_scenario({})
    assert {mistake.path for mistake in found.value.mistakes} == {"fabric", "scenario"}


def test_a_dict_that_holds_itself_is_refused() -> None:
    endless: dict[str, Any] = dict(SMALL)
    endless["traffic"] = endless
    with pytest.raises(ConfigError, match="nested more than 16 deep"):
        read_scenario(endless)
    with pytest.raises(ConfigError, match="more than 20,000 values"):
        read_scenario(SMALL | {"faults": np.zeros(30_000)})


def test_a_dict_of_another_schema_is_refused() -> None:
    with pytest.raises(ConfigError, match="install a newer Weftwork"):
        read_scenario(SMALL | {"schema": 99})
    with pytest.raises(ConfigError, match="found '2', wanted `schema: 3`"):
        read_scenario(SMALL | {"schema": np.int8(2)})
    assert read_scenario(SMALL | {"schema": np.int8(3)}) == read_scenario(SMALL)


CHANGES = [
    ({"fabric.radix": 16}, ["fabric.radix=16"]),
    ({"fabric": {"radix": 16, "tiers": 2}}, ["fabric={radix: 16, tiers: 2}"]),
    ({"transport.congestion_control": "dcqcn"}, ["transport.congestion_control=dcqcn"]),
    (
        {"transport.congestion_control": {"name": "dcqcn", "g": 0.004}},
        ["transport.congestion_control={name: dcqcn, g: 0.004}"],
    ),
    (
        {"transport.congestion_control": {"name": "dcqcn", "g": 0.004}, "transport.congestion_control.g": 0.01},
        ["transport.congestion_control={name: dcqcn, g: 0.004}", "transport.congestion_control.g=0.01"],
    ),
    ({"transport.congestion_control.g": np.float64(1e-05)}, ["transport.congestion_control.g=1e-05"]),
    ({"traffic.size": None}, ["traffic.size=null"]),
    ({"transport.ecn": False}, ["transport.ecn=false"]),
    ({"faults": [{"link": "leaf0-spine0", "at": "1us"}]}, ["faults=[{link: leaf0-spine0, at: 1us}]"]),
    ({"faults.0": {"link": "leaf0-spine0", "at": "1us"}, "faults.0.at": "2us"},
     ["faults.0={link: leaf0-spine0, at: 1us}", "faults.0.at=2us"]),
    ({"engine.until": "3ms", "engine.seed": "7"}, ["engine.until=3ms", "engine.seed=7"]),
    ({"engine.seeed": 7, "fabric.radix": "many"}, ["engine.seeed=7", "fabric.radix=many"]),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "texts"), CHANGES, ids=lambda one: str(one)[:40])
def test_an_override_with_types_does_what_the_command_line_does(
    typed: dict[str, object], texts: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(json.dumps({"schema": 3, "name": "scenario", **SMALL}), encoding="utf-8")

    def read(source: object, changes: dict[str, Any]) -> object:
        try:
            return read_scenario(source, changes)  # type: ignore[arg-type]  # a path or a dict
        except ConfigError as error:
            return [(mistake.path, mistake.text, mistake.fix) for mistake in error.mistakes]

    by_text = read(file, dict(of_command_line(texts)))
    assert read(file, typed) == by_text
    assert read(SMALL, typed) == by_text


def test_one_of_the_changes_reaches_each_end() -> None:
    """Else the test above could compare mistakes with mistakes alone."""
    read = read_scenario(SMALL, CHANGES[4][0])
    assert read.transport.congestion_control.parameters == {"g": 0.01}
    assert read_scenario(SMALL, {"fabric.radix": 16}).fabric.hosts != read_scenario(SMALL).fabric.hosts


def test_files_are_relative_to_the_current_folder_and_paths_are_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "mine"
    own.write_text((ROOT / "src/weftwork/policies/congestion_control/dcqcn.py").read_text("utf-8"), encoding="utf-8")
    (tmp_path / "mine.py").write_text(own.read_text("utf-8"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    file = Path("mine.py")
    by_override = read_scenario(SMALL, {"transport.congestion_control": file})
    in_dict = read_scenario(SMALL | {"transport": {"congestion_control": {"file": file, "g": 0.01}}})
    assert by_override.transport.congestion_control.file == str(tmp_path / "mine.py")
    assert in_dict.transport.congestion_control.file == str(tmp_path / "mine.py")
    with pytest.raises(ConfigError, match="no such file, seen from the current folder"):
        read_scenario(SMALL | {"transport": {"congestion_control": Path("other.py")}})
    with pytest.raises(ConfigError, match="outside the package"):
        read_scenario(SMALL, {"transport.congestion_control": file}, user_code=False)


def test_a_run_and_a_fabric_of_a_dict_are_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(json.dumps({"schema": 3, **SMALL}), encoding="utf-8")
    run = weftwork.run(SMALL, overrides={"engine.seed": 3}, out=tmp_path / "a", what_if="none")
    same = weftwork.run(file, overrides={"engine.seed": "3"}, out=tmp_path / "b", what_if="none")
    assert run.provenance["digest"] == same.provenance["digest"]
    assert run.provenance["seed"] == 3
    small, same_small = fabric_of_scenario(SMALL, {"fabric.radix": 4}), fabric_of_scenario(file, {"fabric.radix": "4"})
    assert to_json(small) == to_json(same_small)
    assert prepare(SMALL, {"engine.seed": 3}).scenario == prepare(read_scenario(file, {"engine.seed": 3})).scenario
    given = weftwork.run({"traffic": SMALL["traffic"]}, fabric=fabric_of_scenario(SMALL), out=tmp_path / "c")
    assert given.scenario.count("fabric.json") == 1


@pytest.mark.parametrize(
    ("scenario", "overrides"), [(3, None), (None, None), (SMALL, ["fabric.radix=8"]), (SMALL, {3: 4}), ([SMALL], None)]
)
def test_other_types_are_refused(scenario: Any, overrides: Any) -> None:
    with pytest.raises(UsageError, match="wanted a"):
        read_scenario(scenario, overrides)
    with pytest.raises(UsageError, match="wanted a"):
        weftwork.run(scenario, overrides=overrides)
    with pytest.raises(UsageError, match="wanted a"):
        prepare(scenario, overrides)


def test_a_scenario_that_was_read_takes_no_overrides() -> None:
    scenario = read_scenario(SMALL)
    assert prepare(scenario).scenario is scenario
    with pytest.raises(ConfigError, match="changed with model_copy"):
        prepare(scenario, {"engine.seed": 2})
