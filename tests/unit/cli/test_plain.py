"""Commands that need no parser of options."""

from __future__ import annotations

import pytest

from weftwork.cli.plain import HELP_COLUMNS, plain_command


@pytest.mark.parametrize("words", ["", "gpu", "--json", "gpu --sources", "--json gpu", "congestion-control --json"])
def test_a_list_needs_no_parser(words: str) -> None:
    assert plain_command(["list", *words.split()]) is not None


@pytest.mark.parametrize("words", ["", "run", "list --help", "list gpu nic", "list -x", "list -- gpu", "run list"])
def test_what_is_spelled_otherwise_is_left_to_the_parser(words: str) -> None:
    assert plain_command(words.split()) is None


def test_the_kept_help_is_for_terminals_that_are_wide_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns in (79, HELP_COLUMNS, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert (plain_command(["--help"]) is not None) == (columns >= HELP_COLUMNS)
