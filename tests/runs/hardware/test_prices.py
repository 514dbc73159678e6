"""Price books: the shipped ones, linear prices, and what is told of a user's own that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from weftwork.base.errors import ConfigError, Mistake
from weftwork.hardware.catalogue import NICS, SERVERS, SWITCHES
from weftwork.hardware.price_rows import Linear, PriceBook, Range
from weftwork.hardware.prices import DEFAULT, SHIPPED, parse_prices, price_book, shipped_text

GBPS = 10**9

GOOD = """
version = 1
title = "A test"

[[switch]]
name = "box"
models = ["quantum-2"]
price_usd = [1, 2, 3]
power_w = 500
source = "a quote"
date = 2025-11-01
verified = true
"""


def mistakes_of(text: str) -> list[Mistake]:
    with pytest.raises(ConfigError) as caught:
        parse_prices(text, "mine.toml")
    return list(caught.value.mistakes)


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_every_shipped_row_has_a_source_a_date_and_a_mark(name: str) -> None:
    book = price_book(name)
    assert book.name == name
    assert book.title
    for row in book.rows:
        assert len(row.source) > 5
        assert row.date.startswith("20")
        assert not (row.verified and row.source.startswith(("chosen:", "derived:")))
        assert not (row.power_verified and row.power_source.startswith(("chosen:", "derived:")))


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_no_shipped_price_is_verified(name: str) -> None:
    """Vendors publish no list; a row that somebody reads in one turns this test red, and its page needs a new word."""
    assert not any(row.verified for row in price_book(name).rows)


def test_models_of_the_shipped_book_are_of_the_catalogue() -> None:
    for row in price_book().rows:
        known = {"switch": SWITCHES, "nic": NICS}.get(row.kind)
        assert known is None or set(row.models) <= set(known)
        assert set(row.nodes) <= set(SERVERS)


def test_cages_of_the_shipped_book() -> None:
    book = price_book()
    quantum = book.switch("quantum-2", 400 * GBPS)
    nic = book.nic("connectx-7", "dgx-h100", 400 * GBPS)
    alone = book.nic("connectx-7", "gb200-nvl72", 400 * GBPS)
    assert quantum is not None
    assert nic is not None
    assert alone is not None
    assert [row.ports_per_module(400 * GBPS) for row in (quantum, nic, alone)] == [2, 2, 1]
    assert (quantum.ports_per_module(800 * GBPS), quantum.ports_per_module(1_600 * GBPS)) == (1, 0)
    assert book.switch("tomahawk-6", 400 * GBPS) is None


def test_media_by_reach_rate_and_place() -> None:
    book = price_book()
    near = [row.name for row in book.media(rate_bps=400 * GBPS, length_m=2, between="hosts")]
    assert near == ["DAC", "ACC", "AEC", "AOC", "SR", "DR", "FR"]
    assert [row.name for row in book.media(rate_bps=400 * GBPS, length_m=501, between="hosts")] == ["FR"]
    assert book.media(rate_bps=400 * GBPS, length_m=2_001, between="hosts") == []
    (between,) = price_book("deepseek-2025").media(rate_bps=400 * GBPS, length_m=9_999, between="switches")
    assert between.name == "link between switches"


def test_a_linear_price() -> None:
    form = Linear(
        fixed=Range(low=1, typical=2, high=3),
        per_port=Range(low=10, typical=10, high=10),
        per_m=Range(low=0, typical=1, high=2),
        per_gbps_m=Range(low=1, typical=1, high=1),
    )
    assert form.at(ports=4, length_m=5, gbps=2) == Range(low=51, typical=57, high=63)


def test_the_first_row_that_fits_is_taken() -> None:
    other = GOOD.replace('name = "box"\nmodels = ["quantum-2"]', 'name = "any"').split("\n\n")[1]
    book = parse_prices(f"{GOOD}\n{other}", "two")
    assert [getattr(book.switch(model, GBPS), "name", None) for model in ("quantum-2", "plain")] == ["box", "any"]


def test_a_book_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(GOOD, encoding="utf-8")
    book = price_book(file)
    assert isinstance(book, PriceBook)
    (row,) = book.rows
    assert (book.name, row.date, row.verified, row.power_verified) == (str(file), "2025-11-01", True, True)
    assert row.power is not None
    assert row.power.fixed == Range(low=500, typical=500, high=500)


def test_a_shipped_book_is_a_start_for_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "copy.toml"
    file.write_text(shipped_text(DEFAULT), encoding="utf-8")
    assert price_book(file).rows == price_book().rows


def test_all_mistakes_are_told_at_once_with_their_lines() -> None:
    text = """version = 2
tile = "A test"
[[switch]]
name = "box"
modles = ["quantum-2"]
cage_rate = "800Gb"
price_usd = [3, 2, 1]
price_per_m_usd = 4
source = "a quote"
date = "2025"
[[module]]
name = "SR4"
medium = "SR"
rates = "400Gbps"
price_usd = -1
source = ""
date = "2025"
verified = "yes"
[[medium]]
name = "SR"
reach = 50
between = "host"
modules = true
price_usd = true
source = "a quote"
date = "2025"
verified = false
[[swich]]
name = "other"
"""
    told = {(mistake.line, mistake.path, mistake.fix and str(mistake.fix)) for mistake in mistakes_of(text)}
    assert told == {
        (1, "version", None),
        (2, "tile", "title"),
        (None, "title", None),
        (3, "switch[0].verified", None),
        (5, "switch[0].modles", "models"),
        (6, "switch[0].cage_rate", "800Gbps"),
        (7, "switch[0].price_usd", "[1, 2, 3]"),
        (8, "switch[0].price_per_m_usd", "price_per_port_usd"),
        (14, "module[0].rates", None),
        (15, "module[0].price_usd", None),
        (16, "module[0].source", None),
        (18, "module[0].verified", None),
        (21, "medium[0].reach", None),
        (22, "medium[0].between", "hosts"),
        (24, "medium[0].price_usd", None),
        (28, "swich", "switch"),
    }


@pytest.mark.parametrize(
    ("before", "after", "path"),
    [
        ("[1, 2, 3]", "[1, 2]", "switch[0].price_usd"),
        ("[1, 2, 3]", "inf", "switch[0].price_usd"),
        ("[1, 2, 3]", "'dear'", "switch[0].price_usd"),
        ("power_w = 500", "power_w = nan", "switch[0].power_w"),
        ("power_w = 500", "power_w = -5", "switch[0].power_w"),
        ('models = ["quantum-2"]', "models = []", "switch[0].models"),
        ('models = ["quantum-2"]', 'cage_rate = "0Gbps"', "switch[0].cage_rate"),
        ("[[switch]]", "[switch]", "switch"),
        ('title = "A test"', "title = 3", "title"),
    ],
)
def test_a_wrong_value_is_refused(before: str, after: str, path: str) -> None:
    assert before in GOOD
    assert [mistake.path for mistake in mistakes_of(GOOD.replace(before, after))] == [path]


def test_modules_and_media_belong_together() -> None:
    mark = 'price_usd = 1\nsource = "a quote"\ndate = "2025"\nverified = false\n'
    text = GOOD + (
        f'[[medium]]\nname = "SR"\nmodules = true\n{mark}[[medium]]\nname = "DAC"\nmodules = false\n{mark}'
        f'[[module]]\nname = "one"\nmedium = "DA"\nrates = ["400Gbps"]\n{mark}'
        f'[[module]]\nname = "two"\nmedium = "DAC"\nrates = ["400Gbps"]\n{mark}'
    )
    told = [(mistake.path, mistake.fix and str(mistake.fix)) for mistake in mistakes_of(text)]
    assert told == [("medium[0].modules", None), ("module[0].medium", "DAC"), ("module[1].medium", None)]


def test_what_is_no_book(tmp_path: Path) -> None:
    (syntax,) = mistakes_of("version = 1\ntitle = \n")
    assert (syntax.path, syntax.line) == ("file", 2)
    (empty,) = mistakes_of("version = 1\ntitle = 'nothing'\n")
    assert "has no rows" in empty.text
    with pytest.raises(ConfigError, match="did you mean 'deepseek-2025'"):
        price_book("deepseek")
    with pytest.raises(ConfigError, match="cannot be read"):
        price_book(tmp_path)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not text in UTF-8"):
        price_book(tmp_path / "bytes.toml")
