"""Plans that cannot be: each reason, all at once, and the nearest plan, which itself can be."""

from __future__ import annotations

import pytest
from helpers.parallelism_refuse import changed

from weftwork.base.errors import ConfigError
from weftwork.base.fix import Fix
from weftwork.hardware.catalogue import gpu
from weftwork.spec.training import Parallelism
from weftwork.workload.models.catalogue import model
from weftwork.workload.parallelism.refuse import refuse

LLAMA = {"tensor": 8, "pipeline": 4, "data": 4, "global_batch": 128, "sequence": 8192}


MIXTRAL = {"data": 16, "expert": 8, "global_batch": 16, "sequence": 4096}


def refused(name: str, gpus: int, plan: dict[str, object], **keys: object) -> tuple[list[tuple[str, str]], Fix | None]:
    """Mistakes by path, and the fix of the last one; the others have none."""
    with pytest.raises(ConfigError) as caught:
        refuse(model(name), Parallelism.model_validate(plan), gpus=gpus, **keys)  # type: ignore[arg-type]
    assert [mistake.fix for mistake in caught.value.mistakes[:-1]] == [None] * (len(caught.value.mistakes) - 1)
    return [(mistake.path, mistake.text) for mistake in caught.value.mistakes], caught.value.mistakes[-1].fix


def test_a_plan_that_can_be_is_left_alone() -> None:
    refuse(model("llama-3-70b"), Parallelism.model_validate(LLAMA), gpus=128, gpu=gpu("h100"))


@pytest.mark.parametrize(
    ("name", "gpus", "plan", "key", "words"),
    [
        ("llama-3-70b", 100, LLAMA, "data", "= 128, wanted the 100 GPUs"),
        ("llama-3-70b", 96, {**LLAMA, "tensor": 6}, "tensor", "divisor of the 64 heads"),
        ("llama-3-70b", 256, {**LLAMA, "tensor": 16}, "tensor", "8 key and value heads"),
        ("llama-2-7b", 64, {**LLAMA, "tensor": 32, "pipeline": 2, "data": 1, "sequence": 4112}, "tensor", "4,112"),
        ("mixtral-8x7b", 15, {**MIXTRAL, "data": 15, "expert": 5, "global_batch": 15}, "expert", "8 experts"),
        ("mixtral-8x7b", 12, {**MIXTRAL, "data": 12, "global_batch": 12}, "expert", "is left that does not divide"),
        ("mixtral-8x7b", 30, {"data": 30, "expert_tensor": 15, "global_batch": 30}, "expert_tensor", "14,336 columns"),
        ("llama-3-8b", 8, {"data": 8, "expert": 8, "global_batch": 8}, "expert", "has no experts"),
        ("llama-3-8b", 8, {"data": 8, "expert_tensor": 2, "global_batch": 8}, "expert_tensor", "has no experts"),
        ("mixtral-8x7b", 8, {"tensor": 8, "is_sequence_parallel": False, "global_batch": 8}, "sequence_parallel", ""),
        ("llama-3-8b", 64, {"pipeline": 64, "global_batch": 64}, "pipeline", "wanted at most 32 in all: layers"),
        ("llama-3-8b", 2, {"data": 2, "virtual_stages": 2, "global_batch": 8}, "virtual_stages", "no bubble"),
        (
            "llama-3-8b", 4, {"pipeline": 4, "virtual_stages": 2, "schedule": "gpipe", "global_batch": 8},
            "virtual_stages", "gpipe",
        ),
        (
            "llama-3-8b", 4, {"pipeline": 4, "virtual_stages": 2, "schedule": "zb-h1", "global_batch": 8},
            "virtual_stages", "wanted 1 with schedule zb-h1",
        ),
        (
            "llama-3-8b", 3, {"pipeline": 3, "schedule": "dualpipe", "global_batch": 12},
            "schedule", "with 3 stages, wanted an even number",
        ),
        (
            "llama-3-8b", 4, {"pipeline": 4, "schedule": "dualpipe", "global_batch": 6},
            "global_batch", "makes 6 micro batches, wanted with dualpipe an even number, and two or more",
        ),
        (
            "llama-3-8b", 4, {"pipeline": 4, "schedule": "dualpipe", "global_batch": 9},
            "global_batch", "makes 9 micro batches, wanted with dualpipe an even number, and two or more",
        ),
        (
            "llama-3-8b", 4, {"pipeline": 4, "schedule": "dualpipe", "global_batch": 8, "zero": 3},
            "zero", "found 3, wanted 0, 1 or 2: dualpipe keeps two copies",
        ),
        (
            "llama-3-8b", 4, {"pipeline": 4, "schedule": "zb-h1", "global_batch": 8, "has_lora": True},
            "schedule", "frozen weights have no gradients to delay",
        ),
        ("llama-3-8b", 4, {"data": 4, "micro_batch": 3, "global_batch": 32}, "global_batch", "multiple of data 4"),
        (
            "llama-3-8b", 4, {"pipeline": 4, "virtual_stages": 2, "global_batch": 6},
            "global_batch", "multiple of the 4 stages",
        ),
        ("llama-3-8b", 3, {"context": 3, "global_batch": 1, "sequence": 8192}, "context", "half a divisor"),
    ],
)  # fmt: skip
def test_each_reason_is_told_and_the_plan_that_is_proposed_can_be(
    name: str, gpus: int, plan: dict[str, object], key: str, words: str
) -> None:
    found, near = refused(name, gpus, plan)
    assert any(path == f"training.{key}" and words in text for path, text in found), found
    refuse(model(name), Parallelism.model_validate(changed(plan, near)), gpus=gpus)


@pytest.mark.parametrize(
    ("name", "adapters", "key", "words"),
    [
        ("llama-3-8b", {"lora_rank": 6}, "lora.rank", "found 6, wanted a multiple of tensor 4"),
        ("gpt-22b", {"lora_targets": ("linear_fc1_gate",)}, "lora.targets", "linear_fc1, linear_fc1_gate"),
        ("mixtral-8x7b", {"lora_targets": ("linear_qkv", "linear_fc1")}, "lora.targets", "experts of 'mixtral-8x7b'"),
        ("deepseek-v3", {}, "lora.targets", "latent attention of 'deepseek-v3'"),
        (
            "llama-3-8b",
            {"lora_targets": ("linear_qkv", "linear_q")},
            "lora.targets",
            "linear_qkv with linear_q, wanted",
        ),
    ],
)
def test_adapters_that_cannot_be_are_refused(name: str, adapters: dict[str, object], key: str, words: str) -> None:
    plan: dict[str, object] = {"tensor": 4, "global_batch": 4, "sequence": 4096, "has_lora": True, **adapters}
    found, _ = refused(name, 4, plan)
    texts = [text for path, text in found if path == f"training.{key}"]
    if name == "gpt-22b":  # it has no gate
        assert texts[0].startswith("found linear_fc1_gate, wanted linear_qkv")
        return
    assert any(words in text for text in texts), found


def test_memory_that_does_not_fit_is_told_item_by_item() -> None:
    plan: dict[str, object] = {**LLAMA, "tensor": 1, "data": 32}
    ((path, text),), near = refused("llama-3-70b", 128, plan, gpu=gpu("h100"))
    assert path == "training.memory"
    assert "of 85.5 GB: weights 36.3, gradients 72.7, optimizer" in text
    assert text.endswith("; weights, gradients and optimizer alone exceed it")
    mended = Parallelism.model_validate(changed(plan, near))
    refuse(model("llama-3-70b"), mended, gpus=128, gpu=gpu("h100"))
    refuse(model("llama-3-70b"), Parallelism.model_validate(plan), gpus=128, gpu=gpu("h100"), memory_bytes=10**12)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"tensor": 1, "pipeline": 1, "data": 128, "zero": 0}, "weights alone exceed it"),
        ({"tensor": 1, "data": 32}, "weights, gradients and optimizer alone exceed it"),
        ({"micro_batch": 8, "global_batch": 1024}, "activations do not fit beside weights, gradients and optimizer"),
    ],
)
def test_the_part_that_exceeds_is_named_and_the_batch_never_mends_it(changes: dict[str, object], part: str) -> None:
    plan: dict[str, object] = {**LLAMA, **changes, "global_batch": changes.get("global_batch", 128)}
    ((path, text),), near = refused("llama-3-70b", 128, plan, gpu=gpu("h100"))
    assert path == "training.memory"
    assert text.endswith(f"; {part}")
    assert near is not None
    assert "global_batch" not in str(near)
    refuse(model("llama-3-70b"), Parallelism.model_validate(changed(plan, near)), gpus=128, gpu=gpu("h100"))


def test_an_optimizer_that_does_not_shard_gradients_refuses_more_sharding() -> None:
    plan: dict[str, object] = {**LLAMA, "has_gradient_copy": True, "zero": 3}
    ((path, text),), near = refused("llama-3-70b", 128, plan, gpu=gpu("h100"))
    assert (path, text[:23]) == ("training.zero", "found 3, wanted 0 or 1:")
    assert str(near) == "--set training.zero=1"


@pytest.mark.parametrize(
    ("name", "precision", "wanted"),
    [("a100", "fp8", "bf16"), ("h100", "mxfp8", "fp8 or bf16"), ("h100", "nvfp4", "fp8 or bf16")],
)
def test_a_precision_that_the_gpu_has_not_is_refused(name: str, precision: str, wanted: str) -> None:
    plan: dict[str, object] = {**LLAMA, "precision": precision, "recompute": "full"}
    found, _ = refused("llama-3-70b", 128, plan, gpu=gpu(name))
    assert found[0][0] == "training.precision"
    assert f"wanted {wanted}" in found[0][1]


@pytest.mark.parametrize(
    ("name", "plan", "key", "text"),
    [
        (
            "llama-3-70b",
            {"recompute": "selective", "recompute_modules": ["moe_act", "mla_up_proj"]},
            "recompute_modules",
            "found moe_act, wanted core_attn, layernorm, mlp of 'llama-3-70b'",
        ),
        (
            "llama-3-70b",
            {"module_precision": {"latent": "bf16"}},
            "precision_by_module",
            "found latent, wanted qkv, projection of 'llama-3-70b'",
        ),
        (
            "llama-3-70b",
            {"precision": "fp8", "bf16_first_layers": 40, "bf16_last_layers": 41},
            "bf16_last_layers",
            "found 40 and 41, wanted at most the 80 layers of 'llama-3-70b'",
        ),
        ("llama-3-70b", {"layout": "Et*80L"}, "layout", "found 1 part, wanted 4: pipeline x virtual_stages"),
    ],
)
def test_what_a_recipe_sets_and_a_model_does_not_have_is_refused(
    name: str, plan: dict[str, object], key: str, text: str
) -> None:
    found, fix = refused(name, 128, LLAMA | plan, gpu=gpu("gb200"), memory_bytes=10**14)
    assert found[0][0] == f"training.{key}"
    assert text in found[0][1]
    assert fix is None  # which module was meant is nobody's guess


def test_modules_of_a_model_are_left_alone_and_unasked_ones_too() -> None:
    """What selective recomputation would compute again is not judged where it is off."""
    plans = [
        {"recompute": "none", "recompute_modules": ["moe"]},
        {"recompute": "selective", "recompute_modules": ["core_attn", "layernorm", "mlp"]},
        {"precision": "nvfp4", "module_precision": {"qkv": "bf16", "projection": "mxfp8"}, "bf16_last_layers": 80},
        {"layout": "Et*19|t*20|t*20|t*21L"},
    ]
    for plan in plans:
        asked = Parallelism.model_validate(LLAMA | plan)
        refuse(model("llama-3-70b"), asked, gpus=128, gpu=gpu("gb200"), memory_bytes=10**14)


@pytest.mark.parametrize(
    ("name", "numbers", "wanted"),
    [
        ("a100", "fp8", "found 'fp8' of qkv, wanted bf16"),
        ("h100", "nvfp4", "found 'nvfp4' of qkv, wanted fp8 or bf16"),
    ],
)
def test_numbers_of_a_module_that_the_gpu_has_not_are_refused(name: str, numbers: str, wanted: str) -> None:
    plan = LLAMA | {"module_precision": {"qkv": numbers}}
    found, _ = refused("llama-3-70b", 128, plan, gpu=gpu(name), memory_bytes=10**14)
    assert found[0][0] == "training.precision_by_module"
    assert wanted in found[0][1]


def test_all_reasons_are_told_at_once() -> None:
    plan: dict[str, object] = {
        "tensor": 16,
        "pipeline": 3,
        "data": 3,
        "expert": 4,
        "virtual_stages": 7,
        "global_batch": 100,
    }
    found, near = refused("llama-3-70b", 128, plan, gpu=gpu("h100"))
    assert [path.removeprefix("training.") for path, _ in found] == ["data", "tensor", "expert", "global_batch"]
    refuse(model("llama-3-70b"), Parallelism.model_validate(changed(plan, near)), gpus=128, gpu=gpu("h100"))


@pytest.mark.parametrize("gpus", [8, 64])
def test_where_no_plan_can_be_that_is_said(gpus: int) -> None:
    found, near = refused(
        "llama-3-405b", gpus, {"tensor": 8, "data": gpus // 8, "global_batch": 64, "sequence": 8192}, gpu=gpu("h100")
    )
    assert near is None
    assert found[-1][1].endswith("; no plan near this one fits; take more GPUs or a smaller model")
