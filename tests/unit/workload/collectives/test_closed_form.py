"""The closed form of collectives: laws over random groups, limits that follow from links, the choice among methods."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.clock import SECOND_PS
from weftwork.base.errors import ConfigError
from weftwork.hardware.catalogue import SERVERS, node
from weftwork.workload.collectives.closed_form import OPERATIONS, GroupShape, alone, fastest, methods
from weftwork.workload.collectives.figures import FIGURES, CollectiveFigures, collective_figures

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
LATENCIES = ("launch_ps", "ramp_ps", "nvlink_latency_ps", "network_latency_ps")


@given(operation=operations, group=groups(), size_bytes=sizes, server=servers, factor=st.floats(1, 100))
def test_a_faster_link_is_never_slower(
    operation: str, group: GroupShape, size_bytes: int, server: str, factor: float
) -> None:
    now = figures(server)
    took_ps = fastest(operation, group, size_bytes, now).time_ps
    for name in FASTER:
        faster = replace(now, **{name: round(getattr(now, name) * factor)})
        assert fastest(operation, group, size_bytes, faster).time_ps <= took_ps
    for name in LATENCIES:
        longer = replace(now, **{name: round(getattr(now, name) * factor)})
        assert fastest(operation, group, size_bytes, longer).time_ps >= took_ps


@given(operation=operations, group=groups(), size_bytes=sizes, server=servers)
def test_twice_the_rates_take_half_the_time_without_latencies_and_no_less_with_them(
    operation: str, group: GroupShape, size_bytes: int, server: str
) -> None:
    now = figures(server)
    quiet = replace(now, **dict.fromkeys(LATENCIES, 0))

    def doubled(one: CollectiveFigures) -> CollectiveFigures:
        return replace(one, **{name: 2 * getattr(one, name) for name in FASTER})

    slow, fast = (
        fastest(operation, group, size_bytes, one, latency_scale=0).time_ps for one in (quiet, doubled(quiet))
    )
    assert fast == pytest.approx(slow / 2, rel=1e-9)
    slow, fast = (fastest(operation, group, size_bytes, one).time_ps for one in (now, doubled(now)))
    assert slow / 2 <= fast <= slow


@given(operation=operations, group=groups(), size_bytes=sizes, more=st.floats(1, 1_000), server=servers)
def test_more_bytes_never_take_less_by_much(
    operation: str, group: GroupShape, size_bytes: int, more: float, server: str
) -> None:
    """A cut into more pieces may save a little where a buffer grows past the size of one."""
    now = figures(server)
    small, large = (fastest(operation, group, size, now).time_ps for size in (size_bytes, size_bytes * more))
    assert large >= 0.6 * small


def test_a_large_ring_is_as_fast_as_the_slower_of_nvlink_and_nics() -> None:
    now, size = figures("p5"), 1 << 40
    group = GroupShape(members=64, per_domain=8, domain_gpus=8)
    found = fastest("all-gather", group, size, now)
    assert (found.method.algorithm, found.method.protocol) == ("ring", "simple")
    bus_bps = size * 8 * 63 / 64 * SECOND_PS / found.time_ps
    assert bus_bps == pytest.approx(min(now.nvlink_rate_bps * 8 / 7, 8 * now.network_rate_bps * 0.98), rel=0.01)


def test_a_large_all_to_all_is_as_fast_as_a_nic() -> None:
    now, size = figures("p5"), 1 << 40
    found = fastest("all-to-all", GroupShape(members=64, per_domain=8, domain_gpus=8), size, now)
    assert size * 8 * 56 / 64 * SECOND_PS / found.time_ps == pytest.approx(now.network_rate_bps * 0.98, rel=0.01)


def test_switches_reduce_for_a_whole_domain_and_rings_do_the_rest() -> None:
    now = figures()
    whole, half = (GroupShape(members=n, per_domain=n, domain_gpus=8) for n in (8, 4))
    assert fastest("all-reduce", whole, GIB, now).method.algorithm == "nvls"
    assert fastest("all-reduce", half, GIB, now).method.algorithm == "ring"
    assert fastest("all-gather", whole, GIB, now).method.algorithm == "ring"
    assert fastest("all-reduce", whole, GIB, figures("dgx-a100")).method.algorithm == "ring"
    bus_bps = GIB * 8 * 1.75 * SECOND_PS / fastest("all-reduce", whole, GIB, now).time_ps
    assert bus_bps > now.nvlink_rate_bps  # the switch adds: a GPU sends less than without


def test_small_sizes_take_few_steps_and_large_ones_few_bytes() -> None:
    now, group = figures(), GroupShape(members=512, per_domain=8, domain_gpus=8)
    small, large = (fastest("all-reduce", group, size, now).method for size in (1 << 16, 64 * GIB))
    assert (small.algorithm, small.protocol) == ("tree", "ll")
    assert (large.algorithm, large.protocol) == ("ring", "simple") or large.algorithm == "hierarchical"


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


@pytest.mark.parametrize(("gpu", "most"), [("a100", 0.03), pytest.param("h100", 0.10, marks=pytest.mark.deep)])
def test_the_fit_gives_the_figures(gpu: str, most: float) -> None:
    path = Path(__file__).resolve().parents[4] / "benchmarks" / "fit_one_node.py"
    spec = importlib.util.spec_from_file_location("fit_one_node", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found, error = module.fit(gpu)
    assert error < most
    assert found.pop("nvlink_rate_share", 1.0) == pytest.approx(1.0, abs=0.005)
    for key, value in found.items():
        assert FIGURES[gpu].value(key) == pytest.approx(value, rel=0.03), key
