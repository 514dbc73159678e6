"""What a run makes Python do: calls of functions, and files of the source that it enters.

The work that nobody asked for grows unseen: a check that each run repeats, a folder whose files all are imported.
Numbers are of a process that begins with the run, and the same on each machine. A file is entered where one of its
functions runs.
Leaves out: time, which `benchmarks/` measures.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import yaml

import weftwork

SOURCE: Final = Path(weftwork.__file__).parent
TRAINING: Final = {
    "schema": 3,
    "fabric": {"topology": "rail-optimized", "gpus": 64, "node": "dgx-h100", "switch": "tomahawk-5"},
    "training": {
        "model": "llama-3-8b", "tensor": 8, "pipeline": 2, "data": 4, "micro_batch": 1, "global_batch": 32,
        "sequence": 8192,
    },
    "engine": {"fidelity": "flow"},
}  # fmt: skip
PERMUTATION: Final = {
    "schema": 3,
    "fabric": {"topology": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4},
    "traffic": {"pattern": "permutation", "size": "64KB"},
}
COUNTING: Final = """
import json, sys
from weftwork.study.record.run import run_scenario
scenario, folder, source = sys.argv[1:]
calls = own = 0
files = set()
def hear(frame, event, argument):
    global calls, own
    if event == "call":
        calls += 1
        name = frame.f_code.co_filename
        if name.startswith(source):
            own += 1
            if frame.f_code.co_name != "<module>":
                files.add(name)
sys.setprofile(hear)
run_scenario(scenario, out=folder, what_if="none")
sys.setprofile(None)
print(json.dumps({"calls": calls, "own": own, "files": sorted(files), "modules": sorted(sys.modules)}))
"""


def counted(scenario: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What a run makes Python do, in a process of its own."""
    file = folder / "run.yaml"
    file.write_text(yaml.dump(scenario), encoding="utf-8")
    asked = [sys.executable, "-c", COUNTING, str(file), str(folder / "out"), str(SOURCE)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_a_training_run_on_flows_calls_few_functions(tmp_path: Path) -> None:
    count = counted(TRAINING, tmp_path)
    assert count["own"] < 36_000


def test_a_permutation_by_packets_enters_few_files(tmp_path: Path) -> None:
    count = counted(PERMUTATION, tmp_path)
    assert len(count["files"]) < 200


def test_a_run_imports_the_topology_that_it_uses_and_no_other(tmp_path: Path) -> None:
    names = {name for name in counted(PERMUTATION, tmp_path)["modules"] if name.startswith("weftwork.topology.shapes.")}
    assert names == {"weftwork.topology.shapes.leaf_spine"}
