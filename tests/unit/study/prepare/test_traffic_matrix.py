"""The traffic matrix of a job is what its NIC ports send: held against the flow engine, which moves the bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import yaml
from helpers.tiny import Message, job_of, sends, star

from weftwork.spec.fabric import HOST
from weftwork.spec.job import Group, Loop, Peer, Send, Size, Wait
from weftwork.spec.scenario.scenario import loads
from weftwork.study.prepare.prepare import known_names, prepare
from weftwork.study.prepare.traffic_matrix import traffic_matrix
from weftwork.study.results.link_use import sent_bytes
from weftwork.study.run.execute import execute

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


def test_loops_are_multiplied_and_counters_give_peers() -> None:
    """Two rounds of three shifts in a ring of three, which leaves out oneself, are twice one message to each other."""
    others = Peer(rule="shift", group=Group(size=3), shift=1, step=1)
    body = (Send(peer=others, size=Size(total_bytes=30, parts=3)),)
    stream = (Loop(count=2, body=(Loop(count=2, body=body), Wait())),)
    matrix = traffic_matrix(star(3), job_of([[stream]] * 3))
    pairs = list(zip(matrix.source.tolist(), matrix.destination.tolist(), strict=True))
    assert pairs == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    assert matrix.size_bytes.tolist() == [20.0] * 6


def test_messages_of_a_queue_pair_are_one_row_and_channels_are_not() -> None:
    messages = [
        Message(source=0, destination=1, size_bytes=5),
        Message(source=0, destination=1, size_bytes=7, priority=6),
        Message(source=0, destination=1, size_bytes=1, channel=2),
        Message(source=1, destination=0, size_bytes=0),
    ]
    matrix = traffic_matrix(star(2), sends(2, messages))
    assert list(zip(matrix.channel.tolist(), matrix.size_bytes.tolist(), matrix.priority.tolist(), strict=True)) == [
        (0, 12.0, 6),
        (2, 1.0, -1),
    ]
