"""Make a scenario one of whole slots: every frame, delay and instant a multiple of one, so that ties are the rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from weftwork.engine.instants import Fault
from weftwork.spec.device import Nic, Server, Switch
from weftwork.spec.fabric import Fabric
from weftwork.spec.job import At, Compute, Job, Loop, Operation, Program, Send
from weftwork.spec.transport import Transport

SLOT_BYTES = 64  # a flow-control frame
SLOT_PS = SLOT_BYTES * 20  # at 400 Gb/s
RATES_BPS = (400_000_000_000, 400_000_000_000, 200_000_000_000)


def slots(time_ps: int) -> int:
    """The time, cut down to whole slots."""
    return time_ps // SLOT_PS * SLOT_PS


def long_slots(time_ps: int) -> int:
    """The time, cut down to whole times of sixteen slots, so that streams and servers often act at one instant."""
    return time_ps // (16 * SLOT_PS) * 16 * SLOT_PS


def slotted_links(rng: Random, links: Any) -> None:
    """Give links rates at which a slot takes one or two, and delays of whole slots."""
    for link in links:
        link["rate_bps"] = rng.choice(RATES_BPS)
        link["delay_ps"] = max(8, int(link["delay_ps"]) // SLOT_PS) // 8 * 8 * SLOT_PS


def slotted_transport(transport: Transport) -> Transport:
    """Every frame is one slot, or a full one a whole number."""
    sizes = dict.fromkeys(("data_overhead_bytes", "ack_bytes", "cnp_bytes", "credit_bytes"), SLOT_BYTES)
    rest = {
        "first_extra_bytes": 0,
        "interframe_bytes": 0,
        "telemetry_bytes": 2 * SLOT_BYTES,
        **dict.fromkeys(
            ("telemetry_hop_bytes", "timestamp_bytes", "entropy_echo_bytes", "request_overhead_bytes"), SLOT_BYTES
        ),
        "mtu_bytes": -(-transport.mtu_bytes // SLOT_BYTES) * SLOT_BYTES,
        "retransmission_timeout_ps": slots(transport.retransmission_timeout_ps),
    }
    return transport.model_copy(update=sizes | rest)


def slotted_fabric(fabric: Fabric) -> Fabric:
    """Latencies of whole slots."""
    return replace(
        fabric,
        switches=tuple(_switch(switch) for switch in fabric.switches),
        nics=tuple(_nic(nic) for nic in fabric.nics),
        servers=tuple(_server(server) for server in fabric.servers),
    )


def _server(server: Server) -> Server:
    latencies = {name: long_slots(getattr(server, name)) for name in ("nvlink_latency_ps", "pcie_latency_ps")}
    rates = {"nvlink_rate_bps": RATES_BPS[0] if server.nvlink_rate_bps else 0, "pcie_rate_bps": RATES_BPS[-1]}
    return server.model_copy(update=latencies | rates | {"slice_bytes": -(-server.slice_bytes // 1_024) * 1_024})


def _switch(switch: Switch) -> Switch:
    return switch.model_copy(update={"forwarding_latency_ps": slots(switch.forwarding_latency_ps)})


def _nic(nic: Nic) -> Nic:
    times = {name: slots(getattr(nic, name)) for name in ("receive_latency_ps", "pcie_latency_ps")}
    return nic.model_copy(update=times | {"pcie_rate_bps": RATES_BPS[-1] if nic.pcie_rate_bps else 0})


def slotted_job(job: Job) -> Job:
    """Times and messages of whole slots."""
    return replace(
        job,
        programs=tuple(
            Program(streams=tuple(tuple(_operation(op) for op in stream) for stream in program.streams))
            for program in job.programs
        ),
    )


def _operation(op: Operation) -> Operation:
    match op:
        case Compute(duration_ps=time_ps):
            return Compute(duration_ps=long_slots(time_ps))
        case At(at_ps=time_ps):
            return At(at_ps=long_slots(time_ps))
        case Send(size=size):
            whole_bytes = SLOT_BYTES * max(1, size.parts)  # so that every part is one too
            return replace(op, size=replace(size, total_bytes=size.total_bytes // whole_bytes * whole_bytes))
        case Loop(body=body):
            return replace(op, body=tuple(_operation(inner) for inner in body))
    return op


def slotted_faults(faults: Sequence[Fault]) -> list[Fault]:
    """Faults at whole slots."""
    return [replace(fault, at_ps=slots(fault.at_ps)) for fault in faults]
