"""What an answer says where no fault is in the scenario: each setting that can be ill, and each part of the time.

Each scenario is ill by one setting, and the answer names its key; a run that is healthy says by which evidence.
"""

from __future__ import annotations

import pytest
from helpers.answer_laws import answer_holds
from helpers.gallery import Gallery

from weftwork.report.three_lines import three_lines
from weftwork.spec.answer import FULL_SHARE
from weftwork.store.runs import Run

STAR = """schema: 3
fabric: {{topology: leaf-spine, leaves: 1, spines: 1, hosts_per_leaf: 3, link_rate: 100Gbps{fabric}}}
transport: {{congestion_control: {control}, mtu: 1024{transport}}}
traffic: {{pattern: incast, senders: {senders}, receiver: 0, size: {size}}}
"""
TRAINING = """schema: 3
fabric: {{topology: rail-optimized, gpus: {gpus}, node: {node}, switch: tomahawk-5}}
training: {{model: llama-3-8b, sequence: 8192, zero: 2, {training}}}
engine: {{fidelity: {fidelity}}}
"""


def star(*, fabric: str = "", control: str = "none", transport: str = "", senders: int = 2, size: str = "1MB") -> str:
    return STAR.format(fabric=fabric, control=control, transport=transport, senders=senders, size=size)


def training(keys: str, *, gpus: int = 64, node: str = "dgx-h100", fidelity: str = "flow") -> str:
    return TRAINING.format(training=keys, gpus=gpus, node=node, fidelity=fidelity)


LOSSY = ", flow_control: none, timeout: 1ms"
ILL = {  # scenario, name and key of the culprit, least share of the time that it costs
    "headroom of nothing": (
        star(fabric=", switch: {buffer: 4MB, headroom: 0B}", size="5MB"), "headroom", "fabric.switch.headroom", 0.5
    ),
    "a window below the bandwidth-delay product": (
        star(fabric=", cable_length: 10km", control="{name: fixed-window, window_bytes: 20KB}", senders=1),
        "window", "transport.congestion_control.window_bytes", 0.5,
    ),
    "a timeout below the round trip": (
        star(fabric=", cable_length: 3km", transport=", timeout: 20us, flow_control: none", senders=1),
        "timeout", "transport.timeout", 0.02,
    ),
    "PCIe of all hosts alike": (
        star(fabric=", nic: {pcie_rate: 20Gbps}", senders=1), "PCIe", "fabric.nic.pcie_rate", 0.5
    ),
    "links that lose packets, all alike": (
        star(fabric=", loss: 0.01", transport=f"{LOSSY}, recovery: selective-repeat", senders=1),
        "loss of links", "fabric.loss", 0.01,
    ),
    "a control that idles": (
        star(control="{name: dcqcn, variant: paper}", fabric=", switch: {ecn: {kmin: 1KB, kmax: 2KB, pmax: 1}}"),
        "dcqcn", "transport.congestion_control", 0.2,
    ),
    "the latency of a long cable": (
        star(fabric=", cable_length: 20km", size="64KB", senders=1), "latency", "fabric", 0.5
    ),
    "tensor traffic": (
        training("tensor: 8, global_batch: 64"), "tensor parallel communication", "training.tensor", 0.2
    ),
    "a bubble": (
        training("pipeline: 8, global_batch: 64"), "the bubble", "training.virtual_stages", 0.2
    ),
    "an optimizer after each micro batch": (
        training("global_batch: 8, recompute: none, overlap: {data: 1}", gpus=8),
        "the optimizer", "training.global_batch", 0.03,
    ),
    "a slow link to the host": (
        training("tensor: 8, global_batch: 64, offloaded_layers: 20", node="{model: dgx-h100, host_rate: 100Gbps}"),
        "the link to the host", "training.offloaded_layers", 0.3,
    ),
    "recomputation": (training("global_batch: 512, recompute: full"), "recomputation", "training.recompute", 0.1),
    "small messages of a collective": (
        """schema: 3
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 4, link_rate: 100Gbps}
collective: {operation: all-reduce, algorithm: ring, gpus: 8, size: 64KB}
""",
        "overhead of the library", "collective.size", 0.5,
    ),
    "arrivals": (
        """schema: 3
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 4, link_rate: 100Gbps}
transport: {congestion_control: none}
traffic: {pattern: poisson, sizes: facebook-hadoop, flows: 50, load: 0.1}
""",
        "arrivals", "traffic", 0.3,
    ),
}  # fmt: skip


def told(gallery: Gallery, text: str, **options: object) -> Run:
    run: Run = gallery.run(text, **options)
    answer_holds(run)
    return run


@pytest.mark.parametrize("case", ILL)
def test_an_ill_setting_is_named_with_its_key(gallery: Gallery, case: str) -> None:
    text, name, key, least = ILL[case]
    run = told(gallery, text, what_if="all")
    culprit = run.answer.culprit
    assert (culprit.name, culprit.key) == (name, key), three_lines(run)[2]
    assert (culprit.cost_share or 0) >= least


def test_a_buffer_of_nics_that_overflows_is_suspected_beside_the_slow_host(gallery: Gallery) -> None:
    nic = ", nic: {pcie_rate: 50Gbps, receive_buffer: 20KB, xoff: 10KB, xon: 5KB}"
    run = told(gallery, star(fabric=nic, transport=f"{LOSSY}, recovery: selective-repeat", senders=1), what_if="all")
    keys = {one.key: one.cost_share or 0 for one in (run.answer.culprit, *run.answer.others)}
    assert run.answer.culprit.key == "fabric.nic.pcie_rate"
    assert keys["fabric.nic.receive_buffer"] > 0.1


def test_a_healthy_run_names_the_resource_that_was_full_and_both_limits(gallery: Gallery) -> None:
    run = told(gallery, star(transport=", flow_control: none", senders=1, size="20MB"), what_if="all")
    evidence = run.answer.evidence
    assert evidence is not None
    assert run.answer.culprit.kind == "none"
    assert evidence.resources[0].useful_share >= FULL_SHARE
    assert three_lines(run)[2].startswith("nothing: its own size alone limits it: ")
    assert three_lines(run)[2].endswith("(at least 90 %), and at most 1 % was lost, sent again or paused")


def test_a_full_port_behind_paused_links_is_load_with_trouble(gallery: Gallery) -> None:
    run = told(gallery, star(size="20MB", fabric=", switch: {buffer: 4MB}"), what_if="all")
    assert run.answer.culprit.kind == "load"
    assert run.summary["pauses"]["value"] > 0
    assert "of the time a port was paused (more than 1 %)" in three_lines(run)[2]


def test_a_run_that_nothing_explains_says_so_with_its_numbers_and_what_was_tried(gallery: Gallery) -> None:
    """A control of the user's own that idles, while no other control is simulated beside it."""
    run = told(gallery, star(control="{name: dcqcn, variant: paper}",
               fabric=", switch: {ecn: {kmin: 1KB, kmax: 2KB, pmax: 1}}"), what_if="none")  # fmt: skip
    assert run.answer.culprit.kind == "unknown"
    line = three_lines(run)[2]
    assert line.startswith("not known: ")
    assert "were not simulated" in line or "was not simulated" in line
    assert "did useful work for " in line
    assert "--what-if all does it" in line


def test_a_control_that_only_harms_beside_a_collision_is_told_with_each_price(gallery: Gallery) -> None:
    text = """schema: 3
fabric: {topology: fat-tree, radix: 8, link_rate: 100Gbps}
transport: {congestion_control: dcqcn, mtu: 1024}
traffic: {pattern: permutation, size: 1MiB}
"""
    run = told(gallery, text, what_if="all")
    answer = run.answer
    assert answer.culprit.name == "ecmp"
    assert "dcqcn, which answers to it, costs " in answer.culprit.text
    (both,) = (one for one in answer.others if one.name == "ecmp and dcqcn")
    (control,) = (one for one in answer.others if one.name == "dcqcn")
    assert f"costs {100 * (control.cost_share or 0):.3g} % alone" in answer.culprit.text
    assert f"{100 * (both.cost_share or 0):.3g} % together" in answer.culprit.text


def test_by_packets_the_idle_time_of_training_is_told_and_no_bound(gallery: Gallery) -> None:
    text = training("tensor: 8, pipeline: 2, global_batch: 4, recompute: none", gpus=16, fidelity="packet")
    run = told(gallery, text.replace("sequence: 8192", "sequence: 256"), what_if="none")
    assert run.answer.culprit.name == "communication and the bubble"
    assert (run.answer.culprit.kind, run.answer.culprit.how) == ("part", "recorded")
