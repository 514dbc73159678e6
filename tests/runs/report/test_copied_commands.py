"""Commands, keys and paths on pages are what a terminal takes: ASCII, without thin spaces and the sign for micro."""

from __future__ import annotations

import html
import re

from helpers.gallery import Gallery

from weftwork.report.page import run_page


def copied(page: str) -> list[str]:
    """Texts of code, of settings, and of the cells that begin with a command."""
    body = page[page.index("<main>") : page.index("<script>")]
    marked = re.findall(r"<(?:code|pre)>(.*?)</(?:code|pre)>", body, re.DOTALL)
    text = html.unescape(re.sub(r"<[^>]*>", "\n", body))
    return [html.unescape(one) for one in marked] + re.findall(r"weftwork [a-z]+ .*", text)


def test_a_page_of_a_run_has_its_commands_as_they_are_typed(gallery: Gallery) -> None:
    assert [one for one in copied(run_page(gallery("incast"))) if not one.isascii()] == []
