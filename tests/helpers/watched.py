"""Long flows over one bottleneck, with what was recorded of queue, rates and fields of the control's state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from helpers.tiny import job_of, packet_input_of, wired
from numpy.typing import NDArray

from weftwork.base.clock import US_PS
from weftwork.engine import packet
from weftwork.engine.outcome import Outcome
from weftwork.engine.rows.outcome import SERIES_KINDS
from weftwork.policies.load import LoadedPolicy, load
from weftwork.spec.device import Ecn, Switch
from weftwork.spec.job import At, Loop, Operation, Peer, Send, Size
from weftwork.spec.transport import Transport
from weftwork.study.prepare.recorded_state import recorded_state

from .findings import sound

__all__ = ["RATE_BPS", "Watched", "watch"]

RATE_BPS = 100_000_000_000
MESSAGE_PACKETS = 16


@dataclass(frozen=True, kw_only=True)
class Watched:
    """A run of long flows; flow i is sent by host i, the bottleneck is the switch's port towards the last host."""

    outcome: Outcome
    kinds: tuple[str, ...]
    flows: int

    def values(self, kind: str, flow: int | None = None, since_ps: int = 0) -> NDArray[np.float64]:
        """Samples of a field, of one flow or of all, from an instant on."""
        series = self.outcome.series
        chosen = (series["kind"] == self.kinds.index(kind)) & (series["at_ps"] >= since_ps)
        if flow is not None:
            chosen &= series["index"] == flow
        found: NDArray[np.float64] = series["value"][chosen]
        assert len(found) > 0
        return found

    def goodputs_bps(self, since_ps: int) -> list[float]:
        """Payload of each flow that was delivered from an instant to the end, as a rate."""
        rows = self.outcome.messages
        done = rows["delivered_at_ps"] >= since_ps
        end_ps = int(rows["delivered_at_ps"].max())
        return [
            float(rows["size_bytes"][done & (rows["source"] == flow)].sum()) * 8e12 / (end_ps - since_ps)
            for flow in range(self.flows)
        ]

    def jain(self, since_ps: int) -> float:
        """Fairness of the goodputs, 1 where all are equal."""
        shares = self.goodputs_bps(since_ps)
        return sum(shares) ** 2 / (len(shares) * sum(share * share for share in shares))


def watch(
    name: str,
    flows: int,
    until_ps: int,
    *,
    variant: str | None = None,
    parameters: dict[str, Any] | None = None,
    state: tuple[str, ...] = (),
    starts_ps: tuple[int, ...] = (),
    delay_ps: int = US_PS,
    bottleneck_bps: int = RATE_BPS,
    ecn: Ecn | None = None,
    switch: Switch | None = None,
    transport: Transport | None = None,
    every_ps: int = 10 * US_PS,
) -> Watched:
    """Run long flows around one switch, over links of 100 Gb/s and one to the receiver, by the native engine."""
    control = load("congestion_control", name, parameters or {}, variant)
    device = switch or Switch(forwarding_latency_ps=0, ecn=ecn or Ecn(kmin_bytes=100_000, kmax_bytes=400_000, pmax=0.2))
    fabric = wired(
        [(host, flows + 1) for host in range(flows + 1)],
        hosts=flows + 1,
        switch=device,
        rates_bps=[*[RATE_BPS] * flows, bottleneck_bps],
        delays_ps=[delay_ps] * (flows + 1),
    )
    wire = transport or Transport()
    size_bytes = MESSAGE_PACKETS * wire.mtu_bytes
    count = 1 + until_ps * RATE_BPS // (8_000_000_000_000 * size_bytes)
    send = Send(peer=Peer(rule="rank", shift=flows), size=Size(total_bytes=size_bytes))
    programs: list[list[list[Operation]]] = [
        [[At(at_ps=starts_ps[flow] if starts_ps else 0), Loop(count=count, body=(send,))]] for flow in range(flows)
    ]
    engine_input = packet_input_of(
        fabric, job_of([*programs, []]), transport=wire, congestion_control=control, until_ps=until_ps
    )
    bottleneck = int(engine_input.port_base[flows + 1]) + flows
    others = {kind: load(kind, "ecmp") for kind in ("path_selection", "port_selection")}
    policies: dict[str, LoadedPolicy] = {"congestion_control": control, **others}
    fields = sound(recorded_state, state, policies)
    outcome = packet.run(
        engine_input, series=packet.Series(every_ps=every_ps, ports=(bottleneck,), flows=None, state=fields)
    )
    return Watched(outcome=outcome, kinds=(*SERIES_KINDS, *state), flows=flows)
