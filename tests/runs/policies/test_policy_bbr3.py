"""BBR version 3: phases, bounds and ProbeRTT by hand, then flows in deep and in shallow buffers."""

import numpy as np
import pytest
from helpers.both import both
from helpers.tiny import Message, packet_input_of, sends, star
from helpers.watched import Watched, watch

from weftwork.base.clock import MS_PS, US_PS
from weftwork.spec.device import Ecn, Switch
from weftwork.spec.transport import Transport

UP, DOWN, CRUISE, REFILL = 0, 1, 2, 3


NO_MARKS = Ecn(kmin_bytes=60_000_000, kmax_bytes=60_000_000)


DEEP = Switch(forwarding_latency_ps=0, buffer_bytes=200_000_000, alpha=8.0, ecn=NO_MARKS)


BOTTLENECK_BPS = 50_000_000_000


def test_one_flow_cruises_without_a_queue_and_probes_for_three_rounds() -> None:
    seen = watch(
        "bbr3", 1, 30 * MS_PS, switch=DEEP, delay_ps=25 * US_PS, bottleneck_bps=BOTTLENECK_BPS,
        state=("phase", "bw_hi_bps", "min_rtt_ps"),
    )  # fmt: skip
    settled_ps = 10 * MS_PS
    payload_bps = BOTTLENECK_BPS * Transport().payload_share
    assert seen.values("bw_hi_bps", since_ps=settled_ps) == pytest.approx(payload_bps, rel=0.002)
    product_bytes = payload_bps * float(seen.values("min_rtt_ps")[-1]) / 8e12
    queue = seen.values("queue_bytes", since_ps=settled_ps) / product_bytes
    phases = seen.values("phase", since_ps=settled_ps)
    assert float(np.mean(phases == CRUISE)) > 0.75
    assert 0.7 < queue.max() < 0.9  # a quarter of the product in each of three rounds
    assert float(np.mean(queue > 0.01)) < 0.2
    assert seen.goodputs_bps(settled_ps)[0] > 0.95 * payload_bps


def shallow(name: str, flows: int) -> Watched:
    """A buffer of 200 kB for a product of 250 kB, without flow control."""
    return watch(
        name, flows, 20 * MS_PS, variant="datacenter", delay_ps=10 * US_PS, bottleneck_bps=BOTTLENECK_BPS,
        switch=Switch(forwarding_latency_ps=0, buffer_bytes=200_000, ecn=NO_MARKS),
        transport=Transport(
            recovery="selective-repeat", lossless_priorities=(), retransmission_timeout_ps=5 * MS_PS, retry_limit=100
        ),
    )  # fmt: skip


def test_in_a_shallow_buffer_it_loses_a_tenth_of_what_version_1_loses_and_sends_as_much() -> None:
    old, new = shallow("bbr", 3), shallow("bbr3", 3)
    lost = [seen.outcome.counters["retransmissions"] for seen in (old, new)]
    assert lost[1] < 0.2 * lost[0]
    settled_ps = 8 * MS_PS
    sent = [sum(seen.goodputs_bps(settled_ps)) for seen in (old, new)]
    assert sent[1] > 0.97 * sent[0] > 0.9 * BOTTLENECK_BPS
    assert new.jain(settled_ps) > 0.95


@pytest.mark.parametrize("recovery", ["go-back-n", "selective-repeat"])
def test_both_engines_agree_where_packets_are_lost(recovery: str) -> None:
    device = Switch(buffer_bytes=150_000)
    messages = [Message(source=source, destination=3, size_bytes=2_000_000, at_ps=source) for source in range(3)]
    transport = Transport(recovery=recovery, lossless_priorities=(), retransmission_timeout_ps=MS_PS, retry_limit=100)
    outcome = both(
        packet_input_of(star(4, switch=device), sends(4, messages), transport=transport, congestion_control="bbr3")
    )
    assert outcome.counters["drop_egress_threshold"] > 0
    assert (outcome.messages["delivered_at_ps"] > 0).all()
