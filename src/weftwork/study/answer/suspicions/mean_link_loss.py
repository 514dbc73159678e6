"""Loss of links whose mean cost flows have.

Flows have the mean cost of losses and count none, so that it is a suspect wherever a link can lose a packet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.study.answer.suspect import Suspect
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.answer.suspicions._losses import loss_of_links

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["SUSPICION"]


def _mean_loss(records: RunRecords) -> Iterator[Suspect]:
    return loss_of_links(records.prepared.fabric.links, "costs flows its mean cost")


SUSPICION: Final = Suspicion(
    rank=270,
    key="fabric.loss",
    needs=frozenset({"lossy flows"}),
    suspects=_mean_loss,
)
