"""The interval of a run's time from a calibration's bootstrap draws.

The run itself has the fitted values. Its time is multiplied by the 5 % and the 95 % quantile of closed form with a draw
over closed form with the fitted values: draws are joint, so that constants that stand in for each other do so here, and
no run is repeated. Source: docs/models/calibration.md.
Leaves out: what the model itself leaves out, which the error of the rows that were fitted tells; contention, of which
the closed form knows nothing; operations and algorithms without a closed form, which have no interval.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from weftwork.spec.numbers import quantities
from weftwork.spec.result import Quantity
from weftwork.spec.scenario.choices import ALGORITHMS
from weftwork.study.prepare.calibrated import (
    calibrated_figures,
    calibrated_software,
    calibration_of,
    latency_scale,
    network_efficiency,
)
from weftwork.study.prepare.collective import domain_ranks, fabric_figures, method_used
from weftwork.study.prepare.engine_settings import transport_of
from weftwork.study.prepare.training import training_setting
from weftwork.workload.collectives.closed_form import OPERATIONS, GroupShape, alone, methods
from weftwork.workload.collectives.tuner import chosen_method

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from weftwork.spec.calibration import Calibration
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.scenario.training import TrainingSection
    from weftwork.spec.training import Parallelism
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["calibrated_summary", "collective_ratios", "training_ratios"]

LOW, HIGH = 0.05, 0.95


def calibrated_summary(prepared: Prepared, summary: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """Lower and upper end of the time of a run.

    Empty without a calibration or without draws.

    Parameters
    ----------
    prepared : what was run
    summary : its numbers, with the time
    """
    calibration = calibration_of(prepared.scenario)
    if calibration is None or not calibration.draws:
        return {}
    found: dict[str, Quantity] = {}
    for place, job in enumerate(prepared.jobs):
        lead = f"{job.name}." if place else ""
        path = prepared.scenario.job_path(place)
        ratios = training_ratios(prepared.scenario, prepared.fabric, job.section, job.plan, calibration, path=path)
        found |= _ends(summary, "iteration", ratios, lead)
    if prepared.scenario.workload_kind.is_collective:
        of_collective = collective_ratios(prepared, calibration)
        if of_collective is not None:
            found |= _ends(summary, "collective_duration", of_collective, "")
    return found


def _ends(summary: Mapping[str, Quantity], name: str, ratios: tuple[float, float], lead: str) -> dict[str, Quantity]:
    time = summary.get(f"{lead}{name}_ps")
    if time is None:
        return {}
    found: dict[str, Quantity] = {}
    for end, share, ratio in (("low", LOW, ratios[0]), ("high", HIGH, ratios[1])):
        value = None if time.value is None else round(time.value * ratio)
        found |= quantities(f"{name}_{end}_ps", value, lead=lead, share=round(100 * share))
    return found


def training_ratios(
    scenario: Scenario,
    fabric: Fabric,
    section: TrainingSection,
    plan: Parallelism,
    calibration: Calibration,
    *,
    path: str = "training",
) -> tuple[float, float]:
    """Quantiles of a plan's iteration time over the time with fitted values.

    Parameters
    ----------
    scenario, fabric : of the job
    section, path : of the job in the scenario
    plan : of the job
    calibration : with draws
    """
    setting = training_setting(scenario, fabric, section, path)

    def time_ps(drawn: Calibration) -> float:
        figures = calibrated_figures(setting.cluster.figures, drawn)
        made = replace(
            setting,
            software=calibrated_software(setting.software, section.software, drawn),
            cluster=replace(setting.cluster, figures=figures),
        )
        return float(made.closed_forms().iteration(plan, follows=True).total_ps)

    return _quantiles(calibration, time_ps)


def collective_ratios(prepared: Prepared, calibration: Calibration) -> tuple[float, float] | None:
    """Quantiles of a collective's time over the time with fitted values.

    None if its operation or algorithm has no closed form.

    Parameters
    ----------
    prepared : of the scenario
    calibration : with draws
    """
    section, fabric = prepared.scenario.collective_section, prepared.fabric
    if section.operation not in OPERATIONS or len(fabric.servers) > 1:
        return None
    placement = prepared.job.placement
    server = fabric.servers[0]
    ranks = fabric.gpus if section.gpus is None else section.gpus
    if len(placement.host) > ranks:  # with a rank for each NVLink switch behind those of the GPUs
        gpus = None if placement.gpu is None else placement.gpu[:ranks]
        placement = replace(placement, host=placement.host[:ranks], nics=placement.nics[:ranks], gpu=gpus)
    domain = domain_ranks(fabric, placement)
    payload_share = transport_of(prepared.scenario.transport).payload_share
    figures = replace(fabric_figures(fabric, placement), payload_share=payload_share)
    group = GroupShape(members=ranks, per_domain=domain, domain_gpus=max(domain, server.nvlink_domain_gpus))
    if ranks < 2:
        return None
    used = method_used(section, fabric, seed=prepared.scenario.engine.seed, calibration=calibration)
    ways = [way for way in methods(section.operation, group, figures) if (way.algorithm, way.protocol) == used]
    is_own = section.candidate is not None and used[0] == ALGORITHMS.load(section.candidate).name
    if section.algorithm == "auto" and not is_own:
        known = calibrated_figures(figures, calibration)
        ways = [chosen_method(section.operation, group, section.size_bytes, known)]
    if not ways:
        return None

    def time_ps(drawn: Calibration) -> float:
        return alone(
            section.operation,
            ways[0],
            group,
            section.size_bytes,
            calibrated_figures(figures, drawn),
            network_efficiency=network_efficiency(drawn),
            latency_scale=latency_scale(drawn),
        ).time_ps

    return _quantiles(calibration, time_ps)


def _quantiles(calibration: Calibration, time_ps: Callable[[Calibration], float]) -> tuple[float, float]:
    usual = time_ps(calibration)
    ratios = [time_ps(replace(calibration, values=values)) / usual for values in calibration.draws]
    low, high = np.quantile(ratios, [LOW, HIGH])
    return float(low), float(high)
