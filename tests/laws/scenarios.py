"""Random small plans, by seed: fabrics, devices, transports, policies, faults and jobs in every mixture.

They are small on purpose (some hundred packets) and tight on purpose (buffers of a few frames, windows of a few
packets, early timeouts), so that pauses, drops, retransmissions and ties at one instant are the rule.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from laws.random_jobs import random_job
from laws.slots import SLOT_PS, slotted_fabric, slotted_faults, slotted_job, slotted_links, slotted_transport
from laws.wide import Wires, credit_room_bytes, wide_transport, wide_wires, with_layers

from weftwork.base.clock import MS_PS, SECOND_PS, US_PS
from weftwork.engine.headroom import full_frame_bytes, headroom_bytes
from weftwork.engine.instants import Fault
from weftwork.engine.lower import lower, with_what_is_asked
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.settings import EngineSettings
from weftwork.policies.interface import MOST_CLASSES
from weftwork.policies.load import LoadedPolicy, catalogue, load
from weftwork.spec.device import Ecn, HashFunction, Nic, Scheduling, Server, Switch
from weftwork.spec.fabric import HOST, LINK_DTYPE, SWITCH, Fabric
from weftwork.spec.transport import Transport
from weftwork.topology.assemble import assemble

POLICIES = Path(__file__).parents[1] / "policies"
RATES_BPS = tuple(rate * 10**6 for rate in (400_000, 200_000, 100_000, 40_000, 10_000, 3_000, 7_770, 33_334, 333_333))
LONG_DELAY_PS = 5 * MS_PS
TEST_ONLY = {
    "congestion_control": ("outspoken",),
    "path_selection": ("restless", "hottest"),
    "port_selection": (),
}
# Of receivers' credit: windows of a link of 5 ms would be hundreds of megabytes, granted a few packets at a time.
SMALL_WINDOWS: dict[str, tuple[tuple[tuple[str, float], ...], ...]] = {
    "rccc": ((("window_bytes", 10_000), ("idle_bdps", 0.0)), (("window_bytes", 60_000), ("idle_bdps", 0.001))),
    "ndp": ((("initial_packets", 2),), (("initial_packets", 20),)),
    "eqds": ((("window_packets", 2),), (("window_packets", 20),)),
}
# Of flowlets and of what switches meter: shorter than the some 30 us that a plan takes.
SHORT_GAPS: dict[str, tuple[tuple[str, float], ...]] = {
    "letflow": (("gap_ps", 1_000_000),),
    "conga": (("gap_ps", 1_000_000), ("dre_ps", 700_000), ("age_ps", 9_000_000)),
    "ars": (("idle_ps", 2_000_000), ("sample_ps", 900_000)),
    "adaptive": (("by_pause", True), ("by_utilisation", True), ("window_ps", 5_000_000)),
}
HASH_FIELDS: Any = ("src_ip", "dst_ip", "protocol", "src_port", "dst_port", "in_port", "destination_qp")
WEIGHTS: Any = ((16, 16, 16, 16, 16, 16, 0, 0), (1, 2, 3, 4, 5, 6, 7, 8), (0,) * 8, (0, 1, 0, 3, 1, 0, 2, 0))


WIDE = {
    "congestion_control": ("talkative", "talkative", "outspoken", "dcqcn"),
    "path_selection": ("wanderer", "wanderer", "reps", "ecmp"),
    "port_selection": ("voyager", "voyager", "ecmp", "letflow"),
}  # policies that use what the plain ones do not


def random_plan(seed: int, *, is_calm: bool = False, is_torn: bool = False, is_wide: bool = False) -> PacketInput:
    """The engine input of this number; the same one everywhere and always.

    Parameters
    ----------
    seed : the number
    is_calm : no faults, and flow control with the headroom that cables and rates ask for
    is_torn : links of hosts with two of them go down and up all the time, and queue pairs change their ports
    is_wide : rings and dragonflies too, policies of `WIDE`, packets that are cut, and two timeouts
    """
    rng = Random(seed)
    wires = _two_of_each(rng) if is_torn else (wide_wires(rng) or _wires(rng)) if is_wide else _wires(rng)
    is_long = rng.random() < 0.3 and not is_torn and not is_wide  # timers that never end take long
    is_storm = rng.random() < 0.3 and not is_torn
    is_slotted = rng.random() < 0.3
    links = _links(rng, wires, is_long=is_long)
    control, path, port = _wide_policies(rng) if is_wide else _policies(rng)
    needs = control.plugin.needs | (path.plugin.needs if path else set()) | port.plugin.needs
    transport = _transport(rng, is_long=is_long, needs=needs)
    if is_wide:
        transport = wide_transport(rng, transport)
    if "trimming" in needs:
        cut = {"recovery": "selective-repeat", "trim_bytes": rng.choice((64, 90)), "lossless_priorities": ()}
        transport = transport.model_copy(update=cut)
    elif (is_storm or is_calm) and not transport.link_credits:
        transport = transport.model_copy(update={"lossless_priorities": (3,)})
    if is_slotted:
        slotted_links(rng, links)
        transport = slotted_transport(transport)
    channels = port.plugin.virtual_channels
    asked = with_what_is_asked(transport, (control, path, port), channels)
    needs_telemetry = not needs.isdisjoint(("telemetry", "path-load"))
    fabric = _fabric(rng, wires, links, asked, needs_telemetry=needs_telemetry, is_calm=is_calm)
    fabric = _with_servers(rng, fabric)
    ports_of_host = np.bincount(np.array(wires.links).ravel(), minlength=wires.hosts)[: wires.hosts].tolist()
    is_crowded = transport.trim_bytes > 0 or transport.link_credits
    priorities = rng.choice(([-1], [-1], [3, 1], [3, 4, -1], [-1, transport.control_priority]))
    job = random_job(
        rng,
        ports_of_host=ports_of_host,
        servers=[fabric.server(node) for node in range(wires.hosts)],
        priorities=priorities,
        mtu_bytes=transport.mtu_bytes,
        packets=250 if is_storm or is_torn or is_crowded else rng.choice((20, 100, 250)),
        shape="incast" if is_storm or is_crowded else None,
    )
    has_columns = job.placement.nics.shape[1] > 1
    faults: list[Fault] = []
    if is_storm and not is_calm:
        faults = _storm(rng, fabric)
    elif is_torn:
        faults = _torn(rng, fabric)
    elif not is_calm and rng.random() < (0.7 if has_columns else 0.45):
        faults = _faults(rng, fabric, is_long=is_long, has_columns=has_columns)
    if is_wide and needs_telemetry:
        faults = []  # a way around one may pass more switches than a packet carries telemetry of, which is refused
    if is_slotted:
        fabric, job, faults = slotted_fabric(fabric), slotted_job(job), slotted_faults(faults)
    until_ps = (
        rng.choice((150, 60)) * MS_PS if is_long else rng.choice((20 * MS_PS, 20 * MS_PS, rng.randrange(100 * US_PS)))
    )
    if "trimming" in needs:  # where no queue holds a whole packet, it is cut and sent again for ever
        until_ps = min(until_ps, 400 * US_PS)
    made = lower(
        fabric=fabric,
        job=job,
        transport=transport,
        congestion_control=control,
        settings=EngineSettings(
            path_selection=path,
            port_selection=port,
            seed=rng.randrange(2**31),
            until_ps=until_ps,
            faults=tuple(faults),
            reconvergence_delay_ps=rng.choice((0, US_PS, 30 * US_PS, rng.randrange(100 * US_PS))),
            failover_delay_ps=rng.choice((0, 100 * SLOT_PS, rng.randrange((2 if is_torn else 10) * US_PS))),
        ),
    )
    made = with_layers(rng, made) if is_wide and rng.random() < 0.4 else made
    replies = rng.choice((made.transport.reply_entropy, "own", "echoed"))
    return replace(made, transport=made.transport.model_copy(update={"reply_entropy": replies}))


# Fabrics


def _wires(rng: Random) -> Wires:
    kinds = ("pair", "star", "chain", "leaf-spine", "rails", "dual-homed", "three-tier")
    match rng.choice((*kinds, "leaf-spine", "leaf-spine", "dual-homed")):
        case "pair":
            return Wires(hosts=2, switches=0, links=((0, 1),) * rng.choice((1, 1, 2)))
        case "star":
            hosts = rng.randint(2, 6)
            cables = [rng.choice((1, 1, 1, 2)) for _ in range(hosts)]
            return Wires(
                hosts=hosts, switches=1, links=tuple((h, hosts) for h in range(hosts) for _ in range(cables[h]))
            )
        case "dual-homed":
            # every host at two of the leaves, in any order
            hosts, leaves, spines = rng.randint(2, 5), rng.randint(2, 3), rng.randint(1, 2)
            down = [(h, hosts + leaf) for h in range(hosts) for leaf in rng.sample(range(leaves), 2)]
            up = [(hosts + leaf, hosts + leaves + s) for leaf in range(leaves) for s in range(spines)]
            return Wires(hosts=hosts, switches=leaves + spines, links=(*down, *up))
        case "chain":
            length, per_switch = rng.randint(2, 4), rng.randint(1, 2)
            hosts = length * per_switch
            down = [(h, hosts + h // per_switch) for h in range(hosts)]
            return Wires(
                hosts=hosts, switches=length, links=(*down, *((hosts + i, hosts + i + 1) for i in range(length - 1)))
            )
        case "leaf-spine":
            leaves, spines, per_leaf, parallel = (
                rng.randint(2, 3),
                rng.randint(1, 3),
                rng.randint(1, 3),
                rng.randint(1, 2),
            )
            hosts = leaves * per_leaf
            down = [(h, hosts + h // per_leaf) for h in range(hosts)]
            up = [
                (hosts + i, hosts + leaves + j) for i in range(leaves) for j in range(spines) for _ in range(parallel)
            ]
            return Wires(hosts=hosts, switches=leaves + spines, links=(*down, *up))
        case "rails":
            hosts, spines = rng.randint(2, 5), rng.randint(1, 2)
            down = [(h, hosts + rail) for h in range(hosts) for rail in range(2)]
            up = [(hosts + rail, hosts + 2 + s) for rail in range(2) for s in range(spines)]
            return Wires(hosts=hosts, switches=2 + spines, links=(*down, *up))
        case _:
            # two pods of two edges and two aggregations, two cores, a host or two on each edge
            per_edge = rng.randint(1, 2)
            hosts = 4 * per_edge
            edge, aggregation, core = hosts, hosts + 4, hosts + 8
            down = [(h, edge + h // per_edge) for h in range(hosts)]
            middle = [
                (edge + 2 * pod + i, aggregation + 2 * pod + j) for pod in range(2) for i in range(2) for j in range(2)
            ]
            up = [(aggregation + 2 * pod + i, core + i) for pod in range(2) for i in range(2)]
            return Wires(hosts=hosts, switches=10, links=(*down, *middle, *up))


def _two_of_each(rng: Random) -> Wires:
    """Hosts with a port at each of two leaves, or at two of four, below two spines."""
    hosts, leaves = rng.randint(2, 5), rng.choice((2, 4))
    down = [(h, hosts + (2 * h + side) % leaves) for h in range(hosts) for side in range(2)]
    up = [(hosts + leaf, hosts + leaves + spine) for leaf in range(leaves) for spine in range(2)]
    return Wires(hosts=hosts, switches=leaves + 2, links=(*down, *up))


def _links(rng: Random, wires: Wires, *, is_long: bool) -> np.ndarray[Any, np.dtype[np.void]]:
    links = np.zeros(len(wires.links), LINK_DTYPE)
    links["a"], links["b"] = np.array(wires.links).T
    is_equal = rng.random() < 0.25
    rate_bps, delay_ps = rng.choice(RATES_BPS[:4]), rng.choice((500_000, 1_000_000, 10_000, 330_000))
    slow = rng.choice((0.0, 0.2))
    for link in links:
        fast = rng.choice(RATES_BPS) if rng.random() < slow else rng.choice(RATES_BPS[:4])
        link["rate_bps"] = rate_bps if is_equal else fast
        delays = (10_000, 500_000, rng.randrange(10_000, 2_000_000), rng.randrange(10_000, 20_000_000))
        link["delay_ps"] = delay_ps if is_equal else rng.choice(delays)
    if is_long:
        links["delay_ps"][rng.randrange(len(links))] = LONG_DELAY_PS
    if rng.random() < 0.3:
        chance = rng.choice((0.001, 0.02, 0.1, 0.3))
        kind = rng.choice(("loss", "corruption"))
        for index in rng.sample(range(len(links)), rng.randint(1, len(links))):
            links[kind][index] = chance
    return links


def _fabric(
    rng: Random, wires: Wires, links: Any, transport: Transport, *, needs_telemetry: bool, is_calm: bool
) -> Fabric:
    nodes = wires.hosts + wires.switches
    degree = np.bincount(np.array(wires.links).ravel(), minlength=nodes)
    devices = tuple(
        _switch(rng, links, node, int(degree[node]), transport, needs_telemetry=needs_telemetry, is_calm=is_calm)
        for node in range(wires.hosts, nodes)
    )
    nics = (_nic(rng, transport), _nic(rng, transport))
    kind = [HOST] * wires.hosts + [SWITCH] * wires.switches
    device = [rng.randrange(2) for _ in range(wires.hosts)] + list(range(wires.switches))
    return assemble(
        name="random",
        node_names=[f"h{i}" for i in range(wires.hosts)] + [f"s{i}" for i in range(wires.switches)],
        node_kind=kind,
        node_tier=[0 if k == HOST else 1 for k in kind],
        links=links,
        switches=devices or (Switch(telemetry=True),),
        nics=nics,
        node_device=device,
    )


def _with_servers(rng: Random, fabric: Fabric) -> Fabric:
    """Perhaps hosts with several GPUs, of one or two kinds."""
    if rng.random() < 0.6:
        return fabric
    servers = (_server(rng), _server(rng))
    return replace(
        fabric, servers=servers, node_server=np.array([rng.randrange(2) for _ in fabric.node_names], np.int32)
    )


def _server(rng: Random) -> Server:
    gpus = rng.choice((1, 2, 4, 4))
    domain_gpus = rng.choice([size for size in (0, 1, 2, 4, 4) if size == 0 or gpus % size == 0])
    rates = (4_000_000, 1_600_000, 400_000, 333_333, 100_000)
    latencies = (0, 10_000, 330_000, rng.randrange(2_000_000))
    return Server(
        gpus=gpus,
        nvlink_domain_gpus=domain_gpus,
        nvlink_rate_bps=rng.choice(rates) * 10**6 if domain_gpus else 0,
        nvlink_latency_ps=rng.choice(latencies),
        pcie_rate_bps=rng.choice(rates) * 10**6,
        pcie_latency_ps=rng.choice(latencies),
        slice_bytes=rng.choice((333, 1_024, 4_096, 30_000)),
    )


def _switch(
    rng: Random, links: Any, node: int, ports: int, transport: Transport, *, needs_telemetry: bool, is_calm: bool
) -> Switch:
    """A switch whose shared buffer holds a few frames, beyond what reserves and headrooms take."""
    frame = full_frame_bytes(transport)
    latency_ps = rng.choice((0, 300_000, 500_000))
    reserve = rng.choice((0, 500, frame, 2 * frame))
    headroom = rng.choice((None, None, 0, 2 * frame, 6 * frame))
    if is_calm:
        headroom = None
    lossless = len(transport.lossless_priorities) * transport.virtual_channels
    room = headroom if headroom is not None else 0
    if headroom is None and lossless:
        own = links[(links["a"] == node) | (links["b"] == node)]
        round_trip_ps = 2 * own["delay_ps"] + 1_100_000  # at least what the engine takes: latencies of both ends
        room = max(
            headroom_bytes(rate_bps=int(r), round_trip_ps=int(d), transport=transport)
            for r, d in zip(own["rate_bps"], round_trip_ps, strict=True)
        )
    shared = rng.choice((1, 3, 10) if transport.trim_bytes else (1, 3, 10, 40, 200)) * frame + rng.randrange(frame)
    most_classes = 5 if transport.virtual_channels == 1 and transport.trim_bytes == 0 else MOST_CLASSES
    buffer = ports * (most_classes * reserve + lossless * room) + shared
    if transport.link_credits:  # shares follow rates and lengths, and the least is that of the shortest, slowest link
        own = links[(links["a"] == node) | (links["b"] == node)]
        trips = [int(link["rate_bps"]) * (2 * int(link["delay_ps"]) + 2_000_000) // (8 * SECOND_PS) for link in own]
        buffer = ports * credit_room_bytes(transport) + MOST_CLASSES * (sum(trips) + ports) * rng.choice((1, 1, 4))
    kmin = min(rng.choice((0, frame, 3 * frame)), buffer // 2)
    return Switch(
        forwarding_latency_ps=latency_ps,
        buffer_bytes=buffer,
        reserve_bytes=reserve,
        headroom_bytes=headroom,
        alpha=rng.choice((0.0625, 0.125, 0.5, 1.0, 0.3)),
        xon_offset_bytes=rng.choice((0, 100, 2 * frame)),
        egress_alpha=rng.choice((0.25, 1.0, 4.0)),
        pause_quanta=rng.choice((65_535, 65_535, 2_000, 700)),
        ecn=Ecn(
            kmin_bytes=kmin,
            kmax_bytes=kmin + rng.choice((0, frame, 10 * frame)),
            pmax=rng.choice((0.05, 0.3, 1.0)),
            at=rng.choice(("enqueue", "dequeue")),
        ),
        hash=_hash(rng),
        scheduling=Scheduling(weights=rng.choice(WEIGHTS)),
        telemetry=needs_telemetry or rng.random() < 0.2,
    )


def _hash(rng: Random) -> HashFunction:
    return HashFunction(
        algorithm=rng.choice(("crc32", "crc32c", "crc16-ccitt", "xor", "mix")),
        seed=rng.choice((None, 1, rng.randrange(2**32))),
        offset=rng.choice((None, 0, 3, 8)),
        fields=tuple(rng.sample(HASH_FIELDS, rng.randint(2, 7))) if rng.random() < 0.5 else HASH_FIELDS[:5],
    )


def _nic(rng: Random, transport: Transport) -> Nic:
    frame = full_frame_bytes(transport)
    if rng.random() < 0.6:
        return Nic(receive_latency_ps=rng.choice((0, 100_000)))
    buffer = rng.choice((2, 5, 30)) * frame
    if transport.link_credits:
        buffer = credit_room_bytes(transport) * rng.choice((1, 1, 3))
    xoff = rng.randrange(1, buffer)
    return Nic(
        receive_latency_ps=rng.choice((0, 250_000)),
        pcie_rate_bps=rng.choice((0, 20, 100, 250)) * 10**9,
        pcie_latency_ps=rng.choice((0, 150_000, 900_000)),
        receive_buffer_bytes=buffer,
        xoff_bytes=xoff,
        xon_bytes=rng.randrange(xoff + 1),
        pause_quanta=rng.choice((65_535, 1_000)),
    )


# Transports, policies, faults


def _transport(rng: Random, *, is_long: bool, needs: Any) -> Transport:
    lossless = rng.choice(((3,), (3,), (3,), (), (3, 4), (3, 6)))
    timeout_ps = rng.choice((25, 25, 12)) * MS_PS if is_long else rng.choice((60, 200, 400, 2_000)) * US_PS
    return Transport(
        mtu_bytes=rng.choice((256, 1024, 4096, 4096, 1500)),
        data_overhead_bytes=rng.choice((62, 58, 82)),
        first_extra_bytes=rng.choice((16, 0)),
        lossless_priorities=lossless,
        control_priority=rng.choice((6, 6, 6, 3)),
        recovery=rng.choice(("go-back-n", "go-back-n", "timeout", "selective-repeat", "selective-repeat")),
        reorder_threshold_packets=rng.choice((0, 0, 1, 4, 40)),
        resend=rng.choice(("by-window", "by-window", "at-once")),
        reorder_tolerant="reorder-tolerance" in needs or rng.random() < 0.2,
        reorder_window_packets=rng.choice((4096, 16, 3)),
        ack_every=rng.choice((1, 1, 2, 4, 16)),
        retransmission_timeout_ps=timeout_ps + rng.choice((0, rng.randrange(1_000_000))),
        retry_limit=rng.choice((1, 3, 7)),
        end_to_end_credits=rng.choice((0, 0, 0, 1, 6, 6)),
    )


@cache
def _loaded(
    kind: str, name: str, parameters: tuple[tuple[str, Any], ...] = (), variant: str | None = None
) -> LoadedPolicy:
    path = POLICIES / f"{name}.py"
    return load(kind, path if path.is_file() else name, dict(parameters), variant)


@cache
def _names(kind: str) -> tuple[str, ...]:
    return tuple(entry.name for entry in catalogue(kind)) + TEST_ONLY[kind]


def _wide_policies(rng: Random) -> tuple[LoadedPolicy, LoadedPolicy | None, LoadedPolicy]:
    control = _loaded("congestion_control", rng.choice(WIDE["congestion_control"]))
    path = _loaded("path_selection", rng.choice(WIDE["path_selection"])) if rng.random() < 0.8 else None
    port = _loaded("port_selection", rng.choice(WIDE["port_selection"]))
    if "telemetry" in control.plugin.needs and port.name == "voyager":  # whose detours pass more than eight switches
        port = _loaded("port_selection", "ecmp")
    return control, path, port


def _policies(rng: Random) -> tuple[LoadedPolicy, LoadedPolicy | None, LoadedPolicy]:
    name = rng.choice(_names("congestion_control"))
    if name in {"fixed_window", "fixed-window"}:
        control = _loaded("congestion_control", name, (("window_bytes", rng.choice((0, 6_000, 20_000, 100_000))),))
    elif name == "dcqcn":
        variant = rng.choice(("paper", "vendor", "hpcc-repo", "hpcc-repo-window", "quick"))
        quick = (
            ("variant", "paper"),
            ("increase_timer_ps", 700_000),
            ("alpha_timer_ps", 500_000),
            ("increase_bytes", 9_000),
            ("cnp_interval_ps", 0),
        )
        control = (
            _loaded("congestion_control", name, quick)
            if variant == "quick"
            else _loaded("congestion_control", name, (), variant)
        )
    elif name in SMALL_WINDOWS:
        control = _loaded("congestion_control", name, rng.choice(SMALL_WINDOWS[name]))
    else:
        control = _loaded("congestion_control", name)
    path = _loaded("path_selection", rng.choice(_names("path_selection"))) if rng.random() < 0.6 else None
    port_name = rng.choice(("ecmp", *_names("port_selection")))
    return control, path, _loaded("port_selection", port_name, SHORT_GAPS.get(port_name, ()))


def _faults(rng: Random, fabric: Fabric, *, is_long: bool, has_columns: bool) -> list[Fault]:
    """Something goes down and perhaps comes back, gets slow or loses packets, while packets are about."""
    faults = []
    span_ps = 12 * MS_PS if is_long and rng.random() < 0.5 else 30 * US_PS
    switches = np.flatnonzero(fabric.node_kind == SWITCH).tolist()
    edge = np.flatnonzero(fabric.node_kind[fabric.links["a"]] == HOST).tolist()
    for _ in range(rng.randint(1, 4)):
        at_ps = rng.choice(
            (rng.randrange(span_ps), rng.randrange(span_ps) // 1_000_000 * 1_000_000, rng.randrange(5 * US_PS))
        )
        link = rng.choice(edge) if has_columns and rng.random() < 0.7 else rng.randrange(len(fabric.links))
        kind = rng.choice(("link", "link", "link", "switch", "degrade", "lossy", "slow"))
        if kind == "lossy":
            faults.append(Fault(at_ps=at_ps, event="lossy", link=link, loss=rng.choice((0.02, 0.3, 1.0))))
            if rng.random() < 0.8:
                later_ps = at_ps + rng.choice((1, 100_000, rng.randrange(20 * US_PS)))
                faults.append(replace(faults[-1], at_ps=later_ps, loss=rng.choice((0.0, 0.1))))
            continue
        if kind == "slow":
            nic = rng.randrange(int(fabric.ports.base[len(fabric.hosts)]))
            faults.append(Fault(at_ps=at_ps, event="slow", nic=nic, rate_bps=rng.choice(RATES_BPS)))
            continue
        if kind == "degrade":
            rate_bps = max(10**9, int(fabric.links["rate_bps"][link]) // rng.choice((2, 4, 10)) // 10**6 * 10**6)
            faults.append(Fault(at_ps=at_ps, event="degrade", link=link, rate_bps=rate_bps))
            continue
        fault = Fault(at_ps=at_ps, event="down", link=link)
        if kind == "switch" and switches:
            fault = Fault(at_ps=at_ps, event="down", switch=rng.choice(switches))
        faults.append(fault)
        if rng.random() < 0.7:
            faults.append(replace(fault, event="up", at_ps=at_ps + rng.choice((0, 100_000, rng.randrange(40 * US_PS)))))
    return faults


def _torn(rng: Random, fabric: Fabric) -> list[Fault]:
    """Links of hosts that go down and up at any time while a small job runs."""
    faults = []
    edge = np.flatnonzero(fabric.node_kind[fabric.links["a"]] == HOST).tolist()
    for _ in range(rng.randint(3, 10)):
        down = Fault(at_ps=rng.randrange(40 * US_PS), event="down", link=rng.choice(edge))
        faults += [down, replace(down, event="up", at_ps=down.at_ps + rng.randrange(15 * US_PS))]
    return faults


def _storm(rng: Random, fabric: Fabric) -> list[Fault]:
    """Links that blink while an incast pauses them."""
    faults = []
    for _ in range(rng.randint(4, 9)):
        down = Fault(at_ps=rng.randrange(15 * US_PS), event="down", link=rng.randrange(len(fabric.links)))
        faults += [
            down,
            replace(down, event="up", at_ps=down.at_ps + rng.choice((0, 20_000, rng.randrange(2 * US_PS)))),
        ]
    return faults
