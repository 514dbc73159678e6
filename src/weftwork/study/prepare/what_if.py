"""What-if variants of a prepared run, each with one change.

A variant is prepared as a run of its own.

A world is made when it is asked for, and through the same preparation as the run itself, so that everything which
follows from what is changed follows here too.
Leaves out: which worlds are asked and when (`weftwork.study.answer`); what a sum over the run itself answers
(`weftwork.study.results.training_tables`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.findings import Findings
from weftwork.engine.flow.flow_input import FlowInput
from weftwork.hardware import catalogue
from weftwork.spec.job import Compute, Loop, Notify, Program
from weftwork.study.prepare.engineering import planned_paths
from weftwork.study.prepare.job_volume import volume
from weftwork.study.prepare.lowered import lowered
from weftwork.study.prepare.prepare import prepare_like
from weftwork.topology.oversubscription import oversubscription_by_tier

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from numpy.typing import NDArray

    from weftwork.spec.device import Nic
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Operation
    from weftwork.study.prepare.prepared import Prepared

__all__ = [
    "FAST",
    "NIC_RATES_BPS",
    "alone",
    "is_next_nic_custom",
    "next_nic_rate_bps",
    "on_fabric",
    "on_infinite_network",
    "with_balanced_stages",
    "with_fast_fabric",
    "with_fast_host_links",
    "with_fast_nvlink",
    "with_next_nic",
    "with_rates",
    "with_section",
    "with_transport",
    "without_overheads",
    "without_oversubscription",
]

FAST: Final = 1_000  # times as fast; chosen: what is left of its time is below 0.1 %
FASTEST_BPS: Final = 10**16  # chosen: 64 bits hold it times the GPUs of a domain; what is as fast stays as it is
ENDLESS_HOST_BPS: Final = 10**24  # chosen: 100 GB take less than a ps
# Rates of one port of Ethernet NICs: IEEE 802.3ba, 802.3bs and 802.3df, and 1.6 Tb/s of 802.3dj (draft)
NIC_RATES_BPS: Final = tuple(rate * 10**9 for rate in (25, 50, 100, 200, 400, 800, 1_600, 3_200))


def with_section(prepared: Prepared, **sections: Any) -> Prepared:  # noqa: ANN401 - sections of a scenario
    """The run with other sections of its scenario, on its fabric."""
    return prepare_like(prepared, prepared.scenario.model_copy(update=sections), prepared.fabric)


def with_transport(prepared: Prepared, **keys: Any) -> Prepared:  # noqa: ANN401 - keys of the transport
    """The run with other keys of its transport, on its fabric."""
    return with_section(prepared, transport=prepared.scenario.transport.model_copy(update=keys))


def on_fabric(prepared: Prepared, **parts: Any) -> Prepared:  # noqa: ANN401 - fields of a fabric
    """The run on its fabric with changed parts."""
    return prepare_like(prepared, prepared.scenario, replace(prepared.fabric, **parts))


def with_rates(
    prepared: Prepared,
    rate_bps: NDArray[np.integer],
    *,
    delay_ps: int | None = None,
    forwarding_ps: int | None = None,
    nics: tuple[Nic, ...] | None = None,
) -> Prepared:
    """The run on links of other rates.

    Buffers of switches grow by the same factor as the links that grow most, as PFC requires.

    Parameters
    ----------
    prepared : the run
    rate_bps : shape (links,)
    delay_ps : of all links; None: as they are
    forwarding_ps : of all switches; None: as they are
    nics : other NICs, in the order of those of the fabric; None: as they are
    """
    links = prepared.fabric.links.copy()
    grown = max(1, math.ceil(np.max(rate_bps / links["rate_bps"], initial=1)))
    links["rate_bps"] = rate_bps
    if delay_ps is not None:
        links["delay_ps"] = delay_ps
    same = {} if forwarding_ps is None else {"forwarding_latency_ps": forwarding_ps}
    switches = tuple(
        switch.model_copy(update={"buffer_bytes": switch.buffer_bytes * grown, **same})
        for switch in prepared.fabric.switches
    )
    return on_fabric(prepared, links=links, switches=switches, nics=prepared.fabric.nics if nics is None else nics)


def on_infinite_network(prepared: Prepared) -> Prepared:
    """The run on a network that takes no time; on flows alone.

    The network inside servers takes no time either.
    """
    if not isinstance(prepared.engine_input, FlowInput):
        raise TypeError("the packet engine has no infinite network")
    return replace(prepared, engine_input=replace(prepared.engine_input, has_infinite_network=True))


def fast_bps(rate_bps: NDArray[np.integer]) -> NDArray[np.integer]:
    """`FAST` times some rates, as far as `FASTEST_BPS` allows, and never less than they are."""
    fast: NDArray[np.integer] = np.maximum(rate_bps, np.minimum(rate_bps, FASTEST_BPS // FAST) * FAST)
    return fast


def with_fast_fabric(prepared: Prepared) -> Prepared:
    """The run on a fabric with `FAST` times the link rates, behind NICs whose host interfaces feed them.

    The delay of links is 1 ps, the least of the packet engine, and switches forward at once.
    """
    nics = tuple(nic.model_copy(update={"pcie_rate_bps": 0}) for nic in prepared.fabric.nics)
    return with_rates(prepared, fast_bps(prepared.fabric.links["rate_bps"]), delay_ps=1, forwarding_ps=0, nics=nics)


def with_fast_nvlink(prepared: Prepared) -> Prepared:
    """The run on servers with `FAST` times the NVLink rate and no latency."""
    servers = tuple(
        server.model_copy(
            update={
                "nvlink_rate_bps": max(server.nvlink_rate_bps, min(server.nvlink_rate_bps * FAST, FASTEST_BPS)),
                "nvlink_latency_ps": 0,
            }
        )
        for server in prepared.fabric.servers
    )
    return on_fabric(prepared, servers=servers)


def with_fast_host_links(prepared: Prepared) -> Prepared:
    """The run on servers whose GPUs reach the memory of their hosts in no time."""
    servers = tuple(
        server.model_copy(update={"host_rate_bps": max(server.host_link_bps, ENDLESS_HOST_BPS)})
        for server in prepared.fabric.servers
    )
    return on_fabric(prepared, servers=servers)


def next_nic_rate_bps(fabric: Fabric) -> int | None:
    """The next Ethernet rate above the slowest NIC port; None above all."""
    ends = fabric.node_tier[fabric.links["a"]], fabric.node_tier[fabric.links["b"]]
    own = fabric.links["rate_bps"][np.minimum(*ends) == 0]
    return next((rate for rate in NIC_RATES_BPS if len(own) and rate > int(own.min())), None)


def with_next_nic(prepared: Prepared) -> Prepared:
    """The run on NICs of the next rate, with host interfaces that feed them.

    Links between switches are faster by the same factor.
    """
    links = prepared.fabric.links
    next_bps = next_nic_rate_bps(prepared.fabric)
    if next_bps is None:
        raise ValueError("there is no faster NIC")
    ends = prepared.fabric.node_tier[links["a"]], prepared.fabric.node_tier[links["b"]]
    slowest = int(links["rate_bps"][np.minimum(*ends) == 0].min())
    nics = tuple(_feeding(nic, next_bps, next_bps / slowest) for nic in prepared.fabric.nics)
    return with_rates(prepared, np.rint(links["rate_bps"] * (next_bps / slowest)).astype(np.int64), nics=nics)


def is_next_nic_custom(fabric: Fabric) -> bool:
    """Whether a server of the fabric is not sold with the next NIC.

    Servers and NICs that are not in the catalogue are the user's own.
    """
    next_bps = next_nic_rate_bps(fabric)
    sold = {None if next_bps is None else catalogue.nic_for_rate(next_bps, like=nic.name) for nic in fabric.nics}
    return any(
        name is not None and catalogue.is_custom_nic(server.name, name) for server in fabric.servers for name in sold
    )


def _feeding(nic: Nic, rate_bps: int, factor: float) -> Nic:
    """A NIC with the host interface of one that is sold with a rate; without such a NIC, as much faster as its port."""
    if nic.pcie_rate_bps == 0:
        return nic
    sold = catalogue.nic_for_rate(rate_bps, like=nic.name)
    faster_bps = catalogue.nic(sold).pcie_rate_bps if sold is not None else 0
    faster_bps = faster_bps or round(nic.pcie_rate_bps * factor)
    return nic.model_copy(update={"pcie_rate_bps": max(nic.pcie_rate_bps, faster_bps)})


def without_oversubscription(prepared: Prepared) -> Prepared:
    """The run on links between switches as fast as all traffic from below."""
    fabric = prepared.fabric
    ratios = oversubscription_by_tier(fabric)
    lower = np.minimum(fabric.node_tier[fabric.links["a"]], fabric.node_tier[fabric.links["b"]])
    factor = np.ones(len(fabric.links))
    product = 1.0
    for tier in sorted(ratios):  # a faster link below asks for a faster one above
        product *= max(1.0, ratios[tier])
        factor[lower == tier] = product
    return with_rates(prepared, np.ceil(fabric.links["rate_bps"] * factor).astype(np.int64))


def alone(prepared: Prepared, job: int) -> Prepared:
    """One of the jobs alone.

    The ranks of the other jobs exist, and do nothing.

    Ranks keep their numbers, and with them their paths under hashing.
    """
    idle = Program(streams=((),))
    return _with_programs(
        prepared,
        [
            program if own == job else idle
            for own, program in zip(prepared.job_of_program.tolist(), prepared.job.programs, strict=True)
        ],
    )


def without_overheads(prepared: Prepared) -> Prepared:
    """The run without the time that ranks compute and that they take between steps.

    For a collective this is the overhead of its library: its launch, and the start of each step.
    """
    return _with_programs(
        prepared,
        [
            replace(program, streams=tuple(_hurried(stream) for stream in program.streams))
            for program in prepared.job.programs
        ],
    )


def _hurried(operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """Operations whose own time is 0."""
    hurried: list[Operation] = []
    for operation in operations:
        if isinstance(operation, Loop):
            hurried.append(replace(operation, body=_hurried(operation.body)))
        elif isinstance(operation, Compute):
            hurried.append(replace(operation, duration_ps=0))
        elif isinstance(operation, Notify):
            hurried.append(replace(operation, after_ps=0))
        else:
            hurried.append(operation)
    return tuple(hurried)


def _with_programs(prepared: Prepared, programs: Sequence[Program]) -> Prepared:
    """The run with other programs for the same ranks."""
    job = replace(prepared.job, programs=tuple(programs))
    paths = planned_paths(prepared.scenario, prepared.fabric, job, prepared.transport, prepared.faults)
    engine_input = lowered(
        prepared.scenario,
        fabric=prepared.fabric,
        job=job,
        transport=prepared.transport,
        policies=prepared.policies,
        faults=prepared.faults,
        findings=Findings(source=prepared.scenario.source),
        planned=paths,
    )
    sent = None if prepared.volume is None else volume(job)
    return replace(prepared, job=job, volume=sent, engine_input=engine_input, planned=paths)


def with_balanced_stages(prepared: Prepared, computed_ps: Mapping[int, int]) -> Prepared:
    """The run with even computing in all stages; on flows alone.

    Parameters
    ----------
    prepared : the run
    computed_ps : by program, what it computes
    """
    engine_input = prepared.engine_input
    if not isinstance(engine_input, FlowInput):
        raise TypeError("the packet engine has no computing factor")
    factor = np.ones(len(prepared.job.programs))
    for job in range(len(prepared.jobs)):
        own = np.flatnonzero(prepared.job_of_program == job).tolist()
        mean = sum(computed_ps[program] for program in own) / len(own)
        for program in own:
            factor[program] = mean / computed_ps[program] if computed_ps[program] else 1.0
    factors = engine_input.rank_factor * factor[prepared.job.rank_program]
    return replace(prepared, engine_input=replace(engine_input, rank_factor=factors))
