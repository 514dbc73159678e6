"""The rows of the interface, which its page prints, hold every field that crosses to the core, each with its words."""

import dataclasses
import inspect
import re
from pathlib import Path
from typing import get_args

import pytest

from weftwork.policies import interface
from weftwork.policies.described import (
    FIELDS_OF_NEED,
    field_rows,
    kind_rows,
    need_rows,
    plugin_rows,
    told_kinds,
)
from weftwork.policies.interface import Kind, Need, Plugin, Signal

ROOT = Path(__file__).parents[3]


PAGE = (ROOT / "docs" / "models" / "policy-interface.md").read_text(encoding="utf-8")


def test_units_are_those_of_the_names() -> None:
    units = {row.name: row.unit for row in field_rows(Signal)}
    assert units["rtt_ps"] == "ps"
    assert units["hop_rate_bps"] == "bit/s"
    assert units["bytes"] == units["lost_bytes"] == "byte"
    assert units["seq"] == ""


def test_kinds_that_fill_a_field_are_read_from_its_comment() -> None:
    rows = {row.name: row for row in field_rows(Signal)}
    assert rows["rtt_ps"].kinds("sender") == {Kind.ACK, Kind.TRIM}
    assert rows["rtt_ps"].kinds("receiver") == set()
    assert rows["host_delay_ps"].kinds("receiver") == {Kind.DATA}
    assert rows["draw"].kinds("path") == {Kind.SEND}
    assert rows["draw"].kinds("sender") == set()
    assert rows["backlog_bytes"].kinds("receiver") == set()
    assert rows["backlog_bytes"].kinds("path") == told_kinds("path")
    assert rows["bytes"].kinds("sender") == {Kind.ACK, Kind.SEND, Kind.TRIM, Kind.CREDIT}
    assert rows["line_rate_bps"].kinds("receiver") == told_kinds("receiver")


def test_kinds_and_needs_have_words_and_fields_that_exist() -> None:
    assert [(name, number) for name, number, _ in kind_rows()] == [(kind.name, int(kind)) for kind in Kind]
    assert all(text for _, _, text in kind_rows())
    assert [name for name, _, _ in need_rows()] == list(get_args(Need))
    assert all(text for _, text, _ in need_rows())
    known = {row.name for owner in (Signal, interface.Candidate, interface.PortSignal) for row in field_rows(owner)}
    assert {name for names in FIELDS_OF_NEED.values() for name in names} <= known
    assert set(FIELDS_OF_NEED) == set(get_args(Need)) - {"reorder-tolerance"}


@pytest.mark.parametrize("owner", get_args(Plugin), ids=lambda owner: owner.__name__)
def test_every_field_of_a_plug_in_is_explained_on_the_page(owner: type[Plugin]) -> None:
    rows = plugin_rows(owner)
    assert [name for name, _, _ in rows] == [field.name for field in dataclasses.fields(owner)]
    assert [name for name, _, text in rows if not text] == []
    assert {name for name, default, _ in rows if not default} >= {"params", "state", "step", "source"}
    assert f"<!-- rows: interface-{owner.__name__} -->\n" in PAGE


def test_the_page_has_each_table_once_and_names_the_version() -> None:
    classes = {name for name in interface.__all__ if inspect.isclass(getattr(interface, name)) and name != "Kind"}
    tables = re.findall(r"<!-- rows: interface-(\S+) -->", PAGE)
    assert sorted(tables) == sorted([*classes, "kinds", "needs"])
    assert f"The interface has version {interface.INTERFACE} " in PAGE
