"""Tiny fabrics and jobs whose times can be worked out on paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weftwork.engine.flow.flow_input import FlowInput
from weftwork.engine.flow.lower import TOLERANCE, lower_flow
from weftwork.engine.instants import Fault
from weftwork.engine.lower import lower
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import LoadedPolicy, load
from weftwork.spec.device import Nic, Server, Switch
from weftwork.spec.fabric import HOST, LINK_DTYPE, SWITCH, Fabric
from weftwork.spec.job import At, Job, Operation, Peer, Placement, Program, Send, Size, Wait
from weftwork.spec.transport import Transport
from weftwork.topology.assemble import assemble

RATE_BPS = 400_000_000_000  # a byte takes exactly 20 ps
BYTE_PS = 20
DELAY_PS = 500_000


@dataclass(frozen=True, kw_only=True)
class Message:
    source: int
    destination: int
    size_bytes: int
    at_ps: int = 0
    channel: int = 0
    priority: int = -1


def wired(
    links: Sequence[tuple[int, int]],
    *,
    hosts: int,
    switch: Switch | None = None,
    nic: Nic | None = None,
    rates_bps: Sequence[int] | None = None,
    delays_ps: Sequence[int] | None = None,
    loss: float = 0.0,
    server: Server | None = None,
) -> Fabric:
    """A fabric of these links; nodes from ``hosts`` on are switches, without forwarding latency unless given."""
    count = max(max(link) for link in links) + 1
    rows = np.zeros(len(links), LINK_DTYPE)
    rows["a"], rows["b"] = np.array(links).T
    rows["rate_bps"] = RATE_BPS if rates_bps is None else rates_bps
    rows["delay_ps"] = DELAY_PS if delays_ps is None else delays_ps
    rows["loss"] = loss
    kind = [HOST] * hosts + [SWITCH] * (count - hosts)
    fabric = assemble(
        name="tiny",
        node_names=[f"n{i}" for i in range(count)],
        node_kind=kind,
        node_tier=[0 if k == HOST else 1 for k in kind],
        links=rows,
        switches=(switch or Switch(forwarding_latency_ps=0),),
        nics=(nic or Nic(),),
    )
    return replace(fabric, servers=(server or Server(),))


def pair(**changes: Any) -> Fabric:
    """Two hosts and one link; port 0 belongs to host 0, port 1 to host 1."""
    return wired([(0, 1)], hosts=2, **changes)


def star(hosts: int, **changes: Any) -> Fabric:
    """Hosts around one switch; the port of host i is i, that of the switch towards it ``hosts + i``."""
    return wired([(host, hosts) for host in range(hosts)], hosts=hosts, **changes)


def job_of(
    programs: Sequence[Sequence[Sequence[Operation]]],
    hosts: Sequence[int] | None = None,
    gpus: Sequence[int] | None = None,
    nics: Sequence[Sequence[int]] | None = None,
) -> Job:
    """One program per rank, given as its streams; rank i is on host i and uses NIC port 0 unless told otherwise."""
    ranks = len(programs)
    return Job(
        name="tiny",
        ranks=ranks,
        programs=tuple(Program(streams=tuple(tuple(stream) for stream in streams)) for streams in programs),
        rank_program=np.arange(ranks, dtype=np.int32),
        placement=Placement(
            host=np.array(range(ranks) if hosts is None else hosts, np.int32),
            nics=np.zeros((ranks, 1), np.int32) if nics is None else np.array(nics, np.int32),
            gpu=None if gpus is None else np.array(gpus, np.int32),
        ),
        milestone_names=("a", "b"),
    )


def sends(ranks: int, messages: Sequence[Message]) -> Job:
    """Every message in a stream of its own, at its time."""
    programs: list[list[list[Operation]]] = [[] for _ in range(ranks)]
    for message in messages:
        send = Send(
            peer=Peer(rule="rank", shift=message.destination),
            size=Size(total_bytes=message.size_bytes),
            channel=message.channel,
            priority=message.priority,
        )
        programs[message.source].append([At(at_ps=message.at_ps), send, Wait()])
    return job_of(programs)


def settings_of(
    *,
    path_selection: str | LoadedPolicy | None = None,
    port_selection: str | LoadedPolicy = "ecmp",
    faults: Sequence[Fault] = (),
    **others: Any,
) -> EngineSettings:
    """Settings with policies, by name or loaded; delays of a microsecond unless others are given."""
    return EngineSettings(
        path_selection=None if path_selection is None else _loaded("path_selection", path_selection),
        port_selection=_loaded("port_selection", port_selection),
        faults=tuple(faults),
        **{"reconvergence_delay_ps": 1_000_000, "failover_delay_ps": 1_000_000} | others,
    )


def _loaded(kind: str, policy: str | LoadedPolicy, parameters: dict[str, Any] | None = None) -> LoadedPolicy:
    return load(kind, policy, parameters or {}) if isinstance(policy, str) else policy


def packet_input_of(
    fabric: Fabric,
    job: Job,
    *,
    transport: Transport | None = None,
    congestion_control: str | LoadedPolicy = "none",
    parameters: dict[str, Any] | None = None,
    **settings: Any,
) -> PacketInput:
    """Lower with policies, by name or loaded; `settings_of` takes the rest."""
    return lower(
        fabric=fabric,
        job=job,
        transport=transport or Transport(),
        congestion_control=_loaded("congestion_control", congestion_control, parameters),
        settings=settings_of(**settings),
    )


def flow_input_of(
    fabric: Fabric,
    job: Job,
    *,
    transport: Transport | None = None,
    compute_factor: NDArray[np.float64] | None = None,
    fold: str = "never",
    tolerance: float = TOLERANCE,
    with_ideal: bool = False,
    **settings: Any,
) -> FlowInput:
    """Lower for the flow engine with policies of the catalogue, by name; `settings_of` takes the rest."""
    return lower_flow(
        fabric=fabric,
        job=job,
        transport=transport or Transport(),
        settings=settings_of(**settings),
        compute_factor=compute_factor,
        fold=fold,
        tolerance=tolerance,
        with_ideal=with_ideal,
    )
