"""Links, cells and names that a picture of the fabric outlines."""

from __future__ import annotations

from helpers.shown import Element


def outlined(part: Element) -> tuple[list[str], list[str]]:
    """What is outlined in a picture of the fabric, links and cells by their titles; and the names beside them."""
    (drawing,) = part.all("svg", role="img")
    cells = [one.all("title")[0].text for one in drawing.all("rect", kind="blame")]
    paths = [one for one in drawing.children if isinstance(one, Element) and one.tag == "path"]
    lines = [
        one.all("title")[0].text.partition(":")[0]
        for place, one in enumerate(paths)
        if place > 1 and "blame" in paths[place - 2].attributes["class"]
    ]
    return [*lines, *cells], [one.text for one in part.all("span", kind="blamed")]
