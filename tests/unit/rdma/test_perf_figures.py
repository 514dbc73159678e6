"""Figures of perf against numbers by hand, and the plan of a measurement with its refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from weftwork.base.errors import ConfigError, PeerError
from weftwork.rdma.perf.figures import MOST_FOR_PEAK, bandwidth_figures, latency_figures, peak_rate
from weftwork.rdma.perf.operation import PerfVerb
from weftwork.rdma.perf.plan import ALL_SIZES, PerfPlan, disagreements, make_plan


def test_average_counts_from_the_first_post_to_the_last_completion() -> None:
    found = bandwidth_figures(1000, [(1_000, 2), (5_000, 2)], [(6_000, 1), (11_000, 3)], with_peak=True)
    assert (found.messages, found.duration_s) == (4, 1e-5)
    assert found.average_bytes_per_s == pytest.approx(4 * 1000 / 1e-5)
    assert found.messages_per_s == pytest.approx(4 / 1e-5)


@pytest.mark.parametrize(
    ("posts", "completions", "messages", "took_ns"),
    [
        ([(0, 1), (10, 1)], [(100, 1), (110, 1)], 2, 110),  # the whole is the best
        ([(0, 1), (90, 3)], [(80, 1), (120, 3)], 3, 30),  # the three posted last
        ([(0, 4)], [(10, 3), (1_000, 1)], 3, 10),  # the first three
        ([(0, 1), (5, 1), (400, 1)], [(300, 1), (310, 1), (900, 1)], 2, 310),  # in the middle of the order
    ],
)
def test_the_peak_is_the_best_stretch_from_a_post_to_a_completion(
    posts: list[tuple[int, int]], completions: list[tuple[int, int]], messages: int, took_ns: int
) -> None:
    assert peak_rate(posts, completions) == pytest.approx(messages / took_ns * 1e9)


def test_the_peak_agrees_with_the_loops_of_perftest() -> None:
    posted = [0, 3, 4, 20, 21, 22, 50]
    done = [15, 16, 30, 40, 41, 60, 61]
    best = max((j - i + 1) / (done[j] - posted[i]) for i in range(7) for j in range(i, 7) if done[j] > posted[i])
    assert peak_rate([(at, 1) for at in posted], [(at, 1) for at in done]) == pytest.approx(best * 1e9)


def test_there_is_no_peak_where_it_would_take_long_or_is_not_wanted() -> None:
    posts, completions = [(0, MOST_FOR_PEAK + 1)], [(10, MOST_FOR_PEAK + 1)]
    assert bandwidth_figures(8, posts, completions, with_peak=True).peak_bytes_per_s is None
    assert bandwidth_figures(8, [(0, 1)], [(10, 1)], with_peak=False).peak_bytes_per_s is None


def test_both_directions_are_added() -> None:
    one = bandwidth_figures(100, [(0, 1)], [(1_000, 1)], with_peak=True)
    other = bandwidth_figures(100, [(0, 3)], [(2_000, 3)], with_peak=True)
    both = one.plus(other)
    assert (both.messages, both.duration_s) == (4, 2e-6)
    assert both.average_bytes_per_s == pytest.approx(100 / 1e-6 + 300 / 2e-6)
    assert both.peak_bytes_per_s == pytest.approx(100 / 1e-6 + 300 / 2e-6)
    assert one.plus(bandwidth_figures(100, [(0, 1)], [(9, 1)], with_peak=False)).peak_bytes_per_s is None


def test_latency_is_half_a_round_trip_for_write_and_send_alone() -> None:
    assert [make_plan(verb, {}).halves for verb in PerfVerb] == [True, False, True, False]
    samples = [2_000 * count for count in range(1, 1_001)]  # 2 us to 2 ms, in any order
    half = latency_figures(64, samples[::-1], halves=True)
    assert (half.min_us, half.max_us, half.typical_us, half.average_us) == (1.0, 1_000.0, 500.5, 500.5)
    assert (half.p99_us, half.p99_9_us, half.messages) == (990.0, 999.0, 1_000)
    assert half.stdev_us == pytest.approx(((1_000**2 - 1) / 12) ** 0.5)  # of 1 to 1,000
    whole = latency_figures(64, samples, halves=False)
    assert (whole.min_us, whole.p99_us) == (2.0, 1_980.0)


def test_one_sample_is_every_figure() -> None:
    found = latency_figures(1, [7_000], halves=False)
    assert (found.min_us, found.max_us, found.typical_us, found.p99_us, found.p99_9_us) == (7.0,) * 5
    assert found.stdev_us == 0


def test_defaults_are_those_of_perftest() -> None:
    write, read = make_plan(PerfVerb.WRITE, {}), make_plan(PerfVerb.READ, {})
    assert (write.iterations, read.iterations, write.sizes, write.tx_depth) == (5_000, 1_000, (65_536,), 128)
    latency = make_plan(PerfVerb.SEND, {"latency": True})
    assert (latency.iterations, latency.sizes, latency.tx_depth) == (1_000, (2,), 1)
    assert (ALL_SIZES[0], ALL_SIZES[-1], len(ALL_SIZES)) == (2, 8_388_608, 23)
    assert [write.moderation(size) for size in (2, 8_192, 8_193)] == [64, 64, 1]  # 100, but half the depth at most
    assert make_plan(PerfVerb.WRITE, {"cq_moderation": 3}).moderation(65_536) == 3


@pytest.mark.parametrize(
    ("verb", "given", "options"),
    [
        ("read", {"connection": "UC", "qps": 0, "iterations": 4}, ["--connection", "--iterations", "--qps"]),
        ("write", {"connection": "UD", "path_mtu": 1500}, ["--connection", "--mtu"]),
        ("write", {"latency": True, "bidirectional": True, "qps": 2}, ["--bidirectional", "--qps"]),
        ("atomic", {"sizes": (16,), "atomic": "swap"}, ["--atomic-type", "--size"]),
        ("send", {"sizes": (0,), "rx_depth": 0, "duration_s": -1.0}, ["--duration", "--rx-depth", "--size"]),
        ("write", {"sizes": (1 << 30,), "cq_moderation": 129}, ["--cq-mod", "--size"]),
        (
            "send",
            {"rdma_cm": True, "connection": "UC", "path_mtu": 512, "outstanding": 2, "rx_depth": 257},
            ["--connection", "--mtu", "--outstanding", "--rx-depth"],
        ),
    ],
)
def test_all_mistakes_of_a_plan_are_told_at_once(verb: str, given: dict[str, Any], options: list[str]) -> None:
    with pytest.raises(ConfigError) as found:
        make_plan(PerfVerb(verb), given)
    assert sorted(mistake.path for mistake in found.value.mistakes) == options
    assert all("wanted" in mistake.text for mistake in found.value.mistakes)


def test_a_plan_survives_its_letter() -> None:
    plan = make_plan(PerfVerb.ATOMIC, {"duration_s": 1.5, "atomic": "cmp-swap", "bidirectional": True})
    assert PerfPlan.decode(json.loads(json.dumps(plan.encode()))) == plan


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"qps": "4"}, "found '4' for qps"),
        ({"qps": True}, "found True for qps"),
        ({"sizes": [1, "2"]}, "size that is no number"),
        ({"verb": "erase"}, "unknown operation"),
        ({"more": 1}, "one version at both ends"),
    ],
)
def test_a_strange_plan_of_a_peer_is_refused(changed: dict[str, Any], text: str) -> None:
    letter = {**make_plan(PerfVerb.WRITE, {}).encode(), **changed}
    with pytest.raises(PeerError, match=text):
        PerfPlan.decode(letter)
    with pytest.raises(PeerError):
        PerfPlan.decode([letter])


def test_options_of_the_server_have_to_agree() -> None:
    plan = make_plan(PerfVerb.WRITE, {"sizes": (4096,)})
    assert disagreements({"verb": PerfVerb.WRITE, "sizes": (4096,)}, plan) == []
    assert disagreements({"verb": PerfVerb.READ, "sizes": ALL_SIZES, "latency": True}, plan) == [
        "VERB: the server wants read, the client write",
        "--size: the server wants 2 to 8388608, the client 4096",
        "--latency: the server wants yes, the client no",
    ]
