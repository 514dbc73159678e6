"""ZB-H1 and DualPipe: their closed forms of bubble and memory, and the laws of their orders."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from helpers.stages import expanded, run_stages
from helpers.trained import EXPERTS, SMALL, job_of
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.spec.job import Compute, Loop, Milestone, Operation, Program
from weftwork.spec.training import Model, Overlap, Parallelism
from weftwork.workload.parallelism.memory import stage_memory
from weftwork.workload.training.communication import CHANNELS, LABELS
from weftwork.workload.training.schedule import Pass, as_loops, passes
from weftwork.workload.training.turns import PASSES

Times = tuple[int, int, int]  # of a forward pass, of gradients of inputs, of gradients of weights
EQUAL: Times = (10, 10, 10)
ZERO_BUBBLE = [(1, 1), (2, 2), (2, 7), (4, 4), (4, 13), (8, 3), (8, 30)]
DUAL = [(2, 4), (4, 8), (4, 14), (6, 12), (8, 20), (16, 40)]


def zero_bubble(stages: int, count: int) -> Parallelism:
    return Parallelism(pipeline=stages, global_batch=count, schedule="zb-h1")


def dualpipe(stages: int, count: int) -> Parallelism:
    return Parallelism(pipeline=stages, global_batch=count, schedule="dualpipe")


@st.composite
def plans(draw: st.DrawFn) -> Parallelism:
    if draw(st.booleans()):
        return zero_bubble(draw(st.integers(1, 12)), draw(st.integers(1, 30)))
    half = draw(st.integers(1, 6))
    return dualpipe(2 * half, 4 * half + 2 * draw(st.integers(0, 10)))


def blocks(order: tuple[Pass, ...]) -> Iterator[tuple[Pass, ...]]:
    """Passes that begin and end as one."""
    at = 0
    while at < len(order):
        length = 2 if order[at].pair == "first" else 1
        yield order[at : at + length]
        at += length


def part(plan: Parallelism, stage: int, one: Pass) -> int:
    """Which part of the model a pass is about."""
    return plan.pipeline - 1 - stage if one.virtual_stage else stage


def before(plan: Parallelism, stage: int, one: Pass) -> tuple[str, int, int] | None:
    """What a pass waits for: kind of its end, micro batch, part of the model."""
    at = part(plan, stage, one)
    if one.kind == "forward":
        return None if at == 0 else ("forward", one.micro_batch, at - 1)
    if one.kind == "weights":
        return "input", one.micro_batch, at
    last = plan.pipeline - 1
    return ("forward", one.micro_batch, at) if at == last else ("input", one.micro_batch, at + 1)


def length_ps(plan: Parallelism, taken_ps: list[list[int]]) -> int:
    """When the last pass ends, if passes wait for each other and for nothing else.

    Parameters
    ----------
    plan : its schedule
    taken_ps : by stage, what each pass takes
    """
    orders = [list(blocks(passes(plan, stage))) for stage in range(plan.pipeline)]
    left_ps = [iter(taken) for taken in taken_ps]
    done: dict[tuple[str, int, int], int] = {}
    clock = [0] * plan.pipeline
    while any(orders):
        moved = False
        for stage, order in enumerate(orders):
            while order and all(
                wanted is None or wanted in done for wanted in (before(plan, stage, one) for one in order[0])
            ):
                block = order.pop(0)
                ready = [done[wanted] for one in block if (wanted := before(plan, stage, one)) is not None]
                clock[stage] = max([clock[stage], *ready]) + sum(next(left_ps[stage]) for _ in block)
                for one in block:
                    kind = "input" if one.kind == "backward" else one.kind
                    done[kind, one.micro_batch, part(plan, stage, one)] = clock[stage]
                moved = True
        assert moved, "a schedule that waits for itself"
    return max(clock)


def taken_by_pass(program: Program, count: int) -> list[int]:
    """What each of so many passes of a program takes."""
    found: list[int] = []
    for operation in expanded(program.streams[0]):
        if isinstance(operation, Milestone) and operation.name == 0:
            found.append(0)
        elif isinstance(operation, Compute) and found:
            found[-1] += operation.duration_ps
    return found[:count]


def most_kept(plan: Parallelism, stage: int) -> tuple[int, int]:
    """Passes whose activations are there at a time: all, and those that wait for gradients of weights alone."""
    kept = delayed = 0
    most = [0, 0]
    for one in passes(plan, stage):
        kept += one.kind == "forward"
        delayed += one.kind == "input"
        most = [max(most[0], kept), max(most[1], delayed)]
        kept -= one.kind in {"backward", "weights"}
        delayed -= one.kind == "weights"
    return most[0], most[1]


def bubble_ps(plan: Parallelism, times: Times) -> int:
    """What an iteration takes beyond the work of a stage."""
    forward_ps, input_ps, weights_ps = times
    each = {"forward": forward_ps, "backward": input_ps + weights_ps, "input": input_ps, "weights": weights_ps}
    taken = [[each[one.kind] for one in passes(plan, stage)] for stage in range(plan.pipeline)]
    return length_ps(plan, taken) - plan.micro_batches * sum(times)


@pytest.mark.parametrize(("stages", "count"), [one for one in ZERO_BUBBLE if one[1] >= one[0]])
@pytest.mark.parametrize("times", [EQUAL, (13, 13, 7), (10, 14, 6), (14, 10, 8), (10, 20, 5)])
def test_the_bubble_of_zb_h1_is_that_of_the_paper(stages: int, count: int, times: Times) -> None:
    """Qi et al., arXiv:2401.10241, table 2: (p - 1) (T_F + T_B - T_W); here with T_W the shortest."""
    forward_ps, input_ps, weights_ps = times
    found = bubble_ps(zero_bubble(stages, count), times)
    assert found == (stages - 1) * (forward_ps + input_ps - weights_ps)


@pytest.mark.parametrize(("stages", "count"), DUAL)
@pytest.mark.parametrize("times", [EQUAL, (13, 13, 7), (10, 10, 1)])
def test_the_bubble_of_dualpipe_is_that_of_the_paper(stages: int, count: int, times: Times) -> None:
    """DeepSeek-V3, arXiv:2412.19437, table 2: (p / 2 - 1) (F&B + B - 3 W), a pair taking as long as both passes."""
    forward_ps, input_ps, weights_ps = times
    whole_ps = input_ps + weights_ps
    paired_ps = forward_ps + whole_ps
    found = bubble_ps(dualpipe(stages, count), times)
    assert found == (stages // 2 - 1) * (paired_ps + whole_ps - 3 * weights_ps)


@pytest.mark.parametrize(
    ("stage", "order"),
    [
        (0, "F0F1F2F3I0W0F4I1W1F5I2W2F6I3W3F7I4W4I5W5I6W6I7W7"),
        (1, "F0F1F2I0F3I1W0F4I2W1F5I3W2F6I4W3F7I5W4I6W5I7W6W7"),
        (3, "F0I0F1I1F2I2F3I3W0F4I4W1F5I5W2F6I6W3F7I7W4W5W6W7"),
    ],
)
def test_the_order_of_zb_h1_is_that_of_figure_3(stage: int, order: str) -> None:
    """Qi et al., arXiv:2401.10241, figure 3, top, counted from 0; I are the gradients of inputs, the paper's B."""
    found = passes(zero_bubble(4, 8), stage)
    assert "".join(f"{one.kind[0].upper()}{one.micro_batch}" for one in found) == order


@pytest.mark.parametrize(("stages", "count"), ZERO_BUBBLE)
def test_zb_h1_keeps_the_activations_of_as_many_micro_batches_as_stages(stages: int, count: int) -> None:
    plan = zero_bubble(stages, count)
    assert [most_kept(plan, stage)[0] for stage in range(stages)] == [min(stages, count)] * stages


@pytest.mark.parametrize(("stages", "count"), DUAL)
def test_dualpipe_keeps_the_activations_of_one_micro_batch_more(stages: int, count: int) -> None:
    plan = dualpipe(stages, count)
    assert [most_kept(plan, stage)[0] for stage in range(stages)] == [stages + 1] * stages


@given(plan=plans())
def test_each_pass_runs_once_after_what_it_needs(plan: Parallelism) -> None:
    for stage in range(plan.pipeline):
        order = passes(plan, stage)
        place = {(one.kind, one.micro_batch, one.virtual_stage): at for at, one in enumerate(order)}
        assert len(place) == len(order)
        whole = {key for key in place if key[0] == "backward"}
        halves = [{key[1:] for key in place if key[0] == kind} for kind in ("forward", "input", "weights")]
        assert halves[1] == halves[2]
        assert halves[0] == halves[1] | {key[1:] for key in whole}
        assert not halves[1] & {key[1:] for key in whole}
        assert sorted(micro_batch for micro_batch, _ in halves[0]) == list(range(plan.micro_batches))
        for (kind, *about), at in place.items():
            if kind in {"input", "backward"}:
                assert place["forward", *about] < at
            if kind == "weights":
                assert place["input", *about] < at


@given(plan=plans())
def test_nobody_waits_for_ever(plan: Parallelism) -> None:
    assert bubble_ps(plan, EQUAL) >= 0
    job, _ = job_of(SMALL.model_copy(update={"layers": plan.pipeline}), plan, gpus=1)
    assert run_stages(job).left_tokens == {}


@given(plan=plans())
def test_memory_counts_what_the_order_keeps(plan: Parallelism) -> None:
    """Every layer alike: bytes over those of one layer and micro batch are passes."""
    model = SMALL.model_copy(update={"layers": plan.pipeline, "has_dropout": False})
    one = stage_memory(model.model_copy(update={"layers": 3}), Parallelism(pipeline=3, global_batch=1), 1)
    for stage in range(1, plan.pipeline - 1):
        kept, delayed = most_kept(plan, stage)
        held = stage_memory(model, plan, stage).activations_bytes
        assert held == pytest.approx(kept * one.activations_bytes)
        again = plan.model_copy(update={"recompute": "full"})
        assert stage_memory(model, again, stage).activations_bytes >= delayed * one.activations_bytes


def test_full_recomputation_saves_less_where_gradients_of_weights_wait() -> None:
    model = SMALL.model_copy(update={"has_dropout": False})

    def activations_bytes(schedule: str, stage: int) -> int:
        plan = Parallelism.model_validate({"pipeline": 4, "global_batch": 8, "schedule": schedule, "recompute": "full"})
        return stage_memory(model, plan, stage).activations_bytes

    layer = stage_memory(model, Parallelism(pipeline=4, global_batch=1), 1).activations_bytes
    inputs = activations_bytes("1f1b", 2) // 2
    assert activations_bytes("zb-h1", 2) == inputs + 3 * layer  # of four, three wait for their gradients of weights


def test_dualpipe_keeps_two_stages_and_shares_the_optimizer_with_its_mirror() -> None:
    plan = dualpipe(4, 8)
    whole = plan.model_copy(update={"zero": 0})
    once = plan.model_copy(update={"schedule": "1f1b"})
    for stage in range(4):
        own, mirrored = (stage_memory(SMALL, once, one) for one in (stage, 3 - stage))
        both = stage_memory(SMALL, plan, stage)
        assert both.weights_bytes == own.weights_bytes + mirrored.weights_bytes
        assert both.gradients_bytes == own.gradients_bytes + mirrored.gradients_bytes
        assert both.optimizer_bytes == own.optimizer_bytes
        assert stage_memory(SMALL, whole, stage).optimizer_bytes == own.optimizer_bytes + mirrored.optimizer_bytes


@pytest.mark.parametrize(
    "plan", [zero_bubble(1, 3), zero_bubble(4, 9), zero_bubble(3, 2), dualpipe(4, 8), dualpipe(2, 4), dualpipe(8, 18)]
)
@pytest.mark.parametrize("blocking", [0.0, 0.5, 1.0])
def test_programs_take_as_long_as_their_schedule_when_nothing_is_sent(plan: Parallelism, blocking: float) -> None:
    plan = plan.model_copy(update={"overlap": Overlap(pipeline=1 - blocking)})
    job, _ = job_of(SMALL, plan, gpus=1)
    found = run_stages(job)
    last_ps = max(max(at for name, at in marks if name == 0) for marks in found.milestones)
    taken = [taken_by_pass(program, len(passes(plan, stage))) for stage, program in enumerate(job.programs)]
    assert last_ps == length_ps(plan, taken)


def test_gradients_of_weights_are_passes_of_their_own() -> None:
    _, shape = job_of(SMALL, zero_bubble(2, 4), gpus=1)
    names = [PASSES[row["pass"]] for row in shape.passes[1]]
    assert names[:8] == ["forward", "backward", "forward", "backward", "weights", "forward", "backward", "weights"]
    assert names[-4:] == ["weights", "weights", "gradients", "update"]


@pytest.mark.parametrize("model", [SMALL, EXPERTS])
@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_a_split_backward_pass_does_the_work_of_a_whole_one(model: Model, recompute: str) -> None:
    plan = Parallelism(
        pipeline=4, data=2, tensor=2, expert=2 if model.experts else 1, global_batch=32, recompute=recompute
    )
    found = [
        run_stages(job_of(model, plan.model_copy(update={"schedule": schedule}))[0])
        for schedule in ("1f1b", "zb-h1", "dualpipe")
    ]
    for name in ("compute", "recompute"):
        totals = [sum(busy[LABELS.index(name)] for busy in one.busy_ps) for one in found]
        assert totals[1:] == pytest.approx([totals[0]] * 2, rel=1e-6)
    tokens = [
        sum(sizes[1] for (_, _, channel), sizes in one.collected.items() if channel % CHANNELS in {0, 2})
        for one in found
    ]
    assert tokens[1:] == [tokens[0]] * 2


@pytest.mark.parametrize("zero", [0, 1, 2])
def test_a_rank_sends_its_mirror_gradients_and_weights(zero: int) -> None:
    plan = dualpipe(4, 16).model_copy(update={"data": 2, "global_batch": 32, "zero": zero, "gradient_bytes": 4})
    model = SMALL.model_copy(update={"layers": 10})  # two on the first stage, three on the last
    found = run_stages(job_of(model, plan)[0])
    held = [
        stage_memory(model, plan.model_copy(update={"schedule": "1f1b"}), stage).weights_bytes // 2
        for stage in range(4)
    ]
    assert held[0] < held[3]
    for stage in range(4):
        own, mirrored = held[stage], held[3 - stage]
        wanted = 4 * (own + mirrored) if zero == 0 else 4 * mirrored // 2 + 2 * own // 2
        assert found.sent[stage, 3 - stage, 5] == pytest.approx(wanted, abs=2)


def test_dualpipe_wants_an_even_number_of_both_and_two_micro_batches_a_stage() -> None:
    for stages, count in ((3, 12), (4, 6), (4, 9)):
        with pytest.raises(ConfigError, match="wanted both even and two micro batches for each stage"):
            passes(dualpipe(stages, count), 0)


@pytest.mark.parametrize(("plan", "most"), [(zero_bubble(8, 1000), 30), (dualpipe(8, 1000), 70)])
def test_loops_say_the_same_in_fewer_words(plan: Parallelism, most: int) -> None:
    for stage in (0, 3, 7):
        wanted = [
            ("forward", "backward", "input", "weights").index(one.kind) * 10 + one.virtual_stage
            for one in passes(plan, stage)
        ]
        loops = as_loops(wanted, lambda item: [Compute(duration_ps=item)])
        assert words(loops) <= most


def words(operations: tuple[Operation, ...]) -> int:
    return sum(1 + (words(one.body) if isinstance(one, Loop) else 0) for one in operations)
