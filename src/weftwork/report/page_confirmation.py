"""The section of a page on packet-level confirmation.

It confirms a plan or a fabric that was the best one on the flow engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from weftwork.base.grammar import plural
from weftwork.report.page_elements import PageSection, Tile, paragraphs, table, tiles
from weftwork.report.words import amount, change, sentence, typeset

__all__ = ["confirmation_section"]


def confirmation_section(found: Mapping[str, Any], title: str = "Confirmed packet by packet") -> PageSection:
    """Make the section.

    Parameters
    ----------
    found : document of a confirmation, as `weftwork.study.plan.confirm_words` makes it
    title : of the section
    """
    said = [one for one in (sentence(found["why_no_more"]), f"Left out: {found['left_out']}") if one]
    content = ""
    if found["packet_ps"] is not None and found["flow_ps"] is not None:
        gpus = f"{found['gpus']:,} of {plural(found['of_gpus'], 'GPU')}"
        content = tiles(
            [
                Tile(name="packet by packet", value=amount(found["packet_ps"], "ps"), note=gpus),
                Tile(name="flow engine, the same GPUs", value=amount(found["flow_ps"], "ps")),
                Tile(name="difference", value=change(found["longer_share"])),
            ]
        )
    content += paragraphs([f"{one.rstrip('.')}." for one in said], "told")
    rows = [
        [
            escape(one["kind"]),
            escape(f"{one['operation']}, {amount(one['size_bytes'], 'B')}, {plural(one['ranks'], 'rank')}"),
            *(
                escape(typeset(amount(one[key], "ps"))) if one[key] is not None else escape(one["reason"] or "")
                for key in ("closed_form_ps", "flow_ps", "packet_ps")
            ),
        ]
        for one in found["collectives"]
    ]
    if rows:
        head = ("kind", "its largest call, alone", "closed form", "flow engine", "packets")
        content += table(head, rows, texts=(0, 1))
    return PageSection(id="packets", short="Packets", title=title, content=content)
