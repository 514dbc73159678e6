"""Exchanges, launches and updates of training programs, counted by hand on a plan whose sizes are all different.

The stages of the plan hold an embedding, two dense layers and a mixture of experts; and three mixtures and the head.
Source: Korthikanti et al., arXiv:2205.05198, section 4.2 (what sequence parallelism exchanges); Rajbhandari et al.,
arXiv:1910.02054, section 7 (what ZeRO exchanges); Narayanan et al., arXiv:2104.04473, sections 3 and 4.1 (stages);
NVIDIA/Megatron-LM, megatron/core/distributed (copies of experts, tied tables).
"""

from __future__ import annotations

import numpy as np
import pytest
from helpers.on_paper import (
    CLUSTER,
    COUNTING,
    DENSE,
    HYBRID,
    LATENT,
    MIXED,
    ONE_BYTE_A_PS,
    ONE_FLOP_A_PS,
    plan_on_paper,
)
from helpers.stages import Outcome, expanded, run_stages
from helpers.trained import packed

from weftwork.spec.job import Collect, Compute, Operation
from weftwork.spec.training import Gpu, Model, Parallelism, Software
from weftwork.workload.models.size import LayerKind
from weftwork.workload.parallelism.groups import groups, members_of
from weftwork.workload.parallelism.layout import Unit
from weftwork.workload.training.communication import LABELS, Communication
from weftwork.workload.training.kernels import Kernels
from weftwork.workload.training.programs import training_job
from weftwork.workload.training.stage import UnitOperations

# Channels of collectives, beside the computing stream 7 more; and of messages
CHANNELS = 7
TENSOR, CONTEXT, EXPERT, GRADIENTS, PARAMETERS, EXPERT_GRADIENTS, EXPERT_PARAMETERS = range(CHANNELS)
FORWARD, BACKWARD, TIED = 0, 1, 2
TOKENS = 1_632
STREAM = 2 * TOKENS * 96  # bytes of the residual stream of a micro batch
SPREAD = {"data": 6, "expert": 3, "expert_tensor": 2, "pipeline": 2, "global_batch": 2 * 18, "gradient_bytes": 4}
# Parameters of a rank of each stage, those of routed experts apart. Halves of a tensor rank: table 79,872, attention
# 32,256, dense MLP 50,688, shared expert 16,128; a router, 1,152, is whole; four halves of experts are 46,080.
HELD = ((79_872 + 2 * (32_256 + 50_688) + 32_256 + 16_128 + 1_152, 46_080),
        (3 * (32_256 + 16_128 + 1_152) + 79_872, 3 * 46_080))  # fmt: skip


def programs(
    model: Model, plan: Parallelism, *, on: Gpu = ONE_FLOP_A_PS, software: Software = COUNTING
) -> tuple[tuple[Operation, ...], ...]:
    """Streams that compute, by stage."""
    job, _ = training_job(
        model, plan, gpu=on, software=software, cluster=CLUSTER, placement=packed(plan.ranks, CLUSTER.domain_gpus)
    )
    return tuple(program.streams[0] for program in job.programs)


def run(model: Model, plan: Parallelism) -> Outcome:
    placement = packed(plan.ranks, CLUSTER.domain_gpus)
    job, _ = training_job(model, plan, gpu=ONE_FLOP_A_PS, software=COUNTING, cluster=CLUSTER, placement=placement)
    found = run_stages(job)
    assert found.left_tokens == {}
    return found


def calls(found: Outcome, stage: int, channel: int) -> dict[str, tuple[int, int]]:
    """Of one stage and channel: how often each operation, and its bytes in all, also beside the computing stream."""
    totals: dict[str, tuple[int, int]] = {}
    for (where, what, of_channel), total in found.collected.items():
        if (where, of_channel % CHANNELS) == (stage, channel):
            count, size = totals.get(what, (0, 0))
            totals[what] = count + total[0], size + total[1]
    return totals


def times(count: int, size: int) -> tuple[int, int]:
    return count, count * size


# Exchanges of a pass and its backward pass


@pytest.mark.parametrize(("recompute", "forwards"), [("none", 1), ("selective", 1), ("full", 2)])
def test_sequence_parallelism_gathers_and_scatters_around_each_half_of_each_pass(recompute: str, forwards: int) -> None:
    """Two micro batches. A layer: two of each a pass; the ends: one of each, and three sums of four bytes a token."""
    found = run(MIXED, plan_on_paper(**SPREAD, recompute=recompute))
    for stage in (0, 1):
        layers = 2 * 3 * 2 * (forwards + 1)
        wanted = {"all-gather": times(layers + 2, STREAM), "reduce-scatter": times(layers + 2, STREAM)}
        if stage == 1:
            wanted["all-reduce"] = times(2 * 3, 4 * TOKENS)
        assert calls(found, stage, TENSOR) == wanted


def test_tensor_parallelism_alone_adds_up_behind_each_half_and_puts_arrivals_together() -> None:
    """An all-reduce a half and pass; forward behind the embedding, backward behind the head; the loss adds three.

    What comes from another stage is a half of the stream for each rank, which the two then gather.
    """
    found = run(MIXED, plan_on_paper(**SPREAD, is_sequence_parallel=False))
    layers = 2 * 3 * 2 * 2
    first, last = (calls(found, stage, TENSOR) for stage in (0, 1))
    assert first == {"all-reduce": times(layers + 2, STREAM), "all-gather": times(2, STREAM)}
    count, size = last["all-reduce"]
    assert (count, size) == (layers + 2 + 6, (layers + 2) * STREAM + 6 * 4 * TOKENS)
    assert last["all-gather"] == times(2, STREAM)


def test_a_mixture_without_a_shared_expert_has_no_tensor_traffic_around_it() -> None:
    found = run(MIXED.model_copy(update={"shared_ffn": 0}), plan_on_paper(**SPREAD))
    # of the first stage one layer, of the last one all three, have one half less
    assert calls(found, 0, TENSOR)["all-gather"] == times(2 * (2 * 2 * 2 + 2) + 2, STREAM)
    assert calls(found, 1, TENSOR)["all-gather"] == times(2 * 3 * 2 + 2, STREAM)


@pytest.mark.parametrize(("recompute", "passes"), [("none", 2), ("full", 3)])
def test_tokens_go_to_their_experts_and_back_in_every_pass(recompute: str, passes: int) -> None:
    """816 own tokens, three experts each, 192 bytes: there and back. Two ranks that share an expert gather both."""
    found = run(MIXED, plan_on_paper(**SPREAD, recompute=recompute))
    size = 2 * TOKENS * 3 * 96 // 2
    assert size == 470_016
    for stage, mixtures in ((0, 1), (1, 3)):
        each = 2 * mixtures * passes
        assert calls(found, stage, EXPERT) == {
            "all-to-all": times(2 * each, size),
            "all-gather": times(each, 2 * size),
            "reduce-scatter": times(each, 2 * size),
        }


def test_keys_and_values_are_gathered_and_their_gradients_scattered() -> None:
    """A context rank has 816 tokens, a tensor rank one of two key-value heads: 2 x 28 values of two bytes a token."""
    plan = plan_on_paper(context=2, data=3, pipeline=2, global_batch=2 * 9)
    found = run(DENSE, plan)
    size = 2 * (2 * 816) * 2 * 28  # of both context ranks together
    for stage in (0, 1):
        assert calls(found, stage, CONTEXT) == {"all-gather": times(2 * 3 * 2, size), "reduce-scatter": times(6, size)}
        # and the stream is half as long
        assert calls(found, stage, TENSOR)["all-gather"] == times(2 * (3 * 2 * 2 + 1), STREAM // 2)


def test_keys_and_values_of_latent_attention_are_gathered_for_all_heads() -> None:
    """Keys of 20 + 12 and values of 36 of ten heads, half of them a tensor rank's."""
    found = run(LATENT, plan_on_paper(context=2, global_batch=3))
    size = 2 * (2 * 816) * 10 * (32 + 36) // 2
    assert calls(found, 0, CONTEXT) == {"all-gather": times(6 * 2, size), "reduce-scatter": times(6, size)}


def test_a_state_space_gathers_no_keys() -> None:
    found = run(HYBRID, plan_on_paper(context=2, global_batch=3))
    assert calls(found, 0, CONTEXT)["all-gather"][0] == 2  # of one layer with attention, forward and backward


def test_each_rank_passes_its_part_of_the_stream_to_its_neighbour() -> None:
    found = run(DENSE, plan_on_paper(pipeline=3, global_batch=5 * 3))
    part = STREAM // 2
    wanted = {
        (0, 1, FORWARD): 5 * part,
        (1, 2, FORWARD): 5 * part,
        (2, 1, BACKWARD): 5 * part,
        (1, 0, BACKWARD): 5 * part,
    }
    assert found.sent == wanted
    interleaved = run(DENSE, plan_on_paper(pipeline=3, virtual_stages=2, global_batch=6 * 3))
    assert (
        interleaved.sent[2, 0, FORWARD] == 6 * part
    )  # from the first virtual stage on the last stage to the second on the first
    assert interleaved.sent[0, 1, FORWARD] == 2 * 6 * part


def test_a_half_of_tensor_traffic_hides_behind_nine_tenths_of_the_products() -> None:
    """0.4 of both collectives begin with the products; 0.6 of the first one are before them, of the other behind."""
    plan = plan_on_paper(global_batch=3, overlap={"tensor": 0.4, "context": 0})
    units = operations(DENSE, plan)
    kind = Unit(part="layer", layer=LayerKind(mixer="none", mlp="dense"))
    ((_, half),) = units.work[kind].halves
    products = half.matmul_s * 1e12
    found = units.forward(kind)
    sizes = [one.size_bytes for one in found if isinstance(one, Collect)]
    assert sizes == [round(0.6 * STREAM), round(0.4 * STREAM), round(0.4 * STREAM), round(0.6 * STREAM)]
    computed = [one.duration_ps for one in found if isinstance(one, Compute)]
    assert computed == pytest.approx([0.9 * products, 0.1 * products], abs=1)


def test_tensor_traffic_of_the_ends_of_a_model_hides_behind_nothing() -> None:
    """It has no products of a layer beside it: each call is whole, in both directions."""
    units = operations(DENSE, plan_on_paper(global_batch=3, overlap={"tensor": 0.4, "context": 0}))
    embedding, head = Unit(part="embedding"), Unit(part="head")
    of_head = [("all-gather", STREAM)] + [("all-reduce", 4 * TOKENS)] * 3
    for found, wanted in (
        (units.forward(embedding), [("reduce-scatter", STREAM)]),
        (units.backward(embedding), [("all-gather", STREAM)]),
        (units.forward(head), of_head),
        (units.backward(head), [("reduce-scatter", STREAM)]),
    ):
        assert [(one.operation, one.size_bytes) for one in found if isinstance(one, Collect)] == wanted


def test_keys_hide_behind_nine_tenths_of_attention() -> None:
    """0.75 of the gathered keys begin with attention, forward; backward 0.75 of keys and of their gradients."""
    plan = plan_on_paper(context=2, global_batch=3, overlap={"context": 0.75})
    units = operations(DENSE, plan)
    kind = Unit(part="layer", layer=LayerKind(mixer="attention", mlp="none"))
    size = 2 * (2 * 816) * 2 * 28
    for found, names, core_s in (
        (units.forward(kind), ("all-gather",), units.work[kind].halves[0][1].core_s),
        (units.backward(kind), ("all-gather", "reduce-scatter"), units.work[kind].halves[0][1].core_backward_s),
    ):
        moved = [
            (one.operation, one.size_bytes) for one in found if isinstance(one, Collect) and one.channel == CONTEXT
        ]
        assert moved == [(name, size // 4) for name in names] + [(name, 3 * size // 4) for name in names]
        assert round(0.9 * core_s * 1e12) in {one.duration_ps for one in found if isinstance(one, Compute)}


def test_tokens_of_experts_hide_in_a_stream_of_their_own() -> None:
    """0.75 of each exchange, there and back, in each of two passes; 0.25 are around the experts."""
    plan = plan_on_paper(**SPREAD, overlap={"expert": 0.75, "context": 0})
    beside, main = streams_of(MIXED, plan, 0)
    there = [("all-to-all", 470_016), ("all-gather", 940_032)]
    back = [("reduce-scatter", 940_032), ("all-to-all", 470_016)]
    for found, quarters, channel in ((beside, 3, EXPERT + CHANNELS), (main, 1, EXPERT)):
        wanted = [(name, quarters * size // 4) for name, size in (*there, *back)]
        assert [(one.operation, one.size_bytes) for one in found if one.channel == channel] == wanted * (2 * 2)


def streams_of(model: Model, plan: Parallelism, stage: int) -> tuple[list[Collect], list[Collect]]:
    """Collectives beside the stream that computes, and those in it."""
    placement = packed(plan.ranks, CLUSTER.domain_gpus)
    job, _ = training_job(model, plan, gpu=ONE_FLOP_A_PS, software=COUNTING, cluster=CLUSTER, placement=placement)
    main, *beside = job.programs[stage].streams
    moved = [[one for one in expanded(stream) if isinstance(one, Collect)] for stream in (main, *beside)]
    return [one for found in moved[1:] for one in found], moved[0]


# Gradients and parameters


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_gradients_and_parameters_of_each_level_of_zero(zero: int) -> None:
    """Gradients of four bytes once an iteration, of ZeRO 3 in each of two backward passes.

    Six data ranks hold the same dense weights and two the same experts. ZeRO 3 gathers parameters before each of the
    two passes of each micro batch; 1 and 2 once, behind the update; 0 never.
    """
    found = run(MIXED, plan_on_paper(**SPREAD, zero=zero))
    reduced, gathered = {0: (4, 0), 1: (4, 2), 2: (4, 2), 3: (2 * 4, 2 * 2 * 2)}[zero]
    for stage, (dense, experts) in enumerate(HELD):
        for channel, held in ((GRADIENTS, dense), (EXPERT_GRADIENTS, experts)):
            ((operation, (_, size)),) = calls(found, stage, channel).items()
            assert operation == ("all-reduce" if zero == 0 else "reduce-scatter")
            assert size == reduced * held
        for channel, held in ((PARAMETERS, dense), (EXPERT_PARAMETERS, experts)):
            assert sum(size for _, size in calls(found, stage, channel).values()) == gathered * held
            assert set(calls(found, stage, channel)) <= {"all-gather"}


def test_a_share_of_gradients_and_parameters_hides_by_unit() -> None:
    """ZeRO 1, 0.25 hidden: gradients behind each unit of the last backward pass, parameters before each of the first.

    The rest is one call of all of them, behind the last backward pass and behind the update.
    """
    plan = plan_on_paper(**SPREAD, zero=1, overlap={"data": 0.25, "context": 0})
    beside, main = streams_of(MIXED, plan, 0)
    units = [79_872, 32_256 + 50_688, 32_256 + 50_688, 32_256 + 16_128 + 1_152]
    for channel, bytes_each, order in ((GRADIENTS, 4, units[::-1]), (PARAMETERS, 2, units)):
        assert [one.size_bytes for one in beside if one.channel == channel + CHANNELS] == [
            bytes_each * n // 4 for n in order
        ]
        assert [one.size_bytes for one in main if one.channel == channel] == [3 * bytes_each * sum(units) // 4]
    for channel, bytes_each in ((EXPERT_GRADIENTS, 4), (EXPERT_PARAMETERS, 2)):
        assert [one.size_bytes for one in beside if one.channel == channel + CHANNELS] == [bytes_each * 46_080 // 4]
        assert [one.size_bytes for one in main if one.channel == channel] == [3 * bytes_each * 46_080 // 4]


def test_copies_of_experts_are_other_ranks_than_copies_of_dense_weights() -> None:
    """24 ranks: tensor changes fastest, then data, then stages. Dense weights: every second; experts: every sixth."""
    found = groups(plan_on_paper(**SPREAD))
    assert members_of(found.gradients, 13).tolist() == [13, 15, 17, 19, 21, 23]
    assert members_of(found.expert_tensor, 13).tolist() == [12, 13]
    assert members_of(found.expert, 13).tolist() == [13, 15, 17]
    assert members_of(found.expert_gradients, 13).tolist() == [13, 19]
    assert found.stage_of(np.array([0, 11, 12, 23])).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(("gradient_bytes", "stages"), [(2, 2), (4, 3)])
def test_both_ends_of_a_pipeline_send_each_other_the_gradients_of_a_tied_table(
    gradient_bytes: int, stages: int
) -> None:
    """An all-reduce of two is all of it each way (Megatron-LM, finalize_model_grads); stages between have no table."""
    tied = MIXED.model_copy(update={"has_tied_embeddings": True})
    changes = SPREAD | {"gradient_bytes": gradient_bytes, "pipeline": stages}
    sent = {key: size for key, size in run(tied, plan_on_paper(**changes)).sent.items() if key[2] == TIED}
    size = 1_664 * 96 // 2 * gradient_bytes
    assert sent == {(0, stages - 1, TIED): size, (stages - 1, 0, TIED): size}
    # nothing is sent where there is one stage, where the head has a matrix of its own, and where only adapters learn
    for model, other in ((tied, {"pipeline": 1}), (MIXED, {}), (tied, {"has_lora": True})):
        assert not any(key[2] == TIED for key in run(model, plan_on_paper(**changes | other)).sent)


# The update


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_an_update_moves_28_bytes_of_each_parameter_of_a_shard_and_6_of_each_that_is_held(zero: int) -> None:
    """Adam in FP32 (arXiv:1910.02054, section 3.1) reads and writes a master copy and two moments; it reads a gradient.

    Besides, of all that a rank holds it reads and clears the gradient and writes the new value, two bytes each.
    """
    plan = plan_on_paper(**SPREAD, zero=zero)
    for stage, stream in enumerate(programs(MIXED, plan, on=ONE_BYTE_A_PS)):
        dense, experts = HELD[stage]
        shard = dense + experts if zero == 0 else dense / 6 + experts / 2
        (taken,) = durations(stream, "optimizer")
        assert taken == pytest.approx(28 * shard + 6 * (dense + experts), abs=1)


def test_an_update_has_ten_kernels_and_three_small_exchanges() -> None:
    """A message over the network takes NCCL's launch and step of Simple, 8.4 and 14 us, times a scale.

    What is updated are the adapters: of each of six layers, on one of two ranks, 16 times the sides of its matrices.
    """
    trained = 6 * 16 * (96 + 392 + 280 + 96 + 96 + 2 * 352 + 352 + 96)
    slow = COUNTING.model_copy(update={"kernel_tail_ps": 5_000_000, "latency_scale": 0.5})
    stream = programs(DENSE, plan_on_paper(has_lora=True), on=ONE_BYTE_A_PS, software=slow)[0]
    still = 10 * 5_000_000 + 3 * round(0.5 * (8_400_000 + 14_000_000))
    assert durations(stream, "optimizer") == [still + (28 + 6) * trained]


def durations(operations: tuple[Operation, ...] | list[Operation], what: str) -> list[int]:
    return [
        one.duration_ps
        for one in expanded(tuple(operations))
        if isinstance(one, Compute) and one.label == LABELS.index(what)
    ]


# Launches


LAUNCH = 1_000_000
TAIL = 70_000
# What the CPU launches, forward and backward: of a module, and 4 + 7 of each of its products. Attention and a state
# space 6 + 10 and two products; a dense MLP 4 + 7 and two; a fused router 17 + 17, with the shared expert's two; 14 +
# 14 before the exchange; 37 + 67 of exchange and experts, and two.
ATTENTION, DENSE_MLP, ROUTER, BEFORE, EXCHANGED = (14, 24), (12, 21), (17 + 8, 17 + 14), (14, 14), (37 + 8, 67 + 14)
LAYERS = {
    "dense": (LayerKind(mixer="attention", mlp="dense"), 14 + 12, 24 + 21),
    "experts": (LayerKind(mixer="attention", mlp="experts"), 14 + 25 + 14 + 45, 24 + 31 + 14 + 81),
    "state space": (LayerKind(mixer="state-space", mlp="none"), 14, 24),
}


def operations(
    model: Model, plan: Parallelism, *, on: Gpu = ONE_FLOP_A_PS, software: Software = COUNTING
) -> UnitOperations:
    kernels = Kernels(gpu=on, software=software, precision=plan.precision)
    calls_of = Communication(
        model=model, plan=plan, software=software, cluster=CLUSTER, placement=packed(plan.ranks, CLUSTER.domain_gpus)
    )
    return UnitOperations(model=model, plan=plan, kernels=kernels, communication=calls_of)


def launches(
    model: Model, kind: LayerKind, plan: Parallelism, *, tail_ps: int = 0, **software: object
) -> tuple[int, int]:
    """What a layer waits for the CPU, forward and backward, on a GPU whose kernels take a tail and nothing else."""
    instant = ONE_FLOP_A_PS.model_copy(
        update={"bf16_flops": 1e40, "fp8_flops": 1e40, "fp4_flops": 1e40, "scan_flops": 1e40}
    )
    used = COUNTING.model_copy(update={"launch_ps": LAUNCH, "kernel_tail_ps": tail_ps, **software})
    units = operations(model, plan, on=instant, software=used)
    unit = Unit(part="layer", layer=kind)
    return sum(durations(units.forward(unit), "launch")), sum(durations(units.backward(unit), "launch"))


ALONE = {"tensor": 1}


def launched(forward: int, backward: int, busy_ps: int) -> tuple[int, int]:
    """What so many launches take beyond a time in which GPU or network are busy, in both passes by their share."""
    excess_ps = (forward + backward) * LAUNCH - busy_ps
    return round(excess_ps * forward / (forward + backward)), round(excess_ps * backward / (forward + backward))


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_takes_no_less_than_its_launches(name: str) -> None:
    kind, forward, backward = LAYERS[name]
    model = HYBRID if name == "state space" else MIXED
    assert launches(model, kind, plan_on_paper(**ALONE)) == (forward * LAUNCH, backward * LAUNCH)
    # full recomputation launches the forward pass once more, in the backward pass
    again = launches(model, kind, plan_on_paper(**ALONE, recompute="full"))
    assert again == (forward * LAUNCH, (forward + backward) * LAUNCH)


@pytest.mark.parametrize(("name", "graphs", "replayed"), [
    ("dense", ["attn"], [ATTENTION]),
    ("dense", ["mlp"], [DENSE_MLP]),
    ("dense", ["attn", "mlp", "mamba", "moe_router"], [ATTENTION, DENSE_MLP]),
    ("dense", ["iteration"], [ATTENTION, DENSE_MLP]),
    ("experts", ["moe_router"], [ROUTER]),
    ("experts", ["moe_preprocess"], [BEFORE]),
    ("experts", ["attn", "moe_router", "moe_preprocess", "mlp"], [ATTENTION, ROUTER, BEFORE]),
    ("experts", ["iteration"], [ATTENTION, ROUTER, BEFORE, EXCHANGED]),
    ("state space", ["mamba"], [ATTENTION]),
    ("state space", ["attn"], []),
])  # fmt: skip
def test_graphs_replay_the_operations_of_their_modules(
    name: str, graphs: list[str], replayed: list[tuple[int, int]]
) -> None:
    """Exchange and experts are in a graph of the whole iteration alone."""
    kind, *every = LAYERS[name]
    model = HYBRID if name == "state space" else MIXED
    found = launches(model, kind, plan_on_paper(**ALONE), graphs=tuple(graphs))
    left = [every[way] - sum(one[way] for one in replayed) for way in (0, 1)]
    assert found == (left[0] * LAUNCH, left[1] * LAUNCH)


@pytest.mark.parametrize(("precision", "more"), [("fp8", 2), ("mxfp8", 3), ("nvfp4", 4)])
def test_casts_are_launched_for_each_product(precision: str, more: int) -> None:
    """Four products of a dense layer; of latent attention five instead of two, if queries are narrow too."""
    instant = {"precision": precision, **ALONE}
    kind, forward, backward = LAYERS["dense"]
    found = launches(DENSE, kind, plan_on_paper(**instant))
    assert found == ((forward + 4 * more) * LAUNCH, (backward + 4 * more) * LAUNCH)
    latent = launches(LATENT, kind, plan_on_paper(**instant))
    assert latent == ((forward + 3 * 4 + 7 * more) * LAUNCH, (backward + 3 * 7 + 7 * more) * LAUNCH)


@pytest.mark.parametrize(("changed", "forward", "backward"), [
    ({"has_fused_router": False}, 58 - 17, 58 - 17),
    ({"has_deduplicated_experts": True}, -14, -14),
])  # fmt: skip
def test_a_router_is_launched_as_it_is_fused(changed: dict[str, bool], forward: int, backward: int) -> None:
    kind, usual, usual_backward = LAYERS["experts"]
    found = launches(MIXED, kind, plan_on_paper(**ALONE), **changed)
    assert found == ((usual + forward) * LAUNCH, (usual_backward + backward) * LAUNCH)


def test_experts_on_streams_are_launched_one_by_one_in_a_loop() -> None:
    """Four experts of a rank: two products and two casts each forward, four and two backward, 5 us of the CPU each.

    No graph but one of the whole iteration replays a loop. The exchange of a pass, during which the CPU launches, is
    two calls, of which two thirds leave a rank; each pass counts alone, since the CPU waits in each for token counts.
    """
    kind, forward, backward = LAYERS["experts"]
    plan = plan_on_paper(**ALONE, data=3, expert=3, global_batch=9, overlap={"expert": 0, "context": 0})
    exchanged = 2 * (2 * TOKENS * 3 * 96) * 2 // 3
    assert launches(MIXED, kind, plan) == (forward * LAUNCH - exchanged, backward * LAUNCH - exchanged)
    loops = 4 * 4 * 5_000_000, 4 * 6 * 5_000_000
    for streams in (1, 4):
        apart = launches(MIXED, kind, plan, expert_streams=streams)
        assert apart == (forward * LAUNCH + loops[0] - exchanged, backward * LAUNCH + loops[1] - exchanged)
    parts = ("attn", "moe_router", "moe_preprocess")
    replayed = launches(MIXED, kind, plan, expert_streams=4, graphs=parts)
    assert replayed == (EXCHANGED[0] * LAUNCH + loops[0] - exchanged, EXCHANGED[1] * LAUNCH + loops[1] - exchanged)
    assert launches(MIXED, kind, plan, expert_streams=4, graphs=("iteration",)) == (0, 0)


def test_each_pass_of_a_mixture_waits_for_its_own_launches() -> None:
    """A forward pass that computes for longer than it is launched lends its backward pass nothing."""
    kind, forward, backward = LAYERS["experts"]
    # attention: two products, its core, two of memory; the mixture: a router, two of the shared expert, two of experts,
    # and 4 + 17 + 14 of memory; backward twice as many products, and two of the core
    kernels, kernels_backward = (2 + 1 + 2) + (5 + 35), (4 + 2 + 2) + (10 + 35)
    for tail in (LAUNCH, 2 * LAUNCH, 3 * LAUNCH):
        found = launches(MIXED, kind, plan_on_paper(**ALONE), tail_ps=tail)
        waits = max(0, forward * LAUNCH - kernels * tail), max(0, backward * LAUNCH - kernels_backward * tail)
        assert found == pytest.approx(waits, abs=1)


# What a hidden exchange takes from the computing beside it


@pytest.mark.parametrize(("share", "taken"), [(0.25, 0.25), (0.5, 0.5)])
def test_a_hidden_exchange_takes_multiprocessors_from_products_and_attention(share: float, taken: float) -> None:
    """Of 132 multiprocessors a quarter or a half. What computes beside it takes 1 / (1 - share) as long.

    So much of it as the exchange lasts: t beside it are (1 - share) t of work, and share t are lost; of work w that the
    exchange outlasts it is w share / (1 - share).
    """
    on = ONE_FLOP_A_PS.model_copy(update={"streaming_multiprocessors": 132})
    plan = plan_on_paper(**SPREAD, overlap={"expert": 0.5, "context": 0})
    unit = Unit(part="layer", layer=LAYERS["experts"][0])
    for rate, is_long in ((1.0, False), (1e6, True)):
        gpu = on.model_copy(update={"bf16_flops": rate * 1e12})
        plain = operations(MIXED, plan, on=gpu)
        software = COUNTING.model_copy(update={"exchange_multiprocessors": round(132 * share)})
        slowed = operations(MIXED, plan, on=gpu, software=software)
        calls = plain.communication.exchange
        hidden = 0.5 * 2 * sum(call.alone_ps for call in calls)  # half of the way there and of the way back
        for way in ("forward", "backward"):
            multiplied = sum(
                half.matmul_s + half.core_s if way == "forward" else half.matmul_backward_s + half.core_backward_s
                for _, half in plain.work[unit].halves
            )
            lost = sum(durations(getattr(slowed, way)(unit), "compute")) - sum(
                durations(getattr(plain, way)(unit), "compute")
            )
            assert (multiplied * 1e12 / (1 - share) < hidden) == is_long
            wanted = multiplied * 1e12 * share / (1 - share) if is_long else taken * hidden
            assert lost == pytest.approx(wanted, abs=2)


def test_an_exchange_that_does_not_hide_takes_nothing() -> None:
    plan = plan_on_paper(**SPREAD, overlap={"expert": 0, "context": 0})
    taken = COUNTING.model_copy(update={"exchange_multiprocessors": 1})
    on = ONE_FLOP_A_PS.model_copy(update={"streaming_multiprocessors": 2})
    unit = Unit(part="layer", layer=LAYERS["experts"][0])
    plain, slowed = (operations(MIXED, plan, on=on, software=one) for one in (COUNTING, taken))
    assert slowed.forward(unit) == plain.forward(unit)
    assert slowed.backward(unit) == plain.backward(unit)


# What is computed again


def test_experts_that_are_computed_again_exchange_their_tokens_once_more() -> None:
    """There and back around computing that is labelled as done again; a layer without experts exchanges nothing."""
    modules = {"recompute": "selective", "recompute_modules": ["moe", "layernorm", "moe_act"]}
    for hidden in (0.0, 0.75):
        plan = plan_on_paper(**SPREAD, **modules, overlap={"expert": hidden, "context": 0})
        units = operations(MIXED, plan)
        unit = Unit(part="layer", layer=LAYERS["experts"][0])
        plain = operations(MIXED, plan.model_copy(update={"recompute": "none"}))
        more = [one for one in units.backward(unit) if isinstance(one, Collect)]
        usual = [one for one in plain.backward(unit) if isinstance(one, Collect)]
        size = sum(one.size_bytes for one in more) - sum(one.size_bytes for one in usual)
        tensor = sum(one.size_bytes for one in more if one.channel == TENSOR)
        tensor -= sum(one.size_bytes for one in usual if one.channel == TENSOR)
        assert size - tensor == 2 * (470_016 + 940_032)  # nothing computes beside it: all of it
        assert tensor == 2 * STREAM  # of the shared expert
        mlp = dict(units.work[unit].halves)["mlp"]
        norm = 4 * 816 * 96 / 1e40 * 1e12  # of attention alone: the mixture has its own, and its activations, inside
        assert sum(durations(units.backward(unit), "recompute")) == pytest.approx(mlp.forward_s * 1e12 + norm, abs=2)
        dense = Unit(part="layer", layer=LAYERS["dense"][0])
        assert not any(isinstance(one, Collect) and one.channel == EXPERT for one in units.backward(dense))


@pytest.mark.parametrize(("recompute", "kernels", "more"), [("none", 24, 0), ("selective", 25, 0), ("full", 33, 26)])
def test_what_the_gpu_computes_is_no_launch_and_both_passes_share_the_rest(
    recompute: str, kernels: int, more: int
) -> None:
    """A dense layer has 9 kernels forward and 15 backward, one of the nine is attention.

    Forward four products, attention and two by two of norms, adds and activations; backward eight products, two of
    attention, and two and three.
    """
    busy = kernels * TAIL
    forward, backward = launches(DENSE, LAYERS["dense"][0], plan_on_paper(**ALONE, recompute=recompute), tail_ps=TAIL)
    assert (forward, backward) == launched(26, 45 + more, busy)


def test_what_the_network_takes_is_no_launch_as_far_as_it_does_not_hide() -> None:
    """Two tensor ranks exchange half of the stream in each of eight collectives of a layer, a byte in 1 ps.

    NCCL takes LL at this size, in which a byte is two.
    """
    kind = LAYERS["dense"][0]
    exposed = 2 * 8 * STREAM // 2
    assert sum(launches(DENSE, kind, plan_on_paper())) == 71 * LAUNCH - exposed
    again = 2 * 12 * STREAM // 2
    assert sum(launches(DENSE, kind, plan_on_paper(recompute="full"))) == 97 * LAUNCH - again
    # all of it may hide and the products take no time: it outlasts them, and is exposed all the same
    hiding = plan_on_paper(overlap={"tensor": 1, "context": 0})
    assert sum(launches(DENSE, kind, hiding)) == 71 * LAUNCH - exposed
    # with tails the products of each half take 0.9 x 2 tails forward and 0.9 x 4 backward, behind which as much hides
    hidden = round(0.9 * 2 * TAIL) * 2 + round(0.9 * 4 * TAIL) * 2
    assert sum(launches(DENSE, kind, hiding, tail_ps=TAIL)) == pytest.approx(
        71 * LAUNCH - 24 * TAIL - (exposed - hidden), abs=2
    )


def test_a_layer_that_computes_long_enough_waits_for_no_launch() -> None:
    assert launches(DENSE, LAYERS["dense"][0], plan_on_paper(**ALONE), tail_ps=3 * LAUNCH) == (0, 0)
