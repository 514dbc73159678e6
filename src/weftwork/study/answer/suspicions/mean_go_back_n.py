"""Go-back-N on flows, which sends again what follows a lost packet.

Flows have the mean cost of losses and count none, so that it is a suspect wherever a link can lose a packet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.study.answer.suspect import Suspect, changed
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.prepare import what_if

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["SUSPICION"]


def _mean_go_back_n(records: RunRecords) -> Iterator[Suspect]:
    if records.prepared.transport.recovery == "go-back-n":
        yield Suspect(
            kind="setting",
            name="go-back-n",
            key="transport.recovery",
            text="sends again what follows a lost packet",
            change=changed(what_if.with_transport, recovery="selective-repeat"),
        )


SUSPICION: Final = Suspicion(
    rank=290, key="transport.recovery", standing="reaction", needs=frozenset({"lossy flows"}), suspects=_mean_go_back_n
)
