"""Adapters of LoRA, against counts by hand and counts that peft prints (``trainable params``; read second-hand)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.spec.training import LoraTarget, Parallelism
from weftwork.workload.models.adapters import adapter_parameters, adapters, lora_targets
from weftwork.workload.models.catalogue import model
from weftwork.workload.models.size import layer_kinds


def plan_of(rank: int, *targets: LoraTarget, tensor: int = 1) -> Parallelism:
    return Parallelism(has_lora=True, lora_rank=rank, lora_targets=targets, tensor=tensor, global_batch=1)


@pytest.mark.parametrize(
    ("name", "rank", "targets", "count"),
    [
        ("llama-2-7b", 8, ("linear_q", "linear_v"), 4_194_304),
        (
            "llama-3-8b", 16,
            ("linear_q", "linear_k", "linear_v", "linear_proj", "linear_fc1_gate", "linear_fc1_up", "linear_fc2"),
            41_943_040,
        ),
        # by hand: Q, K and V in one matrix of 8,192 rows and 8,192 + 2 x 1,024 columns, and the one behind attention
        ("llama-2-70b", 16, ("linear_qkv", "linear_proj"), 80 * 16 * (8192 + 8192 + 2 * 1024 + 8192 + 8192)),
    ],
)  # fmt: skip
def test_parameters_are_rank_times_both_sides_of_each_matrix(
    name: str, rank: int, targets: tuple[LoraTarget, ...], count: int
) -> None:
    assert adapter_parameters(model(name), plan_of(rank, *targets)) == count


@given(
    rank=st.integers(1, 256),
    factor=st.integers(1, 8),
    targets=st.sampled_from([("linear_qkv",), ("linear_q", "linear_fc2"), ()]),
    name=st.sampled_from(["llama-2-7b", "gpt-22b", "mixtral-8x7b"]),
)
def test_parameters_grow_with_the_rank(rank: int, factor: int, targets: tuple[LoraTarget, ...], name: str) -> None:
    found = model(name)
    chosen = targets if not found.experts else ()
    small, large = (adapter_parameters(found, plan_of(rank * times, *chosen)) for times in (1, factor))
    assert large == factor * small


def test_a_matrix_in_parts_has_more_adapters_than_the_whole_one() -> None:
    found = model("llama-3-8b")
    whole, parts = (
        adapter_parameters(found, plan_of(8, *targets))
        for targets in (("linear_qkv",), ("linear_q", "linear_k", "linear_v"))
    )
    assert parts - whole == found.layers * 8 * 2 * found.hidden


def test_models_with_experts_have_adapters_in_attention_alone() -> None:
    dense, experts = model("llama-3-8b"), model("mixtral-8x7b")
    assert lora_targets(dense, plan_of(8)) == ("linear_qkv", "linear_proj", "linear_fc1", "linear_fc2")
    assert lora_targets(experts, plan_of(8)) == ("linear_qkv", "linear_proj")
    assert all(not adapters(experts, plan_of(8), kind)[1] for kind in layer_kinds(experts))


def test_without_lora_there_are_none() -> None:
    assert adapter_parameters(model("llama-3-8b"), Parallelism(lora_rank=8)) == 0
