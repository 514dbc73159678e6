"""Bytes that training keeps on a GPU, by hand: states by level of ZeRO where experts have other copies than the rest.

Two stages of a mixture of experts whose sizes are all different (`helpers.on_paper`): an embedding, two dense layers
and a mixture; three mixtures and the head. Twelve ranks a stage: two tensor ranks, six data ranks; experts on three
ranks, each on two, so that two ranks hold the same experts and six the same dense weights.
Source: Rajbhandari et al., arXiv:1910.02054, sections 3.1 and 5 (states of Adam, and who keeps which shard);
NVIDIA/Megatron-LM, megatron/core/parallel_state.py (the expert data parallel group is not the data parallel one);
Korthikanti et al., arXiv:2205.05198, section 4 (activations).
"""

from __future__ import annotations

import pytest
from helpers.on_paper import DELTA, DENSE, HYBRID, LATENT, MIXED, plan_on_paper

from weftwork.spec.training import Model, Parallelism
from weftwork.workload.models.size import LayerKind, layer_kinds
from weftwork.workload.parallelism.layout import virtual_stages_of
from weftwork.workload.parallelism.memory import activation_bytes, fullest_stage, stage_memory

# Parameters of a rank: table 79,872, attention 32,256, dense MLP 50,688, shared expert 16,128, router 1,152 (whole),
# and of the twelve experts four halves of 23,040.
DENSE_LAYER, MIXTURE, EXPERTS = 32_256 + 50_688, 32_256 + 16_128 + 1_152, 46_080
HELD = ((79_872 + 2 * DENSE_LAYER + MIXTURE, EXPERTS), (3 * MIXTURE + 79_872, 3 * EXPERTS))
SPREAD = {"data": 6, "expert": 3, "expert_tensor": 2, "pipeline": 2, "global_batch": 2 * 18}
TOKENS, OWN = 1_632, 816


@pytest.mark.parametrize("stage", [0, 1])
@pytest.mark.parametrize("gradient_bytes", [2, 4])
@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_zero_shards_one_state_after_the_other_over_the_copies_of_each_parameter(
    zero: int, gradient_bytes: int, stage: int
) -> None:
    dense, experts = HELD[stage]
    whole, shard = dense + experts, dense // 6 + experts // 2
    assert (dense % 6, experts % 2) == (0, 0)
    found = stage_memory(MIXED, plan_on_paper(**SPREAD, zero=zero, gradient_bytes=gradient_bytes), stage)
    assert found.optimizer_bytes == 12 * (whole if zero == 0 else shard)
    assert found.gradients_bytes == gradient_bytes * (whole if zero < 2 else shard)
    assert found.weights_bytes == 2 * (whole if zero < 3 else shard)


@pytest.mark.parametrize(("context", "data"), [(2, 3), (3, 2), (6, 1)])
def test_context_ranks_share_states_as_data_ranks_do(context: int, data: int) -> None:
    """They hold the same weights, so that ZeRO shards over both together."""
    plan = plan_on_paper(context=context, data=data, pipeline=2, global_batch=6 * data)
    found = stage_memory(DENSE, plan, 0)
    assert found.optimizer_bytes == 12 * (79_872 + 3 * DENSE_LAYER) // 6


@pytest.mark.parametrize(("has_prefetch", "at_once"), [(True, 2), (False, 1)])
def test_zero_3_gathers_the_largest_unit_and_the_next_one(has_prefetch: bool, at_once: int) -> None:  # noqa: FBT001
    """The largest unit of both stages is a mixture with its experts; elsewhere nothing is gathered."""
    for stage in (0, 1):
        found = stage_memory(MIXED, plan_on_paper(**SPREAD, zero=3, has_prefetch=has_prefetch), stage)
        assert found.gathered_bytes == at_once * 2 * (MIXTURE + EXPERTS)
    assert stage_memory(MIXED, plan_on_paper(**SPREAD, zero=2), 0).gathered_bytes == 0


def test_chunks_of_a_stage_are_a_pipeline_apart() -> None:
    """Narayanan et al., arXiv:2104.04473, section 2.2: of six parts stage 0 has the first, third and fifth.

    The first two layers are dense, so that each stage has one of them and two mixtures.
    """
    found = virtual_stages_of(MIXED, plan_on_paper(pipeline=2, virtual_stages=3, global_batch=6))
    parts = [
        [[one.layer.mlp if one.layer else one.part for one in virtual_stage] for virtual_stage in stage]
        for stage in found
    ]
    assert parts == [
        [["embedding", "dense"], ["experts"], ["experts"]],
        [["dense"], ["experts"], ["experts", "head"]],
    ]
    spread = SPREAD | {"virtual_stages": 3}
    held = [79_872 + DENSE_LAYER + 2 * (MIXTURE + EXPERTS), DENSE_LAYER + 2 * (MIXTURE + EXPERTS) + 79_872]
    memory = [stage_memory(MIXED, plan_on_paper(**spread, zero=0), stage) for stage in (0, 1)]
    assert [one.weights_bytes for one in memory] == [2 * sizes for sizes in held]


def test_layers_that_do_not_divide_are_more_on_later_parts() -> None:
    """Part k ends at layer floor(6 (k + 1) / 4): the first stage, which keeps most micro batches, is no longer one."""
    held = [stage_memory(DENSE, plan_on_paper(pipeline=4, zero=0), stage).weights_bytes // 2 for stage in range(4)]
    assert held == [79_872 + DENSE_LAYER, 2 * DENSE_LAYER, DENSE_LAYER, 2 * DENSE_LAYER + 79_872]


def test_a_tied_table_is_held_once_by_one_stage_and_by_both_ends_of_a_pipeline() -> None:
    tied = DENSE.model_copy(update={"has_tied_embeddings": True})
    layers = 6 * DENSE_LAYER
    assert stage_memory(tied, plan_on_paper(zero=0), 0).weights_bytes == 2 * (layers + 79_872)
    assert stage_memory(DENSE, plan_on_paper(zero=0), 0).weights_bytes == 2 * (layers + 2 * 79_872)
    ends = [stage_memory(tied, plan_on_paper(zero=0, pipeline=3), stage).weights_bytes for stage in range(3)]
    assert ends == [2 * (layers // 3 + 79_872), 2 * layers // 3, 2 * (layers // 3 + 79_872)]


def test_adapters_have_rank_32_beside_each_matrix() -> None:
    """Q 96 + 280, K and V 96 + 56, out 280 + 96; three matrices of the MLP 96 + 352: each times 32, half of it a rank.

    The code counts the sides of Q, K and V together, from one input of 96: they share one thin matrix.
    """
    attention = 96 + (280 + 2 * 56) + (280 + 96)
    mlp = 96 + 2 * 352 + (352 + 96)
    adapters = 6 * 32 * (attention + mlp) // 2
    found = stage_memory(DENSE, plan_on_paper(has_lora=True, gradient_bytes=4), 0)
    frozen = 6 * DENSE_LAYER + 2 * 79_872
    assert found.weights_bytes == 2 * (frozen + adapters)
    assert (found.gradients_bytes, found.optimizer_bytes) == (4 * adapters, 12 * adapters)


@pytest.mark.parametrize(
    ("precision", "copy_bytes"), [("bf16", 0.0), ("fp8", 2.0), ("mxfp8", 66 / 32), ("nvfp4", 18 / 16)]
)
def test_copies_in_fewer_bits_are_of_matrices_of_layers_alone(precision: str, copy_bytes: float) -> None:
    """Not of tables nor of routers, which stay as they are."""
    found = stage_memory(MIXED, plan_on_paper(**SPREAD, precision=precision), 0)
    assert found.quantised_bytes == round(copy_bytes * (2 * DENSE_LAYER + MIXTURE - 1_152 + EXPERTS))


# Activations


def kept(model: Model, kind: LayerKind, plan: Parallelism | None = None) -> float:
    return activation_bytes(model, plan or plan_on_paper(), kind)


def test_activations_of_each_half_of_a_layer() -> None:
    """Around a half: input of its norm and of its product, 2 bytes each of a rank's own tokens.

    Attention: Q, K, V and what the last product gets; the gated MLP: two inputs of the activation and its result.
    Experts: a token three times, sent and received, the inside of experts, the shared expert, four bytes of the router.
    A state space: gate, input, B, C, steps before the convolution; input, B, C behind it; the scan, the last input.
    """
    edge = 4 * OWN * 96
    qkv = 2 * TOKENS * 28 * (5 + 2 * 1) + 2 * TOKENS * 140
    assert kept(DENSE, LayerKind(mixer="attention", mlp="none")) == edge + qkv
    assert kept(DENSE, LayerKind(mixer="none", mlp="dense")) == edge + 3 * 2 * TOKENS * 176
    routed = OWN * 3 * (2 * 2 * 96 + 3 * 2 * 80)
    shared, router = 3 * 2 * TOKENS * 56, 4 * OWN * 12
    assert kept(MIXED, LayerKind(mixer="none", mlp="experts")) == edge + routed + shared + router
    before, behind = 2 * (80 + 80 + 48 + 4), 2 * (80 + 48)
    scanned = TOKENS * (before + behind + 2 * 80 + 2 * 80)
    assert kept(HYBRID, LayerKind(mixer="state-space", mlp="none")) == edge + scanned


def test_activations_of_a_delta_net_and_of_a_gate() -> None:
    """Queries, keys, values before and behind the convolution, the gate, the result, the last input.

    Of each of three heads two numbers in FP32 and the inverse of a block of 64 tokens in BF16. A gated attention keeps
    the gate and what it gates.
    """
    edge = 4 * OWN * 96
    net = TOKENS * (2 * 2 * (40 + 108) + 2 * 2 * 108 + 2 * 108 + 3 * (8 + 128))
    assert kept(DELTA, LayerKind(mixer="delta", mlp="none")) == edge + net
    attention = LayerKind(mixer="attention", mlp="none")
    assert kept(DELTA, attention) - kept(DENSE, attention) == 2 * 2 * TOKENS * 140


def test_activations_of_latent_attention() -> None:
    """The narrow vectors before and behind their norms, whole; queries, keys and values of five heads, and the result.

    44 + 52 values of 2 + 2 bytes and 12 of 2 of a rank's own tokens; 5 x (32 + 32 + 36) of 2 and 5 x 36 of 2 of all.
    """
    narrow, wide = OWN * (4 * (44 + 52) + 2 * 12), TOKENS * (2 * 5 * (32 + 32 + 36) + 2 * 5 * 36)
    assert kept(LATENT, LayerKind(mixer="attention", mlp="none")) == 4 * OWN * 96 + narrow + wide


def test_the_head_keeps_its_inputs_and_the_logits_of_one_micro_batch() -> None:
    """Two inputs of two bytes; logits in BF16 and their softmax in FP32, of half of the vocabulary."""
    last = stage_memory(DENSE, plan_on_paper(pipeline=2, global_batch=3 * 5), 1)
    layers = 3 * kept(DENSE, LayerKind(mixer="attention", mlp="dense"))
    assert last.activations_bytes == layers + 4 * OWN * 96
    assert last.logits_bytes == 6 * TOKENS * 832
    first = stage_memory(DENSE, plan_on_paper(pipeline=2, global_batch=3 * 5), 0)
    assert (first.activations_bytes, first.logits_bytes) == (2 * layers, 0)  # two micro batches under way


def test_full_recomputation_keeps_the_input_of_each_layer_and_one_layer_once() -> None:
    plan = plan_on_paper(recompute="full")
    found = stage_memory(DENSE, plan, 0)
    assert found.activations_bytes == 6 * 2 * OWN * 96 + 4 * OWN * 96
    assert found.recomputed_bytes == kept(DENSE, LayerKind(mixer="attention", mlp="dense"))


def test_the_fullest_stage_is_the_one_with_the_largest_sum() -> None:
    plan = plan_on_paper(**SPREAD, zero=0, gradient_bytes=2)
    stages = [stage_memory(MIXED, plan, stage) for stage in (0, 1)]
    assert fullest_stage(MIXED, plan) == max(stages, key=lambda one: sum(one.items.values()))
    states = [16 * sum(held) for held in HELD]
    assert [one.weights_bytes + one.gradients_bytes + one.optimizer_bytes for one in stages] == states


def test_layers_that_stay_in_bf16_keep_what_they_keep_in_bf16_and_no_copies_of_weights() -> None:
    """Two of six dense layers in BF16: a third of what a plan of BF16 keeps, and two thirds of what one of FP8 does.

    Copies for products in FP8 are two bytes of each of the four layers' weights.
    """
    found, narrow, wide = (
        fullest_stage(DENSE, plan_on_paper(precision=numbers, bf16_first_layers=first, bf16_last_layers=last))
        for numbers, first, last in (("fp8", 1, 1), ("fp8", 0, 0), ("bf16", 0, 0))
    )
    kept = [one.activations_bytes for one in (found, narrow, wide)]
    assert narrow.activations_bytes < wide.activations_bytes
    layers = [activation_bytes(DENSE, plan_on_paper(precision=one), layer_kinds(DENSE)[0]) for one in ("bf16", "fp8")]
    assert kept[0] - kept[1] == pytest.approx(2 * (layers[0] - layers[1]), abs=1)
    assert found.quantised_bytes == 4 * 2 * DENSE_LAYER
    assert narrow.quantised_bytes == 6 * 2 * DENSE_LAYER
    assert wide.quantised_bytes == 0
