"""Loss of packets that all links of a fabric have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weftwork.study.answer.suspect import Suspect, changed
from weftwork.study.prepare import what_if

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


__all__ = ["loss_of_links"]


def loss_of_links(links: NDArray[np.void], what: str) -> Iterator[Suspect]:
    """The loss that all links of a fabric have; none where they lose nothing.

    Parameters
    ----------
    links : of the fabric
    what : the loss did, in words
    """
    worst = float(max(links["loss"].max(initial=0.0), links["corruption"].max(initial=0.0)))
    if not worst:
        return
    mended = links.copy()
    mended["loss"] = mended["corruption"] = 0.0
    yield Suspect(
        kind="setting",
        name="loss of links",
        key="fabric.loss",
        text=f"of up to {100 * worst:g} % {what}",
        change=changed(what_if.on_fabric, links=mended),
    )
