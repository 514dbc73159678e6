"""The step that a routing asks at every switch, and whether its routes can deadlock.

Some routings need virtual channels or make detours. In the packet engines a compiled step of theirs then takes the
place of the port selection, which says how it chooses among equal ports.
Leaves out: the flow engine, which has neither channels nor queues, and reads `weftwork.spec.routing.Routing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from weftwork.base.findings import Findings
from weftwork.base.grammar import plural
from weftwork.base.nearest import nearest
from weftwork.engine.instants import link_states
from weftwork.engine.packet_input import PacketInput
from weftwork.policies.interface import MOST_CLASSES, PathSelection, PortSelection
from weftwork.policies.routings import AMONG, HASHED, SPRAY, routing_step
from weftwork.spec.fidelities import FIDELITIES
from weftwork.spec.routings import ROUTINGS
from weftwork.study.prepare.other_routing import is_lossless, most_channels, other_routing, routing_name
from weftwork.topology.channel_dependencies import dependency_cycle, is_too_large
from weftwork.topology.routing_plan import has_groups, planned_routing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from weftwork.policies.load import LoadedPolicy
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.routing import Routing
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.transport import Transport
    from weftwork.study.prepare.faults import Occurrence
    from weftwork.topology.channel_dependencies import Channel

__all__ = ["refuse_cycles", "with_routing_step"]

_SHOWN = 8  # chosen: channels of a circle in a message


def with_routing_step(
    scenario: Scenario, fabric: Fabric, transport: Transport, policies: Mapping[str, LoadedPolicy], findings: Findings
) -> dict[str, LoadedPolicy]:
    """Policies of a run, with the step of its routing in place of the port selection where it has one.

    Parameters
    ----------
    scenario : its routing and its engine
    fabric, transport : decide how many virtual channels the routing takes
    policies : that the scenario names, by kind
    findings : take the reason for which the routing cannot be had with them

    Returns
    -------
    policies by kind
    """
    name = scenario.fabric.routing
    row, same = ROUTINGS[name], dict(policies)
    if not row.step or not FIDELITIES[scenario.engine.fidelity].has_packets:
        return same
    of_fabric = Findings()
    plan = planned_routing(fabric, name, of_fabric, paths=scenario.fabric.paths)
    if of_fabric.has_mistakes:
        return same  # `weftwork.study.prepare.routing.routing_of` tells them
    channels = plan.channels if is_lossless(transport) else 1
    if row.detour == "never" and channels == 1:
        return same  # routes alone: any port selection chooses among them
    chosen = policies["port_selection"].name
    is_adaptive, is_random = row.detour == "adaptive", row.detour == "always"
    allowed = [HASHED] if is_adaptive else list(AMONG)
    if chosen not in allowed:
        text = f"found '{chosen}', but {name} routing chooses ports itself; wanted {' or '.join(allowed)}"
        fix = nearest(chosen, allowed) or allowed[0]
        findings.wrong("transport.port_selection", text, fix)
        return same
    most = most_channels(transport)
    if channels > most:
        text = (
            f"{name} takes {plural(channels, 'virtual channel')} of each priority in '{fabric.name}', wanted at most"
            f" {most}: a port has {MOST_CLASSES} queues; wanted another routing, or a lossy network"
            " (transport.flow_control: none), which needs no channels"
        )
        findings.wrong("fabric.routing", text, other_routing(scenario, fabric))
        return same
    path_plugin = cast("PathSelection", policies["path_selection"].plugin)
    by_packet = chosen == SPRAY or path_plugin.spreads == "evenly"
    parameters: dict[str, int | bool] = {}
    if is_adaptive:
        parameters["bias_bytes"] = scenario.fabric.detour_bias_bytes or 0
    else:
        parameters["among"] = AMONG[chosen]
    if is_random:
        parameters["by_packet"] = by_packet
    if row.detour != "never" and "by_group" not in row.fixed:
        parameters["by_group"] = has_groups(fabric)
    reorders = is_adaptive or chosen != HASHED or (is_random and by_packet)
    same["port_selection"] = routing_step(name, channels=channels, parameters=parameters, reorders=reorders)
    return same


def refuse_cycles(
    scenario: Scenario,
    fabric: Fabric,
    engine_input: object,
    routing: Routing,
    faults: Sequence[Occurrence],
    findings: Findings,
) -> None:
    """Refuse routes under which buffers can wait for each other in a circle.

    Parameters
    ----------
    scenario : its keys ``fabric.routing`` and ``fabric.cycles``
    fabric, routing : that the engine runs
    engine_input : of the run; only packets wait
    faults : after which routes are others
    findings : take notes on routes that only a fault brings, and on what cannot be searched; end the stage ``circles``

    Raises
    ------
    ConfigError : with the circle
    """
    if not isinstance(engine_input, PacketInput) or not is_lossless(engine_input.transport):
        return
    if fabric.tree and not routing.has_layers:  # routes of a tree go up and then down; bent ones have their own note
        return
    step = engine_input.port_selection
    plugin = cast("PortSelection", step.plugin)
    name = scenario.fabric.routing
    own_channels = "channel" not in plugin.needs and (plugin.virtual_channels > 1 or "non-minimal" in plugin.needs)
    text = ""
    if own_channels:
        text = f"'{step.name}' chooses virtual channels or detours itself, so its routes are not searched for circles"
    elif is_too_large(fabric, routing, plugin.virtual_channels):
        text = f"'{fabric.name}' is too large to search its routes for circles of buffers that wait for each other"
    if text:
        findings.note("fabric.routing", "note", text)
        return

    def search(link_up: NDArray[np.bool_]) -> tuple[Channel, ...]:
        return dependency_cycle(fabric, link_up, routing, plugin.virtual_channels, rethinks=ROUTINGS[name].rethinks)

    found = search(fabric.links_at_start)
    if found and scenario.fabric.cycles == "refuse":
        fix = other_routing(scenario, fabric)
        text = (
            f"found {name}, under which buffers can wait for each other in a circle: {_words(fabric, found)}; wanted"
            f" {'' if fix is None else f'{routing_name(fix)}, '}"
            "transport.flow_control: none, or fabric.cycles: allow to watch a deadlock"
        )
        with findings.stage("circles"):
            findings.wrong("fabric.routing", text, fix)
    elif found:
        text = f"buffers can wait for each other in a circle: {_words(fabric, found)}"
        findings.note("fabric.routing", "note", text)
    else:
        _note_later_circles(fabric, faults, search, findings)


def _note_later_circles(
    fabric: Fabric,
    faults: Sequence[Occurrence],
    search: Callable[[NDArray[np.bool_]], tuple[Channel, ...]],
    findings: Findings,
) -> None:
    """Note the first circle that only a fault brings."""
    happened = [fault for occurrence in faults for fault in occurrence.faults]
    single = [fault for fault in happened if fault.change.passes is not None]
    if not single:
        return
    first, *others = (state.works for state in link_states(fabric, single))
    different = {state.tobytes(): state for state in others}  # a link that flaps has two states
    different.pop(first.tobytes(), None)
    for state in different.values():
        if circle := search(state):
            text = f"after a fault, buffers can wait for each other in a circle: {_words(fabric, circle)}"
            findings.note("fabric.routing", "note", text)
            return


def _words(fabric: Fabric, circle: Sequence[Channel]) -> str:
    ports, names = fabric.ports, fabric.node_names
    told = [
        f"{names[ports.node[one.port]]}->{names[ports.node[ports.peer[one.port]]]} (channel {one.virtual_channel})"
        for one in circle[:_SHOWN]
    ]
    rest = f" and {len(circle) - _SHOWN} more" if len(circle) > _SHOWN else ""
    return ", ".join(told) + rest
