"""The traffic matrix of a job is what its NIC ports send: held against the flow engine, which moves the bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import yaml

from weftwork.spec.fabric import HOST
from weftwork.spec.scenario.scenario import loads
from weftwork.study.prepare.prepare import known_names, prepare
from weftwork.study.prepare.traffic_matrix import traffic_matrix
from weftwork.study.record.road import execute
from weftwork.study.results.link_use import sent_bytes

LEAVES = {"topology": "leaf-spine", "leaves": 4, "spines": 2, "hosts_per_leaf": 2}


RAILS = {
    "topology": "rail-optimized", "gpus": 64, "node": "dgx-h100", "radix": 16,
}  # fmt: skip


TRAINING = {"micro_batch": 1, "global_batch": 64, "sequence": 4096}


JOBS: dict[str, dict[str, Any]] = {
    "permutation": {"fabric": LEAVES, "traffic": {"pattern": "permutation", "size": "1MiB", "repeat": 3}},
    "all-to-all": {"fabric": LEAVES, "traffic": {"pattern": "all-to-all", "size": "1MiB"}},
    "poisson": {"fabric": LEAVES, "traffic": {"pattern": "poisson", "sizes": "web-search", "load": 0.3, "flows": 40}},
    "ring": {
        "fabric": RAILS,
        "collective": {"operation": "all-reduce", "algorithm": "ring", "size": "16MiB", "channels": 4},
    },
    "pairwise": {"fabric": RAILS, "collective": {"operation": "all-to-all", "size": "16MiB"}},
    "dense training": {
        "fabric": RAILS, "training": {"model": "llama-3-8b", "tensor": 4, "pipeline": 2, "data": 8, **TRAINING},
    },
    "experts": {
        "fabric": RAILS,
        "training": {"model": "mixtral-8x7b", "tensor": 2, "pipeline": 2, "expert": 8, "data": 16, **TRAINING},
    },
}  # fmt: skip


@pytest.mark.parametrize("name", JOBS)
def test_nic_ports_send_what_the_matrix_says(name: str) -> None:
    """But for headers: a share of about a fiftieth, the same for all NIC ports unless there are small messages."""
    made = prepare(
        loads(yaml.safe_dump({"schema": 3, "engine": {"fidelity": "flow"}, **JOBS[name]}), known=known_names())
    )
    matrix = traffic_matrix(made.fabric, made.job)
    ports = made.fabric.ports
    wanted = np.zeros((2, len(ports.node)))
    np.add.at(wanted[0], matrix.source_port, matrix.size_bytes)
    np.add.at(wanted[1], ports.peer[matrix.destination_port], matrix.size_bytes)
    found = sent_bytes(made, execute(made, None, what_if="none"))
    is_nic = made.fabric.node_kind[ports.node] == HOST
    for side, own in ((wanted[0], is_nic), (wanted[1], is_nic[ports.peer])):
        assert (found[own & (side == 0)] == 0).all()
        headers = found[own & (side > 0)] / side[own & (side > 0)]
        assert len(headers)
        assert (headers > 1).all()
        assert (headers < 1.05).all()
        assert headers.max() / headers.min() < (1.01 if name == "poisson" else 1.001)
