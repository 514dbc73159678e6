"""Waits of a stuck run: those of every stream, and a deadlock's cycle.

Source: `docs/models/packet-engine.md`, sections Deadlock and Waits. Leaves out: words, see
`weftwork.study.results.waits`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["in_order"]

_KEYS: Final = ("rank", "stream", "kind", "peer", "channel", "ordinal")


def in_order(waits: NDArray[np.void]) -> NDArray[np.void]:
    """Rows sorted by rank, stream, kind, peer, channel and ordinal.

    Parameters
    ----------
    waits : `WAIT_DTYPE`, as an engine found them
    """
    return waits[np.lexsort([waits[name] for name in reversed(_KEYS)])]
