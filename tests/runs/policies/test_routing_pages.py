"""Names of routing: the key, the list, the table of the program and the pages are one set, and pictures are fresh."""

from __future__ import annotations

import json
import re

import pytest

from weftwork.cli.list import list_kind
from weftwork.spec.routings import ROUTINGS


def test_the_list_has_sentence_source_and_channels(capsys: pytest.CaptureFixture[str]) -> None:
    list_kind("routing", as_json=True, with_sources=False)
    told = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert list(told) == list(ROUTINGS)
    for name, routing in ROUTINGS.items():
        assert told[name] == {
            "name": name, "text": routing.text, "source": routing.source, "channels": routing.channels,
        }  # fmt: skip
        assert routing.text.endswith(".")


def test_the_printed_list_has_a_table_of_channels(capsys: pytest.CaptureFixture[str]) -> None:
    list_kind("routing", as_json=False, with_sources=True)
    first, _, second = capsys.readouterr().out.partition("virtual channels of each priority")
    for name in ROUTINGS:
        assert re.search(rf"^{name} ", first, re.MULTILINE)
        assert re.search(rf"^{name} +\S", second, re.MULTILINE)
    assert "doi:10.1137/0211027" in first
