"""Lower records to the input of the flow engine.

Features that it cannot run are refused here, with all reasons at once.
Source: docs/models/flow-engine.md.
Leaves out: congestion control and flow control: messages share links max-min. Losses are their mean cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast, get_args

import numpy as np

from weftwork.base.findings import Findings
from weftwork.base.grammar import plural
from weftwork.engine.flow.flow_input import FOLDING, FlowInput, Mode
from weftwork.engine.flow.host_processor import ProcessorRates
from weftwork.engine.flow.losses import check_losses, flow_losses
from weftwork.engine.flow.paths import node_attachments
from weftwork.engine.flow.route_rule import route_rule
from weftwork.engine.instants import check_faults, lower_faults, route_table
from weftwork.engine.lower import (
    check_placement,
    gpu_rows,
    nic_rows,
    port_delays_ps,
    switch_rows,
)
from weftwork.engine.pins import check_routing, pin_rows
from weftwork.engine.programs import FlatJob, check_job, flatten, priorities_of
from weftwork.policies.interface import PathSpread, PortSpread
from weftwork.policies.routings import HASHED, LEAST_LOADED
from weftwork.policies.spread import is_spread_proved, spread_contradiction
from weftwork.spec.fabric import HOST
from weftwork.spec.fabric_direct import TO_HOST
from weftwork.topology.layers import layers_of
from weftwork.topology.picture import tier_words
from weftwork.topology.routing import routes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weftwork.engine.settings import EngineSettings
    from weftwork.policies.interface import PathSelection, PortSelection
    from weftwork.policies.load import LoadedPolicy
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.fabric_direct import DirectNetwork
    from weftwork.spec.job import Job
    from weftwork.spec.transport import Transport

__all__ = ["TOLERANCE", "lower_flow"]

TOLERANCE: Final = 1e-6  # chosen: completion times of a dense all-to-all then differ by 3e-6 at most


def lower_flow(  # noqa: PLR0913 - what a run is made of, all by name
    *,
    fabric: Fabric,
    job: Job,
    transport: Transport,
    settings: EngineSettings,
    compute_factor: NDArray[np.float64] | None = None,
    fold: str = "auto",
    tolerance: float = TOLERANCE,
    with_ideal: bool = False,
    findings: Findings | None = None,
    known: FlowInput | None = None,
) -> FlowInput:
    """Make the engine input of a run of the flow engine.

    Parameters
    ----------
    fabric, job, transport : what runs on what
    settings : what every engine is told; policies come to what they declare
    compute_factor : shape (ranks,), how many times longer each rank computes; None: 1
    fold : one of `FOLDING`; anything but ``never`` keeps no table of messages
    tolerance : load of a link that may be left unsettled, as a share of its capacity; 1e-9 for exact runs
    with_ideal : also what ideal times of messages are told from, tables that grow with the square of a fabric
    findings : take the mistakes, and end the stage ``engine``; None: some of its own
    known : of this very job with ranks on the same nodes, whose table of operations is taken where priorities are the
        same; None: none

    Raises
    ------
    ConfigError : with every reason why this cannot run
    """
    findings = Findings(source=settings.source) if findings is None else findings
    with findings.stage("engine"):
        of_placement = findings.reserved()
        check_placement(fabric, job, of_placement)
        is_placed = not of_placement.has_mistakes
        if is_placed:
            rank_node = fabric.hosts[job.placement.host]
            if known is not None and not np.array_equal(known.rank_host, rank_node):
                known = None
            if known is None:
                check_job(job, rank_node, findings, by_packet=False)
        check_faults(fabric, settings.faults, findings)
        check_losses(fabric, settings.faults, findings)
        mode = _flow_mode(settings, findings)
        check_routing(fabric, job if is_placed else None, settings.routing, findings)
        factor = np.ones(job.ranks) if compute_factor is None else np.asarray(compute_factor, np.float64)
        _check_factors(factor, job, findings)
        _check_folding(fold, settings, findings)
    used, flat = _flat(job, transport, known)
    fails_over = settings.failover_delay_ps if job.placement.nics.shape[1] > 1 else None
    instants, tables = lower_faults(
        fabric,
        settings.faults,
        settings.reconvergence_delay_ps,
        fails_over,
        table=lambda over, link_up, plan: (_live(over, link_up), layers_of(over, link_up, settings.routing, plan)),
        plan_at_ps=settings.routing.plan_at_ps,
    )
    layers = tuple(each for _, each in tables if each is not None)
    ports = fabric.ports
    tier_names, tier_of_port = _tiers(fabric)
    spreads_ways = _spreads_ways(settings.path_selection)
    losses, instants = flow_losses(
        fabric, job, transport, instants, tier_of_port=tier_of_port, is_sprayed=mode == Mode.SPRAY or spreads_ways
    )
    every = fabric.links_at_start
    found = routes(fabric, every) if with_ideal else None
    switches, node_device = switch_rows(fabric, used)
    processor = ProcessorRates(transport)
    at_host = (fabric.node_kind == HOST)[ports.node]
    rates_bps = np.ascontiguousarray(fabric.links["rate_bps"][ports.link])
    rates_bps[at_host] = processor.sending_bps(rates_bps[at_host])
    nics = nic_rows(fabric.nics)
    nics["pcie_rate_bps"] = processor.taking_bps(nics["pcie_rate_bps"])
    return FlowInput(
        seed=settings.seed,
        until_ps=settings.until_ps,
        mode=mode,
        fold=fold,
        tolerance=tolerance,
        node_kind=fabric.node_kind.astype(np.int8),
        node_tier=fabric.node_tier.astype(np.int8),
        node_device=node_device,
        port_base=ports.base,
        port_node=ports.node,
        port_peer=ports.peer,
        port_rate_bps=rates_bps,
        port_delay_ps=port_delays_ps(fabric),
        switches=switches,
        nics=nics,
        class_priority=np.array(used, np.int64),
        live=np.stack([live for live, _ in tables]),
        instants=processor.instants(instants, at_host | at_host[ports.peer]),
        ops=flat.ops,
        streams=flat.streams,
        tables=flat.tables,
        digits=flat.digits,
        collects=flat.collects,
        axes=flat.axes,
        rank_program=job.rank_program.astype(np.int32),
        program_first_rank=np.array(job.first_rank or (0,) * len(job.programs), np.int64),
        rank_host=rank_node.astype(np.int32),
        rank_ports=(ports.base[rank_node][:, None] + job.placement.nics).astype(np.int32),
        rank_gpu=gpu_rows(fabric, job, rank_node),
        rank_factor=factor,
        tokens=flat.tokens,
        tier_names=tier_names,
        tier_of_port=tier_of_port,
        labels=job.labels,
        operations=flat.operations,
        transport=transport,
        path_selection=settings.path_selection,
        port_selection=settings.port_selection,
        attachment=found.attach_of_port if found else np.empty(0, np.int32),
        routes=(
            (route_table(fabric, every, layers=layers[0] if layers else None, routing=settings.routing),)
            if found
            else ()
        ),
        rule=route_rule(fabric, settings.routing),
        layers=layers,
        node_attachment=node_attachments(fabric) if layers else np.empty(0, np.int32),
        spreads_ways=spreads_ways,
        pins=pin_rows(fabric, job, settings.routing),
        losses=losses,
    )


def _flat(job: Job, transport: Transport, known: FlowInput | None) -> tuple[list[int], FlatJob | FlowInput]:
    """Priorities in use, and the table of a job's operations."""
    if known is not None and (known.transport.data_priority, known.transport.control_priority) == (
        transport.data_priority,
        transport.control_priority,
    ):
        return known.class_priority.tolist(), known
    used = sorted(priorities_of(job, transport.data_priority) | {transport.control_priority})
    return used, flatten(job, {priority: index for index, priority in enumerate(used)}, transport.data_priority)


def _tiers(fabric: Fabric) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Tiers that each port's link joins.

    They are in the order of a path from a host up and down again. In a direct network, links between switches are told
    by their dimension.
    """
    ports = fabric.ports
    if fabric.direct is not None:
        return _dimensions(fabric, fabric.direct)
    words = tier_words(fabric)
    low = fabric.node_tier[ports.node].astype(np.int64)
    high = fabric.node_tier[ports.node[ports.peer]].astype(np.int64)
    tiers = int(fabric.node_tier.max(initial=0)) + 1
    numbers, which = np.unique(low * tiers + high, return_inverse=True)  # of numbers: rows of two take 30 times as long
    pairs = np.stack([numbers // tiers, numbers % tiers], axis=1)
    order = sorted(range(len(pairs)), key=lambda at: (pairs[at][0] >= pairs[at][1], *_away(*pairs[at].tolist())))
    place = np.empty(len(pairs), np.int32)
    place[order] = np.arange(len(pairs), dtype=np.int32)
    names = [f"{words[a][0]}->{words[b][0]}" for a, b in pairs[order].tolist()]
    return (*names, "nvlink"), place[which.ravel()]


def _dimensions(fabric: Fabric, direct: DirectNetwork) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """As `_tiers` by dimensions."""
    ports = fabric.ports
    dimension = direct.link_dimension[ports.link].astype(np.int32)
    from_host = fabric.node_kind[ports.node] == HOST
    last = len(direct.dimensions) + 1
    which = np.where(dimension != TO_HOST, dimension + 1, np.where(from_host, 0, last))
    return ("host->switch", *direct.dimensions, "switch->host", "nvlink"), which.astype(np.int32)


def _away(low: int, high: int) -> tuple[int, int]:
    """Order of tiers: upwards the lowest first, downwards the highest first."""
    return (low, high) if low < high else (-low, -high)


def _live(fabric: Fabric, link_up: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Whether the link of each port is up."""
    return link_up[fabric.ports.link].astype(np.uint8)


def _spreads_ways(path_selection: LoadedPolicy | None) -> bool:
    """Whether packets of a queue pair use all paths equally.

    Their entropies do so.
    """
    return path_selection is not None and cast("PathSelection", path_selection.plugin).spreads == "evenly"


def _check_factors(factor: NDArray[np.float64], job: Job, findings: Findings) -> None:
    """Find factors that are not one above 0 for each rank."""
    if factor.shape != (job.ranks,) or not (factor > 0).all() or not np.isfinite(factor).all():
        text = (
            f"found compute factors of shape {factor.shape}, wanted one above 0 for each of the "
            f"{plural(job.ranks, 'rank')}"
        )
        findings.wrong("stragglers", text)


def _check_folding(fold: str, settings: EngineSettings, findings: Findings) -> None:
    """Find ways of folding that are unknown, or that adaptive routing forbids."""
    if fold not in FOLDING:
        findings.wrong("engine.fold", f"found '{fold}', wanted one of {', '.join(FOLDING)}")
    elif settings.routing.detour == "adaptive" and fold in ("exact", "core"):
        text = f"found '{fold}', but flows under adaptive routing are alike at no time; wanted auto or never"
        findings.wrong("engine.fold", text, "never")


def _flow_mode(settings: EngineSettings, findings: Findings) -> Mode:
    """Path mode of the policies under the routing; mistakes are those of what flows cannot do."""
    has_layers = settings.routing.has_layers
    mode = _mode(settings.path_selection, settings.port_selection, findings, has_layers=has_layers)
    _check_inputs(settings.port_selection, findings, has_layers=has_layers)
    return _detouring(mode, settings, findings)


def _check_inputs(port_selection: LoadedPolicy, findings: Findings, *, has_layers: bool) -> None:
    """Find port selections that need inputs which no flow has.

    These are weights of its candidates, and words of packets.
    """
    plugin = cast("PortSelection", port_selection.plugin)
    texts: list[str] = []
    if "weight" in plugin.needs and plugin.spreads != "weighted-hash":
        texts.append("chooses by the weights of ports, and the flow engine only knows the hash into weights")
    if plugin.layer_by_word and has_layers:
        texts.append("chooses a layer of routes by the packet's word, and the flow engine has no packets")
    for text in texts:
        findings.wrong("transport.port_selection", f"'{port_selection.name}' {text}; take engine.fidelity: packet")


def _mode(
    path_selection: LoadedPolicy | None, port_selection: LoadedPolicy, findings: Findings, *, has_layers: bool
) -> Mode:
    """Path mode that the policies declare.

    Only steps of a user's own, or with parameters of a user's own, are asked about packets here.
    """
    port = cast("PortSelection", port_selection.plugin).spreads
    path = "constant" if path_selection is None else cast("PathSelection", path_selection.plugin).spreads
    if port is None:
        _undeclared(port_selection, get_args(PortSpread), findings)
    # ports that are not chosen by hash do not look at the entropy, layers do
    if path_selection is not None and path is None and (has_layers or port in (None, "hash", "weighted-hash")):
        _undeclared(path_selection, get_args(PathSpread), findings)
    for policy in (path_selection, port_selection):
        if policy is None or is_spread_proved(policy):
            continue
        text = spread_contradiction(policy)
        if text is not None:
            findings.wrong(f"transport.{policy.kind}", text)
    if port == "weighted-hash" and path == "evenly":
        text = (
            f"'{port_selection.name}' divides the packets of a flow by the weights of ports where their entropies"
            " differ, and the flow engine divides a flow evenly or not at all; take engine.fidelity: packet"
        )
        findings.wrong("transport.port_selection", text)
    if port == "evenly" or (port == "hash" and path == "evenly"):
        return Mode.SPRAY
    by_port = {"destination": Mode.DETERMINISTIC, "weighted-hash": Mode.WEIGHTED}
    return by_port.get(port or "", Mode.HASHED)


def _detouring(mode: Mode, settings: EngineSettings, findings: Findings) -> Mode:
    """The mode under detours.

    As in the packet engines, a routing with detours knows few port selections.
    """
    name = settings.port_selection.name
    if settings.routing.detour == "never":
        return mode
    if settings.routing.detour == "adaptive":
        if name == HASHED:
            return Mode.SPRAY
        text = f"found '{name}', but adaptive routing chooses ports itself; wanted ecmp"
        findings.wrong("transport.port_selection", text, HASHED)
        return mode
    evenly = _spreads_ways(settings.path_selection)
    if mode == Mode.HASHED or (mode == Mode.SPRAY and (name != LEAST_LOADED or evenly)):
        return mode
    text = (
        f"found '{name}', but in the flow engine a queue pair that keeps one intermediate takes one path; wanted spray,"
        " where every packet draws its own, or ecmp"
        if mode == Mode.SPRAY
        else f"found '{name}', but routing with detours chooses ports itself; wanted ecmp or spray"
    )
    findings.wrong("transport.port_selection", text, "spray")
    return mode


def _undeclared(policy: LoadedPolicy, words: Sequence[str], findings: Findings) -> None:
    text = (
        f"'{policy.name}' does not declare how it spreads packets, and the flow engine asks no step; declare"
        f" {' or '.join(f'spreads={word!r}' for word in words)} in its PLUGIN if that is what it does, or take"
        " engine.fidelity: packet"
    )
    findings.wrong(f"transport.{policy.kind}", text)
