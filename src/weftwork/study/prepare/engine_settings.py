"""Settings that all engines take, for every workload.

They are policies, transport, faults, seed and delays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.base.clock import NEVER_PS
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import load
from weftwork.spec.scenario.choices import TRANSPORTS
from weftwork.spec.scenario.policies import POLICY_KINDS
from weftwork.spec.transport import Transport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.policies.load import LoadedPolicy
    from weftwork.spec.routing import Routing
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.scenario.transport import TransportSection
    from weftwork.study.prepare.faults import Occurrence

__all__ = ["engine_settings", "policies_of", "transport_of"]


def policies_of(scenario: Scenario) -> dict[str, LoadedPolicy]:
    """The policies that a scenario names, by kind.

    Raises
    ------
    ConfigError, PolicyError : a policy or its parameters are wrong
    """
    found: dict[str, LoadedPolicy] = {}
    for kind in POLICY_KINDS:
        choice = getattr(scenario.transport, kind)
        found[kind] = load(kind, choice.label, choice.parameters, path=f"transport.{kind}")
    return found


def transport_of(section: TransportSection) -> Transport:
    """The transport of a section, resolved to numbers.

    Raises
    ------
    CodeError : a transport of the user's own is wrong, or its fields contradict each other; with file and line
    """
    kind = TRANSPORTS.load(section.protocol)
    with TRANSPORTS.blaming(section.protocol):
        built = kind.build(section, section.options)
    made = TRANSPORTS.want(section.protocol, built, Transport, "build")
    contradictions = made.contradictions()
    if contradictions:
        raise TRANSPORTS.wrong(section.protocol, f"the transport contradicts itself: {'; '.join(contradictions)}")
    return made


def engine_settings(
    scenario: Scenario, policies: dict[str, LoadedPolicy], faults: Sequence[Occurrence], routing: Routing
) -> EngineSettings:
    """Settings of every engine besides fabric, job and transport.

    Parameters
    ----------
    scenario : that is run
    policies : of `policies_of`
    faults : what happens, in the order of the scenario
    routing : of `weftwork.study.prepare.routing.routing_of`
    """
    return EngineSettings(
        path_selection=policies["path_selection"],
        port_selection=policies["port_selection"],
        seed=scenario.engine.seed,
        until_ps=NEVER_PS if scenario.engine.until_ps is None else scenario.engine.until_ps,
        faults=tuple(fault for occurrence in faults for fault in occurrence.faults),
        reconvergence_delay_ps=scenario.fabric.reconvergence_delay_ps,
        failover_delay_ps=scenario.fabric.failover_delay_ps,
        routing=routing,
        source=scenario.source,
    )
