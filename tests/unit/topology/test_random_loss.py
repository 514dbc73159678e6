"""Random losses: which parts a seed draws, what is left of the bandwidth, and how sure the shares are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.spec.fabric import HOST, SWITCH
from weftwork.topology.build import fabric_of
from weftwork.topology.lost_names import find_lost
from weftwork.topology.random_loss import RandomPart, SeedShare, draw_lost, measure_random, random_part

FABRIC = fabric_of(topology="leaf-spine", leaves=8, spines=4, links_per_pair=2, hosts_per_leaf=8)


BETWEEN = (FABRIC.node_kind[FABRIC.links["a"]] == SWITCH) & (FABRIC.node_kind[FABRIC.links["b"]] == SWITCH)


def part(name: str) -> RandomPart:
    found = random_part(name)
    assert found is not None
    return found


def test_only_links_between_switches_are_drawn_and_the_rate_is_right() -> None:
    drawn = np.array([draw_lost(FABRIC, part("random:10%"), seed)[1] for seed in range(400)])
    assert not drawn[:, ~BETWEEN].any()
    count = drawn[:, BETWEEN].size
    assert abs(drawn[:, BETWEEN].mean() - 0.1) < 4 * (0.1 * 0.9 / count) ** 0.5
    assert not draw_lost(FABRIC, part("random:0%"), 1)[1].any()
    assert (draw_lost(FABRIC, part("random:100%"), 1)[1] == BETWEEN).all()


def test_switches_and_exact_counts() -> None:
    for seed in range(20):
        nodes, links = draw_lost(FABRIC, part("random:3:switches"), seed)
        assert (int(nodes.sum()), int(links.sum())) == (3, 0)
        assert not nodes[FABRIC.node_kind == HOST].any()
        nodes, links = draw_lost(FABRIC, part("random:5"), seed)
        assert (int(nodes.sum()), int(links.sum())) == (0, 5)
    assert len({draw_lost(FABRIC, part("random:5:links"), seed)[1].tobytes() for seed in range(20)}) == 20


@given(seed=st.integers(0, 2**31 - 1), low=st.integers(0, 100), more=st.integers(0, 100))
def test_what_is_lost_at_a_rate_is_lost_at_a_higher_one(seed: int, low: int, more: int) -> None:
    few = draw_lost(FABRIC, part(f"random:{low}%"), seed)[1]
    many = draw_lost(FABRIC, part(f"random:{min(100, low + more)}%"), seed)[1]
    assert not (few & ~many).any()
    again = find_lost(FABRIC, [f"random:{low}%@{seed}"])[1]
    assert (few == again).all()


def test_more_hosts_change_no_luck() -> None:
    other = fabric_of(topology="leaf-spine", leaves=8, spines=4, links_per_pair=2, hosts_per_leaf=3)
    names = []
    for fabric in (FABRIC, other):
        lost = find_lost(fabric, ["random:20%@5"])[1]
        names.append({name for name, gone in zip(fabric.link_names, lost.tolist(), strict=True) if gone})
    assert names[0] == names[1]


def test_what_is_lost_for_certain_is_lost_in_every_seed() -> None:
    _, lost = find_lost(FABRIC, ["spine0", "host0/nic0"])
    found = measure_random(FABRIC, part("random:0%"), seeds=3, lost_links=lost)
    assert found.kept == (0.75, 0.75, 0.75)
    assert (found.joined.seeds, found.lost_mean) == (0, 0)
    with_spine = measure_random(FABRIC, part("random:0%"), seeds=1, lost_links=find_lost(FABRIC, ["spine0"])[1])
    assert with_spine.joined.seeds == 1


def test_rails_of_one_pod_need_no_spines() -> None:
    fabric = fabric_of(topology="rail-optimized", gpus=64, node="dgx-h100", radix=32)
    found = measure_random(fabric, part("random:50%"), seeds=2)
    assert (found.crosses, found.kept) == (False, (1.0, 1.0))


def test_progress_is_told_and_may_stop_it() -> None:
    told: list[tuple[int, int]] = []
    measure_random(FABRIC, part("random:1%"), seeds=3, on_progress=lambda done, of: told.append((done, of)))
    assert told == [(0, 3), (1, 3), (2, 3)]

    def stop(done: int, of: int) -> None:
        if done == 2:
            raise KeyboardInterrupt(of)

    with pytest.raises(KeyboardInterrupt):
        measure_random(FABRIC, part("random:1%"), on_progress=stop)


@given(seeds=st.integers(0, 200), more=st.integers(0, 200))
def test_the_interval_holds_the_share(seeds: int, more: int) -> None:
    of = seeds + more
    if not of:
        return
    found = SeedShare.counted(seeds, of)
    assert 0 <= found.low <= found.share + 1e-12
    assert found.share - 1e-12 <= found.high <= 1
    for end in (found.low, found.high):  # Wilson: the ends p at which |share - p| is 1.96 standard deviations of p
        deviation = 1.959964 * (end * (1 - end) / of) ** 0.5
        assert abs(found.share - end) == pytest.approx(deviation, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("random:2", None),
        ("random:101%", "at most 100%"),
        ("random:2.5", "wanted a whole number of links"),
        ("random:2%:hosts", "wanted random:2%, random:2%:switches or random:3:links"),
        ("random:", "wanted random:2%"),
        ("random:2%@99999999999", "wanted random:2%"),
        ("random:2%@4000000000", "wanted 0 to 2147483647"),
    ],
)
def test_other_spellings_are_refused(name: str, words: str | None) -> None:
    if words is None:
        assert part(name).count == 2
        return
    with pytest.raises(ConfigError, match=words):
        random_part(name)


def test_fewer_parts_than_are_to_be_lost() -> None:
    with pytest.raises(ConfigError, match="wanted at most 12: the fabric has no more switches"):
        measure_random(FABRIC, part("random:13:switches"))
    star = fabric_of(topology="leaf-spine", leaves=1, spines=1, hosts_per_leaf=4, links_per_pair=1)
    with pytest.raises(ConfigError, match="wanted at most 1: the fabric has no more links between switches"):
        find_lost(star, ["random:2@0"])
