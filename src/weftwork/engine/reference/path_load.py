"""The smoothed load of a switch's port, and its byte in packets.

A packet carries the largest load of its path.
Source: `docs/models/packet-engine.md`, Path load; Ben Basat et al., PINT, SIGCOMM 2020, doi:10.1145/3387514.3405894;
HPCC-ns3 (github.com/alibaba-edu/High-Precision-Congestion-Control), switch-node.cc, mode 10, and pint.cc.
Leaves out: a switch's approximate logarithms.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate, repeat
from typing import Final

from weftwork.base.random import uniform

__all__ = ["PortLoad", "code_of", "load_of"]

_UNITS: Final = 512  # HPCC-ns3, pint.h, max_concurrent: the least load is that of a flow among as many
_BASE: Final = 1.05  # HPCC-ns3, pint.cc, log_base: 256 codes reach up to a load of 494
_CODED: Final = tuple(accumulate(repeat(_BASE, 255), lambda value, base: value * base, initial=1.0))


@dataclass(slots=True)
class PortLoad:
    """Load of a port and its last measurement.

    The measurement has an instant, and the bytes that it was made behind.
    """

    load: float = 0.0
    at_ps: int = 0
    sent_bytes: int = 0

    def measure(self, at_ps: int, queue_bytes: int, sent_bytes: int, rate_bps: int, round_ps: int) -> None:
        """Smooth the load over a round trip, when a data packet starts."""
        gap_ps = at_ps - self.at_ps
        if gap_ps <= 0:
            return
        share = min(gap_ps / round_ps, 1.0)
        now = (queue_bytes / round_ps + (sent_bytes - self.sent_bytes) / gap_ps) * (8e12 / rate_bps)
        self.load = (1.0 - share) * self.load + share * now
        self.at_ps, self.sent_bytes = at_ps, sent_bytes


def code_of(load: float, bits: int) -> int:
    """Round a load to a code, up or down by a draw."""
    units = max(math.ceil(load * _UNITS), 1)
    code = bisect_right(_CODED, units) - 1
    if code == len(_CODED) - 1:
        return code
    return code + (uniform(bits) < (units - _CODED[code]) / (_CODED[code + 1] - _CODED[code]))


def load_of(code: int) -> float:
    """The load of a code."""
    return _CODED[code] / _UNITS
