"""Long flows into one host over one switch that stamps telemetry, and what their control and the queue do over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from helpers.tiny import Message, sends, wired
from numpy.typing import NDArray

from weftwork.base.clock import US_PS, serialisation_ps
from weftwork.engine import packet
from weftwork.engine.instants import Fault
from weftwork.engine.lower import lower
from weftwork.engine.outcome import Outcome
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.rows.outcome import SERIES_KINDS
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import load
from weftwork.spec.device import Switch
from weftwork.spec.transport import Transport
from weftwork.study.prepare.recorded_state import recorded_state

from .findings import sound

__all__ = [
    "FRAME_BYTES",
    "LINE_BPS",
    "MTU_BYTES",
    "base_rtt_ps",
    "long_flows",
    "pipe_bytes",
    "queue_port",
    "samples",
    "watched",
]

LINE_BPS = 100_000_000_000
MTU_BYTES = 1_000  # the payload of a packet in HPCC's simulator
FRAME_BYTES = 1_100  # a packet with all that it carries at most
_SIZE_BYTES = 2_000_000_000  # more than the link carries in any of these runs


def long_flows(
    control: str,
    starts_ps: Sequence[int],
    until_ps: int,
    *,
    variant: str | None = None,
    faults: tuple[Fault, ...] = (),
    **parameters: Any,
) -> PacketInput:
    """Flow i goes from host i to the last host and starts at its instant; links of 100 Gb/s and 1 us."""
    flows = len(starts_ps)
    fabric = wired(
        [(host, flows + 1) for host in range(flows + 1)],
        hosts=flows + 1,
        switch=Switch(telemetry=True, forwarding_latency_ps=0),
        rates_bps=[LINE_BPS] * (flows + 1),
        delays_ps=[US_PS] * (flows + 1),
    )
    messages = [
        Message(source=flow, destination=flows, size_bytes=_SIZE_BYTES, at_ps=at_ps)
        for flow, at_ps in enumerate(starts_ps)
    ]
    return lower(
        fabric=fabric,
        job=sends(flows + 1, messages),
        transport=Transport(mtu_bytes=MTU_BYTES),
        congestion_control=load("congestion_control", control, parameters, variant),
        settings=EngineSettings(port_selection=load("port_selection", "ecmp"), until_ps=until_ps, faults=faults),
    )


def base_rtt_ps(engine_input: PacketInput) -> int:
    """A packet's way over both links and that of its ACK, without queues."""
    transport = engine_input.transport
    hop_bytes = transport.telemetry_hop_bytes
    data_bytes = transport.mtu_bytes + transport.data_overhead_bytes + transport.telemetry_bytes
    ack_bytes = transport.ack_bytes + transport.echo_bytes + transport.telemetry_bytes + hop_bytes
    frames = (data_bytes, data_bytes + hop_bytes, ack_bytes, ack_bytes)
    return sum(US_PS + serialisation_ps(frame + transport.interframe_bytes, LINE_BPS) for frame in frames)


def pipe_bytes(engine_input: PacketInput) -> float:
    """Line rate x base RTT."""
    return LINE_BPS * base_rtt_ps(engine_input) / 8e12


def queue_port(engine_input: PacketInput) -> int:
    """The switch's port to the receiver: the last one."""
    return len(engine_input.port_node) - 1


def watched(engine_input: PacketInput, every_ps: int, *fields: str) -> Outcome:
    """Run with samples of the queue, of rates, windows and of fields of the control's state."""
    policies = {
        "congestion_control": engine_input.congestion_control,
        "path_selection": load("path_selection", "ecmp"),
    }
    state = sound(recorded_state, fields, policies)
    series = packet.Series(every_ps=every_ps, flows=None, ports=(queue_port(engine_input),), state=state)
    return packet.run(engine_input, series=series)


def samples(outcome: Outcome, kind: str | int, index: int) -> NDArray[np.float64]:
    """Values over time of a kind of `SERIES_KINDS`, or of the n-th field that was asked for, of a flow or port."""
    number = SERIES_KINDS.index(kind) if isinstance(kind, str) else len(SERIES_KINDS) + kind
    rows = outcome.series
    values: NDArray[np.float64] = rows["value"][(rows["kind"] == number) & (rows["index"] == index)]
    return values
