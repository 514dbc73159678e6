"""A suspect for the time of a run, and when a record of the run makes one.

Leaves out: who is suspected (`weftwork.study.answer.suspects`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.spec.answer import CulpritKind
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["BUSY", "COLLIDED", "REACTIONS", "Suspect", "changed"]

COLLIDED: Final = 1.2  # chosen: times the bytes of the mean of equal ports
# Keys of what answers to others: it yields to its cause, and is tried together with it
REACTIONS: Final = ("transport.timeout", "transport.congestion_control", "transport.recovery")
BUSY: Final = 0.3  # chosen: of the time; what is used less held nobody up for long


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspect:
    """A suspect, without which a run can be simulated again.

    Attributes
    ----------
    kind, name, key, text : as in `weftwork.spec.answer.Culprit`
    change : the run without it, from the run or from the run without another suspect; None where no engine can run it
    job : index of the job whose time it costs; None: of all
    case : of the table ``what_if``, where one can also buy the world without it; else empty
    bound_share : at most so much of what the run took; None: what computing leaves
    start_ps, end_ps : when it is at work; None: all the time
    lasts_ps : for how long it holds anybody up by itself, all its turns together; None: to the end
    """

    kind: CulpritKind
    name: str
    key: str | None
    text: str
    change: Callable[[Prepared], Prepared] | None
    job: int | None = None
    case: str = ""
    bound_share: float | None = None
    start_ps: int | None = None
    end_ps: int | None = None
    lasts_ps: int | None = None

    @property
    def is_reaction(self) -> bool:
        """Whether it answers to what others did, as a congestion control or a timeout does."""
        return self.key in REACTIONS

    @property
    def label(self) -> str:
        """A label that distinguishes the suspect from all others."""
        return f"{self.kind} {self.name} {self.job}"


def changed(function: Callable[..., Prepared], *arguments: object, **keys: object) -> Callable[[Prepared], Prepared]:
    """Make a change of a prepared run from a function whose first parameter is the run.

    Parameters
    ----------
    function : such as those of `weftwork.study.prepare.what_if`
    arguments, keys : its other arguments
    """
    return lambda prepared: function(prepared, *arguments, **keys)
