"""Captured frames of a run: those that start at chosen ports.

They are the same from both packet engines. A frame counts at the instant when its first bit leaves the port, so that a
frame that its link loses is captured too.
Leaves out: bytes of headers, which the packet engines do not have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CaptureRequest", "earliest"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptureRequest:
    """Ports and frame limit of a capture.

    Parameters
    ----------
    ports : global port ids; a link has two, one for each direction
    packet_limit : frames that are kept, the earliest of all these ports
    """

    ports: tuple[int, ...]
    packet_limit: int


def earliest(request: CaptureRequest, rows: NDArray[np.void]) -> tuple[NDArray[np.void], int]:
    """Merge the captured frames of all ports by time.

    Parameters
    ----------
    request : its limit
    rows : `CAPTURE_DTYPE`; of each port in the order of time, and at least as many of its earliest as the limit

    Returns
    -------
    the earliest rows by instant and port, and how many are left out
    """
    ordered = rows[np.lexsort((rows["port"], rows["at_ps"]))]
    return ordered[: request.packet_limit], max(0, len(ordered) - request.packet_limit)
