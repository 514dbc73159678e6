"""Parts that runs of one process have in common: made once, for equal keys alone, with the same digests."""

from __future__ import annotations

from pathlib import Path

import pytest

from weftwork.base import sharing as sharing_process
from weftwork.spec.scenario.scenario import Scenario
from weftwork.study.prepare import shared_parts as shared
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.record.run import run_scenario

FILE = """schema: 3
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, node: dgx-h100}
training: {model: gpt-1.7b, tensor: 8, global_batch: 16, placement: PLACEMENT}
engine: {fidelity: flow}
"""


@pytest.fixture
def sharing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that shares, for one test."""
    monkeypatch.setattr(sharing_process, "_shares", [])
    sharing_process.share()
    shared.forget()


def scenario(folder: Path, placement: str = "packed", **changed: str) -> Scenario:
    file = folder / "one.yaml"
    file.write_text(FILE.replace("PLACEMENT", placement), encoding="utf-8")
    return read_scenario(file, {name.replace("__", "."): value for name, value in changed.items()})


@pytest.mark.usefixtures("sharing")
def test_seeds_and_faults_share_fabric_and_programs(tmp_path: Path) -> None:
    first = prepare(scenario(tmp_path))
    for changed in ({"engine__seed": "2"}, {"faults": "[{at: 1ms, nic: host0/nic0, event: slow, fraction: 0.5}]"}):
        other = prepare(scenario(tmp_path, **changed))
        assert other.jobs[0] is first.jobs[0]
        assert other.fabric.links is first.fabric.links


@pytest.mark.usefixtures("sharing")
@pytest.mark.parametrize(
    "changed",
    [
        {"fabric__link_rate": "100Gbps"},
        {"training__global_batch": "32"},
        {"transport__mtu": "1024B"},
        {"stragglers": "[{gpu: 3, factor: 2}]"},
        {"engine__fidelity": "packet"},
    ],
)
def test_what_programs_follow_from_is_never_taken_from_another_run(changed: dict[str, str], tmp_path: Path) -> None:
    first = prepare(scenario(tmp_path))
    assert prepare(scenario(tmp_path, **changed)).jobs[0] is not first.jobs[0]


@pytest.mark.usefixtures("sharing")
def test_a_placement_that_the_seed_draws_is_of_its_seed(tmp_path: Path) -> None:
    first = prepare(scenario(tmp_path, "random-servers"))
    other = prepare(scenario(tmp_path, "random-servers", engine__seed="7"))
    assert other.jobs[0].job.placement.host.tolist() != first.jobs[0].job.placement.host.tolist()


def test_digests_are_those_of_runs_that_share_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [scenario(tmp_path, engine__seed=seed) for seed in ("1", "2", "3")]
    alone = [run_scenario(one, out=tmp_path / f"alone{place}").provenance["digest"] for place, one in enumerate(asked)]
    monkeypatch.setattr(sharing_process, "_shares", [])
    sharing_process.share()
    shared.forget()
    assert [
        run_scenario(one, out=tmp_path / f"shared{place}").provenance["digest"] for place, one in enumerate(asked)
    ] == alone
