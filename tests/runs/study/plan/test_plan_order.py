"""The order of counted plans: as if all of them were followed, although few are."""

from __future__ import annotations

from pathlib import Path

from weftwork.spec.training import Parallelism
from weftwork.study.plan.order import Counted, PlanOrder
from weftwork.study.plan.space import PossiblePlan
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.prepare.training import training_setting
from weftwork.workload.training.closed_form import ClosedForms, IterationTime

FILE = """{schema: 3, fabric: {topology: leaf-spine, leaves: 1, spines: 1, hosts_per_leaf: 2, node: dgx-h100},
training: {model: gpt-1.7b, global_batch: 64, pipeline: 4, sequence: 2048}, engine: {fidelity: flow}}
"""


class Noted(ClosedForms):
    """Closed forms that note which plans were followed."""

    followed: list[Parallelism]

    def iteration(self, plan: Parallelism, *, follows: bool = False) -> IterationTime:
        """As of the class above."""
        if follows:
            self.followed.append(plan)
        return super().iteration(plan, follows=follows)


def test_it_is_the_order_of_the_sharp_times_and_few_are_made(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(FILE, encoding="utf-8")
    prepared = prepare(read_scenario(file))
    (job,) = prepared.jobs
    closed = training_setting(prepared.scenario, prepared.fabric, job.section).closed_forms()
    noted = Noted(model=closed.model, gpu=closed.gpu, software=closed.software, cluster=closed.cluster,
                  placement=closed.placement)  # fmt: skip
    object.__setattr__(noted, "followed", [])
    counted = []
    for virtual_stages in (1, 2, 3, 4, 5, 6):
        for micro_batch in (1, 2, 4):
            plan = job.plan.model_copy(update={"virtual_stages": virtual_stages, "micro_batch": micro_batch})
            memory_bytes = 10 * virtual_stages - micro_batch
            candidate = PossiblePlan(keys={}, plan=plan, memory_bytes=memory_bytes)
            counted.append(Counted(candidate=candidate, time=closed.iteration(plan)))
    sharp = sorted(closed.iteration(one.candidate.plan, follows=True).total_ps for one in counted)

    order = PlanOrder(counted, noted)
    by_time = order.by_time()
    assert next(by_time).time.total_ps == sharp[0]
    few = len(noted.followed)
    assert 0 < few < 15  # of those with virtual stages
    assert [sharp[0], *(one.time.total_ps for one in by_time)] == sharp

    front = order.front()
    assert len(noted.followed) == 15  # each once
    assert [one.time.total_ps for one in front] == sorted({one.time.total_ps for one in front})
    memory = [one.candidate.memory_bytes for one in front]
    assert memory == sorted(memory, reverse=True)
    assert min(memory) == min(one.candidate.memory_bytes for one in counted)
