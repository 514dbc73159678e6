"""FLOP, bytes and kernels of the parts of a model against numbers on paper, on GPUs on which a time is a count.

Products of a layer: Narayanan et al., arXiv:2104.04473, appendix; their backward passes are one product for the input
and one for the weight. What a product costs beyond its FLOP is (1 + 64 / m) (1 + 64 / n) (1 + 128 / k), as
docs/models/training.md says. A micro batch has 3 x 544 = 1,632 tokens, 816 of which a tensor rank norms and adds.
"""

from __future__ import annotations

import pytest
from helpers.on_paper import COUNTING, DELTA, DENSE, HYBRID, LATENT, MIXED, ONE_BYTE_A_PS, ONE_FLOP_A_PS, plan_on_paper

from weftwork.spec.training import Gpu, Model, Parallelism, Software
from weftwork.workload.models.size import (
    LayerKind,
    active_parameters,
    attention_parameters,
    delta_parameters,
    model_flops_per_token,
    parameters,
    state_space_parameters,
)
from weftwork.workload.parallelism.layout import Unit
from weftwork.workload.training.kernels import Kernels
from weftwork.workload.training.layers import Half, UnitWork, unit_work

ATTENTION = LayerKind(mixer="attention", mlp="none")
MLP = LayerKind(mixer="none", mlp="dense")
EXPERTS = LayerKind(mixer="none", mlp="experts")
DENSE_LAYER = LayerKind(mixer="attention", mlp="dense")
STATE_SPACE = LayerKind(mixer="state-space", mlp="none")
DELTA_NET = LayerKind(mixer="delta", mlp="none")
TOKENS, OWN = 1_632, 816
# Half of the peak over long rows, half of that over 1,024 tokens, all of it where a query and a value are 256 wide
FLASH_RATE = 0.5 * 544 / (544 + 1_024)


def work(
    model: Model, kind: LayerKind, on: Gpu, plan: Parallelism | None = None, software: Software = COUNTING
) -> UnitWork:
    used = plan or plan_on_paper()
    kernels = Kernels(gpu=on, software=software, precision=used.precision)
    return unit_work(Unit(part="layer", layer=kind), model, used, kernels)


def half(model: Model, kind: LayerKind, on: Gpu, plan: Parallelism | None = None) -> Half:
    ((_, found),) = work(model, kind, on, plan).halves
    return found


def ps(time_s: float) -> float:
    """A time in picoseconds, which are FLOP or bytes here."""
    return time_s * 1e12


def near(count: float) -> object:
    """To twelve digits."""
    return pytest.approx(count, rel=1e-12)


def product(m: int, n: int, k: int) -> float:
    return 2 * m * n * k * (1 + 64 / m) * (1 + 64 / n) * (1 + 128 / k)


def test_products_of_attention_are_those_of_grouped_heads() -> None:
    """Q, K and V: 28 x (10 + 2 x 2) / 2 = 196 columns of a rank; behind the core 28 x 10 / 2 = 140 rows."""
    found = half(DENSE, ATTENTION, ONE_FLOP_A_PS)
    assert ps(found.matmul_s) == near(product(TOKENS, 196, 96) + product(TOKENS, 96, 140))
    inputs = product(TOKENS, 96, 196) + product(TOKENS, 140, 96)
    weights = product(96, 196, TOKENS) + product(140, 96, TOKENS)
    assert ps(found.matmul_backward_s) == near(inputs + weights)
    frozen = half(DENSE, ATTENTION, ONE_FLOP_A_PS, plan_on_paper(has_lora=True, lora_targets=("linear_fc2",)))
    assert ps(frozen.matmul_backward_s) == near(inputs)


def test_an_adapter_is_two_thin_products_with_both_gradients() -> None:
    """Arxiv:2106.09685, section 4.1, of rank 8; a rank has 4 of its columns where ranks split the columns of a matrix.

    Q, K and V: 96 to 8 to 392 columns; behind the core 280 rows to 8 to 96 columns; a rank has half of each.
    """
    with_adapters, without = with_and_without_adapters(ONE_FLOP_A_PS)
    shapes = ((TOKENS, 4, 96), (TOKENS, 196, 8), (TOKENS, 8, 140), (TOKENS, 48, 8))
    forward = sum(product(m, n, k) for m, n, k in shapes)
    backward = sum(product(m, k, n) + product(k, n, m) for m, n, k in shapes)
    assert ps(with_adapters.matmul_s - without.matmul_s) == pytest.approx(forward, rel=1e-9)
    assert ps(with_adapters.matmul_backward_s - without.matmul_backward_s) == pytest.approx(backward, rel=1e-9)


def test_what_an_adapter_gives_is_added_to_what_its_matrix_gives() -> None:
    """Two read and one written, two bytes each: of the columns of a rank forward, of its rows backward."""
    with_adapters, without = with_and_without_adapters(ONE_BYTE_A_PS)
    forward, backward = (6 * TOKENS * (first + second) for first, second in ((196, 48), (96, 140)))
    assert ps(with_adapters.memory_s - without.memory_s) == pytest.approx(forward, rel=1e-9)
    assert ps(with_adapters.memory_backward_s - without.memory_backward_s) == pytest.approx(backward, rel=1e-9)


def with_and_without_adapters(on: Gpu) -> tuple[Half, Half]:
    plan = plan_on_paper(has_lora=True, lora_rank=8, lora_targets=("linear_qkv", "linear_proj"))
    of_mlp = plan.model_copy(update={"lora_targets": ("linear_fc2",)})
    return half(DENSE, ATTENTION, on, plan), half(DENSE, ATTENTION, on, of_mlp)


def test_causal_attention_is_two_products_over_half_of_the_sequence() -> None:
    """Dao, arXiv:2307.08691: 4 s^2 d heads FLOP, half of it causal, and two and a half times as many backward."""
    flops = 3 * 5 * 4 * 544 * 544 * 28 / 2  # sequences, heads of a rank
    found = half(DENSE, ATTENTION, ONE_FLOP_A_PS)
    rate = FLASH_RATE * 56 / 256
    assert ps(found.core_s) == near(flops / rate)
    assert ps(found.core_backward_s) == near(2.5 * flops / rate / 0.78)
    split = half(DENSE, ATTENTION, ONE_FLOP_A_PS, plan_on_paper(context=2))
    assert ps(split.core_s) == near(flops / 2 / rate)


@pytest.mark.parametrize(("micro", "more"), [(3, (33, 35)), (4, (0, 0))])
def test_attention_without_flash_is_two_products_and_the_square_of_scores(micro: int, more: tuple[int, int]) -> None:
    """Five heads of a rank times three sequences are no multiple of four, so that no kernel does all of the softmax."""
    plain = COUNTING.model_copy(update={"has_flash_attention": False})
    plan, batch = plan_on_paper(micro_batch=micro, global_batch=micro), 5 * micro
    products = batch * (product(544, 544, 28) + product(544, 28, 544))
    ((_, of_flops),) = work(DENSE, ATTENTION, ONE_FLOP_A_PS, plan, software=plain).halves
    assert ps(of_flops.core_s) == near(products)
    assert ps(of_flops.core_backward_s) == near(2 * products)
    dropping = DENSE.model_copy(update={"has_dropout": True})
    scores = batch * 544 * 544
    operands = batch * 2 * (28 * (544 + 544) + 544 * 544) + batch * 2 * (544 * (544 + 28) + 544 * 28)
    for model, forward, backward in ((DENSE, 4, 6), (dropping, 4 + 5, 6 + 5)):
        ((_, of_bytes),) = work(model, ATTENTION, ONE_BYTE_A_PS, plan, software=plain).halves
        assert ps(of_bytes.core_s) == near(operands + (forward + more[0]) * scores)
        assert ps(of_bytes.core_backward_s) == near(2 * operands + (backward + more[1]) * scores)


def test_a_softmax_without_a_kernel_has_four_more_operations_each_way_and_flash_attention_none() -> None:
    """NVIDIA/Megatron-LM, FusedScaleMaskSoftmax: cast, scale, mask, softmax and cast back in place of one kernel."""
    plain = COUNTING.model_copy(update={"has_flash_attention": False})
    plans = [plan_on_paper(micro_batch=micro, global_batch=micro) for micro in (3, 4)]
    loose, fused = (work(DENSE, ATTENTION, ONE_BYTE_A_PS, plan, software=plain).operations for plan in plans)
    assert [(back[0], back[1] - own[1], back[2] - own[2]) for back, own in zip(loose, fused, strict=True)] == [
        ("attn", 4, 4)
    ]
    assert work(DENSE, ATTENTION, ONE_BYTE_A_PS, plans[0]).operations == fused
    longer = plan_on_paper(micro_batch=4, global_batch=4, sequence=8192)
    assert work(DENSE, ATTENTION, ONE_BYTE_A_PS, longer, software=plain).operations == loose


def test_products_of_latent_attention() -> None:
    """DeepSeek-V2, arXiv:2405.04434, section 2.1: tensor ranks split the heads and not the narrow vectors.

    Into 44 for queries and 52 + 12 for keys and values, up to 5 x 32 and 5 x (20 + 36), and from 5 x 36 back to 96.
    Scores are over 32 and values 36 wide.
    """
    found = half(LATENT, ATTENTION, ONE_FLOP_A_PS)
    shapes = [(44, 96), (160, 44), (64, 96), (280, 52), (96, 180)]
    assert ps(found.matmul_s) == near(sum(product(TOKENS, n, k) for n, k in shapes))
    assert ps(found.core_s) == near(3 * 5 * 2 * 544 * 272 * (32 + 36) / FLASH_RATE / (68 / 256))
    parameters_of_layer = 96 * 44 + 44 * 320 + 96 * 64 + 52 * 560 + 360 * 96
    assert work(LATENT, ATTENTION, ONE_FLOP_A_PS).parameters == parameters_of_layer / 2
    met = 6 * (parameters_of_layer + 101_376) + 159_744
    assert model_flops_per_token(LATENT, 544) == 6 * met + 6 * 6 * 10 * (32 + 36) * 272


def test_products_of_a_gated_mlp_have_two_columns_for_each_row_of_the_last() -> None:
    found = half(DENSE, MLP, ONE_FLOP_A_PS)
    assert ps(found.matmul_s) == near(product(TOKENS, 352, 96) + product(TOKENS, 96, 176))
    backward = product(TOKENS, 96, 352) + product(96, 352, TOKENS) + product(TOKENS, 176, 96) + product(176, 96, TOKENS)
    assert ps(found.matmul_backward_s) == near(backward)
    plain = half(DENSE.model_copy(update={"is_gated": False}), MLP, ONE_FLOP_A_PS)
    assert ps(plain.matmul_s) == near(product(TOKENS, 176, 96) + product(TOKENS, 96, 176))


def test_bytes_of_norms_adds_rotations_and_activations() -> None:
    """A norm reads and writes 2 bytes; an add reads two and writes one, with dropout a mask too; gates likewise.

    Backward: the norm 6, the add 5, and 1.6 times what the activation moved.
    """
    stream, rotated = OWN * 96, TOKENS * 28 * (5 + 1)
    mixer, mlp = half(DENSE, ATTENTION, ONE_BYTE_A_PS), half(DENSE, MLP, ONE_BYTE_A_PS)
    assert ps(mixer.memory_s) == near((4 + 6) * stream + 4 * rotated)
    assert ps(mixer.memory_backward_s) == near((6 + 5) * stream + 4 * rotated)
    assert ps(mlp.memory_s) == near((4 + 6) * stream + 6 * TOKENS * 176)
    assert ps(mlp.memory_backward_s) == near((6 + 5) * stream + 1.6 * 6 * TOKENS * 176)
    dropping = DENSE.model_copy(update={"has_dropout": True, "is_gated": False})
    assert ps(half(dropping, ATTENTION, ONE_BYTE_A_PS).memory_s) == near(
        (4 + 7) * stream
    )  # learned positions do not rotate
    assert ps(half(dropping, MLP, ONE_BYTE_A_PS).memory_s) == near((4 + 7) * stream + 4 * TOKENS * 176)
    whole = half(DENSE, MLP, ONE_BYTE_A_PS, plan_on_paper(is_sequence_parallel=False))
    assert ps(whole.memory_s) == near(2 * (4 + 6) * stream + 6 * TOKENS * 176)


def test_bytes_of_casts_to_eight_bits() -> None:
    """5.5 bytes of each input, as Transformer Engine's own benchmark takes longer; half as many again back."""
    plan = plan_on_paper(precision="fp8")
    for kind, inputs in ((ATTENTION, OWN * 96 + TOKENS * 140), (MLP, OWN * 96 + TOKENS * 176)):
        whole, cast = half(DENSE, kind, ONE_BYTE_A_PS), half(DENSE, kind, ONE_BYTE_A_PS, plan)
        assert ps(cast.memory_s - whole.memory_s) == near(5.5 * inputs)
        assert ps(cast.memory_backward_s - whole.memory_backward_s) == near(8.25 * inputs)


# Experts: twelve of them on three ranks, each on two tensor ranks, three for a token


SPREAD = {"data": 6, "expert": 3, "expert_tensor": 2, "global_batch": 18}


def test_gradients_of_weights_are_added_to_those_of_micro_batches_before() -> None:
    """A product moves its operands, two bytes a value, and its result: two bytes, or a gradient read and written.

    Gradients of four bytes are 8 for each weight, those of two bytes 4.
    """
    columns, inner = 352, 96
    shapes = ((columns, inner), (inner, 176))
    weights = sum(n * k for n, k in shapes)
    operands = sum(2 * TOKENS * (n + k) for n, k in shapes)
    wide = half(DENSE, MLP, ONE_BYTE_A_PS, plan_on_paper(gradient_bytes=4))
    narrow = half(DENSE, MLP, ONE_BYTE_A_PS, plan_on_paper(gradient_bytes=2))
    assert ps(wide.weights_s) == near(operands + 8 * weights)
    assert ps(narrow.weights_s) == near(operands + 4 * weights)
    assert ps(wide.matmul_backward_s - narrow.matmul_backward_s) == near(4 * weights)


def test_a_norm_of_queries_and_keys_reads_and_writes_them_once_more() -> None:
    """Six heads of a rank, five of queries and one of keys: 4 bytes a value forward, 6 backward."""
    normed = DENSE.model_copy(update={"has_query_key_norm": True})
    plain, found = (half(model, ATTENTION, ONE_BYTE_A_PS) for model in (DENSE, normed))
    values = TOKENS * 28 * (5 + 1)
    assert ps(found.memory_s - plain.memory_s) == near(4 * values)
    assert ps(found.memory_backward_s - plain.memory_backward_s) == near(6 * values)


def test_experts_work_on_the_tokens_that_are_sent_to_them() -> None:
    """A rank's 816 tokens go to three experts each; it gets as many, and those of the rank that shares its experts.

    816 x 3 x 2 = 4,896 rows on 12 / 3 = 4 experts of width 80 / 2: 1,224 rows each. The router sees its own tokens.
    """
    found = half(MIXED, EXPERTS, ONE_FLOP_A_PS, plan_on_paper(**SPREAD))
    shared = product(TOKENS, 112, 96) + product(TOKENS, 96, 56)
    routed = 4 * (product(1_224, 80, 96) + product(1_224, 96, 40))
    assert ps(found.matmul_s) == near(product(OWN, 12, 96) + shared + routed)
    shared_back = (
        product(TOKENS, 96, 112) + product(96, 112, TOKENS) + product(TOKENS, 56, 96) + product(56, 96, TOKENS)
    )
    routed_back = 4 * (
        product(1_224, 96, 80) + product(96, 80, 1_224) + product(1_224, 40, 96) + product(40, 96, 1_224)
    )
    router_back = product(OWN, 96, 12) + product(96, 12, OWN)
    assert ps(found.matmul_backward_s) == near(router_back + shared_back + routed_back)


def test_all_ranks_together_do_each_token_once_per_expert() -> None:
    """Without what a product costs beyond its FLOP: 2 x 3 x 96 x 80 FLOP for each of three experts of a token."""
    wide = MIXED.model_copy(update={"shared_ffn": 0})
    plan = plan_on_paper(**SPREAD)
    router = product(OWN, 12, 96)
    fill_up, fill_down = (product(1_224, n, k) / (2 * 1_224 * n * k) for n, k in ((80, 96), (96, 40)))
    found_ps = half(wide, EXPERTS, ONE_FLOP_A_PS, plan).matmul_s * 1e12 - router
    up, down = 2 * 96 * 80, 96 * 80  # parameters of one expert
    ranks, tokens = 12, 6 * TOKENS  # of all twelve ranks of the stage together
    assert ranks * found_ps == pytest.approx(2 * tokens * 3 * (up * fill_up + down * fill_down), rel=1e-12)


@pytest.mark.parametrize(("deduplicated", "permutations"), [(False, 2), (True, 1)])
def test_bytes_of_experts_are_permutations_and_activations(*, deduplicated: bool, permutations: int) -> None:
    """Eight bytes of each value that is sent to an expert and back, six of each value inside, forward.

    Tokens are sorted for the exchange and by expert; DeepEP and HybridEP do the first in their kernels.
    """
    software = COUNTING.model_copy(update={"has_deduplicated_experts": deduplicated})
    ((_, found),) = work(MIXED, EXPERTS, ONE_BYTE_A_PS, plan_on_paper(**SPREAD), software).halves
    inside, sorted_bytes = TOKENS * 56 + 4_896 * 40, permutations * 8 * 4_896 * 96
    assert ps(found.memory_s) == near(10 * OWN * 96 + sorted_bytes + 6 * inside)
    assert ps(found.memory_backward_s) == near(11 * OWN * 96 + sorted_bytes + 1.6 * 6 * inside)


@pytest.mark.parametrize(("streams", "tails"), [(0, 2), (1, 8), (4, 2)])
def test_experts_are_one_kernel_or_several_whose_tails_hide_behind_other_streams(streams: int, tails: int) -> None:
    """Two products of four experts: two kernels, or eight, of which every fourth tail is left with four streams.

    Router and shared expert are three products more. FLOP are the same in all of them.
    """
    tail = 1_000_000_000
    software = COUNTING.model_copy(update={"expert_streams": streams, "kernel_tail_ps": tail})
    ((_, found),) = work(MIXED, EXPERTS, ONE_FLOP_A_PS, plan_on_paper(**SPREAD), software).halves
    flops = ps(half(MIXED, EXPERTS, ONE_FLOP_A_PS, plan_on_paper(**SPREAD)).matmul_s)
    assert ps(found.matmul_s) == near(flops + (tails + 3) * tail)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("deduplicated", [True, False])
def test_a_router_that_is_not_fused_has_more_kernels(*, fused: bool, deduplicated: bool) -> None:
    """Four of the mixture itself, 17 of a fused router or 58, and 14 before the exchange or none."""
    tail = 1_000_000
    changed = {"has_fused_router": fused, "has_deduplicated_experts": deduplicated, "kernel_tail_ps": tail}
    instant = ONE_FLOP_A_PS.model_copy(update={"memory_copy_bytes_per_s": 1e40})
    software = COUNTING.model_copy(update=changed)
    ((_, found),) = work(MIXED, EXPERTS, instant, plan_on_paper(**SPREAD), software).halves
    wanted = 4 + (17 if fused else 58) + (0 if deduplicated else 14)
    assert ps(found.memory_s) == near(wanted * tail)
    assert ps(found.memory_backward_s) == near(wanted * tail)


def test_each_expert_on_a_stream_casts_its_tokens_by_a_kernel_of_its_own() -> None:
    """Four experts, two products each."""
    tail = 1_000_000
    instant = ONE_FLOP_A_PS.model_copy(update={"memory_copy_bytes_per_s": 1e40})
    apart = COUNTING.model_copy(update={"expert_streams": 4, "kernel_tail_ps": tail})
    grouped = apart.model_copy(update={"expert_streams": 0})
    plan = plan_on_paper(**SPREAD, precision="mxfp8")
    (one,), (other,) = (work(MIXED, EXPERTS, instant, plan, software).halves for software in (apart, grouped))
    assert ps(one[1].memory_s - other[1].memory_s) == near(2 * 4 * tail)


# Numbers of modules, and what is computed again


def test_a_module_in_other_numbers_is_multiplied_and_cast_in_them() -> None:
    """FP8 is twice as fast on paper; queries, keys and values in BF16 have their FLOP back and lose their cast."""
    plan = plan_on_paper(precision="fp8", module_precision={"qkv": "bf16"})
    found = half(DENSE, ATTENTION, ONE_FLOP_A_PS, plan)
    qkv, behind = product(TOKENS, 196, 96), product(TOKENS, 96, 140)
    assert ps(found.matmul_s) == near(qkv + behind / 2)
    other = half(
        DENSE, ATTENTION, ONE_FLOP_A_PS, plan_on_paper(precision="fp8", module_precision={"projection": "bf16"})
    )
    assert ps(other.matmul_s) == near(qkv / 2 + behind)
    fp8, mixed = (half(DENSE, ATTENTION, ONE_BYTE_A_PS, one) for one in (plan_on_paper(precision="fp8"), plan))
    assert ps(fp8.memory_s - mixed.memory_s) == near(5.5 * OWN * 96)
    assert ps(fp8.memory_backward_s - mixed.memory_backward_s) == near(8.25 * OWN * 96)


def test_a_layer_in_bf16_costs_what_it_costs_in_a_plan_of_bf16() -> None:
    plan = plan_on_paper(precision="fp8", module_precision={"qkv": "mxfp8"})
    kernels = Kernels(gpu=ONE_FLOP_A_PS, software=COUNTING, precision="fp8")
    layer = LayerKind(mixer="attention", mlp="dense")
    found = unit_work(Unit(part="layer", layer=layer, precision="bf16"), DENSE, plan, kernels)
    assert found == work(DENSE, layer, ONE_FLOP_A_PS, plan_on_paper())


def test_what_is_computed_again_costs_what_it_cost_forward() -> None:
    """Attention proper; norms of both halves; a dense MLP; activations of experts; products up to the heads."""
    dense = work(DENSE, LayerKind(mixer="attention", mlp="dense"), ONE_BYTE_A_PS)
    mlp = ps(dict(dense.halves)["mlp"].forward_s)
    norm = 4 * OWN * 96
    assert ps(dense.again_s({"core_attn"})) == near(ps(dense.halves[0][1].core_s))
    assert ps(dense.again_s({"layernorm"})) == near(2 * norm)
    assert ps(dense.again_s({"mlp"})) == near(mlp)
    assert ps(dense.again_s({"mlp", "layernorm"})) == near(mlp + norm)  # the norm of the MLP is in it
    experts = work(MIXED, EXPERTS, ONE_BYTE_A_PS, plan_on_paper(**SPREAD))
    assert ps(experts.again_s({"moe_act"})) == near(6 * 4_896 * 40)
    latent = work(LATENT, ATTENTION, ONE_FLOP_A_PS)
    assert ps(latent.again_s({"mla_up_proj"})) == near(product(TOKENS, 160, 44) + product(TOKENS, 280, 52))
    assert latent.again_s({"mlp", "moe_act"}) == 0


def test_experts_work_on_tokens_of_the_width_of_latent_experts() -> None:
    """Into 48 and back, on own tokens; then experts of that width, as many rows as without."""
    latent = MIXED.model_copy(update={"expert_hidden": 48, "shared_ffn": 0})
    found = half(latent, EXPERTS, ONE_FLOP_A_PS, plan_on_paper(**SPREAD))
    outer = product(OWN, 48, 96) + product(OWN, 96, 48)
    routed = 4 * (product(1_224, 80, 48) + product(1_224, 48, 40))
    assert ps(found.matmul_s) == near(product(OWN, 12, 96) + outer + routed)
    wide = plan_on_paper(**SPREAD, precision="fp8", module_precision={"latent": "bf16"})
    mixed = half(latent, EXPERTS, ONE_FLOP_A_PS, wide)
    assert ps(mixed.matmul_s) == near(product(OWN, 12, 96) + outer + routed / 2)


def test_parameters_of_experts_are_split_by_both_of_their_degrees() -> None:
    """An expert has 3 x 96 x 80 = 23,040; a rank four halves. The router, 96 x 12, is whole on every rank."""
    found = work(MIXED, EXPERTS, ONE_FLOP_A_PS, plan_on_paper(**SPREAD))
    assert found.expert_parameters == 4 * 23_040 / 2
    assert found.parameters == 96 * 12 + 3 * 96 * 112 / 2


# State spaces


def test_products_and_scan_of_a_state_space() -> None:
    """Dao and Gu, arXiv:2405.21060, section 6: in blocks of Q = 256 tokens, P = 20 channels a head, N = 24 states.

    A token and head: 2 Q P inside the block, 2 N P into the state and 2 N P out of it; a token and group: 2 Q N.
    """
    found = half(HYBRID, STATE_SPACE, ONE_FLOP_A_PS)
    columns = (2 * 160 + 2 * 2 * 24 + 8) // 2  # gate and input, B and C of two groups, a step of each head
    assert ps(found.matmul_s) == near(product(TOKENS, columns, 96) + product(TOKENS, 96, 80))
    scan = TOKENS * (8 * (2 * 256 * 20 + 4 * 24 * 20) + 2 * (2 * 256 * 24)) / 2
    assert ps(found.core_s) == near(scan * 4)  # the rate of a scan on paper is a quarter of that of products
    assert ps(found.core_backward_s) == near(2.5 * scan * 4 / 0.78)


def test_bytes_of_a_state_space() -> None:
    """A channel moves 14 bytes, B and C 8; a state of each block, and its products of tokens, 4 bytes out and in."""
    found = half(HYBRID, STATE_SPACE, ONE_BYTE_A_PS)
    moved = TOKENS * (14 * 80 + 8 * 48 + 8 * 80 * 24 / 256 + 8 * 2 * 256 / 2)
    assert ps(found.memory_s) == near(10 * OWN * 96 + moved)
    assert ps(found.memory_backward_s) == near(11 * OWN * 96 + 2 * moved)


def test_parameters_of_a_state_space() -> None:
    """Into the layer 96 x (2 x 160 + 96 + 8), out of it 160 x 96, and a convolution of four over 160 + 96 channels."""
    assert state_space_parameters(HYBRID) == 40_704 + 15_360 + 1_024
    assert work(HYBRID, STATE_SPACE, ONE_FLOP_A_PS).parameters == 57_088 / 2


# Gated delta nets: keys 2 x 20 = 40 wide, values 6 x 36 = 216


def test_products_and_recurrence_of_a_delta_net() -> None:
    """Yang et al., arXiv:2412.06464, section 3.3: in blocks of C = 64 tokens, keys of K = 20 and values of V = 36.

    A token and head: 2 C (3 K + 2 V) inside the block, and three times 2 K V with the state.
    """
    found = half(DELTA, DELTA_NET, ONE_FLOP_A_PS)
    columns = (2 * 40 + 2 * 216 + 2 * 6) // 2
    assert ps(found.matmul_s) == near(product(TOKENS, columns, 96) + product(TOKENS, 96, 108))
    flops = TOKENS * 3 * (2 * 64 * (3 * 20 + 2 * 36) + 6 * 20 * 36)
    assert ps(found.core_s) == near(flops * 4)  # the rate of a scan
    assert ps(found.core_backward_s) == near(2.5 * flops * 4 / 0.78)


def test_bytes_of_a_delta_net() -> None:
    """Queries and keys move 8 bytes, values 14; between kernels a head moves 4 bytes of K + V + C and of its state."""
    found = half(DELTA, DELTA_NET, ONE_BYTE_A_PS)
    moved = TOKENS * (8 * 40 + 14 * 108 + 4 * 3 * (20 + 36 + 64 + 20 * 36 / 64))
    assert ps(found.memory_s) == near(10 * OWN * 96 + moved)
    assert ps(found.memory_backward_s) == near(11 * OWN * 96 + 2 * moved)


def test_parameters_and_flops_of_a_delta_net() -> None:
    """Into the layer 96 x (80 + 432 + 12), out of it 216 x 96, and a convolution of four over 80 + 216 channels."""
    each = 50_304 + 20_736 + 1_184
    assert delta_parameters(DELTA) == each
    assert work(DELTA, DELTA_NET, ONE_FLOP_A_PS).parameters == each / 2
    dense = DELTA.model_copy(update={"delta_layers": 0})
    attention = 6 * attention_parameters(DELTA) + 6 * 2 * 10 * 28 * 544 / 2
    of_net = 6 * each + 3 * 8 * 6 * 20 * 36
    assert model_flops_per_token(DELTA, 544) - model_flops_per_token(dense, 544) == near(3 * (of_net - attention))


def test_a_gate_of_attention_is_a_matrix_more_and_six_bytes_an_element() -> None:
    free = DELTA.model_copy(update={"has_gated_attention": False})
    assert attention_parameters(DELTA) - attention_parameters(free) == 96 * 280
    gated, plain = (half(one, ATTENTION, ONE_BYTE_A_PS) for one in (DELTA, free))
    assert ps(gated.memory_s - plain.memory_s) == near(6 * TOKENS * 140)
    gated, plain = (half(one, ATTENTION, ONE_FLOP_A_PS) for one in (DELTA, free))
    more = product(TOKENS, (280 * 2 + 2 * 2 * 28) // 2, 96) - product(TOKENS, (280 + 2 * 2 * 28) // 2, 96)
    assert ps(gated.matmul_s - plain.matmul_s) == near(more)


# Ends of the model


@pytest.mark.parametrize(("part", "tied", "stages", "held"), [
    ("embedding", False, 1, 79_872), ("head", False, 1, 79_872), ("head", True, 1, 0), ("head", True, 2, 79_872),
])  # fmt: skip
def test_the_ends_of_a_model(*, part: str, tied: bool, stages: int, held: int) -> None:
    """1,664 x 96 / 2 = 79,872 values; a tied head of one stage is the embedding. Logits: 832 columns of a rank.

    A logit is written by the product and read twice as four bytes; the embedding moves eight bytes of each value.
    """
    model = DENSE.model_copy(update={"has_tied_embeddings": tied})
    plan = plan_on_paper(pipeline=stages)
    kinds = [Kernels(gpu=on, software=COUNTING) for on in (ONE_FLOP_A_PS, ONE_BYTE_A_PS)]
    of_flops, of_bytes = (unit_work(Unit(part=part), model, plan, kernels) for kernels in kinds)  # type: ignore[arg-type]
    assert of_flops.parameters == held
    ((_, flops), (_, moved)) = (*of_flops.halves, *of_bytes.halves)
    if part == "embedding":
        assert flops.matmul_s == flops.matmul_backward_s == 0
        assert ps(moved.memory_s) == near(8 * TOKENS * 96)
        assert ps(moved.memory_backward_s) == near(8 * TOKENS * 96)
    else:
        assert ps(flops.matmul_s) == near(product(TOKENS, 832, 96))
        assert ps(flops.matmul_backward_s) == near(2 * product(TOKENS, 832, 96))
        assert ps(moved.memory_s) == near(14 * TOKENS * 832)
        assert ps(moved.memory_backward_s) == near(10 * TOKENS * 832)


def test_a_prediction_module_is_a_layer_a_join_of_two_vectors_and_a_loss() -> None:
    """DeepSeek-V3, arXiv:2412.19437, section 2.2: a projection from 2 x 96 to 96, which tensor ranks split."""
    plan = plan_on_paper()
    kernels = Kernels(gpu=ONE_FLOP_A_PS, software=COUNTING)
    found = unit_work(Unit(part="prediction", layer=MLP), DENSE, plan, kernels)
    assert [name for name, _ in found.halves] == ["join", "mlp", "head"]
    assert ps(found.halves[0][1].matmul_s) == near(product(OWN, 96, 192))
    assert found.parameters == 3 * 96 * 352 / 2 + 2 * 96 * 96 / 2


# Whole models


def test_flops_of_a_token_of_a_mixture_of_experts() -> None:
    """6 for each parameter that it meets and 12 a d s / 2 of attention a layer (arXiv:2104.04473, appendix, causal)."""
    attention, dense, shared, router, expert, head = 64_512, 101_376, 32_256, 1_152, 23_040, 159_744
    met = 6 * attention + 2 * dense + 4 * (shared + router + 3 * expert) + head
    assert met == 1_159_680
    assert active_parameters(MIXED) == met + 159_744  # the table of the embedding is looked up
    assert parameters(MIXED).total == met + 159_744 + 4 * 9 * expert
    assert model_flops_per_token(MIXED, 544) == 6 * met + 6 * 12 * 280 * 272 == 12_441_600


def test_flops_of_a_token_of_a_hybrid() -> None:
    """A scan is 7 FLOP for each channel and state (Megatron-LM, mamba_layer_flops), three times with its backward."""
    met = 3 * (40_704 + 15_360) + 64_512 + 2 * 101_376 + 159_744
    scans = 3 * 7 * 160 * 24
    assert model_flops_per_token(HYBRID, 544) == 6 * met + 12 * 280 * 272 + 3 * scans


def test_operations_computed_again_are_all_but_attention_and_every_second_product() -> None:
    """Of queries, keys, values and result the keys and the result; of gate, input and last product the input."""
    flops, moved = work(DENSE, DENSE_LAYER, ONE_FLOP_A_PS), work(DENSE, DENSE_LAYER, ONE_BYTE_A_PS)
    (_, mixer), (_, mlp) = flops.halves
    keys = product(TOKENS, 196, 96) * 28 / 196
    assert ps(mixer.operations_s - mixer.memory_s) == near(keys + product(TOKENS, 96, 140))
    assert ps(mlp.operations_s - mlp.memory_s) == near(product(TOKENS, 352, 96) / 2)
    plain = half(DENSE.model_copy(update={"is_gated": False}), MLP, ONE_FLOP_A_PS)
    assert ps(plain.operations_s - plain.memory_s) == near(product(TOKENS, 96, 176))
    assert all(one.operations_s >= one.memory_s > 0 for _, one in moved.halves)
