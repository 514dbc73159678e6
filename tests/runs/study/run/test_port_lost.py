"""A NIC port or a leaf dies under a training job: what survives in hardware survives here, by flows and by packets."""

from __future__ import annotations

import pytest
from helpers.gallery import Gallery

from weftwork.store.runs import Run

TINY = """{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512, "intermediate_size": 1024,
"num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 4096,
"max_position_embeddings": 512, "tie_word_embeddings": false}"""
SMALL = """schema: 3
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


class Small:
    """Runs of the small scenario with other values of its keys, each run once, without other worlds."""

    def __init__(self, gallery: Gallery) -> None:
        self.gallery = gallery

    def __call__(self, **overrides: str) -> Run:
        changes = {key.replace("__", "."): value for key, value in overrides.items()}
        run: Run = self.gallery.run(SMALL, files={"tiny.json": TINY}, overrides=changes, what_if="none")
        return run


@pytest.fixture(scope="module")
def small(gallery: Gallery) -> Small:
    return Small(gallery)


def iteration_ps(run: Run) -> float:
    found = run.value("iteration_ps")
    assert found is not None
    return found


@pytest.mark.parametrize("name", FAULTS)
def test_a_small_job_goes_on_as_long_by_flows_as_by_packets(small: Small, name: str) -> None:
    took = {}
    for fidelity in ("packet", "flow"):
        whole = small(engine__fidelity=fidelity)
        run = small(engine__fidelity=fidelity, faults=FAULTS[name])
        assert run.status == "complete"
        took[fidelity] = iteration_ps(run)
        assert 1 < took[fidelity] / iteration_ps(whole) < 1.1
    assert took["flow"] == pytest.approx(took["packet"], rel=0.005)


@pytest.mark.parametrize("fidelity", ["packet", "flow"])
def test_a_server_with_one_port_a_gpu_does_not_go_on(small: Small, fidelity: str) -> None:
    one = {"fabric__planes": "1", "fabric__node": "dgx-h100", "engine__until": "20ms"}
    run = small(engine__fidelity=fidelity, faults=FAULTS["a port"], **one)
    assert run.value("iteration_ps") is None


@pytest.mark.parametrize("fidelity", ["packet", "flow"])
def test_a_longer_failover_takes_longer(small: Small, fidelity: str) -> None:
    faults = "[{at: 2850us, nic: host0/nic0, event: down}]"
    soon, late = (
        iteration_ps(small(engine__fidelity=fidelity, fabric__failover_delay=delay, faults=faults))
        for delay in ("100us", "300us")
    )
    assert late - soon == pytest.approx(200e6, rel=0.02)  # the gradients of the job are under way
