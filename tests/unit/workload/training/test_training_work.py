"""Computing time and parameters of the parts of a model, against counts by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest
from helpers.trained import EXPERTS, QUIET, SMALL, packed

from weftwork.hardware.catalogue import gpu, node
from weftwork.spec.training import Gpu, Model, Parallelism, Precision, Software
from weftwork.workload.collectives.figures import collective_figures
from weftwork.workload.models.catalogue import MODELS, model
from weftwork.workload.models.size import parameters
from weftwork.workload.parallelism.layout import Unit, virtual_stages_of
from weftwork.workload.training.communication import Communication, GpuCluster
from weftwork.workload.training.kernels import Kernels
from weftwork.workload.training.layers import UnitWork, unit_work

GPU = gpu("h100")
HOST_BPS = 504_000_000_000  # of PCIe 5; nothing is offloaded here
EXACT = Software(kernel_tail_ps=0)  # no tails, so that times are work over rate


def work(of: Model, plan: Parallelism, software: Software = EXACT, on: Gpu = GPU) -> dict[Unit, UnitWork]:
    kernels = Kernels(gpu=on, software=software, precision=plan.precision)
    units = {unit for stage in virtual_stages_of(of, plan) for virtual_stage in stage for unit in virtual_stage}
    return {unit: unit_work(unit, of, plan, kernels) for unit in units}


def layer_of(of: Model, plan: Parallelism, software: Software = EXACT, on: Gpu = GPU) -> UnitWork:
    return next(one for unit, one in work(of, plan, software, on).items() if unit.part == "layer")


def test_a_large_product_runs_at_the_rate_that_was_measured() -> None:
    kernels = Kernels(gpu=gpu("a100"), software=Software())
    flops = 2 * 8192**3 / kernels.matmul_s(8192, 8192, 8192)
    assert flops == pytest.approx(253.7e12, rel=0.05)  # Azure AI benchmarking guide: 253.7 TFLOP/s
    kernels = Kernels(gpu=gpu("h100"), software=Software(), precision="fp8")
    assert 2 * 8192**3 / kernels.matmul_s(8192, 8192, 8192) == pytest.approx(1290e12, rel=0.1)  # there: 1290 to 1382


def test_small_and_thin_products_are_slow() -> None:
    kernels = Kernels(gpu=GPU, software=EXACT)
    square_s = kernels.matmul_s(4096, 4096, 4096)
    assert kernels.matmul_s(128, 4096, 4096) > 1.5 * square_s / 32  # half of a tile's rate
    assert kernels.matmul_s(1, 4096, 4096) >= 2 * 4096 * 4096 / (GPU.memory_copy_bytes_per_s * 0.85)  # bound by memory
    assert kernels.matmul_s(0, 4096, 4096) == 0


@pytest.mark.parametrize(("precision", "faster"), [("fp8", 1.4), ("mxfp8", 1.4), ("nvfp4", 2.0)])
def test_smaller_formats_are_faster_but_not_by_their_peak(precision: Precision, faster: float) -> None:
    plan = Parallelism(micro_batch=2, global_batch=2, sequence=4096)
    llama, on = model("llama-3-70b"), gpu("b200")
    whole = layer_of(llama, plan, on=on).forward_s
    small = layer_of(llama, plan.model_copy(update={"precision": precision}), on=on).forward_s
    assert faster < whole / small < {"nvfp4": 4}.get(precision, 2)


def test_a_layer_takes_its_flops_over_the_rate_and_a_little_more() -> None:
    plan = Parallelism(global_batch=1, sequence=8192)
    llama = model("llama-3-405b")
    found = layer_of(llama, plan)
    tokens = 8192
    per_token = 2 * found.parameters + 2 * 8192 * llama.heads * llama.head_dim  # products, causal attention
    ideal_s = tokens * per_token / Kernels(gpu=GPU, software=EXACT).matmul_flops("bf16")
    assert 1.0 < found.forward_s / ideal_s < 1.25
    assert 1.9 < found.backward_s / found.forward_s < 2.3


@pytest.mark.parametrize("name", sorted(MODELS))
def test_ranks_together_hold_the_model_once(name: str) -> None:
    whole = model(name)
    expert = 4 if whole.experts else 1
    plan = Parallelism(tensor=2, data=2, pipeline=2, expert=expert, global_batch=2)
    kernels = Kernels(gpu=GPU, software=QUIET)
    dense = experts = 0.0
    for stage in virtual_stages_of(whole, plan):
        for unit in (unit for virtual_stage in stage for unit in virtual_stage if unit.part != "prediction"):
            found = unit_work(unit, whole, plan, kernels)
            dense += found.parameters
            experts += found.expert_parameters
    counted = parameters(whole)
    assert experts * expert == pytest.approx(counted.experts)
    copies = counted.embedding * whole.has_tied_embeddings  # both ends of the pipeline hold a tied table
    latent = whole.expert_layers * 2 * whole.hidden * whole.expert_hidden
    unsplit = counted.router + latent  # both tensor ranks hold all of it
    wanted = counted.total - counted.experts + copies + unsplit
    assert dense * 2 == pytest.approx(wanted, rel=1e-3)  # convolutions of state spaces are rounded


def test_tensor_ranks_share_a_layer() -> None:
    one = layer_of(SMALL, Parallelism(global_batch=8, micro_batch=8))
    four = layer_of(SMALL, Parallelism(tensor=4, global_batch=8, micro_batch=8))
    assert four.parameters == one.parameters / 4
    assert 1 / 4 < four.forward_s / one.forward_s < 1 / 2.5  # narrower products are less efficient


def test_experts_get_the_tokens_of_all_that_share_them() -> None:
    plan = Parallelism(data=4, micro_batch=4, global_batch=16)
    alone, spread = (layer_of_experts(plan.model_copy(update={"expert": expert})) for expert in (1, 4))
    assert spread.expert_parameters == alone.expert_parameters / 4
    assert spread.forward_s < alone.forward_s  # the same rows, in fewer and larger products
    split = layer_of_experts(Parallelism(tensor=2, data=2, expert=2, expert_tensor=2, micro_batch=4, global_batch=8))
    assert split.expert_parameters == spread.expert_parameters


def layer_of_experts(plan: Parallelism, software: Software = EXACT) -> UnitWork:
    found = work(EXPERTS, plan, software)
    return next(one for unit, one in found.items() if unit.layer is not None and unit.layer.mlp == "experts")


def test_experts_one_after_the_other_are_slower() -> None:
    plan = Parallelism(global_batch=1)
    apart = layer_of_experts(plan, Software(expert_streams=1))
    fused = layer_of_experts(plan, Software())
    assert apart.forward_s > fused.forward_s + 2 * 15 * 2.9e-6  # fifteen more tails for each of two products
    assert apart.operations == fused.operations
    assert fused.loops_s == (0, 0)
    assert apart.loops_s == pytest.approx((16 * 4 * 5e-6, 16 * 6 * 5e-6))  # casts and products of each expert
    streams = layer_of_experts(plan, Software(expert_streams=4))
    assert fused.forward_s < streams.forward_s < apart.forward_s


def test_attention_without_flash_writes_its_scores() -> None:
    plan = Parallelism(global_batch=1, sequence=8192)
    flash = layer_of(SMALL, plan)
    plain = layer_of(SMALL, plan, EXACT.model_copy(update={"has_flash_attention": False}))
    assert plain.again_s({"core_attn"}) > 3 * flash.again_s({"core_attn"})
    assert plain.parameters == flash.parameters


def test_windows_make_attention_cheap() -> None:
    plan = Parallelism(global_batch=1, sequence=8192)
    found = work(model("gpt-oss-120b"), plan)
    cores = {
        unit.layer.mixer: one.again_s({"core_attn"})
        for unit, one in found.items()
        if unit.part == "layer" and unit.layer
    }
    assert cores["window"] < cores["attention"] / 2


@pytest.mark.parametrize("name", ["llama-2-7b", "llama-3-70b"])
@pytest.mark.parametrize("tensor", [1, 4])
def test_lora_takes_longer_than_two_thirds_and_less_than_training_of_all_weights(name: str, tensor: int) -> None:
    """Forward and gradients of inputs at least; gradients of weights are those of thin matrices alone."""
    plan = Parallelism(tensor=tensor, global_batch=1, sequence=4096)
    whole = layer_of(model(name), plan)
    least_s = whole.forward_s + whole.backward_s - whole.weights_s
    times = [
        layer_of(model(name), plan.model_copy(update={"has_lora": True, "lora_rank": rank})) for rank in (8, 16, 64)
    ]
    taken = [least_s, *(one.forward_s + one.backward_s for one in times), whole.forward_s + whole.backward_s]
    assert taken == sorted(taken)
    assert all(before < after for before, after in pairwise(taken))
    assert all(one.weights_s == 0 for one in times)


def test_sequence_parallelism_shares_what_memory_bounds() -> None:
    plan = Parallelism(tensor=8, micro_batch=4, global_batch=4)
    shared, whole = (
        layer_of(SMALL, plan.model_copy(update={"is_sequence_parallel": is_on})) for is_on in (True, False)
    )
    assert shared.forward_s < whole.forward_s
    memory = [sum(half.memory_s for _, half in one.halves) for one in (shared, whole)]
    assert memory[0] < memory[1] / 2


def test_context_ranks_share_a_sequence() -> None:
    plan = Parallelism(global_batch=1, sequence=32_768)
    one, four = (layer_of(SMALL, plan.model_copy(update={"context": context})) for context in (1, 4))
    assert four.again_s({"core_attn"}) == pytest.approx(one.again_s({"core_attn"}) / 4)
    assert four.parameters == one.parameters


@pytest.mark.parametrize(
    ("domain", "efficiency", "local", "network"),
    [
        # two choices: a rank gets 1 / 2 of a copy of a token, and needs one in 1 - (3 / 4)^2 = 7 / 16 of all cases
        (4, 1.0, 0.875, None),  # groups are inside
        # the other half gets 1 copy on average, and needs one in 3 of 4 cases; of the two ranks of the other half each
        # token comes to the member at the same place, so that one in two goes on over NVLink, as all of the own half do
        (2, 0.96, 2 * 0.875, 0.75),
        (6, 0.96, 2 * 0.875, 0.75),  # every third group is cut in the middle, and the same holds for it
        (7, 0.96, 0.875, 0.875),  # 3 + 1: the member alone gets half a copy, needs 7 / 16 and has nobody to pass it to
    ],
)
def test_the_group_of_experts_that_is_spread_most_says_what_an_exchange_costs(
    domain: int, efficiency: float, local: float, network: float | None
) -> None:
    plan = Parallelism(data=84, expert=4, global_batch=84)
    figures = collective_figures(node("dgx-h100").server, nic_port_rate_bps=400_000_000_000)
    copies, once = (
        Communication(
            model=EXPERTS,
            plan=plan,
            software=Software(has_deduplicated_experts=is_on),
            cluster=GpuCluster(domain_gpus=domain, figures=figures, host_rate_bps=HOST_BPS),
            placement=packed(plan.ranks, domain),
        ).exchange[0].collect
        for is_on in (False, True)
    )  # fmt: skip
    # bytes over a rate are what counts: NVLink gets all bytes of the call at its efficiency, NICs their share of them
    busy = [one.amount_bytes / one.local_efficiency for one in (copies, once)]
    assert busy[1] / busy[0] == pytest.approx(local, rel=1e-6)
    assert once.network_efficiency == efficiency
    assert once.size_bytes == copies.size_bytes
    if network is not None:
        sent = [one.amount_bytes * one.network_share for one in (copies, once)]
        assert sent[1] / sent[0] == pytest.approx(network, rel=1e-6)


def test_a_dispatcher_gets_its_share_of_nvlink_and_all_of_the_network() -> None:
    plan = Parallelism(data=4, expert=4, global_batch=4)
    figures = collective_figures(node("dgx-h100").server, nic_port_rate_bps=400_000_000_000)
    whole, part = (
        Communication(
            model=EXPERTS,
            plan=plan,
            software=Software(exchange_efficiency=share),
            cluster=GpuCluster(domain_gpus=4, figures=figures, host_rate_bps=HOST_BPS),
            placement=packed(plan.ranks, 4),
        ).exchange[0]
        for share in (1.0, 0.4)
    )
    moved = [one.alone_ps - one.collect.overhead_ps - one.path_ps for one in (whole, part)]
    assert moved[1] == pytest.approx(moved[0] / 0.4, rel=1e-6)
