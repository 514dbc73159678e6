"""How full a GPU may become: what `run` says of it, and what `plan` leaves free and proposes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from weftwork.cli import main
from weftwork.study.prepare.prepare import prepare, read_scenario

if TYPE_CHECKING:
    from pathlib import Path

FILE = """schema: 3
name: full
fabric: {topology: leaf-spine, leaves: 1, spines: 1, hosts_per_leaf: 2, node: dgx-h100, link_rate: 400Gbps}
training: {model: llama-3-8b, global_batch: 32, sequence: 4096, tensor: 8, context: 1, pipeline: 1, expert: 1,
           expert_tensor: 1, micro_batch: 4, zero: 1, recompute: full, placement: packed}
engine: {fidelity: flow}
"""


def command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["weftwork", *arguments])
    try:
        return main() or 0
    except SystemExit as end:
        return int(end.code or 0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "job.yaml"
    made.write_text(FILE, encoding="utf-8")
    return made


@pytest.fixture
def need_bytes(file: Path) -> int:
    """What the plan of the file is predicted to need."""
    return prepare(read_scenario(file)).jobs[0].memory.total_bytes


@pytest.mark.parametrize(("used", "warns"), [(0.95, True), (0.85, False)])
def test_a_run_warns_in_its_first_lines_beyond_nine_tenths(
    file: Path,
    need_bytes: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    used: float,
    warns: bool,  # noqa: FBT001
) -> None:
    memory = f"training.memory={round(need_bytes / used)}B"
    out = tmp_path / "run"
    assert command(monkeypatch, "run", str(file), "--set", memory, "--what-if", "none", "-o", str(out)) == 0
    lines = capsys.readouterr().out.splitlines()
    warnings = [line for line in lines[:8] if line.startswith("memory ")]
    assert len(warnings) == warns
    (told,) = [line for line in lines if "of memory, " in line]
    assert f"{100 * used:.0f} % of its {need_bytes / used / 1e9:.3g} GB; no measured row is near" in told
    assert ("so that it may" in told) == warns
    numbers = json.loads((out / "summary.json").read_text(encoding="utf-8"))["numbers"]
    assert numbers["memory_share"]["value"] == pytest.approx(used, rel=1e-6)


def test_memory_that_a_scenario_permits_and_no_gpu_has_is_a_warning(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ["--set", "training.memory=1TB", "--set", "training.recompute=none", "--set", "training.micro_batch=16"]
    asked += ["--set", "training.tensor=1", "--set", "training.global_batch=256"]
    assert command(monkeypatch, "run", str(file), *asked, "--what-if", "none", "-o", str(tmp_path / "run")) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("memory ")]
    assert "of its 85.5 GB" in line
    assert line.endswith("and it does not fit unless the prediction is too high")


def test_what_a_search_without_a_plan_proposes_can_be_taken(
    file: Path,
    need_bytes: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A headroom of 10 % is too much for a plan that takes 95 %; the headroom that is proposed is not."""
    fixed = ["--set", f"training.memory={round(need_bytes / 0.95)}B", "--set", "training.order=tp-cp-dp-pp"]
    out = ["-o", str(tmp_path / "plan"), "-j", "1"]
    assert command(monkeypatch, "plan", str(file), *fixed, *out) == 2
    said = capsys.readouterr().err
    assert "less a headroom of 10 %" in said
    assert "global_batch" not in said.split("; these keys are fixed")[0]
    (share,) = re.findall(r"it fits with (--headroom \d+%)", said)
    assert command(monkeypatch, "plan", str(file), *fixed, *out, *share.split(), "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["headroom"] in {0.04, 0.05}  # whole percent, rounded down
    assert document["limit_bytes"] == pytest.approx((1 - document["headroom"]) * document["gpu_bytes"], rel=1e-9)
    assert document["gpu_bytes"] == round(need_bytes / 0.95)
    assert all(one["memory_bytes"] <= document["limit_bytes"] for one in document["best"])
    assert document["best"][0]["near_words"] == "no measured row is near, so that it may not fit"


def test_a_headroom_that_is_no_share_is_refused(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command(monkeypatch, "plan", str(file), "--headroom", "10", "-o", str(tmp_path / "plan")) == 2
    assert "--headroom" in (said := capsys.readouterr().err)
    assert "found '10', wanted a share from 0 to below 1, such as 0.05 or 5%" in said
    assert not (tmp_path / "plan").exists()
