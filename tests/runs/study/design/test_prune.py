"""What needs no run: budgets, parts without a price, twins, and those that another betters; and what pruning keeps."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from weftwork.hardware.price_rows import Range
from weftwork.study.design.built import Built
from weftwork.study.design.candidates import FabricCandidate
from weftwork.study.design.front import front
from weftwork.study.design.profile import Profile
from weftwork.study.design.prune import DEAR, HUNGRY, SAME, UNPRICED, WORSE, Limits, prune
from weftwork.topology.build import tree_of
from weftwork.topology.pgft import Pgft

GBPS = 10**9


def tree(hosts: int) -> Pgft:
    found = tree_of(topology="leaf-spine", hosts=hosts, radix=32, oversubscription=1)
    assert found is not None
    return found


TREES = [tree(16 * count) for count in range(1, 4)]


def one(number: int, *, money: float = 100.0, power: float = 10.0, bps: float = 400.0, **more: Any) -> Built:
    """A candidate; its tree says only whom it is the same as."""
    fabric = {"topology": "leaf-spine", "switch": f"s{number}", "nic": "n"}
    return Built(
        candidate=FabricCandidate(number=number, fabric=more.pop("fabric", fabric), rate_bps=400 * GBPS),
        name=f"fabric {number}",
        tree=more.pop("tree", TREES[0]),
        price_usd=Range(low=money / 2, typical=money, high=2 * money),
        power_w=Range(low=power / 2, typical=power, high=2 * power),
        profile=more.pop(
            "profile",
            Profile(reach=(8.0, inf), same_bps=(400.0, bps), same_hops=(2, 4), other_bps=(400.0, bps), port_bps=100.0),
        ),
        **more,
    )


def reasons(built: list[Built], limits: Limits | None = None) -> dict[int, str]:
    left, gone = prune(built, limits or Limits())
    assert len(left) + len(gone) == len(built)
    assert [it.candidate.number for it in left] == sorted(it.candidate.number for it in left)
    assert [it.built.candidate.number for it in gone] == sorted(it.built.candidate.number for it in gone)
    return {it.candidate.number: "" for it in left} | {it.built.candidate.number: it.reason for it in gone}


def test_budgets_are_of_typical_prices_and_both_hold() -> None:
    built = [one(0, money=100), one(1, money=101, bps=500), one(2, money=90, power=11, bps=600)]
    assert reasons(built) == {0: "", 1: "", 2: ""}
    assert reasons(built, Limits(price_usd=100)) == {0: "", 1: DEAR, 2: ""}
    assert reasons(built, Limits(price_usd=100, power_w=10)) == {0: "", 1: DEAR, 2: HUNGRY}


def test_what_has_no_price_is_out_and_its_parts_are_named() -> None:
    _, (gone,) = prune([one(0), one(1, not_priced=("a cable", "a module"))], Limits())
    assert (gone.reason, gone.detail) == (UNPRICED, "a cable, a module")


def test_what_cannot_be_built_keeps_its_reason() -> None:
    broken = Built(candidate=one(1).candidate, reason="no port", detail="fabric.switch: no port")
    _, (gone,) = prune([one(0), broken], Limits())
    assert (gone.reason, gone.detail, gone.better) == ("no port", "fabric.switch: no port", None)


def test_a_tree_by_another_name_is_one_candidate() -> None:
    fabric = {"switch": "s", "nic": "n"}
    built = [
        one(0, fabric=fabric),
        one(1, fabric={**fabric, "topology": "rail-only"}),
        one(2, fabric=fabric, tree=TREES[1]),
    ]
    found = reasons(built)
    assert (found[0], found[1]) == ("", SAME)
    assert found[2] == WORSE  # another tree, which is no better
    _, gone = prune(built[:2], Limits())
    assert gone[0].better is built[0]


def test_a_twin_of_one_that_is_too_dear_is_too_dear_itself() -> None:
    fabric = {"switch": "s", "nic": "n"}
    built = [one(0, fabric=fabric, money=101), one(1, fabric=fabric, money=101), one(2, money=50)]
    assert reasons(built, Limits(price_usd=100)) == {0: DEAR, 1: DEAR, 2: ""}


def test_who_is_bettered_in_everything_is_out_and_who_is_better_is_named() -> None:
    built = [one(0, money=120, bps=300), one(1, money=100, bps=400), one(2, money=80, bps=200), one(3, power=11)]
    left, gone = prune(built, Limits())
    assert [it.candidate.number for it in left] == [1, 2]
    assert [(it.built.candidate.number, it.reason) for it in gone] == [(0, WORSE), (3, WORSE)]
    assert all(it.better is built[1] for it in gone)


def test_a_fabric_whose_rails_do_not_meet_betters_none_whose_rails_do() -> None:
    apart = Profile(reach=(8.0, inf), same_bps=(400.0, 400.0), same_hops=(2, 4), other_bps=(0.0, 0.0), port_bps=100.0)
    assert reasons([one(0, money=50, profile=apart), one(1, money=100)]) == {0: "", 1: ""}


@st.composite
def drawn(draw: st.DrawFn) -> list[Built]:
    found = []
    for number in range(draw(st.integers(1, 12))):
        rates = sorted((draw(st.sampled_from((100.0, 200.0, 400.0))) for _ in range(2)), reverse=True)
        meets = draw(st.booleans())
        profile = Profile(
            reach=(draw(st.sampled_from((4.0, 8.0))), inf),
            same_bps=tuple(rates),
            same_hops=(2, draw(st.sampled_from((4, 6)))),
            other_bps=tuple(rates) if meets else (0.0, 0.0),
            port_bps=draw(st.sampled_from((50.0, 100.0))),
        )
        made = one(number, money=draw(st.integers(1, 6)), power=draw(st.integers(1, 3)), profile=profile)
        found.append(replace(made, tree=draw(st.sampled_from(TREES))))
    return found


def closed(built: Built) -> tuple[float, ...]:
    """Money, power, and times that bandwidth at a distance explains: near, far, of one message, and by hops."""
    profile = built.profile
    assert profile is not None
    times = (1 / profile.same_bps[0], 1 / profile.least_bps, 1 / profile.port_bps, float(profile.same_hops[-1]))
    return (built.price_usd.typical, built.power_w.typical, sum(times))


@given(built=drawn())
def test_pruning_takes_nothing_from_the_front_of_closed_forms(built: list[Built]) -> None:
    left, gone = prune(built, Limits())
    costs = {it.candidate.name: closed(it) for it in built}
    kept = {it.candidate.name: costs[it.candidate.name] for it in left}
    assert {costs[name] for name in front(costs)} == {kept[name] for name in front(kept)}
    numbers = {it.candidate.number for it in left}
    for it in gone:
        assert it.better is not None
        assert all(mine <= its for mine, its in zip(closed(it.better), closed(it.built), strict=True))
        if it.reason == WORSE:
            assert it.better.candidate.number in numbers


def test_a_tree_betters_a_direct_network_and_never_the_reverse() -> None:
    best = Profile(
        reach=(4.0, inf), same_bps=(400.0, 400.0), same_hops=(2, 5), other_bps=(400.0, 400.0), port_bps=100.0
    )
    direct = one(0, money=101, tree=None, family="dragonfly", least_share=0.5, profile=best)
    assert reasons([direct, one(1)])[0].startswith("another candidate costs")
    cheap = one(0, money=10, tree=None, family="dragonfly", least_share=0.5, profile=best)
    assert reasons([cheap, one(1)]) == {0: "", 1: ""}


def test_two_direct_networks_are_never_the_same_tree() -> None:
    fabric = {"topology": "hyperx", "switch": "s", "nic": "n"}
    built = [one(number, tree=None, family="hyperx", least_share=0.5, fabric=fabric) for number in range(2)]
    assert reasons(built) == {0: "", 1: ""}


def test_a_named_topology_keeps_some_of_its_own() -> None:
    """Closed forms prune within a kind, and never the last candidate of a kind that the user has named."""
    tree_like = one(0, money=10.0, bps=800.0)
    loser, worse = (
        one(number, money=price, bps=400.0, fabric={"topology": "rail-only", "switch": f"s{number}", "nic": "n"})
        for number, price in ((5, 50.0), (6, 60.0))
    )
    kept, gone = prune([tree_like, loser, worse], Limits())
    assert [each.candidate.number for each in kept] == [0]
    kept, gone = prune([tree_like, loser, worse], Limits(), ["rail-only"])
    assert [each.candidate.number for each in kept] == [0, 5]
    assert [each.built.candidate.number for each in gone] == [6]
