"""Rates of small fabrics, and the state in which all links work."""

from __future__ import annotations

from typing import Any

import numpy as np

from weftwork.spec.fabric import Fabric

RATES: dict[str, Any] = {
    "host_rate_bps": 10**11,
    "fabric_rate_bps": 10**11,
    "host_delay_ps": 1_000,
    "fabric_delay_ps": 1_000,
}


def all_up(fabric: Fabric) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.ones(len(fabric.links), np.bool_)
