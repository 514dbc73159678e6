"""Laws of training programs, over random plans: nobody waits for ever, and work and bytes add up."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import combinations, pairwise
from typing import Any, get_args

import pytest
from helpers.cases import case_count
from helpers.findings import mistakes_of
from helpers.stages import Outcome, run_stages
from helpers.trained import EXPERTS, QUIET, SMALL, job_of
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.engine.programs import check_job
from weftwork.hardware.catalogue import gpu
from weftwork.spec.job import Collect, Loop, Operation, Receive, Send
from weftwork.spec.training import Model, ModulePrecision, Overlap, Parallelism, RecomputeModule
from weftwork.workload.parallelism.layout import Unit, virtual_stages_of
from weftwork.workload.training.communication import CHANNELS, LABELS
from weftwork.workload.training.kernels import Kernels
from weftwork.workload.training.layers import UnitWork, unit_work
from weftwork.workload.training.programs import Extras

SHARES = st.sampled_from([0.0, 0.4, 1.0])
MODULES = get_args(RecomputeModule)
NUMBERS = (None, "bf16", "fp8")


@st.composite
def plans(draw: st.DrawFn) -> Parallelism:
    tensor = draw(st.sampled_from([1, 2, 4]))
    data = draw(st.sampled_from([1, 2, 4]))
    context = draw(st.sampled_from([1, 2]))
    pipeline, virtual_stages = draw(st.sampled_from([(1, 1), (1, 2), (2, 1), (2, 2), (4, 2), (3, 1), (8, 1)]))
    micro_batch = draw(st.sampled_from([1, 2]))
    count = draw(st.integers(1, 5)) * (pipeline if virtual_stages > 1 else 1)
    schedule = draw(
        st.sampled_from(["1f1b", "gpipe", "zb-h1", "dualpipe"] if virtual_stages == 1 else ["1f1b", "gpipe"])
    )
    zero = draw(st.sampled_from([0, 1, 3]))
    if schedule == "dualpipe" and pipeline % 2:
        pipeline *= 2
    if schedule == "dualpipe":
        count, zero = 2 * (pipeline + count), min(zero, 1)
    expert = draw(st.sampled_from([one for one in (1, 2, 4, 8) if (tensor * context * data) % one == 0]))
    plan = Parallelism(
        tensor=tensor,
        data=data,
        context=context,
        context_exchange=draw(st.sampled_from(["ring", "all-to-all"])),
        pipeline=pipeline,
        virtual_stages=virtual_stages,
        expert=expert,
        micro_batch=micro_batch,
        global_batch=count * micro_batch * data,
        sequence=512,
        schedule=schedule,
        is_sequence_parallel=draw(st.booleans()),
        zero=zero,
        has_prefetch=draw(st.booleans()),
        recompute=draw(st.sampled_from(["none", "selective", "full"])),
        offloaded_layers=draw(st.sampled_from([0, 0, 1, 3, 8])),
        gradient_bytes=draw(st.sampled_from([2, 4])),
        has_lora=schedule in {"1f1b", "gpipe"} and draw(st.integers(0, 9)) == 0,
        order=draw(st.sampled_from(["tp-cp-dp-pp", "tp-cp-pp-dp"])),
        overlap=Overlap(
            tensor=draw(SHARES), data=draw(SHARES), pipeline=draw(SHARES), expert=draw(SHARES), context=draw(SHARES)
        ),
    )
    return plan.model_copy(update=draw(what_recipes_set(plan)))


@st.composite
def what_recipes_set(draw: st.DrawFn, plan: Parallelism) -> dict[str, Any]:
    """Modules that are computed again, numbers of modules and of the first and last layers, and a layout by hand."""
    found: dict[str, Any] = {
        "recompute_modules": tuple(draw(st.lists(st.sampled_from(MODULES), unique=True, min_size=1))),
        "precision": draw(st.sampled_from(["bf16", "fp8"])),
        "module_precision": ModulePrecision(
            qkv=draw(st.sampled_from(NUMBERS)), projection=draw(st.sampled_from(NUMBERS))
        ),
        "bf16_first_layers": draw(st.integers(0, 3)),
        "bf16_last_layers": draw(st.integers(0, 3)),
    }
    if not plan.has_mirror and draw(st.booleans()):
        parts = plan.pipeline * plan.virtual_stages
        ends = sorted(draw(st.lists(st.integers(0, SMALL.layers), min_size=parts - 1, max_size=parts - 1)))
        counts = [after - before for before, after in pairwise([0, *ends, SMALL.layers])]
        found["layout"] = "E" + "|".join("t" * count for count in counts) + "L"
    return found


def keys_of(operations: Iterable[Operation]) -> set[Hashable]:
    """By what each operation of a stream meets those of other ranks: a group or peer, and a channel."""
    found: set[Hashable] = set()
    for one in operations:
        if isinstance(one, Loop):
            found |= keys_of(one.body)
        elif isinstance(one, Collect):
            found.add((Collect, one.group, one.channel))
        elif isinstance(one, Send | Receive):
            found.add((type(one), one.peer, one.channel))
    return found


@given(plan=plans(), model=st.sampled_from([SMALL, EXPERTS]), extras=st.sampled_from([None, Extras(iterations=2)]))
@settings(max_examples=case_count(plain=60, deep=400), deadline=None)
def test_no_two_streams_of_a_rank_meet_others_by_the_same_channel(
    plan: Parallelism, model: Model, extras: Extras | None
) -> None:
    """Else the order of their calls would differ from rank to rank, and ranks would wait for each other for ever."""
    job, _ = job_of(model, plan, extras=extras)
    for program in job.programs:
        for keys, others in combinations(map(keys_of, program.streams), 2):
            assert not keys & others
    assert mistakes_of(check_job, job, job.placement.host, by_packet=False) == []


def works_of(model: Model, plan: Parallelism) -> list[dict[Unit, tuple[int, UnitWork]]]:
    """By stage: units, how many, and what each costs."""
    kernels = Kernels(gpu=gpu("h100"), software=QUIET, precision=plan.precision)
    found = []
    for virtual_stages in virtual_stages_of(model, plan):
        every = [unit for virtual_stage in virtual_stages for unit in virtual_stage]
        found.append({one: (every.count(one), unit_work(one, model, plan, kernels)) for one in set(every)})
    return found


def batches_each(plan: Parallelism) -> int:
    """Micro batches that pass each virtual stage: of DualPipe's two directions one half each."""
    return plan.micro_batches // 2 if plan.has_mirror else plan.micro_batches


def total(found: Outcome, stage: int, operation: str, channels: set[int]) -> int:
    """Bytes of an operation on these channels, also beside the computing stream."""
    return sum(
        sizes[1] for (where, what, channel), sizes in found.collected.items()
        if where == stage and what == operation and channel % CHANNELS in channels
    )  # fmt: skip


@given(plan=plans(), model=st.sampled_from([SMALL, EXPERTS]))
@settings(max_examples=case_count(plain=60, deep=400), deadline=None)
def test_work_and_bytes_add_up(plan: Parallelism, model: Model) -> None:
    job, shape = job_of(model, plan)
    found = run_stages(job, collect_ps=lambda one: one.amount_bytes, message_ps=lambda size: size)
    assert found.left_tokens == {}
    count = batches_each(plan)
    for stage, works in enumerate(works_of(model, plan)):
        busy = found.busy_ps[stage]
        computed = sum(times * (work.forward_s + work.backward_s) for times, work in works.values())
        assert busy[LABELS.index("compute")] == pytest.approx(count * computed * 1e12, rel=1e-6)
        again = {"none": 0.0, "selective": 1.0, "full": 1.0}[plan.recompute] * sum(
            times * (work.forward_s if plan.recompute == "full" else work.again_s(plan.recompute_modules))
            for unit, (times, work) in works.items()
            if unit.part == "layer"
        )
        assert busy[LABELS.index("recompute")] == pytest.approx(count * again * 1e12, rel=1e-6)
        assert len(shape.passes[stage]) == sum(name == 0 for name, _ in found.milestones[stage])
        assert_bytes(found, stage, model, plan, works)
    activation = 2 * plan.micro_batch * plan.sequence // plan.context * model.hidden // plan.tensor
    cuts = (plan.pipeline * plan.virtual_stages - 1) * count * activation if plan.pipeline > 1 else 0
    for channel in (0, 1, 3, 4) if plan.has_mirror else (0, 1):
        assert sum(size for (_, _, own), size in found.sent.items() if own == channel) == cuts


def assert_bytes(
    found: Outcome, stage: int, model: Model, plan: Parallelism, works: dict[Unit, tuple[int, UnitWork]]
) -> None:
    count = batches_each(plan)
    layers = sum(times for unit, (times, _) in works.items() if unit.part == "layer")
    mixtures = sum(times for unit, (times, _) in works.items() if unit.layer and unit.layer.mlp == "experts")
    tokens = plan.micro_batch * plan.sequence // plan.context
    forwards = 2 if plan.recompute == "full" else 1
    again = mixtures if plan.recompute == "selective" and "moe" in plan.recompute_modules else 0
    if plan.tensor > 1 and plan.is_sequence_parallel:
        edges = sum(unit.part != "layer" for unit in works)
        wanted = count * (2 * layers * (forwards + 1) + edges + again) * 2 * tokens * model.hidden
        assert total(found, stage, "all-gather", {0}) == pytest.approx(wanted, rel=1e-6)
        assert total(found, stage, "reduce-scatter", {0}) == pytest.approx(wanted, rel=1e-6)
    if plan.expert > 1:
        each = 2 * tokens * model.hidden * model.experts_per_token // plan.tensor
        wanted = 2 * ((forwards + 1) * mixtures + again) * count * each
        assert total(found, stage, "all-to-all", {2}) == pytest.approx(wanted, rel=1e-6)
    dense = sum(times * work.parameters for times, work in works.values())
    experts = sum(times * work.expert_parameters for times, work in works.values())
    copies = plan.tensor * plan.context * plan.data // plan.expert
    adapters = sum(times * work.adapter_parameters for times, work in works.values())
    trained = (adapters, 0.0) if plan.has_lora else (dense, experts)
    gathered = (dense + adapters, experts) if plan.zero == 3 else trained
    shared, everything = (
        of_layers * (plan.data * plan.context > 1) + of_experts * (copies > 1)
        for of_layers, of_experts in (trained, gathered)
    )
    operation = "all-reduce" if plan.zero == 0 else "reduce-scatter"
    rounds = count if plan.zero == 3 else 1
    gathers = {0: 0, 1: 1, 3: 2 * count}[plan.zero]
    # rounding: a byte for each call
    assert total(found, stage, operation, {3, 5}) == pytest.approx(
        rounds * plan.gradient_bytes * shared, rel=1e-5, abs=2000
    )
    assert total(found, stage, "all-gather", {4, 6}) == pytest.approx(gathers * 2 * everything, rel=1e-5, abs=2000)


@given(plan=plans())
@settings(max_examples=case_count(plain=15, deep=100), deadline=None)
def test_hiding_communication_never_costs_time(plan: Parallelism) -> None:
    ends = []
    for share in (0.0, 1.0):
        overlap = Overlap(tensor=share, data=0.0, pipeline=share, expert=share, context=share)
        job, _ = job_of(EXPERTS, plan.model_copy(update={"overlap": overlap, "zero": 1}))
        found = run_stages(job, collect_ps=lambda one: one.amount_bytes, message_ps=lambda size: size)
        ends.append(found.end_ps)
    assert ends[1] <= ends[0] + 1000  # picoseconds of rounding


@given(plan=plans(), iterations=st.integers(2, 4), every=st.integers(0, 3))
@settings(max_examples=case_count(plain=15, deep=100), deadline=None)
def test_iterations_repeat_and_checkpoints_hold_up(plan: Parallelism, iterations: int, every: int) -> None:
    extras = Extras(iterations=iterations, checkpoint_ps=10**12, checkpoint_every=every, loading_ps=10**9)
    job, shape = job_of(SMALL, plan, extras=extras)
    found = run_stages(job)
    assert found.left_tokens == {}
    saves = iterations // every if every else 0
    for stage, marks in enumerate(found.milestones):
        assert sum(name == 1 for name, _ in marks) == iterations == shape.iterations
        assert len(shape.passes[stage]) == sum(name == 0 for name, _ in marks)
        assert found.busy_ps[stage][LABELS.index("checkpoint")] == saves * 10**12
        reads = stage in {0, plan.pipeline - 1}
        assert found.busy_ps[stage][LABELS.index("loading")] == reads * iterations * 10**9
