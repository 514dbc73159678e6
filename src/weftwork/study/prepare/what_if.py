"""Other worlds of a prepared run: what is asked beside it, as runs of their own.

Training on flows is run again on a network that takes no time, and each of several jobs with the fabric to itself.
Leaves out: what a sum over the run itself answers (`weftwork.study.results.training_tables`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from weftwork.engine.flow.flow_input import FlowInput
from weftwork.spec.job import Program
from weftwork.study.prepare.lowered import lowered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weftwork.study.prepare.prepared import Prepared

__all__ = ["ALONE", "INFINITE_NETWORK", "Variation", "variations"]

INFINITE_NETWORK: Final = "infinite network"
ALONE: Final = "alone"


@dataclass(frozen=True, kw_only=True, slots=True)
class Variation:
    """One other world.

    Attributes
    ----------
    case : its name in the table ``what_if``
    job : index of the job that it is about; None: all of them
    prepared : what to run
    """

    case: str
    job: int | None
    prepared: Prepared


def variations(prepared: Prepared) -> Iterator[Variation]:
    """List the other worlds of a run; none for runs that train nothing, and for packets.

    Parameters
    ----------
    prepared : the run itself
    """
    engine_input = prepared.engine_input
    if not prepared.jobs or not isinstance(engine_input, FlowInput):
        return
    yield Variation(
        case=INFINITE_NETWORK,
        job=None,
        prepared=replace(prepared, engine_input=replace(engine_input, has_infinite_network=True)),
    )
    if len(prepared.jobs) > 1:
        yield from (Variation(case=ALONE, job=job, prepared=_alone(prepared, job)) for job in range(len(prepared.jobs)))


def _alone(prepared: Prepared, job: int) -> Prepared:
    """One of the jobs alone: the ranks of the others are there, and do nothing.

    Ranks keep their numbers, and with them their paths under hashing.
    """
    idle = Program(streams=((),))
    programs = [
        program if own == job else idle
        for own, program in zip(prepared.job_of_program.tolist(), prepared.job.programs, strict=True)
    ]
    alone = replace(prepared.job, programs=tuple(programs))
    engine_input = lowered(
        prepared.scenario,
        fabric=prepared.fabric,
        job=alone,
        transport=prepared.transport,
        policies=prepared.policies,
        faults=prepared.faults,
    )
    return replace(prepared, job=alone, engine_input=engine_input)
