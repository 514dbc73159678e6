"""Placements: which GPU of which server a rank is, its NIC ports, and the ranks of NVLink switches."""

from __future__ import annotations

import numpy as np
import pytest

from weftwork.base.errors import ConfigError
from weftwork.spec.device import Nic, Server, Switch
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.spec.scenario.workload import CollectiveSection
from weftwork.topology.assemble import assemble, links_between
from weftwork.topology.build import fabric_of
from weftwork.workload.placement import (
    PLACEMENTS,
    first_gpus,
    packed,
    placed,
    pods,
    rails,
    random,
    random_fragments,
    random_servers,
    scattered,
    with_nvlink_switches,
)


def dgx(gpus: int = 64, **keys: object) -> Fabric:
    return fabric_of(topology="rail-optimized", gpus=gpus, node="dgx-h100", radix=16, **keys)  # type: ignore[arg-type]


def test_packed_fills_servers() -> None:
    order = packed(dgx(), 20)
    assert order.host.tolist() == [0] * 8 + [1] * 8 + [2] * 4
    assert order.gpu is not None
    assert order.gpu.tolist() == [*range(8), *range(8), *range(4)]
    assert order.nics[:, 0].tolist() == order.gpu.tolist()


def test_rails_count_along_a_rail_first() -> None:
    fabric = dgx(64)
    placed = rails(fabric, 64)
    assert placed.gpu is not None
    rank = np.arange(64)
    assert placed.gpu.tolist() == (rank // 8).tolist()
    assert placed.host.tolist() == (rank % 8).tolist()


def test_pods_take_turns() -> None:
    fabric = dgx(128, nodes_per_pod=4)
    assert pods(fabric, 128).host[::8].tolist() == [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]
    one_pod = fabric_of(topology="leaf-spine", hosts=4, radix=8)
    assert pods(one_pod, 4).host.tolist() == [0, 1, 2, 3]


def test_a_seed_is_an_order() -> None:
    fabric = dgx()
    one, again, other = (random(fabric, 64, seed=seed) for seed in (1, 1, 2))
    assert one.host.tolist() == again.host.tolist()
    assert one.host.tolist() != other.host.tolist()


def test_fragments_stay_together_and_their_order_is_the_seeds() -> None:
    fabric = dgx(128)
    one, other = (random_fragments(fabric, 128, seed=seed, fragment=3) for seed in (1, 2))
    hosts = one.host[::8].tolist()
    fragments = [tuple(range(first, min(first + 3, 16))) for first in range(0, 16, 3)]
    first = [host for host in hosts if host % 3 == 0]
    assert hosts == [host for start in first for host in fragments[start // 3]]
    assert first != sorted(first)
    assert first != [host for host in other.host[::8].tolist() if host % 3 == 0]


@pytest.mark.parametrize("fragment", [None, 5])
def test_a_section_says_how_long_its_fragments_are(fragment: int | None) -> None:
    fabric = dgx(128)
    section = CollectiveSection(placement="random-fragments", fragment=fragment)
    hosts = placed(fabric, 128, section, seed=4).host.tolist()
    assert hosts == random_fragments(fabric, 128, seed=4, fragment=fragment or 8).host.tolist()


def test_random_servers_stay_whole_and_their_order_is_the_seeds() -> None:
    fabric = dgx(128)
    one, again, other = (random_servers(fabric, 60, seed=seed) for seed in (1, 1, 2))
    assert one.gpu is not None
    assert one.gpu.tolist() == [*range(8)] * 7 + [0, 1, 2, 3]
    hosts = one.host[::8].tolist()
    assert one.host.tolist() == [host for host in hosts for _ in range(8)][:60]
    assert hosts not in (sorted(hosts), other.host[::8].tolist())
    assert hosts == again.host[::8].tolist()
    assert len(set(hosts)) == 8


def test_random_alone_says_that_it_scatters_single_gpus() -> None:
    assert [name for name in PLACEMENTS if scattered(name, "training.placement")] == ["random"]
    (note,) = scattered("random", "training.placement").values()
    assert (note.kind, note.subject) == ("note", "training.placement")
    assert "random-servers" in note.text


def test_gpus_that_share_a_port() -> None:
    fabric = fabric_of(topology="leaf-spine", gpus=16, node="p4d", radix=16)
    assert packed(fabric, 16).nics[:8, 0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_servers_that_differ_repeat_ports() -> None:
    fabric = assemble(
        name="two kinds", node_names=["a", "b", "s"], node_kind=[HOST, HOST, SWITCH], node_tier=[0, 0, 1],
        links=links_between([0, 0, 1], [2, 2, 2], rate_bps=1, delay_ps=1_000), switches=[Switch()], nics=[Nic()],
        servers=[Server(name="two", nic_ports=2), Server(name="pair", gpus=2)], node_server=[0, 1, 0],
    )  # fmt: skip
    placed = packed(fabric, 3)
    assert placed.nics.tolist() == [[0, 1], [0, 0], [0, 0]]
    assert fabric.gpus == 3


def test_hosts_speak_by_their_first_gpus_ports() -> None:
    fabric = fabric_of(topology="leaf-spine", hosts=4, node={"nic_ports": 2}, radix=8, dual_homed=True)
    assert first_gpus(fabric).nics.tolist() == [[0, 1]] * 4
    assert first_gpus(fabric).gpu is None
    assert first_gpus(dgx()).nics.tolist() == [[0]] * 8


def test_more_ranks_than_gpus_are_refused() -> None:
    with pytest.raises(ConfigError, match="found 65, wanted 1 to 64, the GPUs of the fabric"):
        packed(dgx(), 65)


def test_nvlink_switches_come_behind_the_ranks() -> None:
    fabric = dgx()
    placed, switch_of = with_nvlink_switches(fabric, rails(fabric, 16))
    assert placed.gpu is not None
    assert placed.host.tolist()[16:] == [0, 1]
    assert placed.gpu.tolist()[16:] == [-1, -1]
    assert [16 + host for host in placed.host.tolist()[:16]] == switch_of.tolist()


def test_a_domain_of_four_has_its_own_switch() -> None:
    node = {"model": "dgx-h100", "nvlink_domain_gpus": 4}
    fabric = fabric_of(topology="rail-optimized", gpus=64, node=node, radix=16)
    placed, switch_of = with_nvlink_switches(fabric, packed(fabric, 12))
    assert placed.gpu is not None
    assert list(zip(placed.host[12:].tolist(), placed.gpu[12:].tolist(), strict=True)) == [(0, -1), (0, -2), (1, -1)]
    assert switch_of.tolist() == [12] * 4 + [13] * 4 + [14] * 4


def test_no_switch_no_ranks_for_it() -> None:
    fabric = fabric_of(topology="rail-optimized", gpus=64, node="dgx-a100", radix=16)
    with pytest.raises(ConfigError, match="'dgx-a100' has no NVLink switch that reduces"):
        with_nvlink_switches(fabric, packed(fabric, 8))
