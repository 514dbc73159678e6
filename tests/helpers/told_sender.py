"""A sending queue pair's step that a test tells what happens, by hand; and long flows around one switch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from weftwork.base.clock import NEVER_PS, US_PS
from weftwork.engine import packet
from weftwork.engine.lower import lower
from weftwork.engine.outcome import Outcome
from weftwork.engine.packet import Series
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.rows.outcome import SERIES_KINDS
from weftwork.engine.settings import EngineSettings
from weftwork.policies.interface import Kind
from weftwork.policies.load import LoadedPolicy, load
from weftwork.spec.device import Nic
from weftwork.spec.fabric import Fabric
from weftwork.spec.transport import Transport
from weftwork.study.prepare.recorded_state import recorded_state

from .findings import sound
from .tiny import Message, sends, wired

__all__ = ["ToldSender", "long_flow", "plan", "probe_rtts_ps", "probes", "run", "shares", "star", "watched"]

CHUNK_BYTES = 16_384
PROBE_BYTES = 1_000


class ToldSender:
    """One queue pair of a control, at its plain step, after its START."""

    def __init__(
        self,
        name: str,
        variant: str | None = None,
        *,
        line_bps: int = 10_000_000_000,
        base_rtt_ps: int = 10 * US_PS,
        mtu_bytes: int = 1_000,
        **parameters: Any,
    ) -> None:
        self.policy: LoadedPolicy = load("congestion_control", name, parameters, variant)
        self.state = self.policy.new_state()
        self.signal = self.policy.new_signal()
        self.signal.line_rate_bps = line_bps
        self.signal.base_rtt_ps, self.signal.mtu_bytes = base_rtt_ps, mtu_bytes
        self.state.rate_bps = line_bps
        self.tell(Kind.START)

    def tell(self, kind: Kind, **fields: int) -> None:
        """Tell one signal; the fields stay as they are until they are told again."""
        self.signal.kind = int(kind)
        for name, value in fields.items():
            setattr(self.signal, name, value)
        self.policy.call_step(self.state, self.signal)


def star(hosts: int, rate_bps: int, *, delay_ps: int = US_PS, nic: Nic | None = None) -> Fabric:
    """Hosts around one switch."""
    links = [(host, hosts) for host in range(hosts)]
    return wired(links, hosts=hosts, rates_bps=[rate_bps] * hosts, delays_ps=[delay_ps] * hosts, nic=nic)


def long_flow(source: int, destination: int, at_ps: int, size_bytes: int) -> list[Message]:
    """One queue pair's messages, small enough to count its bytes in an interval."""
    one = Message(source=source, destination=destination, size_bytes=CHUNK_BYTES, at_ps=at_ps)
    return [one] * (size_bytes // CHUNK_BYTES)


def probes(source: int, destination: int, times_ps: range) -> list[Message]:
    """Messages of a small packet, whose times are those of the queue."""
    return [Message(source=source, destination=destination, size_bytes=PROBE_BYTES, at_ps=at_ps) for at_ps in times_ps]


def plan(
    fabric: Fabric,
    messages: list[Message],
    policy: LoadedPolicy,
    *,
    until_ps: int = NEVER_PS,
    transport: Transport | None = None,
) -> PacketInput:
    """An engine input; packets of 1,000 bytes."""
    return lower(
        fabric=fabric,
        job=sends(len(fabric.hosts), messages),
        transport=transport or Transport(mtu_bytes=1_000),
        congestion_control=policy,
        settings=EngineSettings(port_selection=load("port_selection", "ecmp"), until_ps=until_ps),
    )


def run(fabric: Fabric, messages: list[Message], policy: LoadedPolicy, **others: Any) -> Outcome:
    """What the native engine says."""
    return packet.run(plan(fabric, messages, policy, **others))


def shares(outcome: Outcome, flows: int, from_ps: int, until_ps: int) -> list[float]:
    """Goodput of the first flows in an interval, in bit/s; flow i is sent by rank i."""
    messages = outcome.messages
    is_counted = (messages["delivered_at_ps"] >= from_ps) & (messages["delivered_at_ps"] < until_ps)
    sizes = [int(messages["size_bytes"][is_counted & (messages["source"] == flow)].sum()) for flow in range(flows)]
    return [size * 8e12 / (until_ps - from_ps) for size in sizes]


def probe_rtts_ps(outcome: Outcome) -> list[int]:
    """From posting to acknowledgement, of probes that were acknowledged."""
    messages = outcome.messages[outcome.messages["size_bytes"] == PROBE_BYTES]
    messages = messages[messages["acked_at_ps"] >= 0]
    return (messages["acked_at_ps"] - messages["posted_at_ps"]).tolist()


def watched(engine_input: PacketInput, *names: str, every_ps: int) -> dict[str, NDArray[np.float64]]:
    """Fields of the control's state over time: one row for each sample in which all queue pairs are there, by name."""
    wanted = [f"congestion_control.{name}" for name in names]
    policies = {"congestion_control": engine_input.congestion_control, "path_selection": load("path_selection", "ecmp")}
    fields = sound(recorded_state, wanted, policies)
    rows = packet.run(engine_input, series=Series(every_ps=every_ps, flows=None, state=fields)).series
    pairs = int(rows["index"].max()) + 1
    found = {}
    for place, name in enumerate(names):
        own = rows[rows["kind"] == len(SERIES_KINDS) + place]
        times, counts = np.unique(own["at_ps"], return_counts=True)
        whole = own[np.isin(own["at_ps"], times[counts == pairs])]
        found[name] = whole[np.lexsort((whole["index"], whole["at_ps"]))]["value"].reshape(-1, pairs)
    return found
