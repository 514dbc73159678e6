"""The catalogue of servers, their rates as messages get them, and servers on leaf-spines, fat trees and in files."""

from __future__ import annotations

import pytest

from weftwork.hardware.catalogue import GPUS, NICS, SERVERS, node, nodes
from weftwork.spec.scenario.devices import device_mistakes


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
        assert row.value("nvlink_raw_rate_bps") == GPUS[row.value("gpu")].value("scale_up_rate_bps")
        assert model.nic_port_rate_bps == NICS[model.nic].value("rate_bps")
        assert model.server.nvlink_rate_bps == round(row.value("nvlink_raw_rate_bps") * row.value("nvlink_efficiency"))


def test_domains_of_4_8_and_72_gpus() -> None:
    assert {model.server.nvlink_domain_gpus for model in nodes().values()} == {0, 4, 8, 72}


def test_calibrated_rates_are_those_of_the_measurements() -> None:
    ring_bus = 231.58e9 * 8  # nccl-tests, 8 x A100, 8 GiB: a ring sends bus bandwidth on every port, and starts late
    assert node("dgx-a100").server.nvlink_rate_bps == pytest.approx(ring_bus, rel=0.025)
    share = node("dgx-a100").server.nvlink_rate_bps / (12 * 20e9 * 8)  # NCCL, src/graph/topo.h: GB/s of a link
    for name, links_gbyte_per_s in (("dgx-h100", 18 * 20.6), ("dgx-b200", 18 * 40.1)):
        wanted = share * links_gbyte_per_s * 1e9 * 8
        assert node(name).server.nvlink_rate_bps == pytest.approx(wanted, rel=1e-3)
