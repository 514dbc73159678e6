"""Who keeps packets that arrive early owes an ACK when the gap closes; worked out on paper, on both engines."""

import pytest
from helpers.both import both
from helpers.tiny import BYTE_PS, Message, packet_input_of, sends, wired

from weftwork.base.clock import MS_PS, US_PS
from weftwork.engine.outcome import Outcome
from weftwork.spec.fabric import Fabric
from weftwork.spec.transport import Transport

NEXT_PS = (4096 + 62 + 20) * BYTE_PS
ACK_PS = (66 + 20) * BYTE_PS
NEAR_PS = 10_000

pytestmark = pytest.mark.sanitize


def detour() -> Fabric:
    """Two hosts with two ways between their switches, of which one is 3 us longer."""
    links = [(0, 2), (1, 3), (2, 4), (4, 3), (2, 5), (5, 3)]
    return wired(links, hosts=2, delays_ps=[NEAR_PS, NEAR_PS, NEAR_PS, NEAR_PS, 3 * US_PS, NEAR_PS])


@pytest.mark.parametrize("recovery", ["go-back-n", "timeout", "selective-repeat"])
def test_a_gap_that_a_packet_closes_which_asks_for_nothing_is_acknowledged(recovery: str) -> None:
    # Only the last packet asks for an ACK, and by luck it takes the short way, past others on the long one.
    transport = Transport.model_validate(
        {
            "recovery": recovery,
            "reorder_tolerant": True,
            "reorder_threshold_packets": 1_000,
            "ack_every": 1_000,
            "retransmission_timeout_ps": MS_PS,
        }
    )

    def run(seed: int) -> Outcome:
        job = sends(2, [Message(source=0, destination=1, size_bytes=8 * 4096)])
        return both(packet_input_of(detour(), job, transport=transport, path_selection="spray", seed=seed))

    overtaken = 0
    for seed in range(1, 9):
        outcome = run(seed)
        assert outcome.counters["timeouts"] == outcome.counters["retransmissions"] == 0
        delivered_ps, acked_ps = (int(outcome.messages[name][0]) for name in ("delivered_at_ps", "acked_at_ps"))
        assert acked_ps < delivered_ps + 4 * ACK_PS + 4 * US_PS
        overtaken += (
            delivered_ps > 4 * NEXT_PS + 3 * US_PS and outcome.counters["acks_sent"] + outcome.counters["naks_sent"] > 1
        )
    assert overtaken > 3
