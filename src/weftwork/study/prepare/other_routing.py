"""The routing to propose where a scenario's own cannot be had: one that fabric, transport and engine all accept.

Leaves out: whether it is fast.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.findings import Findings
from weftwork.base.fix import Fix, Settings
from weftwork.policies.interface import MOST_CLASSES
from weftwork.policies.routings import AMONG
from weftwork.spec.fidelities import FIDELITIES
from weftwork.spec.routings import ROUTINGS
from weftwork.spec.scenario.fabric import FabricSection
from weftwork.spec.scenario.rows import applies, rows_of, selector
from weftwork.study.prepare.engine_settings import transport_of
from weftwork.topology.channel_dependencies import dependency_cycle, is_too_large
from weftwork.topology.routing_plan import planned_routing

if TYPE_CHECKING:
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.transport import Transport

__all__ = ["is_lossless", "most_channels", "other_routing", "routing_name", "with_fitting_routing"]

_PATH: Final = "fabric.routing"


def most_channels(transport: Transport) -> int:
    """Virtual channels of each priority for which a port has queues.

    Parameters
    ----------
    transport : its priorities
    """
    return MOST_CLASSES // len({transport.data_priority, transport.control_priority})


def is_lossless(transport: Transport) -> bool:
    """Whether packets wait for buffers, so that a circle of them can deadlock."""
    return bool(transport.lossless_priorities) or bool(transport.link_credits)


def other_routing(scenario: Scenario, fabric: Fabric, preferred: str | None = None) -> Fix | None:
    """The nearest routing that can be had in place of the scenario's, as a fix of ``fabric.routing``, or None.

    Keys that mean something with the scenario's routing alone go with it.

    Parameters
    ----------
    scenario : its fabric, its transport and its engine
    fabric : as built
    preferred : tried first
    """
    proposed = sorted((name for name in ROUTINGS if ROUTINGS[name].proposal), key=lambda name: ROUTINGS[name].proposal)
    names = [name for name in (preferred, *proposed) if name is not None and name != scenario.fabric.routing]
    name = next((name for name in names if _can_be_had(scenario, fabric, name)), None)
    if name is None:
        return None
    goes = [
        row.key
        for row in rows_of(FabricSection).values()
        if selector(row) == "routing" and scenario.is_set(f"fabric.{row.key}") and not applies(row, name)
    ]
    return Settings(((_PATH, name), *((f"fabric.{key}", "null") for key in goes))) if goes else name


def routing_name(fix: Fix) -> str:
    """The routing of a fix of `other_routing`."""
    return fix.values[0][1] if isinstance(fix, Settings) else str(fix)


def _can_be_had(scenario: Scenario, fabric: Fabric, name: str) -> bool:
    findings = Findings()
    plan = planned_routing(fabric, name, findings, paths=scenario.fabric.paths)
    if findings.has_mistakes:
        return False
    transport = transport_of(scenario.transport)
    if not FIDELITIES[scenario.engine.fidelity].has_packets or not is_lossless(transport):
        return True
    channels = plan.channels
    takes_step = bool(ROUTINGS[name].step) and channels > 1
    if channels > most_channels(transport) or (takes_step and scenario.transport.port_selection.label not in AMONG):
        return False
    if fabric.tree and not plan.routing.has_layers:
        return True
    used = channels if takes_step else 1
    return is_too_large(fabric, plan.routing, used) or not dependency_cycle(
        fabric, fabric.links_at_start, plan.routing, used, rethinks=False
    )


def with_fitting_routing(error: ConfigError, scenario: Scenario, fabric: Fabric) -> ConfigError:
    """Return the error with another routing proposed only where it can be had.

    Parameters
    ----------
    error : of an engine that knows the routes alone
    scenario, fabric : as for `other_routing`
    """
    mistakes = [_fitting(mistake, scenario, fabric) for mistake in error.mistakes]
    return ConfigError(error.source, mistakes, stage=error.stage)


def _fitting(mistake: Mistake, scenario: Scenario, fabric: Fabric) -> Mistake:
    if mistake.path != _PATH or not isinstance(mistake.fix, str):
        return mistake
    fix = other_routing(scenario, fabric, mistake.fix)
    text = mistake.text if fix is not None else f"{mistake.text}; with this transport no other routing fits the fabric"
    return replace(mistake, text=text, fix=fix)
