"""All parts of a run, as `prepare` makes them for engines and results.

Leaves out: how it is made, and what comes of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weftwork.base.above import Shown
from weftwork.base.grammar import plural
from weftwork.engine.flow.flow_input import FlowInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from weftwork.base.caveat import Caveat
    from weftwork.engine.packet import Series
    from weftwork.engine.packet_input import PacketInput
    from weftwork.policies.load import LoadedPolicy
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Job
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.transport import Transport
    from weftwork.study.prepare.engineering import Engineering
    from weftwork.study.prepare.estimate import Estimate
    from weftwork.study.prepare.faults import Occurrence
    from weftwork.study.prepare.job_volume import Volume
    from weftwork.study.prepare.training import TrainingJob

__all__ = ["Prepared"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared(Shown):
    """All parts of a run, for every workload and fidelity.

    Attributes
    ----------
    scenario : that was read
    fabric : on which it runs, with the caveats of its devices
    jobs : the training jobs, resolved; empty for other workloads
    job : what the ranks do, all jobs as one
    transport, policies : how messages travel; policies by kind
    faults : in the order of time
    volume : messages and payload of the job; None where the engine folds ranks and keeps no messages
    estimate : of the memory and the work that the run takes
    series : what the engine records over time; None: nothing
    engine_input : the input of the engine
    notes : what a user should know of this run, by subject: of its workload, its fabric and how the engine runs it
    planned : the paths of a controller; None where the scenario has none
    is_for_its_time : whether only the time that it takes is wanted, as of a what-if, so that flows record no more
    """

    scenario: Scenario
    fabric: Fabric
    jobs: tuple[TrainingJob, ...]
    job: Job
    transport: Transport
    policies: dict[str, LoadedPolicy]
    faults: tuple[Occurrence, ...]
    volume: Volume | None
    estimate: Estimate
    series: Series | None
    engine_input: PacketInput | FlowInput
    notes: Mapping[str, Caveat]
    planned: Engineering | None = None
    is_for_its_time: bool = False

    def __repr__(self) -> str:
        hosts = plural(len(self.fabric.hosts), "host")
        return f"Prepared({self.scenario.name!r}, {self.fabric.name}: {hosts}, {self.estimate})"

    @property
    def is_folded(self) -> bool:
        """Whether identical ranks run once, so that single messages do not exist."""
        return isinstance(self.engine_input, FlowInput) and self.engine_input.fold != "never"

    @property
    def job_of_program(self) -> NDArray[np.int64]:
        """Shape (programs,): index of the training job that each program belongs to."""
        jobs = np.repeat(np.arange(len(self.jobs)), [one.plan.pipeline for one in self.jobs])
        return np.asarray(jobs[self.origin_of_program] if self.jobs else jobs)

    @property
    def stage_of_program(self) -> NDArray[np.int64]:
        """Shape (programs,): pipeline stage of each program of training jobs."""
        stages = np.concatenate([np.empty(0, np.int64), *(np.arange(one.plan.pipeline) for one in self.jobs)])
        return np.asarray(stages[self.origin_of_program] if self.jobs else stages)

    @property
    def origin_of_program(self) -> NDArray[np.int64]:
        """Shape (programs,): the program whose computing each program slows down, else itself."""
        return np.array(self.job.origins or range(len(self.job.programs)), np.int64)

    def passes(self, program: int) -> NDArray[np.void]:
        """The operations after each ``pass`` milestone of a program.

        See `TrainingShape.passes`.
        """
        shape = self.jobs[int(self.job_of_program[program])].shape
        return shape.passes[int(self.stage_of_program[program])]
