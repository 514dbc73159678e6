"""What a GPU computes, out of the catalogue."""

from __future__ import annotations

import pytest

from weftwork.base.errors import ConfigError
from weftwork.hardware.catalogue import GPUS, gpu, gpu_caveats, node


@pytest.mark.parametrize("name", sorted(GPUS))
def test_every_gpu_is_a_record_that_can_be(name: str) -> None:
    record = gpu(name)
    assert record.bf16_flops <= record.fp8_flops <= record.fp4_flops
    assert 0.4 < record.achieved_share < 0.9
    assert record.memory_copy_bytes_per_s < GPUS[name].value("memory_bandwidth_bps") / 8  # none reaches its data sheet
    assert gpu_caveats(name)


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
