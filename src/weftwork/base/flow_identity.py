"""Identity of a flow: source, destination and channel in 64 bits.

Source: `docs/models/packet-engine.md`, section Packets; `native/base/flow_identity.hpp` packs the same.
Leaves out: what is in it; `weftwork.spec.job` has ranks and channels.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["flow_identity"]

Number = TypeVar("Number", int, NDArray[np.int64])


def flow_identity(source: Number, destination: Number, channel: Number) -> Number:
    """Return the identity.

    Identities sort by source, then destination, then channel.

    Parameters
    ----------
    source, destination : ranks, below 2^23 and 2^24
    channel : below 2^16

    Examples
    --------
    >>> flow_identity(1, 2, 3) == (1 << 40) + (2 << 16) + 3
    True
    """
    return source << 40 | destination << 16 | channel
