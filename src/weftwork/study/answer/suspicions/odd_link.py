"""Links that are slower or lossier than nearly all their peers.

Peers are the links between the same tiers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.units import RATE, format_quantity
from weftwork.study.answer.ids import ids_of_links
from weftwork.study.answer.suspect import Suspect, are_few, changed
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.answer.suspicions._peers import names_like, usual_value
from weftwork.study.prepare import what_if

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["SUSPICION"]


def _odd_links(records: RunRecords) -> Iterator[Suspect]:
    fabric = records.prepared.fabric
    links, tier = fabric.links, fabric.node_tier
    between = tier[links["a"]].astype(np.int64) * 64 + tier[links["b"]]
    for group in np.unique(between).tolist():
        own = np.flatnonzero(between == group)
        usual_bps = usual_value(links["rate_bps"][own])
        slow = own[links["rate_bps"][own] < usual_bps]
        if are_few(len(slow), len(own)):
            rates = links["rate_bps"].copy()
            rates[slow] = usual_bps
            has, wanted = (format_quantity(RATE, int(rate)) for rate in (links["rate_bps"][slow].min(), usual_bps))
            yield Suspect(
                kind="link",
                name=names_like([fabric.link_names[link] for link in slow.tolist()]),
                ids=ids_of_links(fabric, slow.tolist()),
                key="fabric",
                text=f"has {has}, its peers have {wanted}",
                change=changed(what_if.with_rates, rates),
            )
        for name, words in (("loss", "loses"), ("corruption", "corrupts")):
            usual = usual_value(links[name][own])
            bad = own[links[name][own] > usual]
            if are_few(len(bad), len(own)):
                mended = links.copy()
                mended[name][bad] = usual
                share = float(links[name][bad].max())
                yield Suspect(
                    kind="link",
                    name=names_like([fabric.link_names[link] for link in bad.tolist()]),
                    ids=ids_of_links(fabric, bad.tolist()),
                    key="fabric",
                    text=f"{words} {100 * share:g} % of its packets",
                    change=changed(what_if.on_fabric, links=mended),
                )


SUSPICION: Final = Suspicion(
    rank=40,
    key="fabric",
    standing="wrong",
    suspects=_odd_links,
)
