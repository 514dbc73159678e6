"""Schedules that split backward passes, from a scenario to a run folder, on both fidelities."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from helpers.gallery import Gallery

from weftwork.base.errors import ConfigError
from weftwork.report.pipeline import PASSES, read_pipeline
from weftwork.report.trace import trace_events
from weftwork.store.runs import Run

MODEL = Path(__file__).parents[1] / "keys" / "llama.json"
SCHEDULES = ("1f1b", "zb-h1", "dualpipe")
STAGES, COUNT = 4, 12


class Asked:
    """Runs of one plan, each once."""

    def __init__(self, gallery: Gallery) -> None:
        self.gallery = gallery

    def __call__(self, schedule: str, *, fidelity: str = "flow", more: str = "") -> Run:
        run: Run = self.gallery.run(
            f"""schema: 3
fabric: {{topology: leaf-spine, hosts: 8, radix: 8, node: {{gpus: 1}}, link_rate: 100Gbps}}
training: {{model: {MODEL}, gpu: h100, sequence: 128, pipeline: {STAGES}, data: 2, global_batch: {2 * COUNT},
  schedule: {schedule}{more}}}
engine: {{fidelity: {fidelity}}}
transport: {{congestion_control: none}}
""",
            what_if="none",
        )
        return run


@pytest.fixture(scope="module")
def asked(gallery: Gallery) -> Asked:
    return Asked(gallery)


def number(run: Run, name: str) -> float:
    found = run.value(name)
    assert found is not None
    return found


def test_each_schedule_has_a_shorter_bubble_than_the_one_before(asked: Asked) -> None:
    bubbles = [number(asked(schedule), "bubble_share") for schedule in SCHEDULES]
    assert all(later < 0.9 * sooner for sooner, later in pairwise(bubbles))


def test_dualpipe_takes_the_memory_of_a_second_stage(asked: Asked) -> None:
    sizes = [number(asked(schedule), "memory_bytes") for schedule in SCHEDULES]
    assert sizes[0] < sizes[1] < sizes[2]


@pytest.mark.parametrize("schedule", SCHEDULES[1:])
@pytest.mark.parametrize("more", ["", ", zero: 0", ", recompute: full, overlap: {data: 0.5, pipeline: 0.5}"])
def test_packets_and_flows_agree(asked: Asked, schedule: str, more: str) -> None:
    packets = asked(schedule, fidelity="packet", more=more)
    assert packets.status == "complete"
    flows = asked(schedule, more=more)
    assert number(flows, "iteration_ps") == pytest.approx(number(packets, "iteration_ps"), rel=0.02)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_chart_has_a_block_for_every_pass(asked: Asked, schedule: str) -> None:
    found = read_pipeline(asked(schedule))
    assert found is not None
    assert len(found.rows) >= STAGES
    for row in found.rows:
        drawn = {(PASSES[which], batch) for batch, _, which in row.blocks.tolist() if batch >= 0}
        assert {batch for name, batch in drawn if name == "forward"} == set(range(COUNT))
        assert {batch for name, batch in drawn if name == "backward"} == set(range(COUNT))
        weights = {batch for name, batch in drawn if name == "weights"}
        if schedule == "zb-h1":
            assert weights == set(range(COUNT))
        else:
            assert bool(weights) == (schedule == "dualpipe")


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_trace_shows_every_send_both_ways(asked: Asked, schedule: str) -> None:
    arrows = [one for one in trace_events(asked(schedule)) if one["ph"] in {"s", "f"}]
    assert len(arrows) == 2 * 2 * (STAGES - 1) * COUNT  # two ends of an arrow, forward and backward
    ends: dict[int, list[int]] = {}
    for one in arrows:
        ends.setdefault(one["id"], []).append(one["pid"])
    assert all(abs(first - second) == 1 for first, second in ends.values())


@pytest.mark.parametrize(
    ("schedule", "more", "words"),
    [
        ("dualpipe", ", micro_batch: 2", "makes 6 micro batches, wanted with dualpipe an even number, and two or more"),
        ("dualpipe", ", zero: 3", "dualpipe keeps two copies"),
        ("zb-h1", ", virtual_stages: 2", "means nothing with schedule zb-h1, only with 1f1b"),
        ("zb-h1", ", phase: fine-tuning-lora", "frozen weights have no gradients to delay"),
    ],
)
def test_a_plan_that_does_not_fit_the_schedule_is_refused(asked: Asked, schedule: str, more: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        asked(schedule, more=more)
