"""Equipment besides hosts that takes switch ports.

The fabric manager of InfiniBand is such equipment. A topology lists such equipment; a bill of materials counts it.
Leaves out: traffic to it, since no job sends any.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from weftwork.spec.device import Record

__all__ = ["TIERS", "Extra"]

TIERS: Final = {"leaf": 1, "spine": 2, "core": 3}  # as `Fabric.node_tier` counts


class Extra(Record):
    """Equipment that is linked to switches but is not a host.

    Parameters
    ----------
    item : what it is, such as ``fabric manager``; a price book knows it by this name
    count : how many there are
    ports : links of each to the fabric
    where : tier of the switches whose free ports it takes
    rate_bps : of its links; None: of most host links
    length_m : of its cables; None: of most host links
    """

    item: str
    count: int = Field(default=1, ge=1)
    ports: int = Field(default=1, ge=1)
    where: Literal["leaf", "spine", "core"] = "leaf"
    rate_bps: int | None = Field(default=None, gt=0)
    length_m: float | None = Field(default=None, ge=0)
