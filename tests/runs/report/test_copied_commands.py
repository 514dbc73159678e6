"""Commands, keys and paths on pages are what a terminal takes: ASCII, without thin spaces and the sign for micro."""

from __future__ import annotations

from helpers.copied_commands import copied
from helpers.gallery import Gallery

from weftwork.report.page import run_page


def test_a_page_of_a_run_has_its_commands_as_they_are_typed(gallery: Gallery) -> None:
    assert [one for one in copied(run_page(gallery("incast"))) if not one.isascii()] == []
