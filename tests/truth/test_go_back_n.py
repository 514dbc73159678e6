"""Goodput of go-back-N under random loss, against the closed form.

A lost packet costs itself and all that follows it until the NAK has come: W = C RTT / (8 frame) packets. A packet is
sent 1 / (1 - p) times on average, so that with loss p

    goodput = (1 - p) / (1 - p + p W)

Source: Bertsekas and Gallager, Data Networks, section 2.4.2, efficiency of go-back-n.

On a real wire the gap is seen when the packet behind it has come, and the packet that starts before or at the instant
of the NAK is finished: that makes floor(W) + 2 packets, which shows where W is small. The test holds both: the form
within max(0.02, 3 sigma), and the form with that whole number within 3 sigma and a thousandth.

The form knows no timeouts. There is one where a packet sent again is lost again, since a receiver sends one NAK per gap
(p of all losses); it costs the timeout instead of a round trip. The timeout here is 1.5 round trips, the shortest that
never fires by itself, so that this moves the goodput by at most p/2 of its loss, a thousandth. Only data is at risk, as
in the form: a lost NAK would be one more timeout.
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
WIRE = Transport(first_extra_bytes=0)


@pytest.mark.parametrize("window_packets", [12, 122, 488])
@pytest.mark.parametrize("loss", [1e-4, 1e-3, 1e-2])
def test_goodput_under_loss(loss: float, window_packets: int, show: Show) -> None:
    data_ps = serialisation_ps(WIRE.mtu_bytes + WIRE.data_overhead_bytes + WIRE.interframe_bytes, RATE_BPS)
    ack_ps = serialisation_ps(WIRE.ack_bytes + WIRE.interframe_bytes, RATE_BPS)
    delay_ps = (window_packets * data_ps - data_ps - ack_ps) // 2
    rtt_ps = 2 * delay_ps + data_ps + ack_ps
    window = rtt_ps / data_ps
    packets = 1_000_000 if loss < 1e-2 else 200_000
    transport = WIRE.model_copy(update={"retransmission_timeout_ps": rtt_ps * 3 // 2, "retry_limit": 1000})
    job = sends(2, [Message(source=0, destination=1, size_bytes=packets * WIRE.mtu_bytes)])
    engine_input = packet_input_of(pair(delays_ps=[delay_ps]), job, transport=transport)
    outcome = run(replace(engine_input, port_loss=np.array([loss, 0.0])))
    counters = outcome.counters
    assert counters["data_sent"] >= 100_000
    goodput = packets * data_ps / (int(outcome.messages["delivered_at_ps"][0]) - delay_ps)
    expected, exact = ((1 - loss) / (1 - loss + loss * w) for w in (window, rtt_ps // data_ps + 2))
    # n packets take n + W K packet times, K losses of variance n p / (1-p)^2
    sigma = expected**2 * window * math.sqrt(loss / packets) / (1 - loss)
    show(
        f"p={loss:g} W={window:.0f}: {counters['data_sent']:,} sent, {counters['drop_link_loss']:,} lost, "
        f"{counters['timeouts']} timeouts, goodput {goodput:.4f}, formula {expected:.4f}, "
        f"whole packets {exact:.4f}, 3 sigma {3 * sigma:.4f}"
    )
    assert counters["drop_link_loss"] > 0
    assert goodput == pytest.approx(expected, abs=max(0.02, 3 * sigma))
    assert goodput == pytest.approx(exact, abs=0.001 + 3 * sigma)
