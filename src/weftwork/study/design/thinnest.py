"""Bounds of an iteration on a fabric by closed forms.

The lower bound has no sharing; the upper bound has all traffic on the tier with the least bandwidth.

The first takes each collective alone at the rate of the NICs, the second at what the ratios of all tiers leave of it;
the time of a run lies between the two unless flows collide or hide.
Leaves out: jobs without a section ``training``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from weftwork.base.errors import EngineError
from weftwork.study.design.built import Built
from weftwork.study.prepare.prepare import prepare
from weftwork.study.prepare.training import training_setting
from weftwork.topology.build import fabric_of_section

if TYPE_CHECKING:
    from weftwork.spec.scenario.scenario import Scenario

__all__ = ["closed_times"]


def closed_times(scenario: Scenario, built: Sequence[Built]) -> list[tuple[float, float]]:
    """Least and most time of an iteration on each candidate, in ps.

    The list is empty without a training job.

    Parameters
    ----------
    scenario : of the job with its plan, on any fabric of the same servers
    built : candidates that are trees or direct networks
    """
    if not scenario.workload_kind.is_single_job:
        return []
    fabric = fabric_of_section(scenario.fabric, directory=Path(scenario.source).parent)
    setting = training_setting(scenario, fabric, scenario.training_section)
    plan = prepare(scenario, fabric=fabric).jobs[0].plan
    figures = setting.cluster.figures
    own_bps = figures.network_rate_bps
    known: dict[int, float] = {}

    def at(rate_bps: int) -> float:
        if rate_bps not in known:
            cluster = replace(setting.cluster, figures=replace(figures, network_rate_bps=rate_bps))
            known[rate_bps] = float(
                replace(setting, cluster=cluster).closed_forms().iteration(plan, follows=True).total_ps
            )
        return known[rate_bps]

    whole_bps = own_bps * fabric.gpus / len(fabric.hosts)  # of a server, by the figures
    found = []
    for one in built:
        if one.least_share is None:
            raise EngineError(f"{one.candidate.name} has no tree and is no direct network")
        share = one.candidate.rate_bps * fabric.gpus / len(fabric.hosts) / whole_bps
        rate_bps = round(own_bps * share)
        thin_bps = max(1, round(rate_bps * one.least_share))
        found.append((at(rate_bps), at(thin_bps)))
    return found
