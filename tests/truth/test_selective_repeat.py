"""Goodput of selective repeat under random loss, against the closed form, and against what go-back-N makes of the same.

A lost packet costs itself alone. A packet is sent 1 / (1 - p) times on average, and the wire is never idle, so that

    goodput = 1 - p

Source: Bertsekas and Gallager, Data Networks, section 2.4.3, efficiency of selective repeat.

The form knows no timeouts. There is one where a packet sent again is lost again (p of all losses): nobody tells the
sender, and after the timeout it sends again whatever it has not heard of, which is that packet and at most what is on
its way, W + 2 packets: W = C RTT / (8 frame) in a round trip, and the two that are being sent and handled. These arrive
twice. The test holds the form with those counted duplicates within 3 sigma, and their bound. Beside it stands
go-back-N, (1 - p) / (1 - p + p W), which the test of that name holds to its own form.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from helpers.figures import Show
from helpers.tiny import Message, packet_input_of, pair, sends

from weftwork.base.clock import serialisation_ps
from weftwork.engine.packet import run
from weftwork.spec.transport import Transport

RATE_BPS = 400_000_000_000
WIRE = Transport(first_extra_bytes=0, recovery="selective-repeat", reorder_window_packets=1 << 14)


@pytest.mark.parametrize("window_packets", [12, 122, 488])
@pytest.mark.parametrize("loss", [1e-4, 1e-3, 1e-2])
def test_goodput_under_loss(loss: float, window_packets: int, show: Show) -> None:
    data_ps = serialisation_ps(WIRE.mtu_bytes + WIRE.data_overhead_bytes + WIRE.interframe_bytes, RATE_BPS)
    ack_ps = serialisation_ps(WIRE.ack_bytes + WIRE.interframe_bytes, RATE_BPS)
    delay_ps = (window_packets * data_ps - data_ps - ack_ps) // 2
    rtt_ps = 2 * delay_ps + data_ps + ack_ps
    packets = 1_000_000 if loss < 1e-2 else 200_000
    transport = WIRE.model_copy(update={"retransmission_timeout_ps": rtt_ps * 3 // 2, "retry_limit": 1000})
    job = sends(2, [Message(source=0, destination=1, size_bytes=packets * WIRE.mtu_bytes)])
    engine_input = packet_input_of(pair(delays_ps=[delay_ps]), job, transport=transport)
    outcome = run(replace(engine_input, port_loss=np.array([loss, 0.0])))
    counters = outcome.counters
    goodput = packets * data_ps / (int(outcome.messages["delivered_at_ps"][0]) - delay_ps)
    spurious = counters["duplicates"] / packets
    expected = 1 / (1 / (1 - loss) + spurious)
    go_back_n = (1 - loss) / (1 - loss + loss * rtt_ps / data_ps)
    # losses are K of variance n p / (1-p)^2; the last packets may have to wait for a timeout and what follows it
    sigma = math.sqrt(loss / packets) / (1 - loss)
    end = 4 * rtt_ps / (packets * data_ps)
    show(
        f"p={loss:g} W={window_packets}: {counters['data_sent']:,} sent, {counters['drop_link_loss']:,} lost, "
        f"{counters['timeouts']} timeouts, {counters['duplicates']:,} twice, goodput {goodput:.4f}, "
        f"1 - p {1 - loss:.4f}, with those twice {expected:.4f}, 3 sigma {3 * sigma:.4f}; go-back-N {go_back_n:.4f}"
    )
    assert counters["drop_link_loss"] > 0
    assert counters["data_sent"] == packets + counters["drop_link_loss"] + counters["duplicates"]
    assert counters["duplicates"] <= counters["timeouts"] * (window_packets + 2)
    assert (
        counters["timeouts"] <= loss * counters["drop_link_loss"] + 3 * math.sqrt(loss * counters["drop_link_loss"]) + 3
    )
    assert goodput == pytest.approx(expected, abs=3 * sigma + end)
    assert goodput > go_back_n
