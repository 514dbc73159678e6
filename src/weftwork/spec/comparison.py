"""What a comparison of runs found: a row for each run, groups of one workload, keys and numbers that differ.

Leaves out: how it is found (`weftwork.study.results.compare_runs`), and how it is told (`weftwork.report`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weftwork.base.above import Shown

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ComparedFabric", "ComparedKey", "ComparedNumber", "ComparedRun", "RunComparison", "Spread", "WorkloadGroup"]

_TOLD = 4  # chosen: runs and keys that fit into a line


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """The low, the typical and the high value of a price book."""

    low: float
    typical: float
    high: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedFabric:
    """The fabric of a run, built again from its scenario.

    Attributes
    ----------
    place : the same number for the same fabric, from 0
    gpus, links : counts; a link to a host counts too
    switches_by_tier : name of each tier and its switches, from the hosts up
    switch_models : name and count of each model
    oversubscription : realised ratio of each tier, such as ``2:1`` or ``leaf 2:1, spine 1:1``; empty with one tier
    asked_oversubscription : ratio of the scenario where the fabric has another; empty where they agree
    price_usd, power_w : of the whole fabric; None where a part of it has no price or no known power
    not_priced, power_unknown : parts without, each with its count
    unverified_money_share, unverified_power_share : of the typical values that are known
    """

    place: int
    gpus: int
    links: int
    switches_by_tier: tuple[tuple[str, int], ...]
    switch_models: tuple[tuple[str, int], ...]
    oversubscription: str
    asked_oversubscription: str
    price_usd: Spread | None
    power_w: Spread | None
    not_priced: tuple[str, ...]
    power_unknown: tuple[str, ...]
    unverified_money_share: float
    unverified_power_share: float

    @property
    def switches(self) -> int:
        """Switches of all tiers."""
        return sum(count for _, count in self.switches_by_tier)


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedRun:
    """A run among others.

    Attributes
    ----------
    folder : name of its folder, without the path
    label : name that no other run of the comparison has
    short : name that no other run of its group has
    group : place of its workload
    status : see `weftwork.store.runs.Run.status`
    is_whole : whether every seed that counts delivered everything
    seeds : runs that its numbers are means of; 1 without several seeds
    number : main number: the time of an iteration, of a collective, or until all messages arrived; empty: none
    value_ps : its value; None where the run did not end
    low_ps, high_ps : ends of the 95 % interval; None with one seed
    change : value over that of the first run of the group with a time, minus 1; None for this one and without a value
    is_clear : whether the difference is more than noise, seed by seed where both have the same; None with one seed
    speed, speed_name, speed_unit : MFU, bus bandwidth or FCT p99, whichever the run has
    exposed_share : exposed communication as a share of the iteration; None without training
    culprit, culprit_share : who is to blame, and the share of the time that it cost
    culprit_how : how the share was found: ``simulated``, ``recorded``, or ``bound`` (an upper bound); else empty
    time_parts : picoseconds of an iteration by the words for what they went to; empty where no engine tells
    troubles : shares lost, sent again and paused, by their names in `weftwork.spec.answer.Evidence`; empty: not known
    fabric : None where it could not be built again
    no_fabric : why not
    """

    folder: str
    label: str
    short: str
    group: int
    status: str
    is_whole: bool
    seeds: int
    number: str
    value_ps: float | None
    low_ps: float | None
    high_ps: float | None
    change: float | None
    is_clear: bool | None
    speed: float | None
    speed_name: str
    speed_unit: str
    exposed_share: float | None
    culprit: str
    culprit_share: float | None
    culprit_how: str
    fabric: ComparedFabric | None
    no_fabric: str
    time_parts: Mapping[str, float] = field(default_factory=dict)
    troubles: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkloadGroup:
    """Runs of one workload.

    Attributes
    ----------
    name : of the workload, such as ``llama-3-70b``
    runs : places of its runs
    first : place of the run that the others are measured against: the first with a time; None where none has
    keys : keys of the scenario that differ within the group
    work_keys : those of them that change the work itself, such as ``traffic.size``
    """

    name: str
    runs: tuple[int, ...]
    first: int | None
    keys: tuple[str, ...]
    work_keys: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedKey:
    """A key of the scenario and its value in each run; None where a scenario does not have it."""

    key: str
    values: tuple[str | None, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedNumber:
    """A number of the summaries.

    Attributes
    ----------
    name, unit : of the number
    values : by run
    changes : each over the value of the first run of its group, minus 1; None for the first, and where there is none
    is_clear : with several seeds in both runs, whether the difference is more than noise; else None
    """

    name: str
    unit: str
    values: tuple[float | None, ...]
    changes: tuple[float | None, ...]
    is_clear: tuple[bool | None, ...]

    @property
    def is_equal(self) -> bool:
        """Whether all runs have the same value."""
        return len(set(self.values)) == 1


@dataclass(frozen=True, kw_only=True, slots=True)
class RunComparison(Shown):
    """All that a comparison found.

    Attributes
    ----------
    runs, groups : runs as they were given; workloads in the order of their first runs
    differences : keys whose values are not all the same
    numbers : all numbers of all summaries
    is_same_result : whether the digests of all runs are there and equal
    given_twice : names of folders that were given more than once
    prices : name of the price book; empty where no fabric was priced
    """

    runs: tuple[ComparedRun, ...]
    groups: tuple[WorkloadGroup, ...]
    differences: tuple[ComparedKey, ...]
    numbers: tuple[ComparedNumber, ...]
    is_same_result: bool
    given_twice: tuple[str, ...]
    prices: str

    def __repr__(self) -> str:
        keys = ", ".join(one.key for one in self.differences[:_TOLD]) + (
            ", ..." if len(self.differences) > _TOLD else ""
        )
        names = ", ".join(repr(run.label) for run in self.runs[:_TOLD]) + (", ..." if len(self.runs) > _TOLD else "")
        return f"RunComparison({names}; {f'differ in {keys}' if keys else 'of one scenario'})"
