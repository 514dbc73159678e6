"""What training keeps on a GPU: the published formulas, and what each choice of a plan does to it."""

from __future__ import annotations

import pytest

from weftwork.spec.training import Model, Parallelism, RecomputeModule
from weftwork.workload.models.catalogue import MODELS, model
from weftwork.workload.models.size import LayerKind, parameters
from weftwork.workload.parallelism.memory import (
    RESERVED_BYTES,
    activation_bytes,
    fullest_stage,
    stage_memory,
)

DENSE = LayerKind(mixer="attention", mlp="dense")
# Korthikanti et al., arXiv:2205.05198, table 3: tensor, pipeline, virtual stages, micro batch. The test compares
# formulas with formulas: it shows that the general count is the published one for GPT, not that programs need as much.
PAPER = {
    "gpt-22b": (8, 1, 1, 4),
    "gpt-3-175b": (8, 8, 3, 1),
    "gpt-529.6b": (8, 35, 3, 1),
    "gpt-1008b": (8, 64, 1, 1),
}


def packet_input_of(name: str, **changes: object) -> Parallelism:
    tensor, pipeline, virtual_stages, micro_batch = PAPER[name]
    given = {
        "tensor": tensor,
        "pipeline": pipeline,
        "virtual_stages": virtual_stages,
        "micro_batch": micro_batch,
        "sequence": 2048,
    }
    return Parallelism.model_validate({**given, "global_batch": 64 * pipeline * micro_batch, **changes})


@pytest.mark.parametrize("name", PAPER)
def test_activations_of_a_layer_are_those_of_table_2(name: str) -> None:
    found, plan = model(name), packet_input_of(name)
    s, b, h, a, t = 2048, plan.micro_batch, found.hidden, found.heads, plan.tensor
    scores = 5 * a * s / h
    cases = {
        (False, "none"): 10 + 24 / t + scores / t,
        (True, "none"): 34 / t + scores / t,
        (False, "selective"): 10 + 24 / t,
        (True, "selective"): 34 / t,
        (False, "full"): 2,
    }
    for (split, recompute), factor in cases.items():
        one = plan.model_copy(update={"is_sequence_parallel": split, "recompute": recompute})
        kept = activation_bytes(found, one, DENSE, has_flash_attention=False)
        assert kept == pytest.approx(s * b * h * factor, rel=1e-12), (split, recompute)


def test_selective_recomputation_saves_what_the_paper_says() -> None:
    """Section 5: 70 % of the activations of GPT-3 and 65 % of those of MT-NLG."""
    for name, share in (("gpt-3-175b", 0.70), ("gpt-529.6b", 0.65)):
        found, plan = model(name), packet_input_of(name)
        kept = [
            activation_bytes(found, plan.model_copy(update={"recompute": how}), DENSE, has_flash_attention=False)
            for how in ("none", "selective")
        ]
        assert 1 - kept[1] / kept[0] == pytest.approx(share, abs=0.005)


@pytest.mark.parametrize("name", ["gpt-3-175b", "gpt-1008b"])
def test_the_first_stage_keeps_what_equation_5_says(name: str) -> None:
    """All layers for plain 1F1B, and with virtual stages 1 + (p - 1) / (p v) times as many."""
    found, plan = model(name), packet_input_of(name, recompute="selective")
    p, v = plan.pipeline, plan.virtual_stages
    layers = found.layers * (1 + (p - 1) / (p * v) if v > 1 else 1)
    first = stage_memory(found, plan, 0, has_flash_attention=False)
    masks = 2048 * plan.micro_batch * found.hidden / plan.tensor * (p if v == 1 else first_virtual_stage_passes(p, v))
    wanted = layers * activation_bytes(found, plan, DENSE, has_flash_attention=False) + masks
    assert first.activations_bytes == pytest.approx(wanted, rel=1e-9)


def first_virtual_stage_passes(stages: int, virtual_stages: int) -> int:
    """Of the v p + p - 1 passes under way, those of the first virtual stage: p, and the p - 1 of the next group."""
    del virtual_stages
    return 2 * stages - 1


def test_states_of_mixed_precision_are_18_bytes_without_zero() -> None:
    """Korthikanti et al., section 2: weights 2, gradients 4, Adam 12."""
    found = model("gpt-22b")
    memory = fullest_stage(found, packet_input_of("gpt-22b", zero=0, gradient_bytes=4, data=2))
    states = memory.weights_bytes + memory.gradients_bytes + memory.optimizer_bytes
    assert states == pytest.approx(18 * parameters(found).total / 8, rel=1e-6)


@pytest.mark.parametrize(("zero", "bytes_each"), [(0, 16), (1, 4 + 12 / 8), (2, 2 + 14 / 8), (3, 16 / 8)])
def test_zero_shards_one_state_after_the_other(zero: int, bytes_each: float) -> None:
    """Rajbhandari et al., arXiv:1910.02054, figure 1, with two bytes for a gradient."""
    found = model("llama-3-8b")
    memory = fullest_stage(
        found,
        Parallelism.model_validate({"data": 8, "global_batch": 8, "sequence": 2048, "zero": zero, "gradient_bytes": 2}),
    )
    states = memory.weights_bytes + memory.gradients_bytes + memory.optimizer_bytes
    assert states == pytest.approx(bytes_each * parameters(found).total, rel=1e-6)
    assert (memory.gathered_bytes > 0) == (zero == 3)


def test_experts_are_sharded_over_their_own_copies() -> None:
    found = model("mixtral-8x7b")
    plan = Parallelism(data=16, expert=8, global_batch=16, sequence=2048)
    memory = fullest_stage(found, plan)
    counted = parameters(found)
    dense = counted.total - counted.experts
    assert memory.weights_bytes == pytest.approx(2 * (dense + counted.experts / 8), rel=1e-6)
    assert memory.optimizer_bytes == pytest.approx(12 * (dense / 16 + counted.experts / 8 / 2), rel=1e-6)


def test_frozen_weights_have_neither_gradients_nor_a_state() -> None:
    found = model("llama-3-70b")
    plan = Parallelism(tensor=8, global_batch=8, sequence=4096)
    whole, lora = (fullest_stage(found, plan.model_copy(update={"has_lora": flag})) for flag in (False, True))
    assert lora.weights_bytes > whole.weights_bytes
    assert lora.optimizer_bytes + lora.gradients_bytes < 0.02 * (whole.optimizer_bytes + whole.gradients_bytes)


def test_fewer_bits_keep_smaller_inputs_and_copies_of_the_weights() -> None:
    found = model("llama-3-8b")
    plan = Parallelism(tensor=8, global_batch=8, sequence=4096)
    sizes = {
        name: fullest_stage(found, plan.model_copy(update={"precision": name}))
        for name in ("bf16", "fp8", "mxfp8", "nvfp4")
    }
    assert sizes["bf16"].quantised_bytes == 0
    assert sizes["nvfp4"].quantised_bytes < sizes["fp8"].quantised_bytes < sizes["mxfp8"].quantised_bytes
    assert sizes["nvfp4"].activations_bytes < sizes["fp8"].activations_bytes < sizes["bf16"].activations_bytes


def test_what_is_computed_again_is_there_once() -> None:
    found = model("gpt-22b")
    none, selective, full = (
        fullest_stage(found, packet_input_of("gpt-22b", recompute=how), has_flash_attention=False)
        for how in ("none", "selective", "full")
    )
    assert none.recomputed_bytes == 0 < selective.recomputed_bytes < full.recomputed_bytes
    assert full.activations_bytes < selective.activations_bytes < none.activations_bytes
    assert full.recomputed_bytes == pytest.approx(none.activations_bytes / 48, rel=0.02)


def test_gpipe_keeps_every_micro_batch_and_1f1b_as_many_as_stages_follow() -> None:
    found = model("gpt-22b")
    plan = Parallelism(pipeline=4, global_batch=16, sequence=2048)
    late = [stage_memory(found, plan, stage).activations_bytes for stage in range(4)]
    every = stage_memory(found, plan.model_copy(update={"schedule": "gpipe"}), 1).activations_bytes
    assert every / late[1] == pytest.approx(16 / 3)
    assert late == sorted(late, reverse=True)


def test_a_window_bounds_the_scores() -> None:
    found, plan = model("gpt-oss-20b"), Parallelism(global_batch=1, sequence=4096)
    kinds = [LayerKind(mixer=mixer, mlp="none") for mixer in ("window", "attention")]
    window, full = (activation_bytes(found, plan, kind, has_flash_attention=False) for kind in kinds)
    assert full - window == 2 * 64 * (4096 - 128) * 4096


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_its_table(name: str) -> None:
    found = model(name)
    memory = fullest_stage(found, Parallelism(global_batch=1, sequence=found.sequence))
    assert memory.total_bytes == sum(memory.items.values()) > 16 * parameters(found).total + RESERVED_BYTES
    assert "weights" in memory.text
    assert "quantised" not in memory.items


def test_context_splits_activations_and_leaves_weights() -> None:
    found = Model(name="m", layers=4, hidden=256, heads=4, key_value_heads=4, head_dim=64, ffn=1024, vocabulary=512)
    plan = Parallelism(global_batch=4, sequence=8192)
    whole, split = (fullest_stage(found, plan.model_copy(update={"context": degree})) for degree in (1, 4))
    assert whole.activations_bytes == pytest.approx(4 * split.activations_bytes)
    assert whole.weights_bytes == split.weights_bytes


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("llama-3-8b", "layernorm"),
        ("llama-3-8b", "mlp"),
        ("deepseek-v3", "mla_up_proj"),
        ("deepseek-v3", "moe"),
        ("deepseek-v3", "moe_act"),
        ("deepseek-v3", "shared_experts"),
    ],
)
def test_a_module_that_is_computed_again_keeps_less_and_is_there_once(name: str, module: RecomputeModule) -> None:
    found = model(name)
    kind = LayerKind(mixer="attention", mlp="experts" if found.experts else "dense")
    plan = Parallelism(sequence=4096, pipeline=2, expert=2 if found.experts else 1, data=2, global_batch=8)
    again = plan.model_copy(update={"recompute": "selective", "recompute_modules": (module,)})
    saved = activation_bytes(found, plan, kind) - activation_bytes(found, again, kind)
    assert saved > 0
    # the fullest of the layers is computed again one at a time
    assert fullest_stage(found, again).recomputed_bytes >= round(saved)
    assert fullest_stage(found, plan).recomputed_bytes == 0


def test_modules_keep_what_their_tensors_say() -> None:
    """Of a token: the input of the first product of each half, all inside the MLP, inputs of experts' last products."""
    dense, plan = model("llama-3-8b"), Parallelism(sequence=4096)
    whole = activation_bytes(dense, plan, DENSE)
    selective = {"recompute": "selective"}
    saved = {
        name: (
            whole - activation_bytes(dense, plan.model_copy(update={**selective, "recompute_modules": (name,)}), DENSE)
        )
        / 4096
        for name in ("layernorm", "mlp")
    }
    assert saved == {"layernorm": 2 * 2 * dense.hidden, "mlp": 6 * dense.ffn}
    mixture = model("mixtral-8x7b")
    kind = LayerKind(mixer="attention", mlp="experts")
    again = plan.model_copy(update={"recompute": "selective", "recompute_modules": ("moe_act",)})
    kept = activation_bytes(mixture, plan, kind) - activation_bytes(mixture, again, kind)
    assert kept / 4096 == pytest.approx(2 * mixture.expert_ffn * mixture.experts_per_token)


def test_selective_recomputation_is_that_of_one_module() -> None:
    found = model("gpt-22b")
    selective = packet_input_of("gpt-22b", recompute="selective")
    one = packet_input_of("gpt-22b", recompute="selective", recompute_modules=("core_attn",))
    for flash in (False, True):
        assert activation_bytes(found, selective, DENSE, has_flash_attention=flash) == activation_bytes(
            found, one, DENSE, has_flash_attention=flash
        )


def test_layers_that_are_offloaded_are_not_there_but_for_two() -> None:
    found = model("llama-3-70b")
    plan = Parallelism(tensor=8, global_batch=8, sequence=4096)
    sizes = [
        fullest_stage(found, plan.model_copy(update={"offloaded_layers": layers})).activations_bytes
        for layers in (0, 20, 78, 80, 1000)
    ]
    ends = 4 * 4096 * found.hidden / 8  # of the loss head
    assert (sizes[1] - ends) / (sizes[0] - ends) == pytest.approx(60 / 80)
    assert (sizes[2] - ends) / (sizes[0] - ends) == pytest.approx(2 / 80)
    assert sizes[2] == sizes[3] == sizes[4]


def test_weights_in_fewer_bits_have_no_copy_in_bf16_but_of_what_is_not_quantised() -> None:
    found = model("llama-3-8b")
    plan = Parallelism(tensor=8, global_batch=8, sequence=4096, precision="fp8")
    both, alone = (
        fullest_stage(found, plan.model_copy(update={"has_quantised_weights": flag})) for flag in (False, True)
    )
    ends = 2 * found.vocabulary * found.hidden / 8
    assert alone.quantised_bytes == both.quantised_bytes > 0
    assert alone.weights_bytes == pytest.approx(2 * ends, rel=0.01)
    wide = plan.model_copy(update={"precision": "bf16"})
    alike = (fullest_stage(found, wide.model_copy(update={"has_quantised_weights": flag})) for flag in (False, True))
    assert len(set(alike)) == 1


@pytest.mark.parametrize(("moment", "bytes_each"), [(4, 12), (2, 8)])
def test_moments_of_two_bytes_are_half(moment: int, bytes_each: int) -> None:
    found = model("llama-3-8b")
    plan = Parallelism.model_validate({"global_batch": 8, "sequence": 2048, "zero": 0, "moment_bytes": moment})
    assert fullest_stage(found, plan).optimizer_bytes == bytes_each * parameters(found).total


def test_each_token_that_is_predicted_beside_keeps_a_softmax() -> None:
    """NVIDIA/Megatron-LM, megatron/core/fusions/fused_cross_entropy.py: a loss keeps its softmax, in FP32."""
    found = model("deepseek-v3")
    plan = Parallelism(expert=8, data=8, global_batch=8, sequence=4096)
    one, none = (
        fullest_stage(found.model_copy(update={"prediction_layers": layers}), plan).logits_bytes for layers in (1, 0)
    )
    assert (none, one) == (6 * 4096 * found.vocabulary, 10 * 4096 * found.vocabulary)


def test_operations_keep_attention_and_every_second_product() -> None:
    """Of a token: input, queries, values and result of attention, first and last product of a gated MLP."""
    dense, plan = model("llama-3-8b"), Parallelism(sequence=4096, recompute="operations")
    hidden, keys = dense.hidden, dense.key_value_heads * dense.head_dim
    assert activation_bytes(dense, plan, DENSE) / 4096 == 2 * (hidden + 2 * hidden + keys + dense.ffn + hidden)
    split = plan.model_copy(update={"tensor": 2})
    own = hidden + (2 * hidden + keys + dense.ffn) / 2 * 2 + 2 * hidden + 2 * hidden  # of half of the tokens
    assert activation_bytes(dense, split, DENSE) / 2048 == 2 * own
    plain = dense.model_copy(update={"is_gated": False})
    assert activation_bytes(plain, plan, DENSE) / 4096 == 2 * (hidden + 2 * hidden + keys + dense.ffn)


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith(("llama", "gpt-3", "qwen3-8b"))])
def test_operations_lie_between_none_and_full(name: str) -> None:
    plan = Parallelism(sequence=2048, global_batch=8, pipeline=2)
    none, operations, full = (
        fullest_stage(model(name), plan.model_copy(update={"recompute": how})) for how in ("none", "operations", "full")
    )
    assert full.activations_bytes < operations.activations_bytes < none.activations_bytes
    assert none.recomputed_bytes == 0 < operations.recomputed_bytes < full.recomputed_bytes


def test_one_of_so_many_layers_is_computed_again() -> None:
    dense, plan = model("llama-3-8b"), Parallelism(sequence=2048, global_batch=8, recompute="full")
    none = fullest_stage(dense, plan.model_copy(update={"recompute": "none"})).activations_bytes
    full = fullest_stage(dense, plan).activations_bytes
    half = fullest_stage(dense, plan.model_copy(update={"recompute_every": 2})).activations_bytes
    assert half == pytest.approx((none + full) / 2)
    nobody = fullest_stage(dense, plan.model_copy(update={"recompute_every": 33}))
    assert (nobody.activations_bytes, nobody.recomputed_bytes) == (none, 0)
