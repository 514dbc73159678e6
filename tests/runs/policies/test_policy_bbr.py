"""BBR version 1: samples of the delivery rate and transitions by hand, then flows in deep buffers."""

from typing import Any

import numpy as np
import pytest
from helpers.both import both
from helpers.tiny import Message, packet_input_of, sends, star
from helpers.watched import watch

from weftwork.base.clock import MS_PS, US_PS
from weftwork.spec.device import Ecn, Switch
from weftwork.spec.transport import Transport

DEEP = Switch(
    forwarding_latency_ps=0, buffer_bytes=200_000_000, alpha=8.0, ecn=Ecn(kmin_bytes=60_000_000, kmax_bytes=60_000_000)
)


BOTTLENECK_BPS = 50_000_000_000


def test_one_flow_in_a_deep_buffer_holds_a_product_and_a_quarter_more_in_an_eighth_of_the_time() -> None:
    seen = watch(
        "bbr", 1, 25 * MS_PS, switch=DEEP, delay_ps=25 * US_PS, bottleneck_bps=BOTTLENECK_BPS,
        state=("phase", "bw_bps", "min_rtt_ps"),
    )  # fmt: skip
    settled_ps = 10 * MS_PS
    payload_bps = BOTTLENECK_BPS * Transport().payload_share
    assert seen.values("bw_bps", since_ps=settled_ps) == pytest.approx(
        payload_bps, rel=0.002
    )  # timestamps are left out
    rtt_ps = float(seen.values("min_rtt_ps", since_ps=settled_ps)[-1])
    assert rtt_ps == pytest.approx(100 * US_PS, rel=0.02)
    product_bytes = payload_bps * rtt_ps / 8e12
    queue = seen.values("queue_bytes", since_ps=settled_ps) / product_bytes
    phases = seen.values("phase", since_ps=settled_ps)
    assert 0.24 < queue.max() < 0.30  # five packets are 0.03
    assert 0.11 < float(np.mean(phases == 0)) < 0.17  # an eighth, and what 1.25 products in flight take longer
    assert float(np.mean(queue > 0.01)) < 0.30  # it comes up in one phase and goes down in the next
    assert 0.95 * payload_bps < seen.goodputs_bps(settled_ps)[0] < payload_bps


def two_flows(variant: str) -> Any:
    """The second one starts where the first one's Startup has filled the buffer, and takes that for the path's RTT."""
    return watch(
        "bbr", 2, 50 * MS_PS, variant=variant, switch=DEEP, delay_ps=10 * US_PS, bottleneck_bps=BOTTLENECK_BPS,
        starts_ps=(0, 300 * US_PS), state=("min_rtt_ps",), every_ps=100 * US_PS,
    )  # fmt: skip


def test_two_flows_that_disagree_about_the_rtt_share_unfairly_before_probe_rtt() -> None:
    seen = two_flows("linux")
    first, second = (float(seen.values("min_rtt_ps", flow)[-1]) for flow in range(2))
    assert second > 1.5 * first
    assert [goodput_bps / 1e9 for goodput_bps in seen.goodputs_bps(30 * MS_PS)] == pytest.approx([8, 41], abs=1)


def test_two_flows_that_have_seen_probe_rtt_share_fairly() -> None:
    """Both find the RTT of the empty path, in windows of 10 ms in place of 10 s."""
    seen = two_flows("datacenter")
    first, second = (float(seen.values("min_rtt_ps", flow)[-1]) for flow in range(2))
    assert second == pytest.approx(first, rel=0.01)
    assert [goodput_bps / 1e9 for goodput_bps in seen.goodputs_bps(30 * MS_PS)] == pytest.approx([23, 25], abs=1)


@pytest.mark.parametrize("recovery", ["go-back-n", "selective-repeat"])
def test_both_engines_agree_where_packets_are_lost(recovery: str) -> None:
    shallow = Switch(buffer_bytes=150_000)
    messages = [Message(source=source, destination=3, size_bytes=600_000, at_ps=source) for source in range(3)]
    transport = Transport(recovery=recovery, lossless_priorities=(), retransmission_timeout_ps=MS_PS, retry_limit=100)
    outcome = both(
        packet_input_of(
            star(4, switch=shallow), sends(4, messages), transport=transport, congestion_control="bbr",
            parameters={"initial_window_packets": 40},
        )
    )  # fmt: skip
    assert outcome.counters["drop_egress_threshold"] > 0
    assert (outcome.messages["delivered_at_ps"] > 0).all()
