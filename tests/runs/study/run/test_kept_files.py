"""A run folder is whole: moved elsewhere, with the user's own files gone, it runs again to the same digest."""

from __future__ import annotations

import json
import shutil
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

import weftwork
from weftwork.base.errors import ConfigError
from weftwork.policies.load import KINDS as POLICIES
from weftwork.spec.scenario.choices import ALGORITHMS, PATTERNS, SCHEMES, TOPOLOGIES, TRANSPORTS
from weftwork.store.runs import Run
from weftwork.study.calibrate.file import calibration_text
from weftwork.study.record import kept_files
from weftwork.topology.export import export

TEMPLATES = (*POLICIES, *(folder.kind for folder in (ALGORITHMS, PATTERNS, TOPOLOGIES, TRANSPORTS)))
KEYS = {
    **{kind: f"transport.{kind}" for kind in POLICIES},
    "collective": "collective.algorithm", "traffic": "traffic.pattern", "topology": "fabric.topology",
    "transport": "transport.protocol", "scheme": "fabric.engineering.scheme", "model": "training.model",
    "json": "fabric.file", "graphml": "fabric.file", "sizes": "traffic.sizes", "calibration": "calibration",
}  # fmt: skip
LEAF_SPINE = "{topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, link_rate: 100Gbps}"
PERMUTATION = "traffic: {pattern: permutation, size: 64KiB}\n"
MODEL = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 1024, "num_hidden_layers": 1,
    "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 2048, "vocab_size": 1024,
    "max_position_embeddings": 2048,
}  # fmt: skip
TRAINING = """\
schema: 3
fabric: {{topology: rail-optimized, node: dgx-h100, switch: tomahawk-5, gpus: 16}}
training: {{model: {model}, tensor: 8, data: 2, global_batch: 2, sequence: 2048}}
engine: {{fidelity: flow}}
"""


def written(folder: Path, kind: str) -> Path:
    """A scenario with one file of the user's own, of a kind."""
    folder.mkdir()
    file = folder / "scenario.yaml"
    if kind in TEMPLATES:
        templates = Path(str(files("weftwork") / "templates"))
        shutil.copy(templates / f"{kind}.py", folder)
        file.write_text((templates / f"{kind}.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    elif kind == "scheme":
        shutil.copy(SCHEMES.paths["placement"], folder / "mine.py")
        fabric = f"{LEAF_SPINE[:-1]}, engineering: {{scheme: ./mine.py}}}}"
        file.write_text(f"schema: 3\nfabric: {fabric}\n{PERMUTATION}", encoding="utf-8")
    elif kind in {"json", "graphml"}:
        export(weftwork.prepare(plain(folder / "plain.yaml")).fabric, folder / f"net.{kind}")
        file.write_text(f"schema: 3\nfabric: {{file: net.{kind}}}\n{PERMUTATION}", encoding="utf-8")
    elif kind == "sizes":
        (folder / "own.csv").write_text("size_bytes,cumulative_percent\n1000,0\n90000,100\n", encoding="utf-8")
        traffic = "traffic: {pattern: poisson, sizes: own.csv, load: 0.2, flows: 20}\n"
        file.write_text(f"schema: 3\nfabric: {LEAF_SPINE}\n{traffic}", encoding="utf-8")
    else:
        (folder / "my_model").mkdir()
        (folder / "my_model" / "config.json").write_text(json.dumps(MODEL), encoding="utf-8")
        text = TRAINING.format(model="./my_model/config.json" if kind == "model" else "llama-3-8b")
        if kind == "calibration":
            known = calibration_text(values={"matmul_efficiency": 0.4}, fitted_on={"file": "rows.csv", "rows": 30})
            (folder / "my.toml").write_text(known, encoding="utf-8")
            text += "calibration: my.toml\n"
        file.write_text(text, encoding="utf-8")
    return file


def plain(file: Path) -> weftwork.Scenario:
    file.write_text(f"schema: 3\nfabric: {LEAF_SPINE}\n{PERMUTATION}", encoding="utf-8")
    return weftwork.read_scenario(file)


def named(run: Run, key: str) -> str:
    """What the scenario in a run folder has at a key."""
    found = yaml.safe_load(run.scenario)
    for part in key.split("."):
        found = found[int(part)] if isinstance(found, list) else found[part]
    return str(found["file"] if isinstance(found, dict) else found)


def moved(run: Run, elsewhere: Path, *gone: Path) -> Path:
    """Move a run folder and delete the user's own files; returns the scenario in it."""
    for folder in gone:
        shutil.rmtree(folder)
    shutil.move(run.path, elsewhere)
    return elsewhere / "scenario.yaml"


@pytest.mark.parametrize("kind", KEYS)
def test_a_moved_folder_runs_again_without_the_users_own_files(tmp_path: Path, kind: str) -> None:
    run = weftwork.run(written(tmp_path / "user", kind), out=tmp_path / "run", what_if="none")
    key = KEYS[kind]
    origin = run.provenance["files"][key]
    assert named(run, key) == origin["kept_as"]
    copy = run.path / origin["kept_as"]
    assert copy.read_bytes() == Path(origin["file"]).read_bytes()
    assert copy.stat().st_size == origin["size_bytes"]
    assert str(tmp_path) not in run.scenario
    about, digest = run.about, run.provenance["digest"]
    again = weftwork.run(moved(run, tmp_path / "elsewhere", tmp_path / "user"), out=tmp_path / "again", what_if="none")
    assert (again.provenance["digest"], again.about) == (digest, about)
    assert again.provenance["files"][key]["hash"] == origin["hash"]


def test_several_seeds_have_their_files_once(tmp_path: Path) -> None:
    run = weftwork.run(written(tmp_path / "user", "congestion_control"), out=tmp_path / "run", seeds=2, what_if="none")
    key = KEYS["congestion_control"]
    assert named(run, key) == "files/congestion_control.py"
    assert [named(one, key) for one in run.seeds] == ["../files/congestion_control.py"] * 2
    assert [file.name for file in run.path.rglob("*.py")] == ["congestion_control.py"]
    digest = run.seeds[1].provenance["digest"]
    scenario = moved(run, tmp_path / "elsewhere", tmp_path / "user")
    assert weftwork.run(scenario, out=tmp_path / "a", seed=2, what_if="none").provenance["digest"] == digest
    of_seed = scenario.parent / "seed-2" / "scenario.yaml"
    assert weftwork.run(of_seed, out=tmp_path / "b", what_if="none").provenance["digest"] == digest


def test_a_fabric_from_python_lies_once_beside_several_seeds(tmp_path: Path) -> None:
    fabric = weftwork.prepare(plain(tmp_path / "plain.yaml")).fabric
    run = weftwork.run(tmp_path / "plain.yaml", out=tmp_path / "run", seeds=2, fabric=fabric, what_if="none")
    assert [file.parent for file in run.path.rglob("fabric.json")] == [run.path]
    digest = run.seeds[0].provenance["digest"]
    scenario = moved(run, tmp_path / "elsewhere").parent / "seed-1" / "scenario.yaml"
    assert weftwork.run(scenario, out=tmp_path / "again", what_if="none").provenance["digest"] == digest


def test_points_of_a_sweep_share_copies_and_a_changed_file_gets_another_one(tmp_path: Path) -> None:
    scenario = weftwork.read_scenario(written(tmp_path / "user", "sizes"))
    runs = [kept_files_run(scenario, tmp_path / "sweep" / "runs" / str(number)) for number in (1, 2)]
    (tmp_path / "user" / "own.csv").write_text("size_bytes,cumulative_percent\n10,0\n90,100\n", encoding="utf-8")
    runs.append(kept_files_run(scenario, tmp_path / "sweep" / "runs" / "3"))
    names = [named(run, "traffic.sizes") for run in runs]
    assert names[0] == names[1] != names[2]
    assert len(list((tmp_path / "sweep").rglob("own.csv"))) == 2
    digests = [run.provenance["digest"] for run in runs]
    shutil.rmtree(tmp_path / "user")
    shutil.move(tmp_path / "sweep", tmp_path / "elsewhere")
    for number, digest in enumerate(digests, 1):
        file = tmp_path / "elsewhere" / "runs" / str(number) / "scenario.yaml"
        assert weftwork.run(file, out=tmp_path / f"again-{number}", what_if="none").provenance["digest"] == digest


def kept_files_run(scenario: weftwork.Scenario, folder: Path) -> Run:
    from weftwork.study.record.run import run_beside

    return run_beside(scenario, folder, what_if="none")


def test_files_of_one_name_keep_their_names_in_folders_of_their_own(tmp_path: Path) -> None:
    text = TRAINING.partition("training:")
    jobs = []
    for name in ("one", "two"):
        (tmp_path / name / "llama").mkdir(parents=True)
        model = json.dumps({**MODEL, "num_hidden_layers": len(jobs) + 1})
        (tmp_path / name / "llama" / "config.json").write_text(model, encoding="utf-8")
        jobs.append(f"{{model: {name}/llama/config.json, tensor: 8, gpus: 8, global_batch: 1, sequence: 2048}}")
    text = f"{text[0].format()}jobs: [{', '.join(jobs)}]\nengine: {{fidelity: flow}}\n"
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    run = weftwork.run(tmp_path / "a.yaml", out=tmp_path / "run", what_if="none")
    assert [named(run, f"jobs.{place}.model") for place in (0, 1)] == [
        "files/llama/config.json", "files/2/llama/config.json",
    ]  # fmt: skip
    digest, words = run.provenance["digest"], run.about["workload"]
    again = weftwork.run(
        moved(run, tmp_path / "elsewhere", tmp_path / "one", tmp_path / "two"), out=tmp_path / "again", what_if="none"
    )
    assert (again.provenance["digest"], again.about["workload"]) == (digest, words)


def test_a_file_that_is_too_large_stays_where_it_is_and_a_note_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_files, "MOST_BYTES", 10)
    run = weftwork.run(written(tmp_path / "user", "sizes"), out=tmp_path / "run", what_if="none")
    file = tmp_path / "user" / "own.csv"
    assert named(run, "traffic.sizes") == str(file)
    assert not (run.path / "files").exists()
    assert run.provenance["files"]["traffic.sizes"]["kept_as"] is None
    (note,) = run.provenance["notes"]
    assert note.startswith(f"the run folder has no copy of {file}, which is larger than")


def test_a_file_that_changes_during_the_run_is_kept_as_it_was_before(tmp_path: Path) -> None:
    file = written(tmp_path / "user", "traffic")
    own = tmp_path / "user" / "traffic.py"
    before = own.read_bytes()
    run = weftwork.run(
        file, out=tmp_path / "run", what_if="none", progress=lambda _: own.write_bytes(before + b"\n# changed\n")
    )
    assert own.read_bytes() != before
    assert (run.path / "files" / "traffic.py").read_bytes() == before
    assert f"{own} has changed during the run" in run.provenance["notes"][0]


def test_a_module_that_a_file_imports_is_named_in_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path / "user", "traffic")
    (tmp_path / "user" / "my_helper_module.py").write_text("SOME = 1\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path / "user")
    own = tmp_path / "user" / "traffic.py"
    head = "from __future__ import annotations\n"
    text = own.read_text(encoding="utf-8")
    assert head in text
    own.write_text(text.replace(head, f"{head}\nimport json\nimport numpy\nimport my_helper_module\n"), "utf-8")
    run = weftwork.run(file, out=tmp_path / "run", what_if="none")
    (note,) = run.provenance["notes"]
    assert note.startswith(f"{own} imports my_helper_module, which the run folder does not hold")


def test_a_run_without_files_of_the_users_own_has_no_folder_for_them(tmp_path: Path) -> None:
    run = weftwork.run(plain(tmp_path / "plain.yaml"), out=tmp_path / "run", what_if="none")
    assert not (run.path / "files").exists()
    assert run.provenance["files"] == {}
    assert weftwork.run(run.path / "scenario.yaml", out=tmp_path / "again", user_code=False).is_complete


def test_the_code_in_a_run_folder_is_code_of_the_users_own(tmp_path: Path) -> None:
    run = weftwork.run(written(tmp_path / "user", "congestion_control"), out=tmp_path / "run", what_if="none")
    with pytest.raises(ConfigError, match="which --no-user-code refuses"):
        weftwork.run(run.path / "scenario.yaml", out=tmp_path / "again", user_code=False)


def test_a_name_is_that_of_the_run_and_moves_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scenario = plain(tmp_path / "plain.yaml")
    unnamed = weftwork.run(scenario, what_if="none")
    run = weftwork.run(scenario, name="My run", what_if="none")
    assert unnamed.path.name.startswith("plain-")
    assert run.path.name.startswith("my-run-")
    assert "name" not in unnamed.provenance
    assert run.provenance["name"] == run.about["name"] == yaml.safe_load(run.scenario)["name"] == "My run"
    assert run.provenance["digest"] == unnamed.provenance["digest"]
    for wrong in ("", " ", "a\nb", "x" * 61):
        with pytest.raises(ConfigError, match="--name"):
            weftwork.run(scenario, name=wrong)
