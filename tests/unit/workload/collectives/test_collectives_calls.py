"""Calls of collectives: what is refused, what bus bandwidth is, what protocols cost, how large programs are."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from weftwork.base.errors import ConfigError
from weftwork.workload.collectives.algorithm import least_time_ps
from weftwork.workload.collectives.algorithms import tree
from weftwork.workload.collectives.call import Call, bus_bandwidth_factor
from weftwork.workload.collectives.catalogue import ALGORITHMS, schedule
from weftwork.workload.collectives.protocols import PROTOCOLS, software

CALL = Call(operation="all-reduce", ranks=8, size_bytes=1 << 20)


def mistakes(algorithm: str, call: Call) -> dict[str, str]:
    with pytest.raises(ConfigError) as error:
        schedule(algorithm, call)
    return {mistake.path: mistake.text for mistake in error.value.mistakes}


def test_all_mistakes_of_a_call_come_at_once() -> None:
    call = replace(
        CALL, ranks=1, size_bytes=0, channels=0, chunks=0, repeat=0, root=7, protocol_efficiency=1.5, priority=9
    )
    found = mistakes("ring", call)
    assert found["collective.gpus"] == "found 1, wanted at least 2 GPUs"
    assert found.keys() == {
        f"collective.{key}"
        for key in ("gpus", "size", "channels", "chunks", "repeat", "root", "protocol_efficiency", "priority")
    }


def test_unknown_words_are_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="did you mean 'all-reduce'"):
        schedule("ring", replace(CALL, operation="all-reduc"))
    with pytest.raises(ConfigError, match="did you mean 'ring'"):
        schedule("rng", CALL)


def test_an_operation_that_an_algorithm_has_not_is_refused_with_those_it_has() -> None:
    assert "ring has no all-to-all; wanted all-reduce" in mistakes("ring", replace(CALL, operation="all-to-all"))[
        "collective.algorithm"
    ]  # fmt: skip


def test_gpus_fill_whole_domains() -> None:
    assert "wanted a multiple of the 8 GPUs" in mistakes("ring", replace(CALL, ranks=12, domain=8))["collective.gpus"]


def test_a_send_receive_goes_half_way_or_by_its_shift() -> None:
    call = replace(CALL, operation="send-receive")
    assert call.distance == 4
    assert replace(call, shift=-1).distance == 7
    assert "itself" in mistakes("direct", replace(call, shift=8))["collective.shift"]


@pytest.mark.parametrize(
    ("operation", "factor"),
    [
        ("all-reduce", Fraction(7, 4)), ("reduce-scatter", Fraction(7, 8)), ("all-gather", Fraction(7, 8)),
        ("all-to-all", Fraction(7, 8)), ("broadcast", Fraction(1)), ("reduce", Fraction(1)),
        ("send-receive", Fraction(1)),
    ],
)  # fmt: skip
def test_bus_bandwidth_is_that_of_nccl_tests(operation: str, factor: Fraction) -> None:
    assert bus_bandwidth_factor(operation, 8) == factor


def test_a_barrier_has_no_bus_bandwidth() -> None:
    with pytest.raises(ConfigError, match="moves no data"):
        bus_bandwidth_factor("barrier", 8)


@pytest.mark.parametrize(("efficiency", "wire_bytes"), [(1.0, 1_001), (0.5, 2_002), (0.9375, 1_068)])
def test_a_protocol_sends_more_than_the_data(efficiency: float, wire_bytes: int) -> None:
    assert replace(CALL, size_bytes=1_001, protocol_efficiency=efficiency).wire_bytes == wire_bytes


def test_figures_of_protocols_say_how_far_they_can_be_trusted() -> None:
    ring = software("ll128", "ring")
    assert (ring.protocol_efficiency, ring.step_latency_ps, ring.caveats) == (0.9375, 4_000_000, {})
    assert software("simple", "tree").caveats["simple.tree_step_latency_ps"].kind == "unverified"
    assert "latencies of the ring" in software("ll", "direct").caveats["ll.direct"].text
    with pytest.raises(ConfigError, match="NCCL has no other protocol with nvls"):
        software("ll", "nvls")
    assert all(figure.source for row in PROTOCOLS.values() for figure in row.figures.values())


def test_the_time_that_a_ring_takes_at_least_is_steps_of_alpha_and_beta() -> None:
    call = Call(operation="all-reduce", ranks=4, size_bytes=4_000_000, step_latency_ps=3_000, base_latency_ps=11)
    least_ps = least_time_ps(ALGORITHMS["ring"], call, rate_bps=400_000_000_000, latency_ps=1_000_000)
    assert least_ps == 11 + 6 * (1_000_000 + 3_000 + 20 * 1_000_000)


@pytest.mark.parametrize("servers", [2, 3, 7, 8, 12, 13, 32, 100])
def test_an_inner_rank_of_one_tree_is_a_leaf_of_the_other(servers: int) -> None:
    call = replace(CALL, ranks=servers)
    first, second = (tree._tree(call, 0, index) for index in (0, 1))
    for trees in (first, second):
        assert trees.parents.count(-1) == 1
        assert max(len(children) for children in trees.children) <= 2
    both = [rank for rank in range(servers) if first.children[rank] and second.children[rank]]
    assert both in ([], [0])  # as in NCCL: an odd number leaves the root of the first tree inside the second
    assert both == [] or servers % 2


def test_the_trees_are_those_that_nccl_draws() -> None:
    # src/graph/trees.cc: 12 and 13 servers
    call = replace(CALL, ranks=12)
    assert tree._tree(call, 0, 0).children == ((8,), (), (1, 3), (), (2, 6), (), (5, 7), (), (4, 10), (), (9, 11), ())
    assert tree._tree(call, 0, 1).children[11] == (3,)
    assert tree._tree(replace(call, ranks=13), 0, 1).children[1] == (9,)


def test_a_chain_inside_a_server_hangs_on_the_gpu_that_talks_to_others() -> None:
    parents = tree._tree(replace(CALL, ranks=8, domain=4), 1, 0).parents
    assert parents == (3, -1, 1, 2, 7, 1, 5, 6)
