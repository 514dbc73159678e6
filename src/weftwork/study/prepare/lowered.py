"""From the parts of a run to the input of its engine.

One function serves every workload and every fidelity.

Leaves out: where the parts come from (`weftwork.study.prepare.prepare`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.spec.fidelities import FIDELITIES
from weftwork.study.prepare.engine import ENGINES, InputParts
from weftwork.study.prepare.engine_settings import engine_settings
from weftwork.study.prepare.routing import routing_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.base.findings import Findings
    from weftwork.engine.flow.flow_input import FlowInput
    from weftwork.engine.packet_input import PacketInput
    from weftwork.policies.load import LoadedPolicy
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Job
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.transport import Transport
    from weftwork.study.prepare.engineering import Engineering
    from weftwork.study.prepare.faults import Occurrence

__all__ = ["folds", "lowered"]


def folds(scenario: Scenario) -> bool:
    """Whether the engine runs identical ranks once.

    It then keeps no single messages.
    """
    return FIDELITIES[scenario.engine.fidelity].folds_training and bool(scenario.trainings)


def lowered(  # noqa: PLR0913 - what a run is made of, all by name
    scenario: Scenario,
    *,
    fabric: Fabric,
    job: Job,
    transport: Transport,
    policies: dict[str, LoadedPolicy],
    faults: Sequence[Occurrence],
    findings: Findings,
    planned: Engineering | None = None,
    known: PacketInput | FlowInput | None = None,
) -> PacketInput | FlowInput:
    """Make the input of the engine that the scenario names.

    Parameters
    ----------
    scenario : its engine and its stragglers
    fabric, job, transport : what runs on what
    policies : of `policies_of`
    faults : what happens, in the order of the scenario
    findings : take what the engine cannot run; the stages ``routing`` and those of the engine end
    planned : paths that a controller has laid down for this job; None where the scenario has no controller
    known : an input that was made of this very job on a similar fabric; None: none

    Raises
    ------
    ConfigError : with every reason why the engine cannot run this
    """
    with findings.stage("routing"):
        routing = routing_of(scenario, fabric, findings, planned)
    parts = InputParts(
        scenario=scenario,
        fabric=fabric,
        job=job,
        transport=transport,
        policies=policies,
        settings=engine_settings(scenario, policies, faults, routing),
        findings=findings,
        known=known,
    )
    return ENGINES[scenario.engine.fidelity].lower(parts)
