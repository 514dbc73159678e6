"""Links that lose packets, all alike.

Leaves out: links unlike their peers (`weftwork.study.answer.suspicions.odd_link`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.study.answer.suspect import Suspect
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.answer.suspicions._losses import loss_of_links

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["SUSPICION"]

_OF_LINKS: Final = ("drop_link_loss", "drop_corrupted")


def _lossy_links(records: RunRecords) -> Iterator[Suspect]:
    """Links that lose packets, all alike; a link unlike its peers is a suspect of its own."""
    if lost := records.drops(*_OF_LINKS):
        yield from loss_of_links(records.prepared.fabric.links, f"took {plural(lost, 'packet')}")


SUSPICION: Final = Suspicion(
    rank=150,
    key="fabric.loss",
    needs=frozenset({"packets"}),
    suspects=_lossy_links,
)
