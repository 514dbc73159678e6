"""TCP Reno against its RFCs, worked out by hand, and its laws in a network."""

from __future__ import annotations

from helpers.both import both
from helpers.tcp_sender import MTU
from helpers.tiny import Message, packet_input_of, pair, sends

from weftwork.base.clock import MS_PS
from weftwork.policies.load import load
from weftwork.spec.transport import Transport

S_PS = 1_000 * MS_PS


SACK = Transport(
    mtu_bytes=MTU, recovery="selective-repeat", lossless_priorities=(), retry_limit=100,
    retransmission_timeout_ps=10 * S_PS,
)  # fmt: skip


def test_a_message_over_a_dead_link_is_sent_after_1_2_4_and_8_timeouts() -> None:
    """The link loses all for 2 s; the packet goes at 0, 200, 600, 1,400 and 3,000 ms, and then arrives."""
    fabric = pair(loss=0.999999999)
    message = [Message(source=0, destination=1, size_bytes=MTU)]
    control = load("congestion_control", "reno")
    until = {2_999: 3, 3_001: 4, 6_199: 4, 6_201: 5}
    for until_ms, timeouts in until.items():
        outcome = both(
            packet_input_of(
                fabric, sends(2, message), transport=SACK, congestion_control=control, until_ps=until_ms * MS_PS
            )
        )
        assert outcome.counters["timeouts"] == timeouts, until_ms
