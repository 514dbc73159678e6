"""What goes wrong in such an engine, on tiny plans in both engines; docs/models/packet-engine.md has the table."""

import pytest
from helpers.both import both
from helpers.tiny import RATE_BPS, Message, packet_input_of, sends, star

from weftwork.base.clock import US_PS
from weftwork.engine.outcome import Outcome
from weftwork.spec.device import Ecn, Switch
from weftwork.spec.transport import Transport

pytestmark = pytest.mark.sanitize


def one(size_bytes: int, **changes: int) -> list[Message]:
    return [Message(source=0, destination=1, size_bytes=size_bytes, **changes)]


def test_one_more_flow_changes_no_other_flows_luck() -> None:
    # Losses and marks of flow 0 -> 1; the other flow shares nothing with it but the switch.
    switch = Switch(forwarding_latency_ps=0, ecn=Ecn(kmin_bytes=0, kmax_bytes=100_000, pmax=0.5))
    fabric = star(4, switch=switch, loss=0.02, rates_bps=[RATE_BPS, RATE_BPS // 2, RATE_BPS, RATE_BPS // 2])
    transport = Transport(retransmission_timeout_ps=50 * US_PS, retry_limit=1_000, lossless_priorities=())

    def run(flows: list[Message]) -> Outcome:
        return both(packet_input_of(fabric, sends(4, flows), transport=transport, congestion_control="dcqcn"))

    own = one(60 * 4096)
    alone, beside = run(own), run([*own, Message(source=2, destination=3, size_bytes=60 * 4096)])
    assert alone.counters["drop_link_loss"] > 0
    assert alone.ports["marks"].sum() > 0
    assert beside.messages[:1].tolist() == alone.messages.tolist()
    assert beside.ports[[0, 1, 4, 5]].tolist() == alone.ports[[0, 1, 4, 5]].tolist()
