"""Texts of a page that a reader copies: code, settings, and cells that begin with a command."""

from __future__ import annotations

import html
import re


def copied(page: str) -> list[str]:
    """Texts of code, of settings, and of the cells that begin with a command."""
    body = page[page.index("<main>") : page.index("<script>")]
    marked = re.findall(r"<(?:code|pre)>(.*?)</(?:code|pre)>", body, re.DOTALL)
    text = html.unescape(re.sub(r"<[^>]*>", "\n", body))
    return [html.unescape(one) for one in marked] + re.findall(r"weftwork [a-z]+ .*", text)
