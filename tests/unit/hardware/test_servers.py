"""The catalogue of servers, their rates as messages get them, and servers on leaf-spines, fat trees and in files."""

from __future__ import annotations

import pytest

from weftwork.base.fix import Settings
from weftwork.hardware.catalogue import GPUS, NICS, SERVERS, node, node_caveats, nodes
from weftwork.spec.scenario.devices import device_mistakes, gpu_mistake


def test_every_figure_of_a_server_has_a_source_and_a_mark() -> None:
    for row in SERVERS.values():
        assert row.title
        for figure in row.figures.values():
            assert len(figure.source) > 5
            assert not (figure.standing == "chosen" and figure.verified)


@pytest.mark.parametrize("name", sorted(SERVERS))
def test_every_server_is_a_record_whose_parts_are_in_the_catalogue(name: str) -> None:
    model = node(name)
    assert model.server.name == name
    assert not device_mistakes(model.server)
    assert model.nic in NICS
    if name != "plain":
        row = SERVERS[name]
        assert row.value("gpu") in GPUS
        # what a GPU reaches others of its server or pod by: NVLink and its like, the links of a pod, or PCIe
        chip = "nic_port_rate_bps" if "pod_link_rate_bps" in row.figures else "pcie_rate_bps"
        scale_up = row.value("nvlink_raw_rate_bps" if "nvlink_raw_rate_bps" in row.figures else chip)
        assert scale_up == GPUS[row.value("gpu")].value("scale_up_rate_bps")
        if model.nic != "plain":
            assert model.nic_port_rate_bps == NICS[model.nic].value("rate_bps")
        if "nvlink_raw_rate_bps" in row.figures:
            assert model.server.nvlink_rate_bps == round(scale_up * row.value("nvlink_efficiency"))


def test_domains_of_2_to_144_gpus() -> None:
    assert {model.server.nvlink_domain_gpus for model in nodes().values()} == {0, 2, 4, 8, 16, 64, 72, 144}


@pytest.mark.parametrize("name", sorted(GPUS))
def test_every_gpu_is_held_by_a_server_and_refused_by_the_others(name: str) -> None:
    holders = [server for server in SERVERS if node(server).gpu == name]
    assert holders
    for server, model in nodes().items():
        mistake = gpu_mistake(name, server, nodes(), node_key="fabric.node")
        if server in holders or server == "plain":
            assert mistake is None
        else:
            assert mistake is not None
            text, fix = mistake
            assert text.startswith(f"found '{name}', wanted '{model.gpu}', the GPU of node '{server}'; ")
            assert all(holder in text for holder in holders)
            assert fix == model.gpu or (isinstance(fix, Settings) and fix.values[0][1] in holders)


def test_an_unknown_server_refuses_no_gpu() -> None:
    assert gpu_mistake("h100", "my-own", nodes(), node_key="fabric.node") is None


def test_the_links_of_a_chip_together_have_the_rate_of_its_port() -> None:
    chips = {name: model for name, model in nodes().items() if model.pod_link_rate_bps is not None}
    links = {name: model.nic_port_rate_bps / (model.pod_link_rate_bps or 1) for name, model in chips.items()}
    assert links == {"tpu-v5p": 6, "tpu-v6e": 4, "tpu-v7": 6}


def test_servers_whose_gpus_are_linked_pairwise_say_so() -> None:
    pairwise = {name for name in SERVERS if name in node_caveats(name)}
    assert pairwise == {"mi300x-ubb", "mi325x-ubb", "mi355x-ubb", "hls-gaudi-2", "hls-gaudi-3", "trn2"}
    for name in pairwise:
        assert node_caveats(name)[name].kind == "approximate"
        links = SERVERS[name].value("nvlink_raw_rate_bps") / SERVERS[name].value("pair_rate_bps")
        assert links == {8: 7, 16: 4}[node(name).server.gpus]


def test_calibrated_rates_are_those_of_the_measurements() -> None:
    ring_bus = 231.58e9 * 8  # nccl-tests, 8 x A100, 8 GiB: a ring sends bus bandwidth on every port, and starts late
    assert node("dgx-a100").server.nvlink_rate_bps == pytest.approx(ring_bus, rel=0.025)
    share = node("dgx-a100").server.nvlink_rate_bps / (12 * 20e9 * 8)  # NCCL, src/graph/topo.h: GB/s of a link
    for name, links_gbyte_per_s in (("dgx-h100", 18 * 20.6), ("dgx-b200", 18 * 40.1)):
        wanted = share * links_gbyte_per_s * 1e9 * 8
        assert node(name).server.nvlink_rate_bps == pytest.approx(wanted, rel=1e-3)
