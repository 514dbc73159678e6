"""What the money of a whole cluster buys, and where the price of a GPU-hour turns the choice round."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest
from helpers.cases import Saw, case_count

from weftwork.hardware.price_rows import Range
from weftwork.hardware.prices import DEFAULT, SHIPPED, parse_prices, price_book, shipped_text
from weftwork.study.design.worth import ClusterMoney, choices_at, cluster_money, most_work, regions

CASES = case_count(plain=200, deep=2_000)


def test_every_region_has_the_fabric_with_the_most_work(saw: Saw) -> None:
    """Regions cover all prices, and in the middle of each of them no other fabric buys more."""
    draw = random.Random(4)
    several = 0
    for _ in range(CASES):
        fabrics = {f"f{place}": (draw.uniform(1, 3), draw.uniform(0, 100)) for place in range(draw.randint(1, 6))}
        gpu_hours = draw.uniform(1, 50)
        found = regions(fabrics, gpu_hours)
        several += len(found) > 1
        assert found[0].from_usd == 0
        assert found[-1].to_usd is None
        for one, after in itertools.pairwise(found):
            assert one.to_usd == after.from_usd
        for one in found:
            at_usd = one.from_usd + 1 if one.to_usd is None else (one.from_usd + one.to_usd) / 2
            cost = {name: at_usd * gpu_hours + network for name, (_, network) in fabrics.items()}
            work = {name: 1 / time for name, (time, _) in fabrics.items()}
            best = most_work(work, cost)
            assert work[one.name] / cost[one.name] == pytest.approx(work[best] / cost[best])
    saw(CASES, f"{several} with several regions")
    assert several > CASES / 10


def test_a_gpu_hour_is_a_share_of_the_server_and_of_its_electricity() -> None:
    text = """version = 1
title = "mine"
[cluster]
life_years = 2
electricity_usd_per_kwh = 0.1
power_usage_effectiveness = 1.5
source = "a quote"
date = "2026"
verified = true
[[server]]
name = "mine"
price_usd = 80_000
power_per_gpu_w = 1_000
source = "a quote"
date = "2026"
verified = true
"""
    money = cluster_money(parse_prices(text, "mine"), "dgx-h100", 16, 8)
    assert money is not None
    hours = 2 * 8_766
    assert money.gpu_hour_usd.typical == pytest.approx(80_000 / 8 / hours + 0.1 * 1.5)
    assert money.servers_usd.typical == pytest.approx(2 * 80_000 + 16 * hours * 0.15)
    assert money.verified
    watts = Range(low=100, typical=100, high=100)
    network = money.network_usd(Range(low=5, typical=6, high=7), watts)
    assert network.typical == pytest.approx(6 + 0.1 * hours * 0.15)
    given = money.at_gpu_hour(3.0)
    assert given.servers_usd.typical == pytest.approx(3.0 * 16 * hours)
    assert given.watt_usd == money.watt_usd


def test_a_book_of_networks_alone_gives_no_cluster() -> None:
    whole = price_book(None)
    assert cluster_money(whole, "dgx-h100", 8, 8) is not None
    assert cluster_money(replace(whole, cluster=None), "dgx-h100", 8, 8) is None
    rows = tuple(row for row in whole.rows if row.kind != "server")
    assert cluster_money(replace(whole, rows=rows), "dgx-h100", 8, 8) is None
    for name in SHIPPED:
        has = cluster_money(price_book(name), "dgx-h100", 8, 8) is not None
        assert has == (name == DEFAULT)


@pytest.mark.parametrize("key", ["life_years", "electricity_usd_per_kwh", "power_usage_effectiveness", "source"])
def test_a_cluster_lacks_nothing(key: str) -> None:
    lines = shipped_text(DEFAULT).splitlines()
    begin = lines.index("[cluster]")
    place = next(at for at in range(begin, len(lines)) if lines[at].startswith(key))
    with pytest.raises(Exception, match=rf"cluster\.{key} +missing"):
        parse_prices("\n".join([*lines[:place], *lines[place + 1 :]]), "mine")


def test_prices_that_move_the_choice_are_named() -> None:
    usd = Range(low=1.0, typical=2.0, high=10.0)
    money = ClusterMoney(gpus=1, hours=1.0, gpu_hour_usd=usd, watt_usd=usd, source="", date="", verified=True)
    networks = {"thin": Range(low=1, typical=1, high=1), "fat": Range(low=1, typical=2, high=9)}
    found = dict(choices_at({"thin": 1.0, "fat": 1.5}, money, networks))
    assert found["low prices of GPUs and high ones of the network"] == "thin"
    assert found["high prices of GPUs and low ones of the network"] == "fat"
