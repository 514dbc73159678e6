"""Context parallelism by an exchange of heads (Ulysses), counted by hand on a plan whose sizes are all different.

Source: Jacobs et al., arXiv:2309.14509, section 3: of N tokens with h values, P ranks send 4 N h / P values a layer.
"""

from __future__ import annotations

from typing import Any

import pytest
from helpers.on_paper import (
    CLUSTER,
    COUNTING,
    DENSE,
    HYBRID,
    LATENT,
    ONE_BYTE_A_PS,
    ONE_FLOP_A_PS,
    SEQUENCE,
    plan_on_paper,
)
from helpers.stages import run_stages
from helpers.trained import packed
from hypothesis import given
from hypothesis import strategies as st

from weftwork.spec.job import Collect, Compute, Operation
from weftwork.spec.scenario.training import OverlapSection
from weftwork.spec.training import Gpu, Model, Parallelism
from weftwork.workload.models.catalogue import model
from weftwork.workload.models.size import LayerKind
from weftwork.workload.parallelism.exchanged_heads import exchanged_values, head_misfit
from weftwork.workload.parallelism.layout import Unit
from weftwork.workload.parallelism.memory import activation_bytes
from weftwork.workload.parallelism.refuse import PlanLimits, misfits, nearest_plan
from weftwork.workload.training.communication import Communication
from weftwork.workload.training.kernels import Kernels
from weftwork.workload.training.programs import training_job
from weftwork.workload.training.stage import UnitOperations

OWN_KEYS = DENSE.model_copy(update={"key_value_heads": 10})  # every head has keys of its own
ATTENTION = LayerKind(mixer="attention", mlp="none")
CONTEXT = 1  # channel of collectives
LAYERS = 6
HEADS = 280  # ten of 28 values
TOKENS = 3 * SEQUENCE // 2  # of a context rank


def ulysses(**changes: object) -> Parallelism:
    return plan_on_paper(**{"tensor": 1, "context": 2, "context_exchange": "all-to-all"} | changes)


def sent(trained: Model, plan: Parallelism) -> dict[str, tuple[int, int]]:
    """Calls between context ranks in an iteration of one stage, and their bytes in all, by operation."""
    placement = packed(plan.ranks, CLUSTER.domain_gpus)
    job, _ = training_job(trained, plan, gpu=ONE_FLOP_A_PS, software=COUNTING, cluster=CLUSTER, placement=placement)
    found = run_stages(job)
    assert found.left_tokens == {}
    return {what: (total[0], total[1]) for (_, what, channel), total in found.collected.items() if channel == CONTEXT}


def units(trained: Model, plan: Parallelism, *, on: Gpu = ONE_FLOP_A_PS) -> UnitOperations:
    kernels = Kernels(gpu=on, software=COUNTING, precision=plan.precision)
    placement = packed(plan.ranks, CLUSTER.domain_gpus)
    calls = Communication(model=trained, plan=plan, software=COUNTING, cluster=CLUSTER, placement=placement)
    return UnitOperations(model=trained, plan=plan, kernels=kernels, communication=calls)


def in_order(operations: list[Operation]) -> list[int | str]:
    """Bytes of calls between context ranks, and where computing is, in the order of a stream."""
    return [
        one.size_bytes if isinstance(one, Collect) else "computing"
        for one in operations
        if isinstance(one, Compute) or (isinstance(one, Collect) and one.channel == CONTEXT)
    ]


def test_a_layer_sends_what_the_paper_says() -> None:
    """4 N h / P values of two bytes in each direction of pass: two all-to-alls of a quarter each way, and so on."""
    each = 2 * TOKENS * HEADS
    assert sent(OWN_KEYS, ulysses()) == {"all-to-all": (LAYERS * 2 * 4, LAYERS * 2 * 4 * each)}


@pytest.mark.parametrize("ranks", [2, 5, 10])
def test_a_ring_sends_more_by_three_quarters_of_the_ranks(ranks: int) -> None:
    """Where each head has keys: keys and values three times to all other ranks, instead of eight parts to each."""
    whole = {"context": ranks, "sequence": 800}
    (_, exchanged) = sent(OWN_KEYS, ulysses(**whole))["all-to-all"]
    ring = sent(OWN_KEYS, ulysses(**whole, context_exchange="ring"))
    around = sum(size for _, size in ring.values())  # of all ranks together, of which a rank sends all but a part
    assert set(ring) == {"all-gather", "reduce-scatter"}
    assert around == pytest.approx(exchanged * 3 / 4 * ranks, rel=1e-9)


@pytest.mark.parametrize(("tensor", "context", "keys"), [(1, 2, 2), (2, 5, 5), (1, 10, 10)])
def test_heads_of_grouped_keys_are_copied_to_the_ranks_that_need_them(tensor: int, context: int, keys: int) -> None:
    """Two heads of keys, or one on each of two tensor ranks, for two, five or ten context ranks."""
    plan = ulysses(tensor=tensor, context=context, sequence=800)
    values = exchanged_values(DENSE, plan)
    assert (values.query, values.key) == (HEADS // tensor, keys * 28)
    assert (values.result, values.value) == (values.query, values.key)
    each = 2 * 3 * 800 // context
    assert sent(DENSE, plan)["all-to-all"] == (LAYERS * 2 * 4, LAYERS * 2 * each * values.total)


def test_latent_attention_exchanges_unpacked_heads() -> None:
    """Queries and keys of 20 + 12, values and results of 36, for five heads of a tensor rank."""
    size = 2 * TOKENS * 5 * (2 * 32 + 2 * 36)
    assert sent(LATENT, ulysses(tensor=2, context=5, sequence=1360))["all-to-all"][1] == LAYERS * 2 * size


def test_a_state_space_exchanges_no_heads() -> None:
    assert sent(HYBRID, ulysses())["all-to-all"][0] == 2 * 4  # of one layer with attention, forward and backward


def test_heads_go_before_attention_and_come_back_behind_it() -> None:
    found = units(DENSE, ulysses())
    query, key = 2 * TOKENS * HEADS, 2 * TOKENS * 2 * 28
    layer = Unit(part="layer", layer=ATTENTION)
    assert in_order(list(found.forward(layer))) == [query, key, key, "computing", query]
    assert in_order(list(found.backward(layer))) == [query, "computing", query, key, key]


@pytest.mark.parametrize(
    ("changes", "passes"),
    [
        ({}, 2),
        ({"recompute": "full"}, 3),
        ({"recompute": "operations"}, 3),
        ({"recompute": "selective", "recompute_modules": ("core_attn", "layernorm")}, 3),
        ({"recompute": "selective", "recompute_modules": ("layernorm",)}, 2),
    ],
)
def test_attention_that_is_computed_again_exchanges_again(changes: dict[str, Any], passes: int) -> None:
    assert sent(DENSE, ulysses(**changes))["all-to-all"][0] == LAYERS * passes * 4


def test_attention_costs_the_same_flops_and_two_copies_of_what_is_exchanged() -> None:
    """A copy before and one behind each all-to-all, each read and written: eight bytes a value."""
    ((_, ring),) = units(DENSE, ulysses(context_exchange="ring")).work[Unit(part="layer", layer=ATTENTION)].halves
    ((_, heads),) = units(DENSE, ulysses()).work[Unit(part="layer", layer=ATTENTION)].halves
    assert (heads.matmul_s, heads.core_s, heads.core_backward_s) == (ring.matmul_s, ring.core_s, ring.core_backward_s)
    layer = Unit(part="layer", layer=ATTENTION)
    ((_, ring),), ((_, heads),) = (
        units(DENSE, ulysses(context_exchange=kind), on=ONE_BYTE_A_PS).work[layer].halves
        for kind in ("ring", "all-to-all")
    )
    copied = 8 * TOKENS * (2 * HEADS + 2 * 2 * 28)
    assert (heads.memory_s - ring.memory_s) * 1e12 == pytest.approx(copied, rel=1e-9)
    assert (heads.memory_backward_s - ring.memory_backward_s) * 1e12 == pytest.approx(copied, rel=1e-9)


@pytest.mark.parametrize(("context", "copies"), [(2, 0), (10, 8)])
def test_results_are_kept_twice_and_copies_of_keys_too(context: int, copies: int) -> None:
    plan = ulysses(context=context, sequence=800, recompute="none")
    ring = plan.model_copy(update={"context_exchange": "ring"})
    tokens = 3 * 800 // context
    more = activation_bytes(DENSE, plan, ATTENTION) - activation_bytes(DENSE, ring, ATTENTION)
    assert more == 2 * tokens * (HEADS + 2 * copies * 28)


def test_an_exchange_of_heads_hides_behind_nothing() -> None:
    section = OverlapSection()
    assert section.resolved(1, "all-to-all").context == 0
    assert section.resolved(1, "ring") == section.resolved(1)
    assert section.resolved(1).context == 0.9


@pytest.mark.parametrize(
    ("tensor", "context", "text"),
    [
        (1, 4, "wanted a divisor of the 10 heads of a tensor rank"),
        (2, 2, "wanted a divisor of the 5 heads of a tensor rank"),
        (1, 5, "wanted a divisor or a multiple of the 2 key heads of a tensor rank"),
        (1, 2, None),
        (2, 5, None),
        (1, 10, None),
    ],
)
def test_context_ranks_have_whole_heads(tensor: int, context: int, text: str | None) -> None:
    plan = ulysses(tensor=tensor, context=context, sequence=800)
    misfit = head_misfit(DENSE, plan)
    assert (misfit is None) == (text is None)
    assert text is None or text in str(misfit)
    assert head_misfit(DENSE, plan.model_copy(update={"context_exchange": "ring"})) is None


def test_the_nearest_plan_has_heads_that_divide() -> None:
    plan = Parallelism(
        tensor=8, context=16, data=1, global_batch=8, sequence=32_768, context_exchange="all-to-all", micro_batch=1
    )
    limits = PlanLimits(model=model("llama-3-8b"), gpus=128)
    (refusal,) = misfits(limits, plan)
    assert refusal.key == "context"
    near = nearest_plan(limits, plan)
    assert near is not None
    assert not misfits(limits, near)
    assert (near.context_exchange, near.context) in {("ring", 16), ("all-to-all", 4)}


@given(
    tensor=st.sampled_from([1, 2, 4, 8]),
    context=st.sampled_from([2, 4, 8, 16, 32]),
    name=st.sampled_from(["llama-2-7b", "llama-3-8b", "llama-3-70b", "deepseek-v3", "gpt-3-175b", "grok-1"]),
)
def test_ranks_share_heads_as_they_share_tokens(tensor: int, context: int, name: str) -> None:
    """All ranks together exchange every query and result once, and every key at least once."""
    plan = Parallelism(tensor=tensor, context=context, context_exchange="all-to-all", sequence=131_072)
    trained = model(name)
    if head_misfit(trained, plan) is not None:
        assert trained.heads % (tensor * context) or trained.key_value_heads // tensor % context
        return
    values = exchanged_values(trained, plan)
    whole = exchanged_values(trained, plan.model_copy(update={"tensor": 1, "context": 1}))
    assert (tensor * values.query, tensor * values.result) == (whole.query, whole.result)
    assert tensor * values.key >= whole.key
    assert values.query % context == values.key % context == values.value % context == 0
    has_enough = trained.latent_attention is not None or trained.key_value_heads >= tensor * context
    assert (tensor * values.key == whole.key) == has_enough
