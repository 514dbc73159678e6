"""Traffic: who sends to whom, how much and when; and the distributions of sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.clock import SECOND_PS
from weftwork.base.errors import ConfigError
from weftwork.spec.job import Arrivals, Job, Loop, Send
from weftwork.spec.plug_in import PatternInput
from weftwork.workload.collectives.call import Call
from weftwork.workload.collectives.catalogue import schedule
from weftwork.workload.placement import one_per_host
from weftwork.workload.traffic.patterns.incast import incast
from weftwork.workload.traffic.patterns.mixed import PATTERN, Keys
from weftwork.workload.traffic.patterns.permutation import permutation, permutation_peers
from weftwork.workload.traffic.patterns.poisson import poisson
from weftwork.workload.traffic.sizes import SizeDistribution, load_sizes, published_sizes, read_sizes

GBPS = 10**9


@given(hosts=st.integers(2, 200), seed=st.integers(0, 2**31 - 1))
def test_a_permutation_is_one_cycle(hosts: int, seed: int) -> None:
    peers = permutation_peers(hosts, seed)
    at, seen = 0, []
    for _ in range(hosts):
        seen.append(at)
        at = peers[at]
    assert at == 0
    assert sorted(seen) == list(range(hosts))


def test_seeds_decide_the_pairs() -> None:
    assert permutation_peers(64, 1) == permutation_peers(64, 1)
    assert permutation_peers(64, 1) != permutation_peers(64, 2)


def test_a_permutation_of_any_size_is_one_program() -> None:
    job = permutation(hosts=8_192, size_bytes=4_096, seed=1)
    assert len(job.programs) == 1


def test_poisson_offers_the_load_that_was_asked_for() -> None:
    sizes = SizeDistribution(name="flat", size_bytes=(500.0, 1_500.0), share=(0.0, 1.0))
    job = poisson(hosts=16, flows=20_000, load=0.4, host_rate_bps=16 * 100 * GBPS, sizes=sizes, seed=5)
    operations = [op for program in job.programs for stream in program.streams for op in stream]
    arrivals = [op for op in operations if isinstance(op, Arrivals)]
    last_s = max(int(op.at_ps.max()) for op in arrivals) / SECOND_PS
    payload = sum(int(op.size_bytes.sum()) for op in arrivals)
    assert payload / 20_000 == pytest.approx(1_000, rel=0.01)
    assert payload * 8 / last_s == pytest.approx(0.4 * 1_600e9, rel=0.03)  # 1/sqrt(20,000) is 0.7 %


def test_poisson_draws_what_one_flow_at_a_time_draws() -> None:
    """The identity of a flow decides its luck: fewer flows are the first of many."""
    sizes = load_sizes("web-search")
    few, many = (
        poisson(hosts=5, flows=flows, load=0.4, host_rate_bps=500 * GBPS, sizes=sizes, seed=3) for flows in (40, 70)
    )
    for program, other in zip(few.programs[1:], many.programs[1:], strict=True):
        one, all_ = program.streams[0][0], other.streams[0][0]
        assert isinstance(one, Arrivals)
        assert isinstance(all_, Arrivals)
        for name in ("at_ps", "peer", "size_bytes", "channel"):
            assert getattr(one, name).tolist() == getattr(all_, name)[: len(one)].tolist()


@pytest.mark.parametrize(
    ("name", "mean_bytes"), [("web-search", 1_711_250), ("facebook-hadoop", 120_421), ("alibaba-storage", 40_870)]
)
def test_published_sizes_have_the_published_mean(name: str, mean_bytes: int) -> None:
    sizes = load_sizes(name)
    assert round(sizes.mean_bytes) == mean_bytes
    drawn = sizes.quantiles((np.arange(20_000) + 0.5) / 20_000)
    assert drawn.mean() == pytest.approx(mean_bytes, rel=0.001)


def test_every_published_table_is_a_name() -> None:
    assert published_sizes() == ("alibaba-storage", "facebook-hadoop", "web-search")


def test_quantiles_are_linear_between_corners() -> None:
    sizes = read_sizes("mine", ["size_bytes,cumulative_percent", "0,0", "100,50", "100,60", "200,100"], source="mine")
    assert sizes.quantiles(np.array((0.0, 0.25, 0.5, 0.55, 0.8, 1.0))).tolist() == [1, 50, 100, 100, 150, 200]


def test_a_wrong_name_of_sizes_has_a_hint() -> None:
    with pytest.raises(ConfigError, match="did you mean 'web-search'"):
        load_sizes("web-serch")
    with pytest.raises(ConfigError, match="No such file"):
        load_sizes("nowhere.csv")


def ring_all_reduce(ranks: int, size_bytes: int, **more: int) -> Job:
    call = Call(operation="all-reduce", ranks=ranks, size_bytes=size_bytes, **more)
    return schedule("ring", call).job(one_per_host(ranks))


def test_a_ring_of_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="found 1, wanted at least 2 GPUs"):
        ring_all_reduce(ranks=1, size_bytes=1_000)


@pytest.mark.parametrize(
    ("victim", "keys"),
    [
        ((5, 7), ["victim_source"]),
        ((0, 4), ["victim_receiver"]),
        ((3, 3), ["victim_receiver"]),
        ((12, -1), ["victim_source", "victim_receiver"]),
    ],
)
def test_a_victim_is_neither_a_sender_nor_the_receiver(victim: tuple[int, int], keys: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        incast(hosts=12, size_bytes=5_000, seed=1, senders=3, receiver=4, victim=victim)
    assert [mistake.path for mistake in caught.value.mistakes] == [f"traffic.{key}" for key in keys]


@given(hosts=st.integers(8, 40), seed=st.integers(0, 2**31 - 1))
def test_mixed_traffic_is_a_ring_of_even_hosts_and_others_among_odd_ones(hosts: int, seed: int) -> None:
    given_ = PatternInput(hosts=hosts, seed=seed, priority=-1, queue_pairs=1, host_rate_bps=hosts * 400 * GBPS)
    keys = Keys(flows=20, all_reduce_bytes=1 << 20, incast_bytes=5_000)
    job = PATTERN.job(keys, given_)
    programs = [job.programs[number] for number in job.rank_program.tolist()]
    ring = programs[0].streams[0][0]
    assert isinstance(ring, Loop)
    send = next(one for one in ring.body if isinstance(one, Send))
    at, seen = 0, []
    while at not in seen:
        seen.append(at)
        at = send.peer.table[at]
    assert sorted(seen) == list(range(0, hosts, 2))
    assert ring.count == 2 * (len(seen) - 1)
    arriving = [one for program in programs[1::2] for stream in program.streams for one in stream]
    flows = [one for one in arriving if isinstance(one, Arrivals)]
    assert sum(len(one.at_ps) for one in flows) == 20
    assert all((one.peer % 2 == 1).all() for one in flows)
    bursts = [rank for rank in range(hosts) if any(isinstance(one, Send) for s in programs[rank].streams for one in s)]
    odd = range(1, hosts, 2)
    assert bursts == list(odd[-min(8, len(odd) - 1) :])
