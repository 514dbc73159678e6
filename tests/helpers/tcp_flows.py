"""Long flows of a TCP through one slow link, and what the window and the queue do over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from helpers.tiny import job_of, packet_input_of, wired
from numpy.typing import NDArray

from weftwork.engine.packet import Series, run
from weftwork.engine.packet_input import PacketInput
from weftwork.policies.load import load
from weftwork.spec.device import Ecn, Switch
from weftwork.spec.job import At, Loop, Peer, Send, Size
from weftwork.spec.transport import Transport

__all__ = ["FRAME_BYTES", "HEADER_BYTES", "PAYLOAD_BYTES", "Seen", "SlowLink", "long_flows", "watched"]

PAYLOAD_BYTES = 1_000
HEADER_BYTES = 2 + 20 + 32  # PPP, IPv4, TCP with timestamps, as in tests/truth/test_ns3_tcp.py
FRAME_BYTES = PAYLOAD_BYTES + HEADER_BYTES
ACK_RESERVE_BYTES = 100  # so that a full queue has room for ACKs
MESSAGE_PACKETS = 10
MANY_BYTES = 2**40


@dataclass(frozen=True, kw_only=True)
class SlowLink:
    """Senders with a link each to a router, and the slow link from there to the receiver."""

    rate_bps: int
    access_bps: int
    delay_ps: int  # of each link
    queue_packets: int
    mark_packets: int = 0  # a packet that meets so many in the queue is marked; 0: none is
    loss: float = 0.0  # on every link, both ways
    senders: int = 1
    start_ps: int = 0  # between two senders


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What was seen of a run."""

    at_ps: NDArray[np.int64]
    windows: NDArray[np.float64]  # packets, shape (samples, senders)
    queue: NDArray[np.float64]  # packets, shape (samples,)
    messages: NDArray[np.void]
    counters: dict[str, int]

    def payload_bytes(self, sender: int, from_ps: int) -> int:
        """Payload in messages that arrived from this instant on."""
        is_counted = (self.messages["delivered_at_ps"] >= from_ps) & (self.messages["source"] == sender)
        return int(self.messages["size_bytes"][is_counted].sum())


def long_flows(
    path: SlowLink, control: str, *, until_ps: int, variant: str | None = None, **parameters: Any
) -> PacketInput:
    """The engine input: every sender has more to send than the slow link carries."""
    receiver, router = path.senders, path.senders + 1
    threshold_bytes = path.mark_packets * FRAME_BYTES - 1 if path.mark_packets else MANY_BYTES
    switch = Switch(
        forwarding_latency_ps=0,
        reserve_bytes=ACK_RESERVE_BYTES,
        buffer_bytes=path.queue_packets * FRAME_BYTES + 2 * (path.senders + 1) * ACK_RESERVE_BYTES,
        egress_alpha=1e9,
        ecn=Ecn(kmin_bytes=threshold_bytes, kmax_bytes=threshold_bytes, pmax=1),
    )
    fabric = wired(
        [*((sender, router) for sender in range(path.senders)), (router, receiver)],
        hosts=path.senders + 1,
        switch=switch,
        rates_bps=[path.access_bps] * path.senders + [path.rate_bps],
        delays_ps=[path.delay_ps] * (path.senders + 1),
        loss=path.loss,
    )
    transport = Transport(
        mtu_bytes=PAYLOAD_BYTES, data_overhead_bytes=HEADER_BYTES, first_extra_bytes=0, interframe_bytes=0,
        timestamp_bytes=0, ack_bytes=HEADER_BYTES, lossless_priorities=(), retry_limit=100,
        recovery="selective-repeat", reorder_threshold_packets=2, reorder_window_packets=1 << 20,
    )  # fmt: skip
    size = Size(total_bytes=MESSAGE_PACKETS * PAYLOAD_BYTES)
    count = 1 + until_ps * path.rate_bps // (8 * 10**12 * size.total_bytes)
    send = Loop(count=count, body=(Send(peer=Peer(rule="rank", shift=receiver), size=size),))
    programs = [[[At(at_ps=sender * path.start_ps), send]] for sender in range(path.senders)]
    return packet_input_of(
        fabric,
        job_of([*programs, [[]]]),
        transport=transport,
        congestion_control=load("congestion_control", control, parameters, variant),
        until_ps=until_ps,
    )


def watched(engine_input: PacketInput, *, every_ps: int, senders: int = 1) -> Seen:
    """Run it and look at windows and queue every so often."""
    port = len(engine_input.port_node) - 1  # of the router, towards the receiver
    outcome = run(engine_input, series=Series(every_ps=every_ps, ports=(port,), flows=None))
    rows = outcome.series
    windows, queue = rows[rows["kind"] == 1], rows[rows["kind"] == 2]
    at_ps = queue["at_ps"]
    by_sender = np.full((len(at_ps), senders), np.nan)
    by_sender[np.searchsorted(at_ps, windows["at_ps"]), windows["index"]] = windows["value"] / PAYLOAD_BYTES
    return Seen(
        at_ps=at_ps,
        windows=by_sender,
        queue=queue["value"] / FRAME_BYTES,
        messages=outcome.messages,
        counters=dict(outcome.counters),
    )
