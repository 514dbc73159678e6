"""The closed form of collectives: laws over random groups, limits that follow from links, rounds and peers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.clock import SECOND_PS
from weftwork.base.errors import ConfigError
from weftwork.hardware.catalogue import SERVERS, node
from weftwork.workload.collectives.closed_form import (
    OPERATIONS,
    GroupShape,
    Method,
    alone,
    channels,
    latencies,
    methods,
    ramp_ps,
    round_bytes,
)
from weftwork.workload.collectives.figures import CollectiveFigures, collective_figures
from weftwork.workload.collectives.tuner import chosen

GIB = 1 << 30


def figures(name: str = "dgx-h100") -> CollectiveFigures:
    model = node(name)
    assert model.nic_port_rate_bps is not None
    return collective_figures(
        model.server, nic_port_rate_bps=model.nic_port_rate_bps, network_latency_ps=2_000_000, payload_share=0.98
    )


@st.composite
def groups(draw: st.DrawFn) -> GroupShape:
    domain_gpus = draw(st.sampled_from([1, 2, 4, 8, 72]))
    per_domain = draw(st.integers(1, domain_gpus))
    domains = draw(st.sampled_from([1, 2, 3, 4, 16, 1_000]))
    members = max(2, per_domain * domains)
    return GroupShape(members=members, per_domain=min(per_domain, members), domain_gpus=domain_gpus)


operations = st.sampled_from(OPERATIONS)


sizes = st.integers(1, 16 * GIB)


servers = st.sampled_from([name for name in SERVERS if node(name).nic_port_rate_bps])


FASTER = ("nvlink_rate_bps", "network_rate_bps")


LATENCIES = (
    "launch_ps", "ramp_ps", "nvlink_latency_ps", "network_latency_ps", "nic_latency_ps", "nic_flush_ps", "peer_ps",
    "post_ps",
)  # fmt: skip


@given(operation=operations, group=groups(), size_bytes=sizes, server=servers, factor=st.floats(1, 100))
def test_a_faster_link_is_never_slower(
    operation: str, group: GroupShape, size_bytes: int, server: str, factor: float
) -> None:
    now = figures(server)
    for method in methods(operation, group, now):
        took_ps = alone(operation, method, group, size_bytes, now).time_ps
        for name in FASTER:
            faster = replace(now, **{name: round(getattr(now, name) * factor)})
            assert alone(operation, method, group, size_bytes, faster).time_ps <= took_ps
        for name in LATENCIES:
            longer = replace(now, **{name: round(getattr(now, name) * factor)})
            assert alone(operation, method, group, size_bytes, longer).time_ps >= took_ps


@given(operation=operations, group=groups(), size_bytes=sizes, server=servers)
def test_twice_the_rates_take_half_the_time_without_latencies_and_no_less_with_them(
    operation: str, group: GroupShape, size_bytes: int, server: str
) -> None:
    now = figures(server)
    quiet = replace(now, **dict.fromkeys(LATENCIES, 0))

    def doubled(one: CollectiveFigures) -> CollectiveFigures:
        return replace(one, **{name: 2 * getattr(one, name) for name in FASTER})

    for method in methods(operation, group, now):
        slow, fast = (
            alone(operation, method, group, size_bytes, one, latency_scale=0).time_ps for one in (quiet, doubled(quiet))
        )
        assert fast == pytest.approx(slow / 2, rel=1e-9)
        slow, fast = (alone(operation, method, group, size_bytes, one).time_ps for one in (now, doubled(now)))
        assert slow / 2 <= fast <= slow


@given(operation=operations, group=groups(), size_bytes=sizes, more=st.floats(1, 1_000), server=servers)
def test_more_bytes_by_the_same_method_take_no_less(
    operation: str, group: GroupShape, size_bytes: int, more: float, server: str
) -> None:
    """A cut into more pieces may save a little where a buffer grows past the size of one; a ring has none."""
    now = figures(server)
    for method in methods(operation, group, now):
        small, large = (alone(operation, method, group, size, now).time_ps for size in (size_bytes, size_bytes * more))
        assert large >= (1.0 if method.algorithm == "ring" else 0.6) * small * (1 - 1e-12)


@given(operation=operations, group=groups(), size_bytes=sizes, server=servers)
def test_nothing_is_faster_than_the_bytes_of_the_busiest_link(
    operation: str, group: GroupShape, size_bytes: int, server: str
) -> None:
    now = figures(server)
    for method in methods(operation, group, now):
        found = alone(operation, method, group, size_bytes, now)
        nic_bps = now.network_rate_bps * now.payload_share * now.network_share
        local_ps, network_ps = (
            8 * SECOND_PS * size / rate
            for size, rate in ((found.local_bytes, now.nvlink_rate_bps), (found.network_bytes, nic_bps))
        )
        assert found.time_ps >= max(local_ps, network_ps) * (1 - 1e-12)


def test_an_all_to_all_takes_longer_by_each_peer() -> None:
    now = figures("p5")
    direct = Method(algorithm="direct")

    def start_ps(members: int) -> float:
        group = GroupShape(members=members, per_domain=8, domain_gpus=8)
        return latencies(direct, "all-to-all", group, 1, now).base_latency_ps - ramp_ps("all-to-all", group, 1, now)

    assert start_ps(64) - start_ps(16) == pytest.approx(48 * now.peer_ps)
    assert start_ps(8) == pytest.approx(start_ps(16) - 15 * now.peer_ps)  # in one domain no proxy has anything to do


def test_a_ring_has_as_many_rounds_as_its_parts_have_buffers() -> None:
    """NCCL, calcCollChunking: 16 channels of 64 GPUs hold 4 MiB of Simple each with the buffers of EFA, 8 MiB."""
    now, group = figures("p5"), GroupShape(members=64, per_domain=8, domain_gpus=8)
    simple, ll128 = (Method(algorithm="ring", protocol=name) for name in ("simple", "ll128"))
    held = 64 * channels(group, now) * round_bytes(simple, group, now)
    assert held == 64 * 16 * 4 * (1 << 20)
    step = latencies(simple, "all-reduce", group, GIB, now)
    waited = 110 * (step.local_step_latency_ps + now.nvlink_latency_ps)
    waited += 16 * (step.step_latency_ps + now.network_latency_ps)
    one, two = (alone("all-reduce", simple, group, size, now).time_ps for size in (held, held + 64))
    assert two - one == pytest.approx(waited, rel=1e-3)
    assert 64 * channels(group, now) * round_bytes(ll128, group, now) == pytest.approx(64 * 16 * 576_000 / 0.9375)


def test_a_large_ring_is_as_fast_as_the_slower_of_nvlink_and_nics() -> None:
    now, size = figures("p5"), 1 << 40
    group = GroupShape(members=64, per_domain=8, domain_gpus=8)
    quiet = replace(now, nic_latency_ps=0, nic_flush_ps=0)
    found = alone("all-gather", Method(algorithm="ring"), group, size, quiet, latency_scale=0.01)
    bus_bps = size * 8 * 63 / 64 * SECOND_PS / found.time_ps
    nics_bps = 8 * now.network_rate_bps * 0.98 * now.network_share
    assert bus_bps == pytest.approx(min(now.nvlink_rate_bps * 8 / 7, nics_bps), rel=0.05)


def test_a_large_all_to_all_is_as_fast_as_a_nic() -> None:
    now, size = figures("p5"), 1 << 40
    found = chosen("all-to-all", GroupShape(members=64, per_domain=8, domain_gpus=8), size, now)
    nic_bps = now.network_rate_bps * 0.98 * now.network_share
    assert size * 8 * 56 / 64 * SECOND_PS / found.time_ps == pytest.approx(nic_bps, rel=0.01)


def test_only_what_has_a_closed_form_has_ways() -> None:
    with pytest.raises(ConfigError, match="found 'broadcast'"):
        methods("broadcast", GroupShape(members=8, per_domain=8, domain_gpus=8), figures())


def test_latencies_scale() -> None:
    group = GroupShape(members=64, per_domain=8, domain_gpus=8)
    for method in methods("all-reduce", group, figures()):
        once, twice = (
            alone("all-reduce", method, group, 1 << 16, figures(), latency_scale=scale).time_ps for scale in (1.0, 2.0)
        )
        assert once < twice < 2 * once
