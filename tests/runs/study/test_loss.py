"""What a job becomes when some of its fabric is lost: the time before and after, or which GPU cannot go on."""

from __future__ import annotations

from pathlib import Path

import pytest

import weftwork
from weftwork.base.errors import ConfigError
from weftwork.study.loss import job_without
from weftwork.study.run.execute import Progress

SPINES = "{topology: leaf-spine, leaves: 2, spines: 4, hosts_per_leaf: 4, link_rate: 400Gbps}"
PLANES = "{topology: rail-optimized, hosts: 4, node: {model: dgx-h100, nic_ports: 16}, planes: 2, switch: tomahawk-5}"
TINY = """{"model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4,
"num_attention_heads": 8, "vocab_size": 1024, "max_position_embeddings": 512}"""


def written(folder: Path, fabric: str, workload: str, more: str = "") -> Path:
    (folder / "tiny.json").write_text(TINY, encoding="utf-8")
    file = folder / "asked.yaml"
    file.write_text(f"schema: 3\nfabric: {fabric}\n{workload}\n{more}\n", encoding="utf-8")
    return file


def test_an_all_to_all_waits_for_the_spine_that_is_left(tmp_path: Path) -> None:
    """Each of 8 hosts sends 7 shares through its port; 4 x 4 shares cross to the other leaf, over 4 spines or one."""
    spray = "transport: {load_balancing: spray, reorder_tolerant: true, recovery: selective-repeat}"
    file = written(tmp_path, SPINES, "collective: {operation: all-to-all, size: 64MiB}", spray)
    found = job_without(file, ["spine0", "spine1", "spine2"])
    assert (found.quantity, found.status_before, found.status_after) == (
        "collective_duration_ps",
        "complete",
        "complete",
    )
    assert found.slowdown == pytest.approx(16 / 7, rel=0.05)
    assert (found.cut_off, found.stopped) == ((), "")


def test_numbers_are_those_of_runs_with_the_same_faults(tmp_path: Path) -> None:
    file = written(tmp_path, PLANES, "collective: {operation: all-reduce, size: 64MiB}")
    found = job_without(file, ["host0/nic0"])
    at_once = {"engine.fidelity": "flow", "fabric.failover_delay": "0s", "fabric.reconvergence_delay": "0s"}
    faults = {"faults": "[{at: 0s, nic: host0/nic0, event: down}]"}
    before = weftwork.run(file, out=tmp_path / "before", overrides=at_once)
    after = weftwork.run(file, out=tmp_path / "after", overrides=at_once | faults)
    assert found.before_ps == before.value("collective_duration_ps")
    assert found.after_ps == after.value("collective_duration_ps")
    assert found.slowdown is not None
    assert found.slowdown > 1.01
    plane = job_without(file, ["plane0"]).after_ps
    assert plane is not None
    assert found.after_ps is not None
    assert found.after_ps <= plane < 1.02 * found.after_ps  # everybody waits for the one with a port less


def test_an_iteration_that_cannot_go_on_names_the_gpus(tmp_path: Path) -> None:
    fabric = "{topology: rail-optimized, gpus: 16, node: dgx-h100, switch: tomahawk-5}"
    file = written(tmp_path, fabric, "training: {model: tiny.json, tensor: 8, global_batch: 16}")
    port = job_without(file, ["host1/nic3"])
    assert port.quantity == "iteration_ps"
    assert port.before_ps is not None
    assert (port.after_ps, port.slowdown, port.status_after) == (None, None, "stuck")
    assert port.cut_off == ("rank 11 (host1, GPU 3)",)
    assert "dead link host1-leaf3" in port.stopped
    host = job_without(file, ["host1"])
    assert (host.status_after, host.after_ps, host.stopped) == ("host lost", None, "")
    assert host.cut_off == tuple(f"rank {8 + gpu} (host1, GPU {gpu})" for gpu in range(8))


def test_a_lost_link_that_nobody_uses_changes_nothing(tmp_path: Path) -> None:
    file = written(tmp_path, SPINES, "traffic: {pattern: incast, senders: 2, size: 1MiB}")
    found = job_without(file, ["random:0%@3"])
    assert found.quantity == "completion_ps"
    assert found.before_ps == found.after_ps
    assert found.slowdown == 1


def test_progress_may_stop_it(tmp_path: Path) -> None:
    def stop(now: Progress) -> None:
        raise KeyboardInterrupt(now.simulated_ps)

    file = written(tmp_path, SPINES, "traffic: {pattern: incast, senders: 2, size: 1MiB}")
    with pytest.raises(KeyboardInterrupt):
        job_without(file, ["spine0"], on_progress=stop)


def test_mistakes_are_told(tmp_path: Path) -> None:
    file = written(tmp_path, SPINES, "traffic: {pattern: incast, senders: 2, size: 1MiB}")
    with pytest.raises(ConfigError, match="did you mean 'spine1'"):
        job_without(file, ["spinne1"])


def test_faults_of_the_scenario_do_not_revive_what_is_lost(tmp_path: Path) -> None:
    """A fault on a lost link ends: the link would be up again."""
    work = "collective: {operation: all-reduce, size: 64MiB}"
    healthy = job_without(written(tmp_path, PLANES, work), ["host0/nic0"])
    file = written(tmp_path, PLANES, work, "faults: [{at: 0s, nic: host0/nic0, event: down, for: 10us}]")
    found = job_without(file, ["host0/nic0"])
    assert found.faults_left_out == 1
    assert (found.before_ps, found.after_ps) == (healthy.before_ps, healthy.after_ps)
