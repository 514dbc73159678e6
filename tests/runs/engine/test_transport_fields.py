"""No field of a transport is dead: two values of each have different results, in which both packet engines agree."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from helpers.both import both
from helpers.tiny import Message, packet_input_of, sends, wired

from weftwork.base.clock import MS_PS, US_PS
from weftwork.engine.outcome import Outcome
from weftwork.policies.load import LoadedPolicy, load
from weftwork.spec.device import Ecn, Switch
from weftwork.spec.fabric import Fabric
from weftwork.spec.transport import Transport

OURS = Path(__file__).parents[2] / "policies"
RATE_BPS = 100_000_000_000
HOSTS, LEAVES, SPINES = 6, 2, 2
RESOLVED = {"name", "echo_bytes", "virtual_channels"}  # a name, and what `weftwork.engine.lower` makes of questions

LOSSY = {"lossless_priorities": ()}
FAST = {"retransmission_timeout_ps": 50 * US_PS}
SLOW = {**LOSSY, "retransmission_timeout_ps": MS_PS}
KEEPS = {"recovery": "selective-repeat", **LOSSY, **FAST}
CUTS = {**KEEPS, "trim_bytes": 64}


@dataclass(frozen=True)
class Case:
    """A field, two values, and a run in which they differ.

    ``transport`` are its other fields, ``run`` the policies, ``buffer_bytes`` of a switch, ``loss`` of a packet.
    """

    name: str
    first: Any
    second: Any
    transport: dict[str, Any] = field(default_factory=dict)
    run: dict[str, str] = field(default_factory=dict)
    buffer_bytes: int = 16_000_000
    loss: float = 0.0


CASES = (
    Case("mtu_bytes", 1_024, 4_096),
    Case("data_overhead_bytes", 62, 100),
    Case("first_extra_bytes", 16, 40),
    Case("telemetry_bytes", 2, 20, run={"congestion_control": "hpcc"}),
    Case("telemetry_hop_bytes", 8, 16, run={"congestion_control": "hpcc"}),
    Case("path_load_bytes", 1, 20, run={"congestion_control": "hpcc-pint"}),
    Case("timestamp_bytes", 4, 10, run={"congestion_control": "swift"}),
    Case("entropy_echo_bytes", 2, 40, {"reorder_tolerant": True}, {"path_selection": "reps"}),
    Case("request_overhead_bytes", 4, 40, CUTS, {"congestion_control": "ndp"}),
    Case("trim_bytes", 64, 400, CUTS, buffer_bytes=60_000),
    Case("trim_priority", None, 3, CUTS, buffer_bytes=60_000),
    Case("ack_bytes", 66, 400),
    Case("cnp_bytes", 78, 1_000, run={"congestion_control": "dcqcn"}),
    Case("credit_bytes", 66, 1_000, CUTS, {"congestion_control": "rccc"}),
    Case("pause_frame_bytes", 64, 400, buffer_bytes=600_000),
    Case("interframe_bytes", 20, 60),
    Case("link_credits", first=False, second=True, transport=LOSSY, buffer_bytes=300_000),
    Case("credit_quantum_bytes", 1_000, 16_000, {**LOSSY, "link_credits": True}, buffer_bytes=600_000),
    Case("data_priority", 3, 4, FAST, buffer_bytes=600_000),
    Case("control_priority", 6, 1),
    Case("lossless_priorities", (3,), (), FAST, buffer_bytes=600_000),
    Case("recovery", "go-back-n", "selective-repeat", FAST, loss=0.05),
    Case("recovery", "go-back-n", "timeout", FAST, loss=0.05),
    Case("reorder_threshold_packets", 0, 8, KEEPS, {"path_selection": "spray"}),
    Case("resend", "by-window", "at-once", KEEPS, {"congestion_control": "cutting"}, buffer_bytes=60_000),
    Case("ordering", "connection", "message", KEEPS, loss=0.05),
    Case("ordering", "connection", "none", KEEPS, loss=0.05),
    Case("inflight_cap_bytes", 0, 12_288),
    Case("connection_state_bytes", 0, 256),
    Case("host_packet_ps", 0, 400_000),
    Case("host_byte_ps", 0, 100_000),
    Case("reorder_tolerant", first=False, second=True, transport=FAST, loss=0.05),
    Case("reorder_window_packets", 2, 1_024, KEEPS, {"path_selection": "spray"}),
    Case("ack_every", 1, 8),
    Case("reply_entropy", "own", "echoed", KEEPS, {"path_selection": "spray"}),
    Case("retransmission_timeout_ps", 50 * US_PS, 200 * US_PS, LOSSY, loss=0.05),
    Case("timeout_low_ps", 0, 20 * US_PS, {**SLOW, "timeout_low_packets": 64}, loss=0.05),
    Case("timeout_low_packets", 1, 64, {**SLOW, "timeout_low_ps": 20 * US_PS}, loss=0.05),
    Case("retry_limit", 0, 7, {**LOSSY, **FAST}, loss=0.2),
    Case("end_to_end_credits", 0, 1),
)  # fmt: skip


@cache
def policy(kind: Any, name: str) -> LoadedPolicy:
    file = OURS / f"{name}.py"
    return load(kind, file if file.is_file() else name)


def fabric(buffer_bytes: int, loss: float) -> Fabric:
    links = [(host, HOSTS + host % LEAVES) for host in range(HOSTS)]
    links += [(HOSTS + leaf, HOSTS + LEAVES + spine) for leaf in range(LEAVES) for spine in range(SPINES)]
    switch = Switch(
        forwarding_latency_ps=0, buffer_bytes=buffer_bytes, telemetry=True,
        ecn=Ecn(kmin_bytes=10_000, kmax_bytes=40_000, pmax=1.0),
    )  # fmt: skip
    return wired(
        links, hosts=HOSTS, switch=switch, loss=loss, rates_bps=[RATE_BPS] * len(links), delays_ps=[US_PS] * len(links)
    )


def run(case: Case, value: object) -> Outcome:
    """Four hosts send three messages each to one host, and one sends the other way."""
    messages = [
        Message(source=source, destination=0, size_bytes=40_000, at_ps=source * 1_000)
        for source in range(1, 5)
        for _ in range(3)
    ]
    messages += [
        Message(source=0, destination=5, size_bytes=60_000),
        Message(source=5, destination=1, size_bytes=20_000),
    ]
    policies = {kind: policy(kind, name) for kind, name in case.run.items()}
    return both(
        packet_input_of(
            fabric(case.buffer_bytes, case.loss),
            sends(HOSTS, messages),
            transport=Transport(**case.transport | {case.name: value}),
            **policies,
        ),
        f"{case.name} {value}",
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}-{case.second}")
def test_two_values_of_a_field_have_different_results(case: Case) -> None:
    assert run(case, case.first).digest() != run(case, case.second).digest()


def test_every_field_has_a_case() -> None:
    assert {case.name for case in CASES} == set(Transport.model_fields) - RESOLVED
