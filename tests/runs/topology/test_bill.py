"""Bills of materials: counts of vendors, DeepSeek's table, rail-only savings, power, and laws on generated fabrics."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.hardware.price_rows import PriceBook, Range
from weftwork.hardware.prices import parse_prices, price_book
from weftwork.spec.device import Nic, Server, Switch
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.spec.fabric_extras import Extra
from weftwork.topology.assemble import assemble, links_between
from weftwork.topology.bill import Bill, bill
from weftwork.topology.build import fabric_of

GBPS = 10**9
MANAGER = (Extra(item="fabric manager", ports=4),)

# topologies.md 3.5: 8.5 W for each 400G port (half of a twin module of 17 W), 750 W a box, 25 W a NIC
WATTS = """
version = 1
title = "Round figures for power"
[[switch]]
name = "box"
cage_rate = "800Gbps"
price_usd = 1
power_w = 750
source = "a test"
date = "2025"
verified = true
power_verified = false
[[nic]]
name = "NIC"
price_usd = 1
power_w = 25
source = "a test"
date = "2025"
verified = true
[[medium]]
name = "DR"
modules = true
price_usd = 1
power_w = 0
source = "a test"
date = "2025"
verified = true
[[module]]
name = "twin"
medium = "DR"
rates = ["800Gbps"]
price_usd = 2
power_w = 17
source = "a test"
date = "2025"
verified = true
[[module]]
name = "single"
medium = "DR"
rates = ["400Gbps"]
price_usd = 1
power_w = 8.5
source = "a test"
date = "2025"
verified = true
"""


def domain(gpus: int) -> Server:
    """A server whose GPUs are one NVLink domain, each with a NIC port of its own."""
    return Server(name="domain", gpus=gpus, nic_ports=gpus, nvlink_domain_gpus=gpus, nvlink_rate_bps=3_600 * GBPS)


@cache
def tree(tiers: int, radix: int = 64) -> Fabric:
    return fabric_of(topology="fat-tree", tiers=tiers, radix=radix)


@cache
def rails(servers: int, gpus: int, radix: int = 64) -> Fabric:
    return fabric_of(
        topology="rail-only", hosts=servers, node=domain(gpus), radix=radix, link_rate_bps=400 * GBPS
    )  # fmt: skip


def counts(found: Bill) -> tuple[int, int, int]:
    """Switches, cables between switches, cables to hosts."""
    return found.count("switch"), found.count("cable", "switch to switch"), found.count("cable", "host to switch")


# -- published tables ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topology", "counted", "millions"),
    [
        ({"topology": "fat-tree", "tiers": 2, "radix": 64}, (96, 2_048, 2_048), 9),
        ({"topology": "multi-plane", "hosts": 2_048, "node": "dgx-h100", "radix": 64}, (768, 16_384, 16_384), 72),
        ({"topology": "rail-only", "hosts": 2_048, "node": "dgx-h100", "radix": 64}, (768, 16_384, 16_384), 72),
        ({"topology": "fat-tree", "tiers": 3, "radix": 64}, (5_120, 131_072, 65_536), 491),
        # the paper counts all 512 global ports of a group, 384,272 links; two of them are left over at 511 groups
        (
            {
                "topology": "dragonfly",
                "routers_per_group": 32,
                "hosts_per_router": 16,
                "global_ports": 16,
                "groups": 511,
                "radix": 64,
            },
            (16_352, 384_272 - 511, 261_632),
            1_522,
        ),
    ],
    ids=["FT2", "MPFT", "MPFT as rail-only", "FT3", "dragonfly"],
)
def test_generated_columns_of_deepseek(
    topology: dict[str, object], counted: tuple[int, int, int], millions: float
) -> None:
    """DeepSeek, ISCA 2025, doi:10.1145/3695053.3731412, table 3, with the calibration made for it."""
    found = bill(fabric_of(**topology), price_book("deepseek-2025"))  # type: ignore[arg-type]
    assert counts(found) == counted
    assert found.price_usd.typical == pytest.approx(millions * 1e6, rel=0.01)
    assert found.price_usd.low == found.price_usd.high
    assert not found.not_priced


@pytest.mark.parametrize(
    ("switches", "switch_links", "endpoints", "millions"),
    [
        (1_568, 32_928, 32_928, 146),  # Slim Fly of q = 28, which is no prime power: such a network does not exist
        (511 * 32, 511 * (32 * 31 // 2) + 511 * 512 // 2, 511 * 512, 1_522),  # dragonfly a = 32, p = h = 16, g = 511
    ],
    ids=["Slim Fly", "dragonfly"],
)
def test_columns_of_deepseek_by_closed_form(switches: int, switch_links: int, endpoints: int, millions: float) -> None:
    book = price_book("deepseek-2025")
    rate = 400 * GBPS
    router = book.switch("plain", rate)
    (between,) = book.media(rate_bps=rate, length_m=20, between="switches")
    (down,) = book.media(rate_bps=rate, length_m=20, between="hosts")
    assert router is not None
    each = [book.price_usd(row) for row in (router, between, down)]
    total = sum(part.typical * n for part, n in zip(each, (switches, switch_links, endpoints), strict=True) if part)
    assert total == pytest.approx(millions * 1e6, rel=0.01)


@pytest.mark.parametrize(
    ("servers", "switches", "down", "up"), [(31, 12, 248, 256), (127, 48, 1_016, 1_024)], ids=["1 unit", "4 units"]
)
def test_cables_and_modules_of_a_superpod(servers: int, switches: int, down: int, up: int) -> None:
    """NVIDIA, DGX SuperPOD H100: 252 + 256 and 1,020 + 1,024 cables with the manager's 4; twin-port modules."""
    fabric = fabric_of(topology="superpod", node="dgx-h100", hosts=servers, switch="quantum-2", fabric_manager=True)
    without, found = bill(fabric, price_book(), ()), bill(fabric, price_book())
    assert counts(without) == (switches, up, down)
    assert without.count("cable") == {31: 504, 127: 2_040}[servers]
    assert counts(found) == (switches, up, down)
    assert found.count("cable", "appliance to switch") == 4
    assert found.count("cable") - up == {31: 252, 127: 1_020}[servers]
    assert found.count("module", "hosts") == 4 * servers
    assert found.count("module", "switches") == switches * 32  # all cages
    assert [row.item for row in found.not_priced] == ["fabric manager (UFM)"]
    assert (found.gpus, found.host_ports) == (8 * servers, 8 * servers)


def test_the_modules_of_127_servers() -> None:
    fabric = fabric_of(topology="superpod", node="dgx-h100", hosts=127, switch="quantum-2", fabric_manager=True)
    found = bill(fabric, price_book())
    assert fabric.extras == MANAGER
    assert (found.count("module", "hosts"), found.count("module", "switches")) == (508, 1_536)
    assert found.count("nic") == 1_016


@pytest.mark.parametrize(
    ("any_to_any", "rail_only", "boxes", "cables", "money"),
    [
        ((3, 64), (2_048, 32), 0.40, 1 / 3, 0.41),
        ((2, 64), (64, 32), 2 / 3, 0.50, 0.70),
        ((3, 64), (64, 1_024), 0.80, 2 / 3, 0.825),
    ],
    ids=["3 tiers to 2", "2 tiers to 1", "3 tiers to 1"],
)
def test_what_rail_only_saves(
    any_to_any: tuple[int, int], rail_only: tuple[int, int], boxes: float, cables: float, money: float
) -> None:
    """Published: 38 to 77 % of the money (arXiv:2307.12169, version 5)."""
    book = price_book("deepseek-2025")
    whole, less = bill(tree(*any_to_any), book), bill(rails(*rail_only), book)
    assert less.host_ports == whole.host_ports
    assert 1 - less.count("switch") / whole.count("switch") == pytest.approx(boxes, abs=1e-9)
    assert 1 - less.count("cable") / whole.count("cable") == pytest.approx(cables, abs=1e-9)
    assert 1 - less.price_usd.typical / whole.price_usd.typical == pytest.approx(money, abs=0.005)


@pytest.mark.parametrize(
    ("fabric", "watts"), [("FT3", 134.6), ("FT2", 94.2), ("rail-only", 53.7)], ids=["FT3", "FT2", "rail-only"]
)
def test_power_of_an_endpoint(fabric: str, watts: float) -> None:
    """Boxes + 2 x links x module + NICs: topologies.md 3.5, derived there by hand."""
    built = {"FT3": lambda: tree(3), "FT2": lambda: tree(2), "rail-only": lambda: rails(64, 32)}[fabric]()
    found = bill(built, parse_prices(WATTS, "watts"))
    assert found.power_w.typical / found.host_ports == pytest.approx(watts, abs=0.06)
    assert found.unverified_money_share == 0
    boxes = found.power_of_kind_w("switch").typical / found.power_w.typical
    assert found.unverified_power_share == pytest.approx(boxes)


# -- what is counted, and how ----------------------------------------------------------------------


def book_of(*rows: str) -> PriceBook:
    mark = '\nsource = "a test"\ndate = "2025"\nverified = false\n'
    return parse_prices("version = 1\ntitle = 'A test'\n" + "".join(row + mark for row in rows), "test")


MEDIA = (
    '[[medium]]\nname = "DAC"\nreach = "3m"\nmodules = false\nprice_usd = 50\nprice_per_m_usd = 10\npower_w = 0',
    '[[medium]]\nname = "SR"\nreach = "50m"\nmodules = true\nprice_usd = 20\nprice_per_m_usd = 1\npower_w = 0',
    '[[medium]]\nname = "DR"\nreach = "500m"\nmodules = true\nprice_usd = 20\nprice_per_m_usd = 1\npower_w = 0',
    '[[module]]\nname = "SR4"\nmedium = "SR"\nrates = ["400Gbps"]\nprice_usd = [200, 300, 500]\npower_w = 8',
    '[[module]]\nname = "2xSR4"\nmedium = "SR"\nrates = ["800Gbps"]\nprice_usd = [400, 500, 900]\npower_w = 15',
    '[[module]]\nname = "DR4"\nmedium = "DR"\nrates = ["400Gbps"]\nprice_usd = [600, 700, 800]\npower_w = 9',
)
BOX = '[[switch]]\nname = "box"\nprice_usd = 10_000\nprice_per_port_usd = 10\npower_w = 500'
TWIN_BOX = '[[switch]]\nname = "box"\ncage_rate = "800Gbps"\nprice_usd = 10_000\nprice_per_port_usd = 10\npower_w = 500'
CARD = '[[nic]]\nname = "card"\nprice_usd = [900, 1_000, 1_200]\npower_w = 20'


def star(lengths_m: Sequence[float], rate_gbps: int = 400) -> Fabric:
    """Hosts on one switch, at these lengths."""
    hosts = len(lengths_m)
    parts = [
        links_between([host], [hosts], rate_bps=rate_gbps * GBPS, delay_ps=round(5_000 * length))
        for host, length in enumerate(lengths_m)
    ]
    return assemble(
        name="star", node_names=[*(f"host{host}" for host in range(hosts)), "leaf0"],
        node_kind=[*[HOST] * hosts, SWITCH], node_tier=[*[0] * hosts, 1],
        links=np.concatenate(parts), switches=[Switch()], nics=[Nic()],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("length_m", "medium", "metres"),
    [(0.5, "DAC", 1), (2.2, "DAC", 3), (3.2, "SR", 4), (50, "SR", 50), (50.1, "DR", 51), (200, "DR", 200)],
)
def test_a_link_takes_the_cheapest_medium_that_reaches(length_m: float, medium: str, metres: int) -> None:
    found = bill(star([length_m]), book_of(BOX, CARD, *MEDIA))
    assert [(row.item, row.length_m) for row in found.of_kind("cable")] == [(medium, metres)]
    assert found.count("module") == (0 if medium == "DAC" else 2)


def test_a_cheaper_medium_of_longer_reach_is_taken() -> None:
    cheap = MEDIA[5].replace("[600, 700, 800]", "100")
    found = bill(star([10]), book_of(BOX, CARD, *MEDIA[:5], cheap))
    assert [row.item for row in found.of_kind("cable")] == ["DR"]


def test_two_ports_share_a_twin_port_module() -> None:
    found = bill(star([10] * 5), book_of(TWIN_BOX, CARD, *MEDIA))
    assert {(row.item, row.where): row.count for row in found.of_kind("module")} == {
        ("2xSR4", "switches"): 3,
        ("SR4", "hosts"): 5,
    }


def test_a_link_beyond_every_reach_is_counted_and_not_priced() -> None:
    found = bill(star([10, 600, 700]), book_of(BOX, CARD, *MEDIA))
    assert [(row.item, row.count, row.length_m) for row in found.not_priced] == [
        ("no medium of the book for 400Gbps", 1, 600),
        ("no medium of the book for 400Gbps", 1, 700),
    ]
    assert found.count("cable") == 3
    assert found.count("module") == 2
    assert found.price_usd.typical == 10_030 + 3 * 1_000 + 2 * 300 + 30


def test_a_device_that_the_book_lacks_is_counted_and_not_priced() -> None:
    fabric = fabric_of(topology="leaf-spine", hosts=8, radix=8, switch="tomahawk-6", nic="efa-v2", link_rate_bps=GBPS)
    found = bill(fabric, price_book())
    assert {(row.kind, row.count) for row in found.not_priced} >= {("switch", 3), ("nic", 8)}
    assert all("tomahawk-6" in row.item for row in found.of_kind("switch"))
    assert found.price_usd.typical == 0
    assert found.unverified_money_share == 0


def test_a_medium_without_a_price_is_taken_only_where_no_other_reaches() -> None:
    bare = '[[medium]]\nname = "bare"\nreach = "900m"\nmodules = false\npower_w = 3'
    found = bill(star([10, 800]), book_of(BOX, CARD, bare, *MEDIA))
    assert [(row.item, row.length_m, row.unit_price_usd is None) for row in found.of_kind("cable")] == [
        ("SR", 10, False),
        ("bare", 800, True),
    ]
    assert found.power_of_kind_w("cable").typical == 3


def test_modules_too_slow_for_a_cage_do_not_serve_it() -> None:
    slow = TWIN_BOX.replace("800Gbps", "200Gbps")
    found = bill(star([10]), book_of(slow, CARD, *MEDIA))
    assert [row.item for row in found.not_priced] == ["no medium of the book for 400Gbps"]


def test_two_ports_of_a_host_share_a_nic_of_two_ports() -> None:
    pair = CARD.replace("power_w", 'card_rate = "800Gbps"\npower_w')
    fabric = fabric_of(topology="leaf-spine", hosts=4, node=Server(gpus=1, nic_ports=3), radix=32)
    assert bill(fabric, book_of(BOX, pair, *MEDIA)).count("nic") == 8  # three ports need two


def test_extras_take_free_ports_of_their_tier() -> None:
    fabric = fabric_of(topology="leaf-spine", leaves=2, spines=2, hosts_per_leaf=3, radix=6)
    book = book_of(TWIN_BOX, CARD, *MEDIA, '[[appliance]]\nname = "manager"\nmodels = ["manager"]\nprice_usd = 7_000')
    extra = Extra(item="manager", count=2, ports=1, length_m=2.5)
    plain, found = bill(fabric, book), bill(fabric, book, [extra])
    assert found.count("appliance") == 2
    assert found.price_usd.typical - plain.price_usd.typical == 2 * 7_000 + 2 * (50 + 3 * 10)
    assert [row.item for row in found.not_powered] == ["manager"]
    with pytest.raises(ConfigError, match="needs 3 free ports of the tier 'leaf', which has 2"):
        bill(fabric, book, [extra.model_copy(update={"count": 3})])


def test_a_formula_that_gives_less_than_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'router' gives -541.90 for 1 port, 0 m and 400 Gb/s"):
        bill(star([1]), price_book("slim-fly-2014"))


def test_the_formulas_of_slim_fly() -> None:
    """Besta and Hoefler, SC 2014: 350.4 $ a port - 892.3 $; copper is cheaper below 21.2 m."""
    fabric = fabric_of(topology="fat-tree", tiers=2, radix=64, hosts=64, cable_length_m=10, link_rate_bps=40 * GBPS)
    found = bill(fabric, price_book("slim-fly-2014"))
    switch = found.of_kind("switch")[0].unit_price_usd
    cable = found.of_kind("cable")[0].unit_price_usd
    assert switch is not None
    assert cable is not None
    assert switch.typical == pytest.approx(350.4 * 64 - 892.3)
    assert cable.typical == pytest.approx(40 * (0.4079 * 10 + 0.5771))
    assert found.power_w.typical == pytest.approx(found.count("switch") * 64 * 2.8)


def test_a_large_fabric_takes_seconds() -> None:
    started = perf_counter()
    found = bill(tree(3), price_book())
    assert perf_counter() - started < 10
    assert found.count("cable") == 196_608


# -- laws ------------------------------------------------------------------------------------------


@st.composite
def graphs(draw: st.DrawFn) -> Fabric:
    """Hosts and open-ended switches with cables of many lengths and two rates."""
    switches, hosts = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    lengths = st.sampled_from([0.4, 1, 2.5, 3, 7, 20, 49.9, 50, 120, 500, 501])
    some = st.integers(1, 3)
    cables = [
        *((host, hosts + draw(st.integers(0, switches - 1))) for host in range(hosts) for _ in range(draw(some))),
        *((hosts + one, hosts + one + 1) for one in range(switches - 1) for _ in range(draw(some))),
    ]
    parts = [links_between([a], [b], rate_bps=400 * GBPS, delay_ps=round(5_000 * draw(lengths))) for a, b in cables]
    ports = Counter(a for a, _ in cables if a < hosts)
    return assemble(
        name="drawn", node_names=[*(f"h{one}" for one in range(hosts)), *(f"s{one}" for one in range(switches))],
        node_kind=[*[HOST] * hosts, *[SWITCH] * switches], node_tier=[*[0] * hosts, *[1] * switches],
        links=np.concatenate(parts), switches=[Switch()], nics=[Nic()],
        servers=[Server(name=f"of {n}", nic_ports=n) for n in (1, 2, 3)],
        node_server=[*(ports[one] - 1 for one in range(hosts)), *[0] * switches],
    )  # fmt: skip


LAW = book_of(TWIN_BOX, CARD, *MEDIA)


@given(fabric=graphs())
def test_the_total_is_the_sum_of_the_rows(fabric: Fabric) -> None:
    found = bill(fabric, LAW)
    prices = [row.price_usd for row in found.rows if row.price_usd is not None]
    powers = [row.power_w for row in found.rows if row.power_w is not None]
    for end in ("low", "typical", "high"):
        assert getattr(found.price_usd, end) == pytest.approx(math.fsum(getattr(part, end) for part in prices))
        assert getattr(found.power_w, end) == pytest.approx(math.fsum(getattr(part, end) for part in powers))
    assert found.price_usd.low <= found.price_usd.typical <= found.price_usd.high
    assert found.count("cable") == len(fabric.links)


@given(fabric=graphs())
def test_a_bill_is_the_sum_over_links_and_devices(fabric: Fabric) -> None:
    """The same bill, link by link in plain Python: cables 50 + 10/m, 20 + 1/m and two module ends, one port each."""
    ends: Counter[tuple[int, str]] = Counter()
    total = 0.0
    for a, b, delay in zip(fabric.links["a"], fabric.links["b"], fabric.links["delay_ps"], strict=True):
        metres = math.ceil(delay / 5_000)
        if metres <= 3:
            total += 50 + 10 * metres
        elif metres <= 50:
            total += 20 + metres
            ends[int(a), "SR"] += 1
            ends[int(b), "SR"] += 1
    for (node, _), ports in ends.items():
        total += 300 * ports if fabric.node_kind[node] == HOST else 500 * math.ceil(ports / 2)
    degree = np.diff(fabric.ports.base)
    total += sum(1_000 * int(ports) if kind == HOST else 10_000 + 10 * int(ports)
                 for kind, ports in zip(fabric.node_kind, degree, strict=True))  # fmt: skip
    found = bill(fabric, LAW)
    assert found.price_usd.typical == pytest.approx(total)
    lost = sum(row.count for row in found.not_priced)
    assert lost == int((-(-fabric.links["delay_ps"] // 5_000) > 50).sum())  # no 800G module of the book is DR


@given(fabric=graphs(), length_m=st.sampled_from([1, 20, 400]))
def test_one_more_link_is_never_cheaper(fabric: Fabric, length_m: int) -> None:
    switches = np.flatnonzero(fabric.node_kind == SWITCH)
    more = links_between([switches[0]], [switches[-1]], rate_bps=400 * GBPS, delay_ps=5_000 * length_m)
    if len(switches) < 2:
        return
    larger = replace(fabric, links=np.concatenate([fabric.links, more]), link_names=[*fabric.link_names, "more"])
    before, after = bill(fabric, LAW), bill(larger, LAW)
    assert after.price_usd.low >= before.price_usd.low
    assert after.price_usd.typical >= before.price_usd.typical
    assert after.power_w.high >= before.power_w.high
    assert after.count("cable") == before.count("cable") + 1


def test_ranges_add_and_scale() -> None:
    one = Range(low=1, typical=2, high=5)
    assert one + one == one.times(2)
