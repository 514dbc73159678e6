"""What recipes turn on in a layer: attention in FP8, activations inside the experts' products; the scan of Mamba-2."""

from __future__ import annotations

import pytest

from weftwork.hardware.catalogue import gpu
from weftwork.spec.training import Parallelism, Software
from weftwork.workload.models.catalogue import model
from weftwork.workload.models.size import LayerKind
from weftwork.workload.parallelism.layout import Unit
from weftwork.workload.training.kernels import Kernels
from weftwork.workload.training.layers import unit_work


def kernels(name: str = "gb300", precision: str = "mxfp8", **software: bool) -> Kernels:
    return Kernels(gpu=gpu(name), software=Software(**software), precision=precision)  # type: ignore[arg-type]


def test_attention_in_fp8_is_faster_where_products_are_in_eight_bits() -> None:
    plain, fast = kernels().flash_s(1e15, 8192), kernels(has_fp8_attention=True).flash_s(1e15, 8192)
    assert plain / fast == pytest.approx(1.6, rel=1e-3)
    wide = kernels(precision="bf16").flash_s(1e15, 8192)
    assert kernels(precision="bf16", has_fp8_attention=True).flash_s(1e15, 8192) == wide


def test_a_scan_is_as_fast_as_attention_over_2048_tokens_on_an_a100() -> None:
    """Per token and channel 2 x 2,048 FLOP of causal attention, and 2 x 256 + 4 x 64 of a scan with a state of 64."""
    on = kernels("a100", "bf16")
    work = 1e12
    attention_s = on.flash_s(2 * 2048 * work, 2048) - on.tail_s
    assert on.scan_s((2 * 256 + 4 * 64) * work) - on.tail_s == pytest.approx(attention_s, rel=0.05)
    assert on.scan_s(work, backward=True) > 2 * on.scan_s(work)


def test_a_scan_grows_with_memory_and_not_with_matrix_products() -> None:
    ratio = kernels("a100", "bf16").scan_s(1e15) / kernels("h100", "bf16").scan_s(1e15)
    assert ratio == pytest.approx(2.90 / 1.61, rel=0.01)


def test_activations_inside_the_product_move_no_bytes_of_their_own() -> None:
    plan = Parallelism(data=32, expert=32, micro_batch=1, global_batch=32, sequence=4096, precision="mxfp8")
    unit = Unit(part="layer", layer=LayerKind(mixer="attention", mlp="experts"))
    apart, inside = (
        unit_work(unit, model("deepseek-v3"), plan, kernels(has_fused_activations=fused)) for fused in (False, True)
    )
    routed = 4096 * 8 * 2048  # values of the experts' hidden width on this GPU
    spared = apart.forward_s - inside.forward_s
    bytes_per_s = gpu("gb300").memory_copy_bytes_per_s * 0.85
    assert spared == pytest.approx((6 + 4) * routed / bytes_per_s, rel=0.01)
    assert apart.backward_s - inside.backward_s > spared
