"""Settings of all engines: policies, seed, end, faults and their delays.

They are given besides fabric, job and transport.
Leaves out: congestion control, which only packets have; how the flow engine folds and settles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weftwork.base.clock import MS_PS, NEVER_PS
from weftwork.spec.routing import SHORTEST, Routing

if TYPE_CHECKING:
    from weftwork.engine.instants import Fault
    from weftwork.policies.load import LoadedPolicy

__all__ = ["FAILOVER_DELAY_PS", "RECONVERGENCE_DELAY_PS", "EngineSettings"]

RECONVERGENCE_DELAY_PS: Final = MS_PS  # chosen: fast rerouting in a data centre, as fabric.reconvergence_delay
FAILOVER_DELAY_PS: Final = MS_PS  # chosen: a NIC sees that its own link is down at once; its driver then moves queues


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineSettings:
    """Settings that all engines take.

    Parameters
    ----------
    port_selection : loaded policy
    path_selection : loaded policy; None: entropy is constant
    seed : of the run, from 0 to 2**31 - 1
    until_ps : the run ends before the first event at or after this instant
    faults : what happens, in the order in which faults of one instant are applied
    reconvergence_delay_ps : from a fault until routes that know of it hold
    failover_delay_ps : from a fault of a NIC's link until queue pairs of ranks with several NIC ports use another one
    routing : which paths packets may take
    source : what to call the input in an error
    """

    port_selection: LoadedPolicy
    path_selection: LoadedPolicy | None = None
    seed: int = 1
    until_ps: int = NEVER_PS
    faults: tuple[Fault, ...] = ()
    reconvergence_delay_ps: int = RECONVERGENCE_DELAY_PS
    failover_delay_ps: int = FAILOVER_DELAY_PS
    routing: Routing = SHORTEST
    source: str = "scenario"
