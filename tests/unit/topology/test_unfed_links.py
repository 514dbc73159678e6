"""Links that a NIC cannot feed are said wherever parts of a fabric are, and no server is sold with such links."""

from __future__ import annotations

import pytest

from weftwork.base.caveat import mismatch_texts
from weftwork.hardware import catalogue
from weftwork.hardware.prices import price_book
from weftwork.topology.bill import bill
from weftwork.topology.build import fabric_of
from weftwork.topology.devices import unfed_links

SAID = (
    "links to hosts of 800Gbps (fabric.link_rate) behind 'connectx-7', which has ports of 400Gbps and PCIe of 504Gbps "
    "and cannot feed them; fabric.nic: connectx-8 feeds them and is custom: 'dgx-b200' is not sold with it"
)


def said_of(**keys: object) -> tuple[str, ...]:
    fabric = fabric_of(topology="leaf-spine", hosts=8, switch="tomahawk-5", **keys)
    return mismatch_texts(fabric.caveats.values())


@pytest.mark.parametrize("node", sorted(catalogue.SERVERS))
def test_no_server_is_sold_with_links_that_its_nic_cannot_feed(node: str) -> None:
    model = catalogue.node(node)
    card_bps = catalogue.nic_rates_bps().get(model.nic)
    pcie_bps = catalogue.nic(model.nic).pcie_rate_bps
    assert card_bps is None or model.nic_port_rate_bps <= card_bps
    assert pcie_bps == 0 or model.nic_port_rate_bps <= pcie_bps


def test_a_link_rate_that_the_nic_cannot_feed_is_said_with_the_key_that_mends_it() -> None:
    assert said_of(node="dgx-b200") == ()
    assert said_of(node="dgx-b200", link_rate_bps=200 * 10**9) == ()
    assert said_of(node="dgx-b200", link_rate_bps=800 * 10**9) == (SAID,)
    assert said_of(node="dgx-b200", link_rate_bps=800 * 10**9, nic="connectx-8") == ()
    (caveat,) = unfed_links(3_200 * 10**9, catalogue.nic("connectx-7")).values()
    assert caveat.text.endswith("; no NIC of the catalogue feeds them")


def test_fields_of_the_user_count() -> None:
    wide = {"model": "connectx-7", "pcie_rate_bps": 10**12}
    (text,) = said_of(node="dgx-b200", link_rate_bps=800 * 10**9, nic=wide)
    assert "which has ports of 400Gbps and cannot feed them" in text
    narrow = {"model": "connectx-7", "pcie_rate_bps": 10**11}
    (text,) = said_of(node="dgx-b200", nic=narrow)
    assert "which has PCIe of 100Gbps and cannot feed them; fabric.nic: connectx-7 feeds them" in text


@pytest.mark.parametrize(("rate", "cards"), [(200, 8), (400, 8), (800, 8)])
def test_a_port_is_one_card_in_a_bill_as_in_a_run(rate: int, cards: int) -> None:
    fabric = fabric_of(topology="leaf-spine", hosts=8, node="dgx-b200", switch="tomahawk-5", link_rate_bps=rate * 10**9)
    found = bill(fabric, price_book(None))
    assert found.count("nic") == cards * 8
    assert found.mismatches == ((SAID,) if rate == 800 else ())
