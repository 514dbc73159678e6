"""The closed form of nccl-tests: limits that follow from links, the choice among algorithms, and published curves."""

from __future__ import annotations

import pytest

from weftwork.base.clock import SECOND_PS
from weftwork.base.errors import ConfigError
from weftwork.hardware.catalogue import node
from weftwork.study.validation.curves import (
    P5_LATENCY_SCALE,
    P5_NETWORK_EFFICIENCY,
    fit_p5,
    one_server,
    p5,
)
from weftwork.workload.collectives.cost import collective_figures
from weftwork.workload.collectives.nccl_time import nccl_time_ps

MODEL = node("p5")
FIGURES = collective_figures(MODEL.server, nic_port_rate_bps=MODEL.nic_port_rate_bps)
GIB = 1 << 30


def time_ps(operation: str, gpus: int, size_bytes: int, *, scale: float = 1.0) -> float:
    return nccl_time_ps(
        operation, gpus=gpus, domain_gpus=8, size_bytes=size_bytes, figures=FIGURES, network_efficiency=0.94,
        latency_scale=scale,
    )  # fmt: skip


@pytest.mark.parametrize("operation", ["all-reduce", "all-gather", "reduce-scatter", "all-to-all"])
@pytest.mark.parametrize("gpus", [8, 16, 64])
def test_more_bytes_take_longer_and_latency_never_helps(operation: str, gpus: int) -> None:
    times = [time_ps(operation, gpus, size) for size in (1 << 20, 1 << 26, GIB, 8 * GIB)]
    assert times == sorted(times)
    assert times[0] > FIGURES.alpha_ps
    assert time_ps(operation, gpus, 1 << 26, scale=2) >= time_ps(operation, gpus, 1 << 26)


def test_a_large_ring_is_as_fast_as_the_slower_of_nvlink_and_nics() -> None:
    size = 1 << 40
    bus_bps = size * 8 * 63 / 64 * SECOND_PS / time_ps("all-gather", 64, size)
    assert bus_bps == pytest.approx(min(FIGURES.ring_bus_bandwidth_bps, 8 * FIGURES.network_rate_bps * 0.94), rel=0.01)


def test_a_large_all_to_all_is_as_fast_as_a_nic() -> None:
    size = 1 << 40
    assert size * 8 * 56 / 64 * SECOND_PS / time_ps("all-to-all", 64, size) == pytest.approx(
        FIGURES.network_rate_bps * 0.94, rel=0.01
    )


def test_two_domains_reduce_faster_than_their_nics_carry_a_ring() -> None:
    size = 64 * GIB
    bus_bps = size * 8 * 30 / 16 * SECOND_PS / time_ps("all-reduce", 16, size)
    assert bus_bps > 8 * FIGURES.network_rate_bps
    assert size * 8 * 126 / 64 * SECOND_PS / time_ps("all-reduce", 64, size) < 8 * FIGURES.network_rate_bps


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="2 mistakes"):
        time_ps("broadcast", 12, GIB)


def test_the_constants_of_p5_are_those_of_16_gpus() -> None:
    efficiency, scale = fit_p5()
    assert efficiency == pytest.approx(P5_NETWORK_EFFICIENCY, abs=0.002)
    assert scale == pytest.approx(P5_LATENCY_SCALE, abs=0.005)


@pytest.mark.parametrize("operation", ["all-reduce", "all-gather", "all-to-all"])
def test_p5_is_within_20_percent_blind_and_10_on_64_gpus_after_16(operation: str) -> None:
    blind = p5(operation, is_calibrated=False)  # type: ignore[arg-type]
    fitted = p5(operation, is_calibrated=True)  # type: ignore[arg-type]
    assert (blind.tolerance, fitted.tolerance) == (0.20, 0.10)
    assert blind.is_reached
    assert fitted.is_reached
    assert blind.beats_naive
    assert all("64 GPUs" in point.name for point in fitted.points)


def test_curves_of_one_server_are_within_6_percent_together() -> None:
    fitted, other = one_server()
    assert fitted.is_reached
    errors = [abs(error) for score in (fitted, other) for error in score.errors]
    assert sum(errors) / len(errors) < 0.06
    assert other.mape < 0.07  # not reached, and the page says so
    assert other.median < 0.06
