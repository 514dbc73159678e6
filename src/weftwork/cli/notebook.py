"""Notebook views of study results.

`weftwork.report.notebook` writes HTML around words of `weftwork.study`.

It is on this floor because `study` and `report` do not know each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.report.notebook import block, facts
from weftwork.report.words import amount
from weftwork.study.results.record import about

if TYPE_CHECKING:
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["prepared_html"]


def prepared_html(prepared: Prepared) -> str:
    """A prepared run in a notebook.

    It has workload, fabric and transport in words, and the estimated cost.

    Parameters
    ----------
    prepared : of `weftwork.prepare`
    """
    known = about(prepared)
    sent = prepared.volume
    messages = "" if sent is None else f"{sent.messages:,}, {amount(sent.payload_bytes, 'B')} of payload"
    lines = [
        *((name, known[name]) for name in ("workload", "fabric", "transport")),
        ("messages", messages),
        ("estimate", str(prepared.estimate)),
    ]
    return block(prepared.scenario.name, "prepared, not run", [facts(lines)])
