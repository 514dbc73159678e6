"""Lower records to the input of both packet engines.

A fabric, a job and a transport become plain arrays. What cannot be run is refused here, with all reasons at once.
`docs/models/packet-engine.md` says what the arrays mean.
Leaves out: decisions of any kind; what is not in the records is not in the engine input.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from weftwork.base.findings import Findings
from weftwork.base.grammar import plural
from weftwork.engine.base_rtt import fabric_base_rtt_ps
from weftwork.engine.credits import port_credits
from weftwork.engine.ecn import check_thresholds, thresholds_bytes
from weftwork.engine.headroom import full_frame_bytes, headroom_bytes
from weftwork.engine.instants import Fault, check_faults, lower_faults, route_table
from weftwork.engine.packet_input import PacketInput, RouteTable, is_asked
from weftwork.engine.pins import check_routing, pin_rows
from weftwork.engine.programs import check_job, flatten, priorities_of, walk
from weftwork.engine.requirements import (
    check_detours,
    check_pauses,
    check_requirements,
    check_telemetry,
    switches_on_longest_path,
)
from weftwork.engine.rows.fabric import NIC_ROW, SWITCH_ROW, HashAlgorithm, HashField
from weftwork.engine.rows.job import GPU_DTYPE
from weftwork.policies.interface import MOST_CLASSES, PathSelection, PortSelection
from weftwork.spec.device import HashFunction, Nic, Switch
from weftwork.spec.fabric import SWITCH, Fabric
from weftwork.spec.job import Send
from weftwork.topology.digits import destination_numbers, port_strides
from weftwork.topology.hashes import hashed_by_tier
from weftwork.topology.layers import layers_of
from weftwork.topology.routing import attachments, routes
from weftwork.topology.virtual_channels import channel_rule, link_kinds
from weftwork.wire.hpcc_int import TELEMETRY_BYTES, TELEMETRY_HOP_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weftwork.engine.settings import EngineSettings
    from weftwork.policies.load import LoadedPolicy
    from weftwork.spec.job import Job
    from weftwork.spec.transport import Transport

__all__ = [
    "TELEMETRY_BYTES", "TELEMETRY_HOP_BYTES", "Fault", "check_placement", "gpu_rows", "lower", "nic_rows",
    "port_delays_ps", "switch_rows", "with_what_is_asked",
]  # fmt: skip

MAX_ROUTES: Final = 1 << 28  # chosen: nodes x leaves of a route table, 4 bytes each, and twice that while it is made
MAX_RANKS: Final = 1 << 23  # a flow's identity keeps 24 bits for each rank, and is an int64


def lower(
    *,
    fabric: Fabric,
    job: Job,
    transport: Transport,
    congestion_control: LoadedPolicy,
    settings: EngineSettings,
    findings: Findings | None = None,
) -> PacketInput:
    """Make the engine input of a run.

    Parameters
    ----------
    fabric, job, transport : what runs on what
    congestion_control : loaded policy
    settings : what every engine is told
    findings : take the mistakes, and end the stages ``engine`` and ``telemetry``; None: some of its own

    Raises
    ------
    ConfigError : with every reason why this cannot run
    """
    findings = Findings(source=settings.source) if findings is None else findings
    policies = (congestion_control, settings.path_selection, settings.port_selection)
    port_plugin = cast("PortSelection", settings.port_selection.plugin)
    channels = port_plugin.virtual_channels
    has_telemetry = is_asked("telemetry", policies)
    with findings.stage("engine"):
        check_requirements(fabric, transport, policies, findings)
        transport = with_what_is_asked(transport, policies, channels)
        of_placement = findings.reserved()
        check_placement(fabric, job, of_placement)
        is_placed = not of_placement.has_mistakes
        if is_placed:
            rank_node = fabric.hosts[job.placement.host]
            check_job(job, rank_node, findings)
        check_faults(fabric, settings.faults, findings)
        check_routing(fabric, job if is_placed else None, settings.routing, findings)
        check_detours(settings.port_selection, settings.routing, findings)
        used = sorted(priorities_of(job, transport.data_priority) | {transport.control_priority})
        trim_priority = transport.control_priority if transport.trim_priority is None else transport.trim_priority
        used = sorted({*used, *([trim_priority] if transport.trim_bytes else [])})
        classes = [priority for priority in used for _ in range(channels)]
        _check_classes(used, channels, findings)
        lossless = np.array([priority in transport.lossless_priorities for priority in classes], np.int64)
        check_pauses(fabric, transport, int(lossless.sum()), findings)
        delay_ps = port_delays_ps(fabric)
        headroom = _headroom(fabric, transport, delay_ps)
        credit = port_credits(fabric, transport, len(classes), delay_ps, findings)
        shared = _shared_bytes(fabric, transport, headroom, len(classes), int(lossless.sum()), findings)
        check_thresholds(fabric, findings)
        _check_size(fabric, findings)
    flat = flatten(job, {priority: index * channels for index, priority in enumerate(used)}, transport.data_priority)
    fails_over = settings.failover_delay_ps if job.placement.nics.shape[1] > 1 else None
    longest: list[int] = []  # switches on a path, of each table

    def table(over: Fabric, link_up: NDArray[np.bool_], plan: int) -> RouteTable:
        layers = layers_of(over, link_up, settings.routing, plan)
        if has_telemetry:
            by_layer = 0 if layers is None else layers.most_switches
            longest.append(max(switches_on_longest_path(over, link_up, up_down=settings.routing.up_down), by_layer))
        return route_table(
            over,
            link_up,
            has_distances="hops-left" in port_plugin.needs,
            has_seconds="non-minimal" in port_plugin.needs,
            has_weights="weight" in port_plugin.needs,
            layers=layers,
            routing=settings.routing,
        )

    instants, tables = lower_faults(
        fabric,
        settings.faults,
        settings.reconvergence_delay_ps,
        fails_over,
        table=table,
        plan_at_ps=settings.routing.plan_at_ps,
    )
    with findings.stage("telemetry"):
        check_telemetry(policies, fabric, longest, findings)
    ports = fabric.ports
    links = fabric.links[ports.link]
    switches, node_device = switch_rows(fabric, classes)
    kmin, kmax = thresholds_bytes(fabric)
    kinds = link_kinds(fabric)
    attach_node, _ = attachments(fabric)
    made = PacketInput(
        seed=settings.seed,
        until_ps=settings.until_ps,
        node_kind=fabric.node_kind.astype(np.int8),
        node_device=node_device,
        port_base=ports.base,
        port_node=ports.node,
        port_peer=ports.peer,
        port_rate_bps=np.ascontiguousarray(links["rate_bps"]),
        port_delay_ps=delay_ps,
        port_loss=np.ascontiguousarray(links["loss"]),
        port_corruption=np.ascontiguousarray(links["corruption"]),
        port_headroom_bytes=headroom,
        port_kmin_bytes=kmin,
        port_kmax_bytes=kmax,
        port_credit_bytes=credit,
        shared_bytes=shared,
        node_tier=fabric.node_tier.astype(np.int64),
        node_group=-np.ones(len(fabric.node_kind), np.int64)
        if fabric.node_pod is None
        else fabric.node_pod.astype(np.int64),
        attachment=routes(fabric, np.ones(len(fabric.links), np.bool_)).attach_of_port,
        destination_number=destination_numbers(fabric),
        port_stride=port_strides(fabric),
        attach_node=attach_node,
        port_kind=kinds.port_kind,
        channel_rule=channel_rule(kinds, settings.routing.scheme, channels),
        detour_by_group=settings.routing.detour_by_group,
        **detour_groups(fabric, attach_node, by_group=settings.routing.detour_by_group),
        switches=switches,
        nics=nic_rows(fabric.nics),
        class_priority=np.array(classes, np.int64),
        class_lossless=lossless,
        control_class=classes.index(transport.control_priority),
        trim_class=classes.index(trim_priority) if transport.trim_bytes else classes.index(transport.control_priority),
        virtual_channels=channels,
        fabric_base_rtt_ps=0,
        routes=tables,
        instants=instants,
        ops=flat.ops,
        streams=flat.streams,
        tables=flat.tables,
        digits=flat.digits,
        rank_program=job.rank_program.astype(np.int32),
        rank_ports=(ports.base[rank_node][:, None] + job.placement.nics).astype(np.int32),
        rank_gpu=gpu_rows(fabric, job, rank_node),
        tokens=flat.tokens,
        has_receives=flat.has_receives,
        pins=pin_rows(fabric, job, settings.routing),
        transport=transport,
        congestion_control=congestion_control,
        path_selection=settings.path_selection,
        port_selection=settings.port_selection,
    )
    reads = (("Signal", "fabric_base_rtt_ps") in policy.fields for policy in policies if policy is not None)
    if not made.has_path_load and not any(reads):
        return made
    return replace(made, fabric_base_rtt_ps=fabric_base_rtt_ps(made))


def detour_groups(fabric: Fabric, attach_node: NDArray[np.int32], *, by_group: bool) -> dict[str, Any]:
    """Attachments that a detour may go by, as `PacketInput` has them.

    Parameters
    ----------
    by_group : groups are those of the fabric; else each switch is one
    """
    group = np.arange(len(attach_node))
    if by_group and fabric.node_pod is not None:
        group = np.unique(fabric.node_pod[attach_node], return_inverse=True)[1]
    return {
        "detour_order": np.argsort(group, kind="stable").astype(np.int32),
        "detour_base": np.append(0, np.cumsum(np.bincount(group))).astype(np.int64),
        "detour_group": group.astype(np.int32),
    }


def with_what_is_asked(transport: Transport, policies: Sequence[LoadedPolicy | None], channels: int) -> Transport:
    """Set the header sizes that the policies' needs add.

    Telemetry, times, entropies and requests are in headers.
    """
    changed: dict[str, int | str] = {"virtual_channels": channels}
    if transport.reply_entropy is None:
        plugins = (policy.plugin for policy in policies if policy is not None)
        declared = (plugin.reply_entropy for plugin in plugins if isinstance(plugin, PathSelection))
        changed["reply_entropy"] = next(declared, "own")
    has_telemetry = is_asked("telemetry", policies)
    changed["telemetry_bytes"] = (transport.telemetry_bytes or TELEMETRY_BYTES) if has_telemetry else 0
    changed["telemetry_hop_bytes"] = (transport.telemetry_hop_bytes or TELEMETRY_HOP_BYTES) if has_telemetry else 0
    time_bytes = transport.timestamp_bytes if is_asked("rtt", policies) else 0
    entropy_bytes = transport.entropy_echo_bytes if is_asked("entropy", policies) else 0
    request_bytes = transport.request_overhead_bytes if is_asked("request", policies) else 0
    load_bytes = transport.path_load_bytes if is_asked("path-load", policies) else 0
    changed["data_overhead_bytes"] = transport.data_overhead_bytes + time_bytes + request_bytes + load_bytes
    changed["echo_bytes"] = time_bytes + entropy_bytes + load_bytes
    return transport.model_copy(update=changed)


def _check_classes(used: Sequence[int], channels: int, findings: Findings) -> None:
    if len(used) * channels <= MOST_CLASSES:
        return
    text = (
        f"{plural(channels, 'virtual channel')} of each of {plural(len(used), 'priority', 'priorities')} are "
        f"{plural(len(used) * channels, 'queue')} of a port,"
        f" wanted at most {MOST_CLASSES}"
    )
    findings.wrong("transport.port_selection", text)


def _check_size(fabric: Fabric, findings: Findings) -> None:
    """Refuse a fabric with route tables beyond the memory."""
    leaves = len(attachments(fabric)[0])
    nodes = len(fabric.node_kind)
    if nodes * leaves <= MAX_ROUTES:
        return
    text = (
        f"the packet engine keeps routes from every node to every leaf; '{fabric.name}' has {nodes:,} x {leaves:,},"
        f" wanted at most {MAX_ROUTES:,}; take a smaller fabric, or engine.fidelity: flow"
    )
    findings.wrong("engine.fidelity", text, "flow")


def check_placement(fabric: Fabric, job: Job, findings: Findings) -> None:
    """Find ranks without a host, a NIC port or a separate GPU."""
    mistake = _job_mistake(fabric, job)
    if mistake is not None:
        findings.wrong(*mistake)


def _job_mistake(fabric: Fabric, job: Job) -> tuple[str, str] | None:
    """Key and words of the first reason for which ranks have no place, or None."""
    hosts = len(fabric.hosts)
    if not 0 < job.ranks <= MAX_RANKS:
        return "job.ranks", f"found {job.ranks:,}, wanted 1 to {MAX_RANKS:,}"
    placed = job.placement
    shapes = {
        len(job.rank_program),
        len(placed.host),
        len(placed.nics),
        *([] if placed.gpu is None else [len(placed.gpu)]),
    }
    if placed.nics.ndim != 2 or placed.nics.shape[1] < 1:
        text = f"placement.nics has the shape {placed.nics.shape}, wanted (ranks, NIC ports of a rank)"
        return "job.placement", text
    if shapes != {job.ranks}:
        text = f"rank_program and placement have {sorted(shapes)} rows, wanted {job.ranks}, one per rank"
        return "job.placement", text
    if job.rank_program.min() < 0 or job.rank_program.max() >= len(job.programs):
        text = (
            f"found programs {job.rank_program.min()} to {job.rank_program.max()}, wanted 0 to {len(job.programs) - 1}"
        )
        return "job.rank_program", text
    if job.placement.host.min() < 0 or job.placement.host.max() >= hosts:
        text = (
            f"the job needs {plural(int(job.placement.host.max()) + 1, 'host')}, the fabric '{fabric.name}' has "
            f"{hosts:,}"
        )
        return "job.placement", text
    node = fabric.hosts[job.placement.host]
    count = np.diff(fabric.ports.base)[node]
    wrong = np.argwhere((placed.nics < 0) | (placed.nics >= count[:, None]))
    if len(wrong):
        rank, column = (int(value) for value in wrong[0])
        where = f"NIC port {placed.nics[rank, column]} of '{fabric.node_names[node[rank]]}'"
        text = f"rank {rank} uses {where}, which has {count[rank]}"
        return "job.placement", text
    short = np.flatnonzero(count <= placed.nics.max())
    if len(short) and any(isinstance(operation, Send) and operation.rail == "peer" for _, operation, _ in walk(job)):
        where = f"'{fabric.node_names[node[short[0]]]}' has {plural(count[short[0]], 'NIC port')}"
        text = f"found the rail of the peer with NIC port {int(placed.nics.max())}, but {where}"
        return "job.placement", text
    return _gpu_mistake(fabric, job, node)


def _gpu_mistake(fabric: Fabric, job: Job, node: NDArray[np.int64]) -> tuple[str, str] | None:
    """Key and words of ranks on missing GPUs, or of two ranks on one GPU."""
    gpu = job.placement.gpu
    if gpu is None:
        return None
    kind = np.zeros(job.ranks, np.int64) if fabric.node_server is None else fabric.node_server[node].astype(np.int64)
    servers = fabric.servers
    domains = np.array([one.gpus // one.nvlink_domain_gpus if one.nvlink_domain_gpus else 0 for one in servers])[kind]
    gpus = np.array([one.gpus for one in servers])[kind]
    has_rate = np.array([one.nvlink_rate_bps > 0 for one in servers])[kind]
    outside = (gpu < -domains) | (gpu >= gpus)
    wrong = np.flatnonzero(outside | ((domains > 0) & ~has_rate))
    if len(wrong):
        rank = int(wrong[0])
        where = f"'{fabric.node_names[node[rank]]}'"
        if outside[rank]:
            text = f"rank {rank} is GPU {gpu[rank]} of {where}, which has {gpus[rank]}"
            return "job.placement", text
        text = f"found NVLink of {servers[int(kind[rank])].nvlink_rate_bps} b/s in {where}, wanted more than 0"
        return "fabric.node.nvlink_rate", text
    place = node.astype(np.int64) * (int(gpus.max()) + int(domains.max()) + 1) + gpu
    _, first, times = np.unique(place, return_index=True, return_counts=True)
    if (times > 1).any():
        rank = int(first[times > 1][0])
        text = (
            f"GPU {gpu[rank]} of '{fabric.node_names[node[rank]]}' has {plural(int(times.max()), 'rank')}, wanted one"
        )
        return "job.placement", text
    return None


def gpu_rows(fabric: Fabric, job: Job, node: NDArray[np.int64]) -> NDArray[np.void]:
    """Ports of each rank inside its server.

    An NVLink switch has the rate of all its GPUs together.
    """
    rows = np.zeros(job.ranks, GPU_DTYPE)
    gpu = job.placement.gpu if job.placement.gpu is not None else np.zeros(job.ranks, np.int32)
    kind = np.zeros(job.ranks, np.int64) if fabric.node_server is None else fabric.node_server[node].astype(np.int64)
    for index in np.unique(kind).tolist():
        server = fabric.servers[index]
        own = kind == index
        per_domain = server.nvlink_domain_gpus
        is_switch = gpu < 0
        domain = np.where(is_switch, -1 - gpu, gpu // per_domain) if per_domain else -np.ones(job.ranks, np.int64)
        rows["nvlink_domain"][own] = domain[own]
        rows["nvlink_rate_bps"][own] = np.where(is_switch, per_domain, 1)[own] * server.nvlink_rate_bps
        rows["nvlink_latency_ps"][own] = server.nvlink_latency_ps
        rows["pcie_rate_bps"][own] = server.pcie_rate_bps
        rows["pcie_latency_ps"][own] = server.pcie_latency_ps
        rows["slice_bytes"][own] = server.slice_bytes
    return rows


def port_delays_ps(fabric: Fabric) -> NDArray[np.int64]:
    """Delay of each port: propagation plus fixed latency of the far end."""
    latency = np.zeros(len(fabric.node_names), np.int64)
    is_switch = fabric.node_kind == SWITCH
    forwarding = np.array([device.forwarding_latency_ps for device in fabric.switches] or [0], np.int64)
    receive = np.array([device.receive_latency_ps for device in fabric.nics] or [0], np.int64)
    latency[is_switch] = forwarding[fabric.node_device[is_switch]]
    latency[~is_switch] = receive[fabric.node_device[~is_switch]]
    ports = fabric.ports
    delays: NDArray[np.int64] = fabric.links["delay_ps"][ports.link] + latency[ports.node[ports.peer]]
    return delays


def _headroom(fabric: Fabric, transport: Transport, delay_ps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Headroom of one lossless priority at each switch port.

    It is 0 at hosts and without flow control.
    """
    ports = fabric.ports
    found = np.zeros(len(ports.node), np.int64)
    if not transport.lossless_priorities:
        return found
    rates = fabric.links["rate_bps"][ports.link]
    computed: dict[tuple[int, int], int] = {}  # a fabric has few kinds of links
    for port in np.flatnonzero(fabric.node_kind[ports.node] == SWITCH).tolist():
        fixed = fabric.switches[fabric.node_device[ports.node[port]]].headroom_bytes
        if fixed is not None:
            found[port] = fixed
            continue
        key = (int(rates[port]), int(delay_ps[port] + delay_ps[ports.peer[port]]))
        if key not in computed:
            computed[key] = headroom_bytes(rate_bps=key[0], round_trip_ps=key[1], transport=transport)
        found[port] = computed[key]
    return found


def _shared_bytes(
    fabric: Fabric,
    transport: Transport,
    headroom: NDArray[np.int64],
    classes: int,
    lossless: int,
    findings: Findings,
) -> NDArray[np.int64]:
    """Size of the shared part of each switch's buffer.

    There is one mistake per kind of switch whose buffer does not suffice.
    """
    ports = fabric.ports
    shared = np.zeros(len(fabric.node_names), np.int64)
    small: set[Switch] = set()
    frame = full_frame_bytes(transport)
    for node in np.flatnonzero(fabric.node_kind == SWITCH).tolist():
        device = fabric.switches[int(fabric.node_device[node])]
        kind = device.model_copy(update={"hash": HashFunction()})  # how it hashes takes no memory
        own = headroom[ports.base[node] : ports.base[node + 1]]
        reserve = len(own) * classes * device.reserve_bytes
        room = lossless * int(own.sum())
        shared[node] = device.buffer_bytes - reserve - room
        if shared[node] < frame and kind not in small:
            small.add(kind)
            text = (
                f"the buffer of '{fabric.node_names[node]}', {device.buffer_bytes:,} B, is too small: "
                f"{plural(len(own), 'port')} "
                f"need {room:,} B of headroom and {reserve:,} B of reserve and leave no room for one of {frame:,} B;"
                " take a larger buffer, a smaller reserve, shorter cables, a fixed headroom, or flow_control: none"
            )
            findings.wrong("fabric.switch.buffer", text)
    return shared


def switch_rows(fabric: Fabric, used: Sequence[int] = ()) -> tuple[NDArray[np.void], NDArray[np.int32]]:
    """Rows of the kinds of switches, and the device of every node.

    Switches that hash differently are separate kinds.

    Parameters
    ----------
    fabric : whose switches hash by their tier where their devices do not say how
    used : priorities of the traffic classes, whose weights the rows have

    Returns
    -------
    rows, dtype of `SWITCH_ROW`, and shape (nodes,), index into them for a switch and into ``fabric.nics`` for a host
    """
    devices, node_device = hashed_by_tier(fabric)
    rows = np.zeros(len(devices), SWITCH_ROW.dtype)
    for row, device in zip(rows, devices, strict=True):
        weight = np.zeros(MOST_CLASSES, np.int64)
        weight[: len(used)] = [device.scheduling.weights[priority] for priority in used]
        others: dict[str, object] = {
            "pmax": device.ecn.pmax,
            "mark_at_dequeue": device.ecn.at == "dequeue",
            "hash_algorithm": HashAlgorithm[device.hash.algorithm.upper().replace("-", "_")],
            "hash_seed": device.hash.seed,  # `hashed_by_tier` has left none open
            "hash_offset": device.hash.offset,
            "hash_fields": sum(HashField[name.upper()] for name in set(device.hash.fields)),
            "weight": weight,
        }
        for name in SWITCH_ROW.names:
            row[name] = others[name] if name in others else getattr(device, name)
    return rows, node_device


def nic_rows(devices: tuple[Nic, ...]) -> NDArray[np.void]:
    """`NIC_ROW` of each kind of NIC."""
    rows = np.zeros(len(devices), NIC_ROW.dtype)
    for row, device in zip(rows, devices, strict=True):
        for name in NIC_ROW.names:
            row[name] = getattr(device, name)
    return rows
