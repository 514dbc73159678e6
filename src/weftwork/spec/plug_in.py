"""Everything a plug-in file imports to describe its choice.

These are the records, rows of keys, and kinds of values with units. A file of the catalogue and a file of a user's own
import the same names from here; `docs/howto` shows one file for each kind. Leaves out: what a file builds with, which
stays in its own place (`weftwork.spec.job`, `weftwork.topology`).
"""

from __future__ import annotations

from weftwork.base.units import DURATION, LENGTH, RATE, SIZE
from weftwork.spec.device import Record
from weftwork.spec.engineering import PathProblem, Planned
from weftwork.spec.limits import MAX_HOSTS
from weftwork.spec.scenario.choice import KeyFindings as Findings
from weftwork.spec.scenario.choice import (
    NoKeys,
    PathScheme,
    Pattern,
    PatternInput,
    TrafficSize,
    TransportKind,
)
from weftwork.spec.scenario.effects import Effect
from weftwork.spec.scenario.kinds import (
    Choice,
    FileName,
    Flag,
    Listing,
    Measure,
    Number,
    RatesByTier,
    Ratio,
    Text,
    Whole,
)
from weftwork.spec.scenario.rows import REQUIRED, row
from weftwork.spec.scenario.topology import FabricSize, Ground, Parts, Topology
from weftwork.spec.scenario.topology_growth import (
    CubesOfPod,
    DesignSpace,
    DirectLimits,
    DirectSize,
    MeasuredNetwork,
    ServersAndSwitch,
)
from weftwork.spec.wire_format import CaptureFacts, SentPacket, WireFormat

__all__ = [
    "DURATION",
    "LENGTH",
    "MAX_HOSTS",
    "RATE",
    "REQUIRED",
    "SIZE",
    "CaptureFacts",
    "Choice",
    "CubesOfPod",
    "DesignSpace",
    "DirectLimits",
    "DirectSize",
    "Effect",
    "FabricSize",
    "FileName",
    "Findings",
    "Flag",
    "Ground",
    "Listing",
    "Measure",
    "MeasuredNetwork",
    "NoKeys",
    "Number",
    "Parts",
    "PathProblem",
    "PathScheme",
    "Pattern",
    "PatternInput",
    "Planned",
    "RatesByTier",
    "Ratio",
    "Record",
    "SentPacket",
    "ServersAndSwitch",
    "Text",
    "Topology",
    "TrafficSize",
    "TransportKind",
    "Whole",
    "WireFormat",
    "row",
]
