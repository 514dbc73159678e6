"""The folders from whose files a scenario can choose.

A new file in a folder is a new choice, with no other edit. They are named here and imported where a record is asked
for, so that this floor knows no floor above it.
Leaves out: policies (`weftwork.spec.scenario.policies`) and devices, which are rows of a table.
"""

from __future__ import annotations

from typing import Any, Final

from weftwork.base.folder import Folder
from weftwork.spec.fault_kind import FaultKind
from weftwork.spec.scenario.choice import PathScheme, Pattern, TransportKind
from weftwork.spec.scenario.topology import Topology

__all__ = ["ALGORITHMS", "FAULTS", "PATTERNS", "SCHEMES", "TOPOLOGIES", "TRANSPORTS"]

ALGORITHMS: Final[Folder[Any]] = Folder(
    "collective",
    package="weftwork.workload.collectives.algorithms",
    constant="ALGORITHM",
    record="weftwork.workload.collectives.algorithm:Algorithm",
)
FAULTS: Final[Folder[FaultKind[Any]]] = Folder(
    "fault", package="weftwork.spec.faults", constant="FAULT", record=FaultKind
)
PATTERNS: Final[Folder[Pattern[Any]]] = Folder(
    "traffic", package="weftwork.workload.traffic.patterns", constant="PATTERN", record=Pattern
)
SCHEMES: Final[Folder[PathScheme[Any]]] = Folder(
    "central_engineering", package="weftwork.policies.central_engineering", constant="SCHEME", record=PathScheme
)
TOPOLOGIES: Final[Folder[Topology[Any]]] = Folder(
    "topology", package="weftwork.topology.shapes", constant="TOPOLOGY", record=Topology
)
TRANSPORTS: Final[Folder[TransportKind[Any]]] = Folder(
    "transport", package="weftwork.transports", constant="TRANSPORT", record=TransportKind
)
