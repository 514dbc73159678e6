"""Measured rates of dense products: kernels run at what the figures of a GPU say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.hardware.catalogue import GPUS, gpu, gpu_caveats
from weftwork.spec.training import Software
from weftwork.workload.training.kernels import Kernels

MEASURED = sorted(name for name in GPUS if "burst_bf16_flops" in GPUS[name].figures)
BARE = Software(matmul_efficiency=1, fp8_efficiency=1)


@pytest.mark.parametrize("name", MEASURED)
def test_a_product_runs_at_burst_times_share(name: str) -> None:
    row = GPUS[name]
    kernels = Kernels(gpu=gpu(name, rates="measured"), software=BARE)
    assert kernels.matmul_flops("bf16") == pytest.approx(
        row.value("burst_bf16_flops") * row.value("sustained_bf16_share")
    )
    if "burst_fp8_flops" in row.figures:
        wanted = row.value("burst_fp8_flops") * row.value("sustained_fp8_share")
        assert kernels.matmul_flops("fp8") == pytest.approx(wanted)
    if "burst_fp4_flops" in row.figures:
        wanted = row.value("burst_fp4_flops") * row.value("sustained_fp4_share")
        assert kernels.matmul_flops("nvfp4") == pytest.approx(wanted)


@given(st.sampled_from(MEASURED), st.floats(0.1, 1))
def test_products_slow_down_with_what_training_keeps(name: str, share: float) -> None:
    whole, part = (
        Kernels(gpu=gpu(name, rates="measured", sustained_rate=kept), software=BARE) for kept in (1.0, share)
    )
    for precision in ("bf16", "fp8", "nvfp4"):
        assert part.matmul_flops(precision) == pytest.approx(share * whole.matmul_flops(precision))  # type: ignore[arg-type]


@given(st.sampled_from(MEASURED))
def test_fewer_bits_are_never_slower(name: str) -> None:
    kernels = Kernels(gpu=gpu(name, rates="measured"), software=BARE)
    rates = [kernels.matmul_flops(precision) for precision in ("bf16", "fp8", "nvfp4")]  # type: ignore[arg-type]
    assert rates == sorted(rates)


def test_caveats_are_of_the_rates_in_use() -> None:
    best, measured, given_share = (
        set(gpu_caveats("h100", **asked))  # type: ignore[arg-type]
        for asked in ({}, {"rates": "measured"}, {"rates": "measured", "sustained_rate": 1.0})
    )
    shares = {"h100.sustained_bf16_share", "h100.sustained_fp8_share"}
    assert not best & shares
    assert shares <= measured
    assert not given_share & shares


def test_a_gpu_without_measured_products_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"training\.rates.*mi300x.*did you mean 'best-shape'"):
        gpu("mi300x", rates="measured")
