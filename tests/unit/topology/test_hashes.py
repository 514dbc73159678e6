"""How the switches of a fabric hash: by their tier, and as a user sets it for a tier, a word or one switch."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.topology_hashes import hashes, seeds_and_offsets, tree

from weftwork.base.errors import ConfigError
from weftwork.spec.device import HashFunction, Switch
from weftwork.spec.scenario.hashes import HashSection
from weftwork.topology.hashes import hashed_by_tier, with_hashes


def test_tiers_have_the_seeds_of_their_roles_and_bits_of_their_own() -> None:
    found = seeds_and_offsets(tree())
    assert {found[name] for name in found if name.startswith("leaf")} == {(0, 0)}
    assert {found[name] for name in found if name.startswith("agg")} == {(10, 10)}
    assert {found[name] for name in found if name.startswith("core")} == {(25, 20)}


def test_a_short_digest_has_smaller_steps() -> None:
    found = seeds_and_offsets(tree(switch={"hash": {"algorithm": "crc16-ccitt"}}))
    assert (found["leaf0"], found["agg0"], found["core0"]) == ((0, 0), (10, 5), (25, 10))


@pytest.mark.parametrize("tier", [5, 6, 100])
def test_tiers_above_the_fifth_are_as_the_fifth(tier: int) -> None:
    assert HashFunction().on_tier(tier) == HashFunction(seed=50, offset=15)


def test_what_a_switch_says_itself_stays() -> None:
    assert set(seeds_and_offsets(tree(switch={"hash": {"seed": 0, "offset": 0}})).values()) == {(0, 0)}
    assert seeds_and_offsets(tree(switch={"hash": {"seed": 7}}))["agg1"] == (7, 10)


def test_devices_that_no_switch_uses_and_kinds_that_share_a_tier_stay_apart() -> None:
    fabric = tree()
    device = fabric.node_device.copy()
    device[fabric.node("agg1")] = 2
    fabric = replace(fabric, switches=(Switch(), Switch(name="unused"), Switch(name="other")), node_device=device)
    switches, node_device = hashed_by_tier(fabric)
    named = {name: switches[node_device[fabric.node(name)]] for name in ("leaf0", "agg0", "agg1", "core0")}
    assert [one.name for one in named.values()] == ["plain", "plain", "other", "plain"]
    assert named["agg1"].hash == named["agg0"].hash == HashFunction(seed=10, offset=10)
    assert Switch(name="unused", hash=HashFunction(seed=0, offset=0)) in switches


def test_hosts_keep_their_nics() -> None:
    fabric = tree()
    assert (hashed_by_tier(fabric)[1][fabric.hosts] == fabric.node_device[fabric.hosts]).all()


def test_the_closer_entry_counts_field_by_field() -> None:
    entries = [
        HashSection(switches="agg2", seed=3),
        HashSection(switches="agg", seed=2, offset=2),
        HashSection(switches="tier2", seed=1, offset=1, algorithm="mix"),
    ]
    for order in (entries, entries[::-1]):
        found = hashes(tree(hash=order))
        assert found["agg2"] == HashFunction(algorithm="mix", seed=3, offset=2)
        assert found["agg1"] == HashFunction(algorithm="mix", seed=2, offset=2)
        assert found["leaf0"] == HashFunction(seed=0, offset=0)


def test_a_tier_with_another_algorithm_still_follows_its_role() -> None:
    found = hashes(tree(hash=[HashSection(switches="core", algorithm="crc16-ccitt")]))
    assert found["core3"] == HashFunction(algorithm="crc16-ccitt", seed=25, offset=10)


def test_entries_about_nothing_are_told_with_what_there_is() -> None:
    with pytest.raises(ConfigError) as caught:
        tree(hash=[HashSection(switches="agg0", seed=1), HashSection(switches="spine", seed=1),
                   HashSection(switches="leef", seed=1), HashSection(switches="tier4", seed=2)])  # fmt: skip
    told = {mistake.path: (mistake.text, mistake.fix) for mistake in caught.value.mistakes}
    assert list(told) == [f"fabric.hash.{index}.switches" for index in (1, 2, 3)]
    assert "wanted the name of a switch, or leaf, agg, core, tier1, tier2, tier3" in told["fabric.hash.1.switches"][0]
    assert told["fabric.hash.2.switches"][1] == "leaf"


def test_an_offset_beyond_the_bits_of_a_digest_is_refused() -> None:
    entries = [HashSection(switches="agg", algorithm="crc16-ccitt")]
    with pytest.raises(ConfigError, match="found 16, wanted at most 15: a crc16-ccitt has 16 bits"):
        with_hashes(tree(switch={"hash": {"offset": 16}}), entries)
