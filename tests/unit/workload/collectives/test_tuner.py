"""Which method NCCL takes: by size and scale, by what its tuner is told of the network, and by AWS's regions on p5."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.hardware.catalogue import node
from weftwork.workload.collectives.closed_form import GroupShape, Method, methods
from weftwork.workload.collectives.figures import CollectiveFigures, collective_figures
from weftwork.workload.collectives.program import program
from weftwork.workload.collectives.tuner import chosen, chosen_method, estimate_ps

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def figures(name: str = "dgx-h100") -> CollectiveFigures:
    model = node(name)
    assert model.nic_port_rate_bps is not None
    return collective_figures(model.server, nic_port_rate_bps=model.nic_port_rate_bps)


def group(members: int, per_domain: int = 8) -> GroupShape:
    return GroupShape(members=members, per_domain=min(members, per_domain), domain_gpus=8)


def taken(operation: str, members: int, size_bytes: int, name: str = "dgx-h100") -> str:
    method = chosen_method(operation, group(members), size_bytes, figures(name))
    return f"{method.algorithm} {method.protocol}"


def test_one_server_goes_from_rings_in_ll_to_the_switch_or_to_simple() -> None:
    sizes = (KIB, 512 * MIB)
    assert [taken("all-reduce", 8, size) for size in sizes] == ["ring ll", "nvls simple"]
    sizes = (KIB, 4 * MIB, 512 * MIB)
    assert [taken("all-reduce", 8, size, "dgx-a100") for size in sizes] == ["ring ll", "ring ll128", "ring simple"]
    assert taken("all-reduce", 4, GIB) == "ring simple"  # half a domain: its switch does not reduce


def test_a_gpu_without_multicast_uses_no_switch_that_reduces() -> None:
    model = node("dgx-h100")
    assert model.nic_port_rate_bps is not None
    with_a100 = collective_figures(model.server, nic_port_rate_bps=model.nic_port_rate_bps, gpu="a100")
    for members in (8, 64):
        ways = methods("all-reduce", group(members), with_a100)
        assert {way.algorithm for way in ways} == {"ring", "tree"} - ({"tree"} if members == 8 else set())
        assert any(way.algorithm.startswith("nvls") for way in methods("all-reduce", group(members), figures()))


@pytest.mark.parametrize(
    ("operation", "members"), [("all-reduce", 8), ("all-gather", 8), ("all-gather", 64), ("reduce-scatter", 256)]
)
@pytest.mark.parametrize("name", ["dgx-a100", "dgx-h100", "dgx-b300"])
def test_links_that_no_server_has_do_not_make_nccl_take_simple_earlier(name: str, operation: str, members: int) -> None:
    own = figures(name)
    for size_bytes in (KIB << power for power in range(24)):
        is_simple = True
        for factor in (1, 2, 10):
            rates = {key: factor * getattr(own, key) for key in ("nvlink_rate_bps", "network_rate_bps")}
            method = chosen_method(operation, group(members), size_bytes, replace(own, **rates))
            assert is_simple or method.protocol != "simple"
            is_simple = method.protocol == "simple"


def test_servers_go_from_trees_in_ll_to_trees_of_switches() -> None:
    sizes = (KIB, 4 * MIB, GIB)
    assert [taken("all-reduce", 64, size) for size in sizes] == ["tree ll", "tree ll128", "nvls-tree simple"]


def test_an_all_gather_leaves_ll128_later_among_more_gpus() -> None:
    """The dips of the published curves of AWS p5: at 256 MiB among 16 GPUs, at 1 GiB among 64."""
    of_16 = [taken("all-gather", 16, size * MIB, "p5") for size in (128, 256)]
    of_64 = [taken("all-gather", 64, size * MIB, "p5") for size in (512, 1024)]
    assert of_16 == of_64 == ["ring ll128", "ring simple"]


def test_aws_overrides_the_choice_from_three_servers_on() -> None:
    sizes = (64 * MIB, 2 * GIB, 4 * GIB)
    assert [taken("all-reduce", 64, size, "p5") for size in sizes] == ["tree ll128", "ring ll128", "ring simple"]
    assert taken("all-reduce", 16, GIB, "p5") == "nvls-tree simple"  # two servers: NCCL's own choice
    assert taken("all-reduce", 128, 4 * GIB, "p5") == "nvls-tree simple"
    assert taken("all-reduce", 48, 64 * MIB, "p5") == "tree ll128"  # between 36 MiB among 32 and 112 MiB among 64
    other = replace(figures("p5"), network="other")
    assert chosen_method("all-reduce", group(64), 2 * GIB, other).algorithm == "nvls-tree"


def test_gpus_alone_in_their_servers_gather_by_pat() -> None:
    assert taken("all-gather", 64, 64 * KIB) != "pat simple"
    alone = group(64, per_domain=1)
    method = chosen_method("all-gather", alone, 64 * KIB, figures())
    assert method in methods("all-gather", alone, figures())
    assert Method(algorithm="pat") in methods("reduce-scatter", alone, figures())
    assert Method(algorithm="pat") not in methods("all-reduce", alone, figures())
    assert program(Method(algorithm="pat"), alone, MIB, figures()).method.algorithm == "halving-doubling"
    assert program(Method(algorithm="pat"), group(6, per_domain=1), MIB, figures()).method.algorithm == "ring"


def test_a_ring_of_two_servers_takes_what_the_tuner_says() -> None:
    """By hand: 14 us + 14 steps of 2 us + 1 of (4 + 75) us, and 128 MiB at 8 x 36.7 GB/s times 16/15 (AWS p5)."""
    found = estimate_ps("all-gather", Method(algorithm="ring", protocol="ll128"), group(16), 128 * MIB, figures("p5"))
    assert found / 1e6 == pytest.approx(14 + 14 * 2 + 79 + 128 * MIB / (8 * 36.7e9 * 16 / 15) * 1e6, rel=1e-9)


@given(
    size=st.integers(1, 16 * GIB),
    members=st.sampled_from([2, 8, 16, 64, 512]),
    name=st.sampled_from(["p5", "dgx-a100"]),
)
def test_the_choice_is_one_of_the_methods_and_keeps_to_a_protocol(size: int, members: int, name: str) -> None:
    now = figures(name)
    for operation in ("all-reduce", "reduce-scatter", "all-gather", "all-to-all"):
        ways = methods(operation, group(members), now)
        assert chosen(operation, group(members), size, now).method in ways
        assert chosen_method(operation, group(members), size, now, protocol="simple").protocol == "simple"


def test_a_protocol_that_nccl_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigError, match="NCCL has no other protocol for all-to-all"):
        chosen_method("all-to-all", group(16), MIB, figures(), protocol="ll")


def test_programs_say_how_they_differ_from_the_method() -> None:
    tree = Method(algorithm="nvls-tree", inner="nvls")
    two, eight = (program(tree, group(members), GIB, figures("p5")) for members in (16, 64))
    assert two.method == eight.method == Method(algorithm="hierarchical", inner="nvls")
    assert two.note is None
    assert eight.note is not None
    assert "rings over the rails" in eight.note
    ring = program(Method(algorithm="ring"), group(64), GIB, figures("p5"))
    assert (ring.chunks, ring.round_bytes) == (1, 2 * MIB)
    assert ring.hold_ps > 0
    assert program(Method(algorithm="ring"), group(8), GIB, figures("p5")).hold_ps == 0
