"""A NIC port or a leaf dies under a training job: what survives in hardware survives here, by flows and by packets."""

from __future__ import annotations

from pathlib import Path

import pytest

import weftwork
from weftwork.store.runs import Run

TINY = """{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512, "intermediate_size": 1024,
"num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 4096,
"max_position_embeddings": 512, "tie_word_embeddings": false}"""
SMALL = """schema: 2
name: small
fabric:
  topology: rail-optimized
  hosts: 4
  node: {model: dgx-h100, nic_ports: 16}
  link_rate: 200Gbps
  planes: 2
  switch: tomahawk-4
  failover_delay: 50us
  reconvergence_delay: 50us
transport: {timeout: 200us}
training: {model: tiny.json, tensor: 8, global_batch: 8, overlap: {data: 0}}
"""
FAULTS = {
    "a port": "[{at: 0s, nic: host0/nic0, event: down}]",
    "a port at the receiver": "[{at: 1ms, nic: host2/nic5, event: down}]",
    "a leaf": "[{at: 1ms, switch: leaf0, event: down}]",
    "a port that flaps": "[{at: 2400us, nic: host0/nic0, event: down, for: 60us, every: 100us, times: 6}]",
}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "tiny.json").write_text(TINY, encoding="utf-8")
    file = tmp_path / "small.yaml"
    file.write_text(SMALL, encoding="utf-8")
    return file


def ask(file: Path, name: str, **overrides: str) -> Run:
    return weftwork.run(file, out=file.parent / name, overrides={k.replace("__", "."): v for k, v in overrides.items()})


def iteration_ps(run: Run) -> float:
    found = run.value("iteration_ps")
    assert found is not None
    return found


@pytest.mark.parametrize("name", FAULTS)
def test_a_small_job_goes_on_as_long_by_flows_as_by_packets(small: Path, name: str) -> None:
    took = {}
    for fidelity in ("packet", "flow"):
        whole = ask(small, f"{fidelity}-whole", engine__fidelity=fidelity)
        run = ask(small, f"{fidelity}-dead", engine__fidelity=fidelity, faults=FAULTS[name])
        assert run.status == "complete"
        took[fidelity] = iteration_ps(run)
        assert 1 < took[fidelity] / iteration_ps(whole) < 1.1
    assert took["flow"] == pytest.approx(took["packet"], rel=0.005)


@pytest.mark.parametrize("fidelity", ["packet", "flow"])
def test_a_server_with_one_port_a_gpu_does_not_go_on(small: Path, fidelity: str) -> None:
    one = {"fabric__planes": "1", "fabric__node": "dgx-h100", "engine__until": "20ms"}
    run = ask(small, "one", engine__fidelity=fidelity, faults=FAULTS["a port"], **one)
    assert run.value("iteration_ps") is None


@pytest.mark.parametrize("fidelity", ["packet", "flow"])
def test_a_longer_failover_takes_longer(small: Path, fidelity: str) -> None:
    faults = "[{at: 2850us, nic: host0/nic0, event: down}]"
    soon, late = (
        iteration_ps(ask(small, delay, engine__fidelity=fidelity, fabric__failover_delay=delay, faults=faults))
        for delay in ("100us", "300us")
    )
    assert late - soon == pytest.approx(200e6, rel=0.02)  # the gradients of the job are under way
