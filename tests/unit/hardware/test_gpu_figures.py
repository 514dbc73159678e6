"""What a GPU computes, out of the catalogue."""

from __future__ import annotations

import pytest

from weftwork.base.catalogue import Figure
from weftwork.base.errors import ConfigError
from weftwork.hardware.catalogue import GPUS, gpu, gpu_caveats, node


def is_measured(figure: Figure) -> bool:
    return "no measured rate is known" not in figure.source


@pytest.mark.parametrize("name", sorted(GPUS))
def test_every_gpu_is_a_record_that_can_be(name: str) -> None:
    record = gpu(name)
    assert record.bf16_flops <= record.fp8_flops <= record.fp4_flops
    figures = GPUS[name].figures
    if is_measured(figures["achieved_bf16_flops"]):
        assert 0.4 < record.achieved_share < 0.97
    if is_measured(figures["memory_copy_bandwidth_bps"]):
        assert record.memory_copy_bytes_per_s < GPUS[name].value("memory_bandwidth_bps") / 8  # less than a data sheet
    assert gpu_caveats(name)


@pytest.mark.parametrize("name", sorted(GPUS))
def test_a_rate_that_nobody_measured_is_its_peak_and_unverified(name: str) -> None:
    row, record = GPUS[name], gpu(name)
    peaks = {
        "achieved_bf16_flops": row.value("bf16_dense_flops"),
        "memory_copy_bandwidth_bps": row.value("memory_bandwidth_bps"),
        "flash_attention_share": pytest.approx(record.achieved_share, abs=1e-3),  # attention is products of matrices
        "scan_flops": row.value("achieved_bf16_flops"),
    }
    for key, figure in row.figures.items():
        if not is_measured(figure):
            assert figure.value == peaks[key]
            assert f"{name}.{key}" in gpu_caveats(name)
            assert gpu_caveats(name)[f"{name}.{key}"].kind == "unverified"


def test_matrix_products_of_some_devices_were_never_measured() -> None:
    names = {name for name in GPUS if not is_measured(GPUS[name].figures["achieved_bf16_flops"])}
    assert names == {
        "h20", "h100-pcie", "h100-nvl", "l40s", "rtx-pro-6000", "tpu-v5p", "tpu-v6e", "tpu-v7", "trainium-2",
        "trainium-3",
    }  # fmt: skip
    assert all(gpu(name).achieved_share == 1 for name in names)


def test_a_gpu_nobody_measured_in_eight_bits_has_a_range_from_twice_its_rate_in_sixteen() -> None:
    found = gpu("gb300")
    assert found.achieved_fp8_low_share == pytest.approx(found.achieved_share, rel=1e-3)
    assert found.achieved_fp8_share == pytest.approx(gpu("b300").achieved_share, rel=1e-3)
    assert found.achieved_fp8_low_share < found.achieved_fp8_share
    assert gpu("h100").achieved_fp8_low_share == gpu("h100").achieved_fp8_share == gpu("h100").achieved_share


def test_an_unknown_gpu_is_helped() -> None:
    with pytest.raises(ConfigError, match="did you mean 'h100'"):
        gpu("h10")


def test_two_gpus_share_a_port() -> None:
    model = node("hgx-a100-4x200g")
    assert model.nic_port_rate_bps is not None
    assert model.server.nic_ports * model.nic_port_rate_bps == 8 * 100 * 10**9
