"""The hardware catalogue: every figure has a source, what is not verified reaches the user, wrong names are helped."""

from __future__ import annotations

import pytest

from weftwork.base.catalogue import Catalogue
from weftwork.base.errors import ConfigError
from weftwork.hardware.catalogue import (
    GPUS,
    LINKS,
    NICS,
    SWITCHES,
    gpu,
    nic,
    nic_caveats,
    ports_at,
    switch,
    switch_caveats,
)

GBPS = 10**9


CATALOGUES = [SWITCHES, NICS, LINKS, GPUS]


@pytest.mark.parametrize("catalogue", CATALOGUES, ids=lambda catalogue: catalogue.kind)
def test_every_figure_has_a_source_and_a_mark(catalogue: Catalogue) -> None:
    assert len(catalogue) > 3
    for row in catalogue.values():
        assert row.title
        for figure in row.figures.values():
            assert len(figure.source) > 5
            assert figure.standing in {"verified", "unverified", "chosen"}
            assert not (figure.standing == "chosen" and figure.verified)
            assert isinstance(figure.value, int | float)
            assert figure.value > 0


@pytest.mark.parametrize("name", sorted(SWITCHES))
def test_every_switch_is_a_record(name: str) -> None:
    record = switch(name)
    assert record.name == name
    kmin, kmax = record.ecn.thresholds_bytes(400_000_000_000)
    assert kmin < kmax < record.buffer_bytes


@pytest.mark.parametrize("name", sorted(NICS))
def test_every_nic_is_a_record_whose_host_keeps_up_with_its_port(name: str) -> None:
    record = nic(name)
    assert record.name == name
    if name != "plain":
        assert record.pcie_rate_bps > NICS[name].value("rate_bps")


@pytest.mark.parametrize("name", sorted(GPUS))
def test_every_gpu_is_a_record_of_its_row(name: str) -> None:
    record, row = gpu(name), GPUS[name]
    for precision in ("bf16", "fp8", "fp4"):
        assert getattr(record, f"{precision}_flops") == row.value(f"{precision}_dense_flops")
    assert record.achieved_share * record.bf16_flops == pytest.approx(row.value("achieved_bf16_flops"))
    assert record.memory_copy_bytes_per_s * 8 == row.value("memory_copy_bandwidth_bps")
    for key in ("memory_bytes", "flash_attention_share", "streaming_multiprocessors"):
        assert getattr(record, key) == row.value(key)


def test_some_gpu_tells_the_precisions_apart() -> None:
    assert any(record.bf16_flops < record.fp8_flops < record.fp4_flops for record in map(gpu, GPUS))


@pytest.mark.parametrize(
    ("name", "rate_gbps", "ports"),
    [("tomahawk-3", 400, 32), ("tomahawk-4", 400, 64), ("tomahawk-5", 800, 64), ("tomahawk-5", 400, 128),
     ("tomahawk-5", 100, 256), ("tomahawk-6", 200, 512), ("quantum-2", 400, 64), ("quantum-x800", 800, 144),
     ("spectrum-4", 400, 128), ("plain", 400, 0)],
)  # fmt: skip
def test_ports_of_a_rate(name: str, rate_gbps: int, ports: int) -> None:
    assert ports_at(name, rate_gbps * GBPS) == ports
    assert switch(name, port_rate_bps=rate_gbps * GBPS).radix == ports


def test_links_faster_than_the_fastest_port_are_refused() -> None:
    with pytest.raises(ConfigError, match="links of 800Gbps do not fit 'tomahawk-4', whose fastest port has 400Gbps"):
        ports_at("tomahawk-4", 800 * GBPS)


def test_a_wrong_name_gets_the_nearest() -> None:
    with pytest.raises(ConfigError) as caught:
        switch("tomahwak-5")
    assert caught.value.mistakes[0].fix == "tomahawk-5"
    assert "quantum-2" in caught.value.mistakes[0].text
    with pytest.raises(ConfigError, match="did you mean 'connectx-7'"):
        nic("connectx7")


def test_facts_tell_what_is_unverified_and_what_was_chosen() -> None:
    facts = switch_caveats("tomahawk-3")
    assert facts["tomahawk-3.buffer_bytes"].text.startswith("64MB, unverified")
    assert facts["tomahawk-3.forwarding_latency_ps"].text.startswith("750ns, chosen: ")
    assert "tomahawk-3.power_w" not in facts  # no engine uses it
    assert "tomahawk-3.power_w" in SWITCHES["tomahawk-3"].caveats()
    assert "tomahawk-5.buffer_bytes" not in switch_caveats("tomahawk-5")  # read in a shipped profile
    assert "tomahawk-ultra.forwarding_latency_ps" not in switch_caveats("tomahawk-ultra")
    assert set(nic_caveats("connectx-7")) == {"connectx-7.receive_latency_ps", "connectx-7.pcie_latency_ps"}
    assert "simulated as an Ethernet switch" in switch_caveats("quantum-2")["quantum-2"].text
    assert "quantum-x800" in switch_caveats("quantum-x800")
    assert not {"tomahawk-5", "spectrum-4"} & {*switch_caveats("tomahawk-5"), *switch_caveats("spectrum-4")}
    assert switch_caveats("plain") == switch_caveats("my-own") == {}


def test_figures_know_their_unit_and_text() -> None:
    figures = SWITCHES["tomahawk-5"].figures
    assert (figures["capacity_bps"].unit, figures["capacity_bps"].text) == ("bit/s", "51.2Tbps")
    assert (figures["power_w"].unit, figures["power_w"].text) == ("W", "500 W")
    assert (figures["alpha"].unit, figures["alpha"].text) == ("", "1.0")
