"""Take each cause of today's fidelity out of the model, and print the error of published iterations without it.

    python benchmarks/fidelity_causes.py [--json]

An error is that of the scorecard, so that all rows run once on the flow engine; without a cause the predicted time
follows by the ratio of closed forms. Causes act together, so that shares do not add up: what a cause is worth is what
is lost without it. A cause without which an error is smaller stands there as well; it has a source all the same.
Leaves out: causes in rows of collectives, which `weftwork validate` shows by set.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from weftwork.spec.training import ModulePrecision, Overlap, Parallelism
from weftwork.study.prepare.prepare import read_scenario
from weftwork.study.prepare.training import TrainingSetting, training_setting
from weftwork.study.validation.predict import predict
from weftwork.study.validation.published_cases import Case, Family, bridge
from weftwork.study.validation.row_scenario import write_row
from weftwork.topology.build import fabric_of_section
from weftwork.workload.training import kernels, layers

__all__ = ["CAUSES", "Cause", "errors_without", "main"]

FAMILIES: Final[tuple[Family, ...]] = ("dense-fp8", "dense-nvfp4", "experts")
_BEFORE_SHARE: Final = 0.5  # of attention, chosen before anybody's timings were read
_BEFORE_SCAN: Final = 14.0  # FLOP for each byte that memory copies, likewise
_Change = Callable[[TrainingSetting, Parallelism], tuple[TrainingSetting, Parallelism]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cause:
    """One cause.

    Attributes
    ----------
    name : in words
    change : takes it out of a job; None: it is in constants alone
    constants : of modules of the model, by module and name, as they were
    """

    name: str
    change: _Change | None = None
    constants: Mapping[tuple[Any, str], Any] = field(default_factory=dict)


def _software(**fields: object) -> _Change:
    return lambda job, plan: (replace(job, software=job.software.model_copy(update=fields)), plan)


def _plan(**fields: object) -> _Change:
    return lambda job, plan: (job, plan.model_copy(update=fields))


def _model(**fields: object) -> _Change:
    return lambda job, plan: (replace(job, model=job.model.model_copy(update=fields)), plan)


def _no_prediction(job: TrainingSetting, plan: Parallelism) -> tuple[TrainingSetting, Parallelism]:
    if plan.layout:  # which places the layers of prediction
        return job, plan
    return replace(job, model=job.model.model_copy(update={"prediction_layers": 0})), plan


def _old_scan(job: TrainingSetting, plan: Parallelism) -> tuple[TrainingSetting, Parallelism]:
    rate = _BEFORE_SCAN * job.gpu.memory_copy_bytes_per_s
    return replace(job, gpu=job.gpu.model_copy(update={"scan_flops": rate})), plan


def _old_attention(job: TrainingSetting, plan: Parallelism) -> tuple[TrainingSetting, Parallelism]:
    return replace(job, gpu=job.gpu.model_copy(update={"flash_attention_share": _BEFORE_SHARE})), plan


def _old_products(job: TrainingSetting, plan: Parallelism) -> tuple[TrainingSetting, Parallelism]:
    shares = {
        "achieved_fp8_share": job.gpu.achieved_share,
        "achieved_fp4_share": job.gpu.achieved_share * job.software.fp8_efficiency,
    }
    return replace(job, gpu=job.gpu.model_copy(update=shares)), plan


def _shown_exchange(job: TrainingSetting, plan: Parallelism) -> tuple[TrainingSetting, Parallelism]:
    shown = Overlap(**{**plan.overlap.model_dump(), "expert": 0.0})
    return job, plan.model_copy(update={"overlap": shown})


def _free_peers(job: TrainingSetting, plan: Parallelism) -> tuple[TrainingSetting, Parallelism]:
    return replace(job, cluster=replace(job.cluster, figures=replace(job.cluster.figures, peer_ps=0))), plan


CAUSES: Final = (
    Cause(name="the CPU time that was fitted, but 36 us", change=_software(launch_ps=36_000_000)),
    Cause(name="graphs by module, from the recipe", change=_software(graphs=())),
    Cause(name="recomputation from the recipe", change=_plan(recompute="none")),
    Cause(name="exchange hidden where the recipe hides it", change=_shown_exchange),
    Cause(name="layouts by hand", change=_plan(layout="", has_balanced_ends=True)),
    Cause(
        name="numbers by module and layer",
        change=_plan(module_precision=ModulePrecision(), bf16_first_layers=0, bf16_last_layers=0),
    ),
    Cause(name="prediction layers of Nemotron 3 Super", change=_no_prediction),
    Cause(
        name="tokens once to each rank, at the dispatcher's rate",
        change=_software(has_deduplicated_experts=False, exchange_efficiency=1.0),
    ),
    Cause(name="experts on streams", change=_software(expert_streams=0)),
    Cause(name="routers that are not fused", change=_software(has_fused_router=True)),
    Cause(name="norms of queries and keys", change=_model(has_query_key_norm=False)),
    Cause(name="the scan of Mamba-2 as published", change=_old_scan),
    Cause(
        name="casts as timed",
        constants={(layers, "CAST_BYTES"): {"bf16": 0.0, "fp8": 4.0, "mxfp8": 4.0, "nvfp4": 5.1}},
    ),
    Cause(
        name="fused attention as timed",
        change=_old_attention,
        constants={
            (kernels, "BACKWARD_SHARE"): 0.85,
            (kernels, "FP8_ATTENTION_GAIN"): {False: 1.6, True: 1.6},
            (kernels, "ATTENTION_WIDTH"): 1,
        },
    ),
    Cause(name="products in eight and four bits as timed", change=_old_products),
    Cause(name="the cost of a peer", change=_free_peers),
)


def errors_without(cases: tuple[Case, ...]) -> Iterator[tuple[str, float]]:
    """MAPE of rows with all causes, then without each.

    Parameters
    ----------
    cases : published iterations

    Yields
    ------
    words, and the mean of absolute errors
    """
    jobs = [_setting(case) for case in cases]
    predicted_s = np.array([predict(case).iteration_s for case in cases])
    measured_s = np.array([case.measured_s for case in cases])
    usual_ps = np.array([_closed_ps(job, case.plan) for job, case in zip(jobs, cases, strict=True)])
    yield "with all of them", float(np.abs(predicted_s / measured_s - 1).mean())
    for cause in CAUSES:
        with ExitStack() as stack:
            for (module, name), value in cause.constants.items():
                stack.enter_context(patch.object(module, name, value))
            now_ps = np.array([
                _closed_ps(*(cause.change(job, case.plan) if cause.change is not None else (job, case.plan)))
                for job, case in zip(jobs, cases, strict=True)
            ])  # fmt: skip
        yield cause.name, float(np.abs(predicted_s * now_ps / usual_ps / measured_s - 1).mean())


def _setting(case: Case) -> TrainingSetting:
    with tempfile.TemporaryDirectory() as folder:
        scenario = read_scenario(write_row(case, Path(folder)))
        fabric = fabric_of_section(scenario.fabric, directory=Path(folder))
        (section,) = scenario.trainings
        return training_setting(scenario, fabric, section)


def _closed_ps(job: TrainingSetting, plan: Parallelism) -> float:
    return float(job.closed_forms().iteration(plan, follows=True).total_ps)


def main() -> None:
    """Print the table."""
    found = {family: dict(errors_without(bridge(family)[0])) for family in FAMILIES}
    if "--json" in sys.argv[1:]:
        print(json.dumps(found, indent=2))
        return
    print(f"| MAPE | {' | '.join(FAMILIES)} |")
    print(f"|---|{'---:|' * len(FAMILIES)}")
    names = ["with all of them", *(cause.name for cause in CAUSES)]
    for name in names:
        words = name if name == names[0] else f"without {name}"
        print(f"| {words} | {' | '.join(f'{100 * found[family][name]:.2f} %' for family in FAMILIES)} |")


if __name__ == "__main__":
    main()
