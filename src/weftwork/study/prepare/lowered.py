"""From the parts of a run to the input of its engine.

One function serves every workload and every fidelity.

Leaves out: where the parts come from (`weftwork.study.prepare.prepare`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.engine.flow.lower import lower_flow
from weftwork.engine.lower import lower
from weftwork.study.prepare.engine_settings import engine_settings
from weftwork.study.prepare.routing import routing_of
from weftwork.study.prepare.training import compute_factors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.engine.flow.flow_input import FlowInput
    from weftwork.engine.packet_input import PacketInput
    from weftwork.policies.load import LoadedPolicy
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Job
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.transport import Transport
    from weftwork.study.prepare.engineering import Engineering
    from weftwork.study.prepare.faults import Occurrence

__all__ = ["FIDELITIES", "folds", "lowered"]

FIDELITIES: Final = ("packet", "flow", "reference")


def folds(scenario: Scenario) -> bool:
    """Whether the engine runs identical ranks once.

    It then keeps no single messages.
    """
    return scenario.engine.fidelity == "flow" and bool(scenario.trainings)


def lowered(
    scenario: Scenario,
    *,
    fabric: Fabric,
    job: Job,
    transport: Transport,
    policies: dict[str, LoadedPolicy],
    faults: Sequence[Occurrence],
    planned: Engineering | None = None,
) -> PacketInput | FlowInput:
    """Make the input of the engine that the scenario names.

    Parameters
    ----------
    scenario : its engine and its stragglers
    fabric, job, transport : what runs on what
    policies : of `policies_of`
    faults : what happens, in the order of the scenario
    planned : paths that a controller has laid down for this job; None where the scenario has no controller

    Raises
    ------
    ConfigError : with every reason why the engine cannot run this
    """
    fidelity = scenario.engine.fidelity
    if fidelity not in FIDELITIES:
        text = f"found '{fidelity}', wanted {', '.join(FIDELITIES[:-1])} or {FIDELITIES[-1]}"
        raise ConfigError(scenario.source, [Mistake(path="engine.fidelity", text=text)])
    routing, mistakes = routing_of(scenario, fabric, planned)
    if mistakes:
        raise ConfigError(scenario.source, mistakes)
    settings = engine_settings(scenario, policies, faults, routing)
    if fidelity != "flow":
        control = policies["congestion_control"]
        return lower(fabric=fabric, job=job, transport=transport, congestion_control=control, settings=settings)
    make = partial(lower_flow, fabric=fabric, job=job, transport=transport, settings=settings)
    if not folds(scenario):
        return make(fold="never", with_ideal=True)
    return make(compute_factor=compute_factors(scenario, fabric, job.placement))
