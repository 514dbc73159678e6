"""Laws of memory: what plans may use, what is proposed where they need too much, and which stage is the fullest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from helpers.cases import case_count
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from weftwork.hardware.catalogue import gpu
from weftwork.spec.scenario.scenario import loads
from weftwork.spec.training import Parallelism
from weftwork.study.plan.space import PossiblePlan, Space, candidates, most_bytes, parts
from weftwork.workload.models.catalogue import model
from weftwork.workload.parallelism.memory import fullest_stage, stage_memory
from weftwork.workload.parallelism.mending import mended_by
from weftwork.workload.parallelism.refuse import PlanLimits, misfits, nearest_plan, reasons

MODELS = ("llama-3-8b", "gpt-7.5b", "mixtral-8x7b")
shares = st.floats(0, 0.95).map(lambda share: round(share, 3))


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    """A small search: few GPUs, so that a case takes milliseconds."""
    name, gpus = draw(st.sampled_from(MODELS)), draw(st.sampled_from([4, 8]))
    fixed = draw(st.sets(st.sampled_from(["tensor", "pipeline", "zero", "recompute", "micro_batch"])))
    keys: dict[str, Any] = {
        "model": name, "global_batch": draw(st.sampled_from([8, 16, 64])),
        "sequence": draw(st.sampled_from([2048, 4096])),
        "memory": f"{draw(st.integers(10, 160))}GB",
        "gradients": draw(st.sampled_from(["bf16", "fp32", "bf16+fp32"])),
    }  # fmt: skip
    for key, values in {
        "tensor": [1, 2, 4], "pipeline": [1, 2], "zero": [0, 1, 2, 3], "recompute": ["none", "full"],
        "micro_batch": [1, 2],
    }.items():  # fmt: skip
        if key in fixed:
            keys[key] = draw(st.sampled_from(values))
    text = ", ".join(f"{key}: {value}" for key, value in keys.items())
    section = loads(f"{{schema: 3, fabric: {{radix: 4}}, training: {{{text}}}}}").training
    assert section is not None
    fixed |= {"context", "expert_tensor", "virtual_stages", "balanced_ends", "order"}  # for speed
    return Space(
        section=section, model=model(name), gpu=gpu("a100"), gpus=gpus, domain_gpus=8, has_flash_attention=True,
        fixed=frozenset(fixed),
    )  # fmt: skip


def listed(space: Space, headroom: float) -> tuple[Space, list[PossiblePlan]]:
    """All plans that a search would list."""
    space = replace(space, headroom=headroom, pruned=type(space.pruned)(), smallest=None)
    return space, [one for part in parts(space) for one in candidates(space, part)]


@given(space=spaces(), headroom=shares)
@settings(max_examples=case_count(plain=8, deep=100))
def test_no_plan_that_is_listed_needs_more_than_the_headroom_leaves(space: Space, headroom: float) -> None:
    space, plans = listed(space, headroom)
    memory_bytes = space.section.memory_bytes or 0
    for one in plans:
        assert one.memory_bytes <= (1 - headroom) * memory_bytes + 1e-3
        assert one.memory_bytes == fullest_stage(space.model, one.plan).total_bytes
        assert not reasons(space.limits, one.plan)  # and `run` takes it
    if space.smallest is not None:
        assert space.smallest[1] > space.limit_bytes


@given(space=spaces(), one=shares, other=shares)
@settings(max_examples=case_count(plain=8, deep=100))
def test_more_headroom_takes_plans_away_and_brings_none_but_smaller_ones(
    space: Space, one: float, other: float
) -> None:
    """Every plan of the shorter list that is not in the longer one saves memory by recomputation or ZeRO."""
    less, more = sorted((one, other))
    _, many = listed(space, less)
    narrow, few = listed(space, more)

    def spread(plans: list[PossiblePlan]) -> set[tuple[Any, ...]]:
        return {tuple(v for k, v in plan.keys.items() if k not in {"zero", "recompute"}) for plan in plans}

    assert spread(few) <= spread(many)
    names = [tuple(plan.keys.items()) for plan in few]
    for plan in many:
        assert (plan.memory_bytes <= narrow.limit_bytes) == (tuple(plan.keys.items()) in names)


@given(size=st.integers(1, 10**12), share=shares)
def test_the_rest_is_what_the_headroom_leaves(size: int, share: float) -> None:
    assert most_bytes(size, 0.0) == size
    assert abs(most_bytes(size, share) - (1 - share) * size) <= 1 + 1e-9 * size


@st.composite
def plans(draw: st.DrawFn) -> tuple[str, Parallelism]:
    """Any plan, whether its shapes fit or not."""
    name = draw(st.sampled_from(MODELS))
    pipeline = draw(st.sampled_from([1, 2, 4, 8]))
    data = draw(st.sampled_from([1, 2, 4]))
    micro_batch = draw(st.sampled_from([1, 2, 4]))
    return name, Parallelism(
        tensor=draw(st.sampled_from([1, 2, 4])),
        pipeline=pipeline,
        data=data,
        virtual_stages=draw(st.sampled_from([1, 1, 2, 4])),
        schedule=draw(st.sampled_from(["1f1b", "gpipe", "zb-h1", "dualpipe"])),
        micro_batch=micro_batch,
        global_batch=data * micro_batch * draw(st.integers(1, 24)),
        sequence=draw(st.sampled_from([2048, 8192])),
        zero=draw(st.sampled_from([0, 1, 2, 3])),
        recompute=draw(st.sampled_from(["none", "selective", "full"])),
        has_balanced_ends=draw(st.booleans()),
        has_gradient_copy=draw(st.booleans()),
    )


@given(drawn=plans(), has_flash_attention=st.booleans())
@settings(max_examples=case_count(plain=40, deep=400))
def test_the_fullest_stage_is_the_fullest_of_all(drawn: tuple[str, Parallelism], has_flash_attention: bool) -> None:  # noqa: FBT001
    """First, last and inner stages, with all passes that a schedule keeps in flight."""
    name, plan = drawn
    assume(not misfits(PlanLimits(model=model(name), gpus=plan.ranks), plan))
    stages = [
        stage_memory(model(name), plan, stage, has_flash_attention=has_flash_attention).total_bytes
        for stage in range(plan.pipeline)
    ]
    assert fullest_stage(model(name), plan, has_flash_attention=has_flash_attention).total_bytes == max(stages)


@given(drawn=plans(), memory_bytes=st.integers(4 * 10**9, 90 * 10**9))
@settings(max_examples=case_count(plain=25, deep=250))
def test_what_is_proposed_for_memory_fits_and_leaves_the_batch(
    drawn: tuple[str, Parallelism], memory_bytes: int
) -> None:
    name, plan = drawn
    given = PlanLimits(model=model(name), gpus=plan.ranks, gpu=gpu("a100"), memory_bytes=memory_bytes)
    assume(not misfits(given, plan))
    found = reasons(given, plan)
    assume(found)
    near = nearest_plan(given, plan)
    text = mended_by(given, plan, fullest_stage(given.model, plan))
    assert "batch" not in text.replace("micro_batch", "")
    if near is not None:
        assert near.global_batch == plan.global_batch
        assert not reasons(given, near)
        assert "makes one fit" in text
    elif "alone" in found[0].text:
        assert "GPUs" in text
        assert "sequence" not in text


def test_a_batch_that_does_not_divide_is_still_mended() -> None:
    plan = Parallelism(data=4, micro_batch=3, global_batch=32, recompute="full", zero=3)
    given = PlanLimits(model=model("llama-3-8b"), gpus=4)
    near = nearest_plan(given, plan)
    assert near is not None
    assert not reasons(given, near)
