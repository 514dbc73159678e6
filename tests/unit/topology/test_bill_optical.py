"""The bill of a network with optical switches: two fibres and two modules for a circuit, never copper."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.sketched_networks import PARTS, cubes

from weftwork.base.errors import ConfigError
from weftwork.hardware.prices import parse_prices, price_book
from weftwork.spec.device import Switch
from weftwork.spec.fabric import Fabric
from weftwork.topology.bill import Bill, bill

NEAR = replace(PARTS, switch=Switch(name="plain"), fabric_delay_ps=10_000)  # 2 m, within the reach of copper


BOOK = price_book()


def _pod(count: int = 4) -> Fabric:
    return cubes(count, parts=NEAR)


def _of(found: Bill, where: str) -> dict[str, tuple[int, int]]:
    return {row.item: (row.count, row.length_m) for row in found.of_kind("cable") if row.where == where}


def test_a_circuit_takes_two_fibres_of_half_its_length_and_other_links_stay_copper() -> None:
    fabric = _pod()
    found = bill(fabric, BOOK)
    assert fabric.direct is not None
    assert fabric.direct.optical is not None
    circuits = int((fabric.direct.optical.link_switch >= 0).sum())
    inside = int((fabric.direct.link_dimension >= 0).sum()) - circuits
    assert circuits == 12 * 4
    assert _of(found, "switch to optical switch") == {"SR": (2 * circuits, 1)}
    assert _of(found, "switch to switch") == {"DAC": (inside, 2)}
    assert found.count("module", "switches") == 2 * circuits


def test_a_long_circuit_needs_a_medium_that_reaches_over_both_fibres() -> None:
    far = bill(cubes(4, parts=replace(NEAR, fabric_delay_ps=60 * 5_000)), BOOK)  # 60 m: two fibres of 30 m
    assert set(_of(far, "switch to optical switch")) == {"DR"}
    assert {length for _, length in _of(far, "switch to optical switch").values()} == {30}


def test_48_palomars_draw_less_than_the_published_share_of_a_pod() -> None:
    """TPU v4 (arXiv 2304.01433): optical switches and optics draw less than 3 % of the power of the system."""
    optical = BOOK.optical("palomar")
    assert optical is not None
    each = BOOK.power_w(optical)
    assert each is not None
    assert 48 * each.typical / (4_096 * 170) < 0.03  # 170 W: mean of a chip, cloud.google.com/tpu/docs/v4


def test_a_book_without_modules_has_no_medium_for_a_circuit() -> None:
    found = bill(_pod(), price_book("deepseek-2025"))
    assert any(row.item.startswith("no medium of the book") and row.count == 96 for row in found.not_priced)
    assert any(row.item == "optical switch 'palomar'" for row in found.not_priced)


def test_the_price_of_an_optical_switch_may_be_by_port() -> None:
    text = """
version = 1
title = "test"
[[optical]]
name = "mirror"
models = ["palomar"]
price_per_port_usd = 100
source = "a test"
date = "2026"
verified = true
"""
    (row,) = bill(_pod(), parse_prices(text, "test")).of_kind("optical")
    assert row.price_usd is not None
    assert row.price_usd.typical == 12 * 136 * 100
    with pytest.raises(ConfigError, match="unknown key of an optical"):
        parse_prices(text.replace("price_per_port_usd", "price_per_m_usd"), "test")
