"""The evidence of a run: how busy its resources were with useful work, and what was lost, sent again or paused.

An answer says that a run is limited by its own size alone only if its evidence shows it (`docs/models/answer.md`,
section Evidence).
Leaves out: what one makes of it (`weftwork.study.answer.answer`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.engine.flow.flow_input import FlowInput
from weftwork.spec.answer import Evidence, Resource
from weftwork.study.results.fabric_tables import wire_bytes
from weftwork.study.results.ideal import nic_ports
from weftwork.study.results.intra_server import CARRIERS, NVLINK, PACKETS, PCIE, carriers
from weftwork.study.results.link_use import link_use
from weftwork.study.results.measure import mean_computed_ps, taken_ps
from weftwork.topology.port_names import port_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from weftwork.spec.result import Quantity
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.run.execute import Execution

__all__ = ["evidence_of"]

_WORDS: Final = {NVLINK: "NVLink", PCIE: "PCIe"}
_USEFUL_PASSES: Final = ("spent_forward_share", "spent_backward_share", "spent_weights_share")


def evidence_of(prepared: Prepared, execution: Execution, summary: Mapping[str, Quantity] | None = None) -> Evidence:
    """Collect the evidence of a run that ended.

    Parameters
    ----------
    prepared : what was run
    execution : of it
    summary : of the run, for the time that training computes; None: the evidence of its network alone
    """
    counters, ports = execution.outcome.counters, execution.outcome.ports
    sent = max(1, counters["data_sent"])
    lost = sum(count for name, count in counters.items() if name.startswith("drop_"))
    took_ps = max(taken_ps(prepared, execution) or [0])
    resources = [*_of_network(prepared, execution, took_ps), *_inside(prepared, execution, took_ps)]
    slowdown = None
    if summary is not None:
        resources += _of_computing(prepared, execution, summary)
        slowest = summary.get("slowdown_max")
        slowdown = None if slowest is None or slowest.value is None else float(slowest.value)
    return Evidence(
        resources=tuple(sorted(resources, key=lambda resource: -resource.useful_share)),
        lost_share=min(1.0, lost / sent),
        resent_share=min(1.0, counters["retransmissions"] / sent),
        paused_share=min(1.0, int(ports["paused_ps"].max(initial=0)) / took_ps) if took_ps else 0.0,
        slowdown=slowdown,
    )


def _useful_use(prepared: Prepared, execution: Execution, took_ps: int) -> NDArray[np.float64]:
    """Share of the time in which each port carried useful bytes; shape (ports,).

    Useful are the headers, payload and gaps of a packet that is delivered, once. At the ports of NICs they are counted
    by message, where an engine keeps messages. At other ports, and for folded flows, they are the bytes that the port
    sent, less the share of packets that were sent again.
    """
    use, counters = link_use(prepared, execution), execution.outcome.counters
    useful = use * (1 - min(1.0, counters["retransmissions"] / max(1, counters["data_sent"])))
    messages, engine_input = execution.outcome.messages, prepared.engine_input
    if not len(messages):
        return np.minimum(useful, 1.0)
    ports = prepared.fabric.ports
    is_host = np.isin(ports.node, prepared.fabric.hosts)
    useful[is_host | is_host[ports.peer]] = 0.0
    is_delivered = messages["delivered_at_ps"] >= 0
    messages = messages[is_delivered & (carriers(engine_input, messages["source"], messages["destination"]) == PACKETS)]
    if not len(messages) or not took_ps:
        return np.minimum(useful, 1.0)
    size = wire_bytes(prepared.transport, messages["size_bytes"]).astype(np.float64)
    source, destination = nic_ports(engine_input, messages)
    runs = prepared.scenario.repeats
    rate_bps = prepared.fabric.links["rate_bps"][ports.link]
    for sender in (source, ports.peer[destination]):
        load = np.bincount(sender, size, minlength=len(useful))
        useful = np.maximum(useful, load * 8.0 * SECOND_PS / rate_bps / (took_ps * runs))
    return np.minimum(useful, 1.0)


def _of_network(prepared: Prepared, execution: Execution, took_ps: int) -> Iterator[Resource]:
    """The port of the fabric that carried useful bytes for longest."""
    useful = _useful_use(prepared, execution, took_ps)
    if len(useful) and useful.max() > 0:
        worst = int(useful.argmax())
        (name,) = port_names(prepared.fabric, np.array([worst]))
        yield Resource(name=name, useful_share=float(useful[worst]))


def _inside(prepared: Prepared, execution: Execution, took_ps: int) -> Iterator[Resource]:
    """The busiest port of a GPU inside servers, by carrier."""
    if not took_ps:
        return
    engine_input, messages = prepared.engine_input, execution.outcome.messages
    runs = prepared.scenario.repeats
    if len(messages):
        messages = messages[messages["delivered_at_ps"] >= 0]
        carrier = carriers(engine_input, messages["source"], messages["destination"])
        for kind, word in _WORDS.items():
            rate_bps = engine_input.rank_gpu[f"{CARRIERS[kind]}_rate_bps"].astype(np.float64)
            own = messages[carrier == kind]
            for end in ("source", "destination"):
                load = np.bincount(own[end], own["size_bytes"].astype(np.float64), minlength=len(rate_bps))
                share = np.divide(load * 8.0 * SECOND_PS, rate_bps, out=np.zeros(len(load)), where=rate_bps > 0)
                share /= took_ps * runs
                if len(share) and share.max() > 0:
                    worst = int(share.argmax())
                    yield Resource(name=f"{word} of rank {worst}", useful_share=min(1.0, float(share[worst])))
    elif execution.flows is not None and isinstance(engine_input, FlowInput):
        tiers = execution.flows.tiers
        for tier in np.unique(tiers["tier"]).tolist():
            if engine_input.tier_names[tier] != "nvlink":
                continue
            carried = float(tiers["bytes"][tiers["tier"] == tier].sum())
            could_bps = float(engine_input.rank_gpu["nvlink_rate_bps"].astype(np.float64).sum())
            if could_bps:
                share = carried * 8 * SECOND_PS / could_bps / (took_ps * runs)
                yield Resource(name="NVLink of an average GPU", useful_share=min(1.0, share))


def _of_computing(prepared: Prepared, execution: Execution, summary: Mapping[str, Quantity]) -> Iterator[Resource]:
    """The passes of each job that no other pass repeats."""
    took = taken_ps(prepared, execution)
    if took is None:
        return
    for place, job in enumerate(prepared.jobs):
        lead = f"{job.name}." if place else ""
        known = [number.value for name in _USEFUL_PASSES if (number := summary.get(f"{lead}{name}")) is not None]
        shares = [share for share in known if share is not None]
        # by packets only the sum of what a program computes is known
        share = sum(shares) if shares else mean_computed_ps(prepared, place) / max(1, took[place])
        name = "computing" if len(prepared.jobs) == 1 else f"computing of {job.name}"
        yield Resource(name=name, useful_share=min(1.0, float(share)))
