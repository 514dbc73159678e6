"""Which candidate is taken: by the criterion, and as a scheduler places ranks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from weftwork.hardware.price_rows import Range
from weftwork.study.design.built import Built
from weftwork.study.design.candidates import FabricCandidate
from weftwork.study.design.judge import LAST, are_placed, chosen, last_of, near_best
from weftwork.study.design.kinds import best_of_kinds
from weftwork.study.design.prune import Pruned
from weftwork.study.design.runs import PlacedRun, Ran
from weftwork.study.design.worth import CRITERIA, ClusterMoney


def usd(value: float) -> Range:
    return Range(low=value, typical=value, high=value)


def money(gpu_hour_usd: float) -> ClusterMoney:
    return ClusterMoney(
        gpus=10, hours=10.0, gpu_hour_usd=usd(gpu_hour_usd), watt_usd=usd(0), source="", date="", verified=True
    )


def ran(number: int, price: float, time: float, *placed: float, topology: str = "fat-tree", power: float = 1.0) -> Ran:
    candidate = FabricCandidate(
        number=number, rate_bps=1, fabric={"topology": topology, "switch": "plain", "node": "plain", "nic": "plain"}
    )
    built = Built(candidate=candidate, price_usd=usd(price), power_w=usd(power))
    runs = tuple(
        PlacedRun(placement=("random-servers", "random-fragments")[place % 2], seed=place, time_ps=time_ps)
        for place, time_ps in enumerate(placed)
    )
    return Ran(built=built, time_ps=time, closed_ps=(time, 2 * time), placed=runs)


THIN, FAT = ran(0, 10.0, 100.0, 250.0, 150.0), ran(1, 40.0, 99.0, 100.0, 100.0)


def test_a_thin_fabric_that_is_slow_as_placed_is_not_taken() -> None:
    found = chosen([THIN, FAT], ["f000", "f001"], money(1.0), "work-per-dollar")
    assert (found.name, found.packed) == ("f001", "f000")
    unplaced = [ran(0, 10.0, 100.0), ran(1, 40.0, 99.0)]
    assert chosen(unplaced, [], money(1.0), "work-per-dollar").name == "f000"


@pytest.mark.parametrize(("gpu_hour_usd", "name"), [(0.01, "f000"), (100.0, "f001")])
def test_the_price_of_a_gpu_hour_decides(gpu_hour_usd: float, name: str) -> None:
    found = chosen([THIN, FAT], ["f000", "f001"], money(gpu_hour_usd), "work-per-dollar")
    assert found.name == name
    assert [one.name for one in found.regions] == ["f000", "f001"]
    flip_usd = found.regions[0].to_usd
    assert flip_usd is not None
    assert (gpu_hour_usd < flip_usd) == (name == "f000")
    # 200 (100 g + 10) = 100 (100 g + 40)
    assert flip_usd == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("criterion", "name"), [("time", "f001"), ("money", "f000"), ("power", "f002"), ("knee", "f000")]
)
def test_other_criteria_take_others(criterion: str, name: str) -> None:
    cool = ran(2, 60.0, 180.0, 200.0, power=0.5)
    assert criterion in CRITERIA
    assert chosen([THIN, FAT, cool], ["f000", "f001", "f002"], money(1.0), criterion).name == name


def test_without_prices_of_servers_the_knee_is_taken_and_said() -> None:
    found = chosen([THIN, FAT], ["f000", "f001"], None, "work-per-dollar")
    assert found.criterion == "knee"


def test_a_run_without_an_end_is_never_taken() -> None:
    stuck = ran(2, 1.0, 50.0)
    stuck = Ran(built=stuck.built, time_ps=50.0, placed=(PlacedRun(placement="random-servers", seed=1, time_ps=None),))
    assert chosen([THIN, FAT, stuck], ["f000", "f001", "f002"], money(1.0), "work-per-dollar").name == "f001"


def test_the_last_are_those_that_may_win_packed_or_placed() -> None:
    thin = [ran(place, 10.0 + place, 100.0 + place) for place in range(20)]
    fat = [Ran(built=ran(100 + place, 50.0, 1.0).built, time_ps=130.0, closed_ps=(130.0, 130.0)) for place in range(20)]
    names = [one.name for one in last_of([*thin, *fat], money(10.0), "work-per-dollar")]
    assert len(names) == LAST
    assert names[0] == "f000"
    assert any(name >= "f100" for name in names)


def test_further_seeds_go_to_those_near_the_best() -> None:
    near = ran(2, 40.0, 99.0, 101.0, 101.0)
    assert {one.name for one in near_best([THIN, FAT, near], money(100.0), "work-per-dollar")} == {"f001", "f002"}


def test_a_named_topology_is_judged_by_its_placed_candidates() -> None:
    unplaced = ran(3, 5.0, 90.0, topology="rail-only")
    placed = ran(4, 6.0, 95.0, 120.0, 120.0, topology="rail-only")
    gone = Pruned(built=ran(5, 1.0, 1.0, topology="torus").built, reason="too few ports")
    found = best_of_kinds(
        ["rail-only", "torus", "hyperx"], [unplaced, placed, FAT], [gone], money(1.0), "work-per-dollar"
    )
    assert [(one.topology, one.name) for one in found] == [("rail-only", "f004"), ("torus", None), ("hyperx", None)]
    assert found[1].reason == "too few ports"
    assert "no combination" in found[2].reason


def waiting(one: Ran, *placements: str) -> Ran:
    """A candidate of a design that ended before some of its runs."""
    runs = tuple(PlacedRun(placement=name, seed=9, time_ps=None, has_run=False) for name in placements)
    return replace(one, placed=(*one.placed, *runs))


def test_seeds_that_have_not_run_take_nobody_out_of_the_choice() -> None:
    """The candidates near the best get more seeds, so an interruption takes theirs away, and not those of losers."""
    cheap, dear = ran(0, 10.0, 100.0, 100.0, 100.0), ran(1, 40.0, 99.0, 100.0, 100.0)
    for last in ([cheap, dear], [waiting(cheap, "random-servers", "random-servers"), dear]):
        choice = chosen(last, ["f000", "f001"], money(1.0), "work-per-dollar")
        assert (choice.name, choice.packed) == ("f000", "f000")
    assert last[0].placed_ps == cheap.placed_ps


@pytest.mark.parametrize("missing", [("random-fragments",), ("random-servers", "random-fragments")])
def test_while_a_placement_of_one_is_missing_all_are_judged_packed(missing: tuple[str, ...]) -> None:
    """Who happened to run first is no reason; and nothing is said of what packed jobs would choose."""
    kept = [100.0] if len(missing) == 1 else []
    cheap, dear = waiting(ran(0, 10.0, 100.0, *kept), *missing), ran(1, 40.0, 99.0, 90.0, 90.0)
    choice = chosen([cheap, dear], ["f000", "f001"], money(1.0), "work-per-dollar")
    assert (choice.name, choice.packed) == ("f000", None)
    (kind,) = best_of_kinds(["fat-tree"], [cheap, dear], [], money(1.0), "work-per-dollar")
    assert kind.name == "f000"
    assert not are_placed([cheap, dear])
    assert are_placed([dear])
