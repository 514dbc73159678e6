"""The bill of a network with optical switches: two fibres and two modules for a circuit, never copper."""

from __future__ import annotations

from dataclasses import replace

from helpers.sketched_networks import PARTS, cubes

from weftwork.cli.cost import csv_text
from weftwork.hardware.prices import price_book
from weftwork.spec.device import Switch
from weftwork.spec.fabric import Fabric
from weftwork.topology.bill import bill

NEAR = replace(PARTS, switch=Switch(name="plain"), fabric_delay_ps=10_000)  # 2 m, within the reach of copper


BOOK = price_book()


def _pod(count: int = 4) -> Fabric:
    return cubes(count, parts=NEAR)


def test_optical_switches_are_counted_with_their_watts_and_have_no_price() -> None:
    found = bill(_pod(), BOOK)
    (row,) = found.of_kind("optical")
    assert (row.item, row.count) == ("Palomar 136x136", 12)
    assert row.unit_price_usd is None
    assert row in found.not_priced
    assert row.power_w is not None
    assert row.power_w.typical == 12 * 108
    assert not row.verified
    assert not row.power_verified
    assert "optical" in csv_text(found)
