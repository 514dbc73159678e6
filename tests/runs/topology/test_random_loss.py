"""Random losses: which parts a seed draws, what is left of the bandwidth, and how sure the shares are."""

from __future__ import annotations

import pytest

from weftwork.topology.build import fabric_of
from weftwork.topology.lost_names import find_lost
from weftwork.topology.measures import bisection
from weftwork.topology.random_loss import RandomPart, SeedShare, measure_random, random_part
from weftwork.topology.without import lose, measure_loss

FABRIC = fabric_of(topology="leaf-spine", leaves=8, spines=4, links_per_pair=2, hosts_per_leaf=8)


def part(name: str) -> RandomPart:
    found = random_part(name)
    assert found is not None
    return found


def test_numbers_are_those_of_each_seed_by_itself() -> None:
    found = measure_random(FABRIC, part("random:6%"), seeds=40)
    assert found == measure_random(FABRIC, part("random:6%"), seeds=40)
    assert found.kept[:10] == measure_random(FABRIC, part("random:6%"), seeds=10).kept
    whole = bisection(FABRIC).rate_bps
    by_hand = []
    for seed in range(40):
        loss = measure_loss(FABRIC, [f"random:6%@{seed}"])
        assert loss.legal_after is not None
        assert loss.legal_after.rate_bps <= bisection(lose(FABRIC, find_lost(FABRIC, loss.names)[1])).rate_bps
        by_hand.append(loss.legal_after.rate_bps / whole)
    assert found.kept == tuple(by_hand)
    assert found.whole.rate_bps == whole
    assert found.mean == pytest.approx(sum(by_hand) / 40)
    ordered = sorted(by_hand)
    assert (found.p5, found.p50, found.p95) == (ordered[1], ordered[19], ordered[37])
    assert (found.worst_kept, found.worst_seed) == (ordered[0], by_hand.index(ordered[0]))
    assert found.keeps == SeedShare.counted(sum(kept >= 0.9 for kept in by_hand), 40)
    assert (found.candidates, found.crosses) == (64, True)


def test_hosts_and_leaves_that_are_cut_off_are_counted() -> None:
    found = measure_random(FABRIC, part("random:2:switches"), seeds=60)
    joined = legal = 0
    for seed in range(60):
        loss = measure_loss(FABRIC, [f"random:2:switches@{seed}"])
        joined += loss.after.host_pairs_joined == loss.before.host_pairs_joined
        assert loss.valleys_after is not None
        legal += loss.valleys_after.pairs_legal == 8 * 7 // 2
    assert 0 < joined < 60
    assert (found.joined.seeds, found.joined.of) == (joined, 60)
    assert found.legal is not None
    assert found.legal.seeds == legal
