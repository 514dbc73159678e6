"""An example of each kind of fault: the keys of a sound one, without its place.

A kind of fault without an example here fails the tests of the catalogue.
"""

from __future__ import annotations

from typing import Any, Final

from weftwork.spec.scenario.faults import FAULT_KINDS

__all__ = ["EXAMPLES", "PLACED"]

# By resolved names, as `FaultSection` takes them.
EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    "down": {},
    "up": {},
    "degrade": {"fraction": 0.5},
    "lossy": {"loss": 0.5},
    "slow": {"fraction": 0.5},
    "rewire": {"slice": (4, 4, 8), "twisted": False, "switching_time_ps": 10, "bring_up_ps": 20},
}

# Each kind with each place at which it can happen.
PLACED: Final = [(name, place) for name, kind in FAULT_KINDS.items() for place in kind.places]
