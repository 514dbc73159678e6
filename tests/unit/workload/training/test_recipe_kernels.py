"""What recipes turn on in a layer: attention in FP8, activations inside the experts' products; the scan of Mamba-2."""

from __future__ import annotations

import pytest
from fit_scan import scan_flops

from weftwork.hardware.catalogue import gpu
from weftwork.spec.training import Parallelism, Software
from weftwork.workload.models.catalogue import model
from weftwork.workload.models.size import LayerKind
from weftwork.workload.parallelism.layout import Unit
from weftwork.workload.training.kernels import Kernels
from weftwork.workload.training.layers import unit_work


def kernels(name: str = "gb300", precision: str = "mxfp8", **software: bool) -> Kernels:
    return Kernels(gpu=gpu(name), software=Software(**software), precision=precision)  # type: ignore[arg-type]


@pytest.mark.parametrize(("backward", "gain"), [(False, 1.3), (True, 1.2)])
def test_attention_in_fp8_is_faster_where_products_are_in_eight_bits(backward: bool, gain: float) -> None:  # noqa: FBT001
    plain, fast = (kernels(has_fp8_attention=has).flash_s(1e16, 8192, 256, backward=backward) for has in (False, True))
    assert plain / fast == pytest.approx(gain, rel=1e-3)
    wide = kernels(precision="bf16").flash_s(1e15, 8192, 256)
    assert kernels(precision="bf16", has_fp8_attention=True).flash_s(1e15, 8192, 256) == wide


def test_narrow_heads_are_bound_by_exponentials_and_wide_ones_are_not() -> None:
    on = kernels("gb200", "bf16")
    ordinary, narrow, wide = (on.flash_s(1e15, 4096, width) - on.tail_s for width in (256, 128, 320))
    assert narrow == pytest.approx(2 * ordinary)
    assert wide == ordinary


@pytest.mark.parametrize(
    ("tokens", "forward", "backward"), [(2_048, 1_068, 656), (4_096, 1_378, 1_054), (8_192, 1_583, 1_211)]
)
def test_attention_on_a_gb200_is_as_fast_as_cudnn_measures(tokens: int, forward: int, backward: int) -> None:
    """NVIDIA/cudnn-frontend, sdpa_fp8_benchmark_results_NVIDIA_GB200.csv, rows of BF16: TFLOP/s of 128 heads of 128."""
    on = kernels("gb200", "bf16")
    flops = 2 * 128 * tokens**2 / 2 * 256
    assert flops / on.flash_s(flops, tokens, 256) / 1e12 == pytest.approx(forward, rel=0.1)
    # backward the shortest rows lose more than the smooth rule says, which is 37 % too fast there
    assert 2.5 * flops / on.flash_s(flops, tokens, 256, backward=True) / 1e12 == pytest.approx(backward, rel=0.4)


@pytest.mark.parametrize("name", ["a100", "h200", "gb200"])
def test_a_scan_is_what_published_training_of_mamba_2_leaves_for_it(name: str) -> None:
    """The catalogue has what benchmarks/fit_scan.py finds, and an iteration at that rate takes what is published.

    48 layers of 4 x 4,096 tokens; forward, and backward 2.5 / 0.78 of it.
    """
    found = scan_flops(name)
    assert gpu(name).scan_flops == pytest.approx(found.scan_flops, rel=0.01)
    of_token = 64 * (2 * 256 * 64 + 4 * 128 * 64) + 2 * 256 * 128  # arXiv:2405.21060, section 6: heads, one group
    scans_s = 48 * 16_384 * of_token * (1 + 2.5 / 0.78) / gpu(name).scan_flops
    assert found.other_s + scans_s == pytest.approx(found.iteration_s, rel=0.01)
    assert 0.1 < scans_s / found.iteration_s < 0.7


def test_a_scan_has_the_rate_of_its_gpu_and_a_backward_pass_two_kernels() -> None:
    on = kernels("a100", "bf16")
    assert on.scan_s(27.4e12) == pytest.approx(1 + on.tail_s)
    assert on.scan_s(27.4e12, backward=True) == pytest.approx(2.5 / 0.78 + 2 * on.tail_s)


def test_activations_inside_the_product_move_no_bytes_of_their_own() -> None:
    plan = Parallelism(data=32, expert=32, micro_batch=1, global_batch=32, sequence=4096, precision="mxfp8")
    unit = Unit(part="layer", layer=LayerKind(mixer="attention", mlp="experts"))
    apart, inside = (
        unit_work(unit, model("deepseek-v3"), plan, kernels(has_fused_activations=fused)) for fused in (False, True)
    )
    routed = 4096 * 8 * 2048  # values of the experts' hidden width on this GPU
    spared = apart.forward_s - inside.forward_s
    bytes_per_s = gpu("gb300").memory_copy_bytes_per_s * 0.85
    assert spared == pytest.approx((6 + 4.3) * routed / bytes_per_s, rel=0.01)
    assert apart.backward_s - inside.backward_s > spared
