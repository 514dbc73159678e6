"""Audit events of Python (`sys.audit`, PEP 578) for what costs much: listeners hear of runs, engines know no listener.

Weftwork's own suite counts work with them; a program that embeds Weftwork may do so too.
Leaves out: progress within a run.
"""

from __future__ import annotations

import sys
from typing import Final

__all__ = ["EXECUTED", "SIMULATED", "executed", "simulated"]

EXECUTED: Final = "weftwork.execute"
SIMULATED: Final = "weftwork.simulate"


def executed(name: str) -> None:
    """Tell that a scenario is executed, or another world beside it.

    Parameters
    ----------
    name : of the scenario
    """
    sys.audit(EXECUTED, name)


def simulated(engine: str, work: int) -> None:
    """Tell that an engine has ended.

    Parameters
    ----------
    engine : packet, reference or flow
    work : packet-hops, of the flow engine events
    """
    sys.audit(SIMULATED, engine, work)
