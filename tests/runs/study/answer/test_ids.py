"""A culprit has the ids of its place: ports, nodes, GPUs, ranks, jobs, a stage, and its faults."""

from __future__ import annotations

import json

from helpers.gallery import Gallery

from weftwork.spec.answer import CulpritIds
from weftwork.store.runs import Run

FAULTS = """schema: 3
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, link_rate: 100Gbps}
transport: {congestion_control: fixed-window}
traffic: {pattern: permutation, size: 1MiB}
faults:
- {at: 0s, link: leaf0-spine0, event: degrade, fraction: 0.5}
- {at: 0s, nic: host1, event: slow, fraction: 0.5}
- {at: 1us, switch: spine1, event: down}
- {at: 5us, link: leaf0-spine0, event: degrade, fraction: 0.2}
"""
UNEVEN = """schema: 3
fabric: {topology: rail-optimized, gpus: 64, node: dgx-h100, switch: tomahawk-5}
training: {model: llama-3-8b, pipeline: 8, global_batch: 1024, zero: 2, recompute: none}
engine: {fidelity: flow}
"""


def every_ids(run: Run) -> dict[str, CulpritIds]:
    """Ids of all suspects of an answer, by name."""
    suspects = (run.answer.culprit, *run.answer.others)
    return {suspect.name: suspect.ids for suspect in suspects if suspect.ids is not None}


def names(run: Run, ids: CulpritIds) -> tuple[list[str], list[str]]:
    """Names of the ports and of the nodes."""
    ports = dict(zip(run.links["port"].to_pylist(), run.links["name"].to_pylist(), strict=True))
    nodes = dict(zip(run.table("nodes")["node"].to_pylist(), run.table("nodes")["name"].to_pylist(), strict=True))
    return sorted(ports[port] for port in ids.ports), [nodes[node] for node in ids.nodes]


def test_faults_have_their_places_in_the_fabric_and_in_the_scenario(gallery: Gallery) -> None:
    run = gallery.run(FAULTS, what_if="none")
    ids = every_ids(run)
    link, nic, switch = ids["leaf0-spine0"], ids["host1"], ids["spine1"]
    assert names(run, link) == (["leaf0->spine0", "spine0->leaf0"], [])
    assert link.faults == (0, 3)
    assert names(run, nic) == (["host1->leaf0", "leaf0->host1"], ["host1"])
    assert nic.faults == (1,)
    assert names(run, switch) == (["leaf0->spine1", "leaf1->spine1", "spine1->leaf0", "spine1->leaf1"], ["spine1"])
    assert switch.faults == (2,)


def test_a_slow_gpu_has_its_ranks_and_its_server(gallery: Gallery) -> None:
    run = gallery("straggler")
    ids = run.answer.culprit.ids
    assert ids is not None
    (rank,) = run.query("select distinct rank from segments where gpu = 3")["rank"].to_pylist()
    assert (ids.gpus, ids.ranks, ids.stragglers) == ((3,), (rank,), (0,))
    assert names(run, ids) == ([], ["host0"])


def test_other_jobs_have_their_places(gallery: Gallery) -> None:
    run = gallery("two-jobs")
    jobs = run.table("jobs")["job"].to_pylist()
    assert {name: ids.jobs for name, ids in every_ids(run).items() if name in jobs} == {
        name: (place,) for place, name in enumerate(jobs)
    }


def test_a_stage_has_its_number_and_its_servers(gallery: Gallery) -> None:
    run = gallery.run(UNEVEN, what_if="none")
    (ids,) = (ids for name, ids in every_ids(run).items() if name.startswith("stage "))
    assert f"stage {ids.stage}" in every_ids(run)
    assert ids.jobs == (0,)
    assert names(run, ids)[1] == [f"host{ids.stage}"]  # eight stages on eight servers


def test_the_root_of_pauses_has_the_ports_of_its_link(gallery: Gallery) -> None:
    run = gallery("victim")
    ids = run.answer.culprit.ids
    assert ids is not None
    assert names(run, ids) == (["host0->leaf0", "leaf0->host0"], [])
    document = json.loads((run.path / "summary.json").read_text(encoding="utf-8"))
    assert document["answer"]["culprit"]["ids"]["ports"] == list(ids.ports)
