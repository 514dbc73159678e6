"""The keys of ``fabric.engineering``: a controller that plans paths.

The paths carry the traffic of the job.
Leaves out: keys of one scheme alone, which stand in its file (`weftwork.policies.central_engineering`).
"""

from __future__ import annotations

from pydantic import Field

from weftwork.base.units import DURATION
from weftwork.spec.device import Record
from weftwork.spec.scenario.choice import NoKeys
from weftwork.spec.scenario.choices import SCHEMES
from weftwork.spec.scenario.kinds import Measure, OfferKind
from weftwork.spec.scenario.rows import REQUIRED, row

__all__ = ["EngineeringSection"]


class EngineeringSection(Record):
    """Central traffic engineering: planned paths."""

    scheme: str = row(
        "scheme",
        OfferKind(folder=SCHEMES),
        default=REQUIRED,
        text="Scheme by which the controller chooses a path for each pair of NIC ports in the job's traffic matrix.",
        source="chosen: it decides the paths, so the user does",
    )
    options: Record = Field(default_factory=NoKeys)  # the keys of the scheme
    interval_ps: int | None = row(
        "interval",
        Measure(quantity=DURATION, low=1_000_000),
        absent="paths are computed once, before the first byte is sent",
        text="Time between two computations of the paths. New paths hold from the first multiple of it at which a fault"
        " and the reconvergence after it have passed; until then a path with a dead link gives way to shortest paths.",
        source="chosen: only the user knows the controller",
    )
